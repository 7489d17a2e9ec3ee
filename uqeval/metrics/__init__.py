"""Metrics: formulas over tallies, with unit, direction, range and reference."""

from __future__ import annotations

from typing import Any

from uqeval.metrics._contract import (
    ClassBars,
    Column,
    Display,
    Metric,
    Panel,
    Record,
    RowTable,
    ScoreTable,
)
from uqeval.metrics._family import FAMILIES, FAMILIES_IN_REPORTS, Family

#: Families without a command. A run evaluates them together with all others of the data.
COMPANIONS = ("segmentation",)
#: The metrics of all families.
METRICS: tuple[Metric, ...]


def families_with(score: str) -> list[str]:
    """Return the families that have a score of this name."""
    return [name for name, family in FAMILIES.items() if score in family.by_field]


def __getattr__(name: str) -> Any:
    if name == "METRICS":
        metrics = tuple(metric for family in FAMILIES.values() for metric in family.metrics)
        globals()[name] = metrics
        return metrics
    raise AttributeError(f"module 'uqeval.metrics' has no attribute {name!r}")


__all__ = [
    "COMPANIONS", "FAMILIES", "FAMILIES_IN_REPORTS", "METRICS", "ClassBars", "Column", "Display",
    "Family", "Metric", "Panel", "Record", "RowTable", "ScoreTable", "families_with",
]  # fmt: skip
