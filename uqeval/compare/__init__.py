"""Comparison of models by their reports; `uqeval.statistics` does the resampling."""

from uqeval.compare.comparison import Cell, Choice, Comparison, Difference, Rank, Row
from uqeval.compare.models import Model, load_models
from uqeval.compare.side_by_side import compare

__all__ = [
    "Cell", "Choice", "Comparison", "Difference", "Model", "Rank", "Row", "compare", "load_models",
]  # fmt: skip
