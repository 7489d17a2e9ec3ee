"""The ranks of models at a score: the best cells, and how stable the order is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from uqeval.compare.comparison import Rank, Row
from uqeval.records.scalars import is_rounding

if TYPE_CHECKING:
    from uqeval.statistics.paired_comparison import PairedComparison


def minus(value: float, other: float) -> float:
    """Return the difference of two scores; 0 if they differ by rounding only."""
    return 0.0 if is_rounding(value, other) else value - other


def with_ranks(row: Row, paired: PairedComparison | None) -> Row:
    """Return the row with its best cells marked, and with ranks and their stability."""
    values = [cell.value for cell in row.cells]
    defined = [value for value in values if value is not None]
    if row.direction is None or len(defined) < 2:
        return row
    sign = 1 if row.direction == "higher" else -1
    places = [
        None if v is None else 1 + sum(sign * minus(o, v) > 0 for o in defined) for v in values
    ]
    shares: Sequence[tuple[float, float]] = []
    if paired is not None and len(defined) == len(values):
        shares = paired.ranks(row.address.within, row.direction, [p or 0 for p in places])
    cells = []
    for m, (cell, place) in enumerate(zip(row.cells, places, strict=True)):
        rank = None if place is None else Rank(place, *(shares[m] if shares else (None, None)))
        best = place == 1 and any(other not in (None, 1) for other in places)
        cells.append(replace(cell, best=best, rank=rank))
    return replace(row, cells=tuple(cells))
