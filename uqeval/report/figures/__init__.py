"""Figures of reports."""

from uqeval.report.figures.contract import Figure
from uqeval.report.figures.of_reports import FORMATS, figures_of, linked_keys, write_figures

__all__ = ["FORMATS", "Figure", "figures_of", "linked_keys", "write_figures"]
