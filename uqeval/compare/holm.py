"""P-values adjusted for many tests (Holm)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from uqeval.compare.comparison import Row


def holm(p: Sequence[float]) -> list[float]:
    """Return p-values adjusted for multiple tests, in the same order.

    The k-th smallest of n becomes max over j ≤ k of min(1, (n − j + 1)·p_j) (Holm 1979).
    """
    order = sorted(range(len(p)), key=lambda i: p[i])
    adjusted, largest = [0.0] * len(p), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(p) - rank) * p[i]))
        adjusted[i] = largest
    return adjusted


def adjust(rows: Sequence[Row]) -> tuple[list[Row], int, int]:
    """Return the rows with adjusted p-values, and the number of tests of each family.

    One family: scores of the whole set. The other: scores of classes and slices.
    """
    counts = []
    adjusted = list(rows)
    for parts in (False, True):
        # Of classes and slices, or of the whole set.
        tests = [
            (i, m, cell.difference.p, cell.difference.p_least or 0.0)
            for i, row in enumerate(adjusted)
            if (bool(row.address.where) or row.address.fields[0] == "per_class") == parts
            for m, cell in enumerate(row.cells)
            if cell.difference is not None and cell.difference.p is not None
        ]
        counts.append(len(tests))
        values, least_values = (holm([test[k] for test in tests]) for k in (2, 3))
        for (i, m, *_), value, least in zip(tests, values, least_values, strict=True):
            cells = list(adjusted[i].cells)
            difference = cells[m].difference
            assert difference is not None
            adjusted_difference = replace(
                difference, p_adjusted=value,
                p_least_adjusted=None if difference.p_least is None else least,
            )  # fmt: skip
            cells[m] = replace(cells[m], difference=adjusted_difference)
            adjusted[i] = replace(adjusted[i], cells=tuple(cells))
    return adjusted, counts[0], counts[1]
