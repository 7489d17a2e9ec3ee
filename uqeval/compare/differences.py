"""Differences of the models from the reference model, their adjusted p-values, and their ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from uqeval.compare.comparison import Difference, Rank, Row
from uqeval.records.resampling import Interval
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


def with_differences(
    row: Row,
    base: int,
    of_other_pixels: Sequence[str | None],
    level: float | None,
    paired: PairedComparison | None,
    drawn_models: Sequence[int],
    from_states: bool,
) -> Row:
    """Return the row with the difference of each model from model `base`.

    `of_other_pixels`: for each model why it has no more than the difference. `drawn_models`: the
    models of `paired`, which gives intervals and p-values. `from_states`: whether the scores were
    computed from saved states.
    """
    reference = row.cells[base].value
    cells = []
    for m, cell in enumerate(row.cells):
        if m == base or cell.value is None or reference is None:
            cells.append(cell)
            continue
        value = minus(cell.value, reference)
        if (reason := of_other_pixels[m]) is not None:
            cells.append(replace(cell, difference=Difference(value, None, level, reason=reason)))
            continue
        better = None
        if row.direction and value:
            better = (value > 0) == (row.direction == "higher")
        difference = Difference(value, better, level)
        if paired is not None and level is not None and m in drawn_models:
            pair, address = (drawn_models.index(m), drawn_models.index(base)), row.address.within
            trainings = (cell.values, row.cells[base].values)
            if all(trainings):
                change = paired.over_trainings(*pair, address, level, trainings, from_states)
            else:
                change = paired.difference(*pair, address, level)
            difference = replace(
                difference, p=change.p, p_least=change.least, swapped=change.swapped
            )
            if isinstance(change.interval, Interval):
                difference = replace(difference, interval=change.interval, reason=change.untested)
            else:
                difference = replace(difference, reason=change.interval.reason)
        cells.append(replace(cell, difference=difference))
    return replace(row, cells=tuple(cells))


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


def warnings_of_units(paired: PairedComparison, rows: Sequence[Row]) -> list[str]:
    """Return warnings about intervals from few units; those of a video differ between differences.

    Intervals over trainings do not come from units, and are shown with their trainings.
    """
    from uqeval.statistics.no_interval import few_pairs_of, few_units
    from uqeval.statistics.units import HEADLINE

    pairs: dict[str, float] = {}
    names: set[str] = set()
    for row in rows:
        shown = [cell.difference.interval for cell in row.cells if cell.difference is not None]
        units = [interval.units for interval in shown if interval is not None]
        names |= {own.name for own in units}
        if known := [own.effective for own in units if own.effective is not None]:
            pairs[row.address.within] = min(known)
    resampling = paired.resampling
    has_none = not names and (resampling.problem is not None or resampling.units < 2)
    if not (has_none or names - {"training"}):
        return []
    if resampling.effective is None or (resampling.problem and not pairs):
        return few_units(resampling, HEADLINE)
    return few_pairs_of(pairs)
