"""p-values adjusted for many comparisons (Holm)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from uqeval.compare.comparison import Cell, Row


def holm(p: Sequence[float]) -> list[float]:
    """Return p-values adjusted for all of them (Holm 1979), in the given order."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    adjusted, most = [0.0] * len(p), 0.0
    for rank, i in enumerate(order):
        most = max(most, min(1.0, (len(p) - rank) * p[i]))
        adjusted[i] = most
    return adjusted


def adjust(rows: Sequence[Row]) -> tuple[list[Row], int, int]:
    """Return the rows with adjusted p-values, and how many tests each of the two families has.

    Scores of the whole set times rivals are one family; those of classes and slices the other.
    """
    counts = []
    found = list(rows)
    for parts in (False, True):
        places = [
            (i, m, cell.difference.p)
            for i, row in enumerate(found)
            if _of_part(row) == parts
            for m, cell in enumerate(row.cells)
            if cell.difference is not None and cell.difference.p is not None
        ]
        counts.append(len(places))
        for (i, m, _), value in zip(places, holm([p for _, _, p in places]), strict=True):
            cells = list(found[i].cells)
            cells[m] = _with(cells[m], value)
            found[i] = dataclasses.replace(found[i], cells=tuple(cells))
    return found, counts[0], counts[1]


def _of_part(row: Row) -> bool:
    """Return whether a row is of a class or of a slice."""
    return bool(row.address.where) or row.address.fields[0] == "per_class"


def _with(cell: Cell, p: float) -> Cell:
    assert cell.difference is not None
    return dataclasses.replace(cell, difference=dataclasses.replace(cell.difference, p_adjusted=p))
