"""The score of a model over its trainings: the mean and its interval."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from uqeval.compare.comparison import Cell
from uqeval.records.lookup import NoScore, Score
from uqeval.records.resampling import Interval, Units


def cell_of(
    lookups: Sequence[Score | NoScore], values: Sequence[float | None], level: float | None
) -> Cell:
    """Return the cell of a model from the values of its trainings.

    For n > 1 trainings: the mean and the interval mean ± t·s/√n, where s is the sample standard
    deviation and t the quantile of Student's t with n − 1 degrees of freedom at `level` (None: no
    interval). Undefined if the value of a training is undefined.
    """
    defined = tuple(value for value in values if value is not None)
    if len(defined) < len(values):
        return Cell(None, _reason(lookups, values))
    if len(values) == 1:
        return Cell(defined[0])
    mean, std = statistics.fmean(defined), statistics.stdev(defined)
    interval = None if level is None else mean_interval(mean, std, len(defined), level)
    return Cell(mean, None, defined, std, over_trainings=interval)


def mean_interval(mean: float, std: float, count: int, level: float) -> Interval:
    """Return mean ± t·std/√count over trainings; t has count − 1 degrees of freedom."""
    from uqeval.statistics.methods import student

    error = std / count**0.5
    reach = student((1 + level) / 2, count - 1) * error
    units = Units("training", count, count)
    return Interval(level, mean - reach, mean + reach, False, "student-t", units, error)


def _reason(lookups: Sequence[Score | NoScore], values: Sequence[float | None]) -> str:
    """Return why the score of a model is undefined."""
    reason = "the report has no such score"
    for lookup, value in zip(lookups, values, strict=True):
        if isinstance(lookup, Score) and value is None:
            reason = lookup.reason or "undefined over the shared items"
    missing = sum(value is None for value in values)
    return reason if len(values) == 1 else f"in {missing} of {len(values)}: {reason}"
