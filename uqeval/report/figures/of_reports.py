"""Figures of one report, or of several in the same axes; they are drawn when they are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path

import uqeval.report.figures.classes as classes
import uqeval.report.figures.headlines as headlines
import uqeval.report.figures.slices as slices
from uqeval.disk.locks import clear_beside
from uqeval.disk.outputs import refuse_file_name, refuse_url, write
from uqeval.errors import OutputError, cut
from uqeval.glossary import display_of
from uqeval.records.report import Report
from uqeval.report.figures.contract import Figure, Line, lines_of
from uqeval.report.findings.weakest import weakest_slice_score

FORMATS = ("svg", "png", "pdf")
#: Modules that draw results of no family.
_OTHERS = {"sweep": ("sweep", "sweep_curves")}


def figures_of(reports: Mapping[str, Report]) -> dict[str, list[Figure]]:
    """Return figures by family, in the order of the reports' results.

    The key "" has figures over all families, "slices" those of the slices of a single report.
    """
    families = lines_of(reports)
    overall = headlines.figure(families)
    figures = {"": [overall]} if overall else {}
    for family, lines in families.items():
        if drawn := list(_of_family(family, lines)):
            figures[family] = drawn
    if len(reports) == 1:
        (report,) = reports.values()
        by_slice = slices.figure(families, report.slices, weakest_slice_score(report))
        figures |= {"slices": [by_slice]} if by_slice else {}
    return figures


def linked_keys(report: Report) -> set[str]:
    """Return the keys of results for which a page lists the items of each cell or bin, below a
    figure."""
    figures = [figure for group in figures_of({"": report}).values() for figure in group]
    return {figure.behind for figure in figures if figure.behind}


def _of_family(family: str, lines: list[Line]) -> Iterator[Figure]:
    """Yield the figures that a family declares, then its bars by class."""
    display = display_of(family)
    for name in display.figures or _OTHERS.get(family, ()):
        yield from import_module(f"uqeval.report.figures.{name}").figures(lines)
    if display.bars is not None:
        yield from classes.figures(family, display.bars, lines)


def write_figures(
    reports: Mapping[str, Report], folder: str | Path, form: str, more: Sequence[Figure] = ()
) -> list[Path]:
    """Write all figures, and `more`, into a folder: `svg`, `png` or `pdf`. Raises `OutputError`."""
    from uqeval.report.figures.style import render

    refuse_url(folder)
    refuse_file_name(folder)
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{cut(folder)} cannot be made: {error.strerror}.") from error
    written = []
    for figures in [*figures_of(reports).values(), list(more)]:
        for figure in figures:
            path = Path(folder) / f"{figure.name}.{form}"
            clear_beside(path)  # files that a killed process left
            write(path, render(figure, form))
            written.append(path)
    return written
