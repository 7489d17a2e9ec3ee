"""The score of a model over its trainings: the mean and its interval."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from uqeval.compare.comparison import Cell
from uqeval.records.lookup import Absent, Found
from uqeval.records.resampling import Interval, Units


def cell_of(
    found: Sequence[Found | Absent], values: Sequence[float | None], level: float | None
) -> Cell:
    """Return the cell of a model from each training's value.

    Of several trainings the mean with its interval mean ± t·s/√n: Student's t with n − 1 degrees at
    `level` (None: no interval), s the sample standard deviation.
    """
    known = tuple(value for value in values if value is not None)
    if len(known) < len(values):
        return Cell(None, _reason(found, values))
    if len(values) == 1:
        return Cell(known[0])
    mean, std = statistics.fmean(known), statistics.stdev(known)
    own = None if level is None else mean_interval(mean, std, len(known), level)
    return Cell(mean, None, known, std, over_trainings=own)


def mean_interval(mean: float, std: float, count: int, level: float) -> Interval:
    """Return mean ± t·std/√count over trainings, t with count − 1 degrees."""
    from uqeval.statistics.methods import student

    error = std / count**0.5
    reach = student((1 + level) / 2, count - 1) * error
    units = Units("training", count, count)
    return Interval(level, mean - reach, mean + reach, False, "student-t", units, error)


def _reason(found: Sequence[Found | Absent], values: Sequence[float | None]) -> str:
    """Return why a model has no score."""
    reason = "the report has no such score"
    for own, value in zip(found, values, strict=True):
        if isinstance(own, Found) and value is None:
            reason = own.reason or "undefined over the shared items"
    missing = sum(value is None for value in values)
    return reason if len(values) == 1 else f"in {missing} of {len(values)}: {reason}"
