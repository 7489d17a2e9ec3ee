"""How sparsification scores and curves are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from uqeval.metrics._contract import Column, Display, Record, ScoreTable

if TYPE_CHECKING:
    from uqeval.records.report import Report

#: Removed fractions at which a table reads the curves.
_REMOVED = (0.0, 0.1, 0.2, 0.5, 0.8, 0.9)


def _at(fraction: float) -> Callable[[Record, Report], float | None]:
    """Return a function that reads a curve at the grid point nearest to the fraction."""

    def value(record: Record, report: Report) -> float | None:
        if record["curve"] is None:
            return None
        points = zip(record["fractions"], record["curve"], strict=True)
        return float(min(points, key=lambda point: abs(point[0] - fraction))[1])

    return value


def _oracle(record: Record) -> Iterator[tuple[str, Record]]:
    if record["oracle"] is not None:
        yield "  oracle", {**record, "curve": record["oracle"]}


DISPLAY = Display(
    tables=(
        ScoreTable(
            "Sparsification",
            ("uncertainty", "error", "ause", "aurg", Column("normalisation", "divided by")),
            "AUSE: area between the curve and the oracle; 0 is best. AURG: gain over random "
            "removal; below 0 random removal is better. divided by: the error of all pixels, or 1.",
        ),
        ScoreTable(
            "Error of the remaining pixels",
            tuple(Column("curve", f"{f:.0%} removed", value=_at(f)) for f in _REMOVED),
            below=_oracle,
        ),
    ),
    figures=("sparsification",),
)
