"""Intervals that a report gives as null although the score has one.

A run gives no interval of a score that few units have, that rests on few wrong pixels, that is
undefined or the same without any of the units, or that bins change too much.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from uqeval.arrays import Array
from uqeval.keys import family_of
from uqeval.records.addresses import Address, values_of
from uqeval.records.scalars import described
from uqeval.usecases.verify.resampled import LEAST, METHODS, Counted, Resampled

if TYPE_CHECKING:
    from uqeval.usecases.verify.comparing import Comparison

#: Scores at a quantile, or that rest on few pixels, whose reasons are taken from the report.
_CUT = ("fpr95", "coverage_at_risk", "detection_error")
#: The smallest number of units in each of several sets.
_LEAST_IN_SET = 3
#: A score that rests on the events of fewer units has no interval.
_EVENTS = 0.5
#: Bins of a report may give as many times the events of values.
_IN_BINS = 1.2
#: The share of draws that have a score; a run asks for 0.95.
_DEFINED = 0.96
#: A smaller spread may be a rounding error of a score that stays the same.
_SPREAD = 1e-9
#: The largest part of an interval by which bins change the score; a run accepts 0.1.
_COARSE = 0.05


def method_of_null(
    comparison: Comparison, resampled: Resampled, counted: Counted, record: Mapping[str, Any],
    address: str, results: Mapping[str, Any],
) -> str | None:  # fmt: skip
    """Return the method of an interval that a report gives as null, if a run gives its ends.

    `record`: that of the interval; `results`: those of the key, of the set or a slice. None if the
    record is not null, or if the score has no interval or may have none.
    """
    report, place = comparison.report, Address.parse(address)
    key, fields = place.key, place.fields
    if record.get("low", 0) is not None or record.get("method") is not None:
        return None
    score = {own: value for own, _, value in values_of(results)}.get(fields)
    metric = described(report.metrics, family_of(key), fields)
    kind = metric.get("interval", "")
    asked = (report.settings.get("intervals") or {}).get("method")
    if score is None or asked != "auto" or any(name in _CUT for name in fields):
        return None
    of_counts = float(counted.score(counted.counts.sum(axis=0)[None])[0])
    method = METHODS.get(kind)
    if method is None or (kind == "logit" and not 0 < of_counts < 1):
        return None
    if not _is_defined(resampled, counted, method):
        return None
    if resampled.events(counted) < _IN_BINS * _EVENTS:
        return None
    ends = resampled.interval(counted, {**record, "method": method}, metric)
    if ends is None or not np.isfinite(ends).all() or _is_narrow(ends):
        return None
    is_near = abs(of_counts - score) <= _COARSE * (ends[1] - ends[0])
    return method if is_near or not record.get("approximate") else None


def is_of_earlier_rule(
    resampled: Resampled, counted: Counted, method: str | None, ends: tuple[float, float]
) -> bool:
    """Return whether only earlier versions gave these ends: they are percentiles that are the same,
    or the score rests on the events of few units."""
    is_drawn = method in ("expanded", "percentile")
    return (is_drawn and _is_narrow(ends)) or resampled.events(counted) < _EVENTS


def _is_narrow(ends: tuple[float, float]) -> bool:
    return ends[1] - ends[0] <= _SPREAD * max(1.0, *map(abs, ends))


def _is_defined(resampled: Resampled, counted: Counted, method: str) -> bool:
    """Return whether the score has what an interval by this method needs: units, a value without
    each of them, and different values."""
    sums = resampled.of_units(counted.counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        without = counted.score(sums.sum(axis=0) - sums)
        least = resampled.least_defined(counted, sums)
        if least < (_LEAST_IN_SET if len(resampled.members) > 1 else 2):
            return False
        if not np.isfinite(without).all():
            return False
        if method == "expanded":
            return least >= LEAST and _vary(resampled.of_draws(counted, sums))
    return method == "korn-graubard" or _vary(without)


def _vary(scores: Array) -> bool:
    """Return whether almost all of the scores are defined, and not all the same."""
    defined = scores[np.isfinite(scores)]
    if not defined.size or defined.size < _DEFINED * scores.size:
        return False
    return bool(np.ptp(defined) > _SPREAD * max(1.0, float(np.abs(defined).max())))
