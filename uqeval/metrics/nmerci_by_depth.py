"""n-MeRCI by interval of the ground truth, each with its own percentiles: Moukari, Figure 5."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import uqeval.metrics.nmerci_scores as ns
from uqeval.arrays import np
from uqeval.errors import UsageError
from uqeval.maps.names import lambda_of
from uqeval.metrics._contract import set_value
from uqeval.metrics._driver import run_jointly
from uqeval.metrics._evaluation import Passes
from uqeval.metrics.nmerci_records import running
from uqeval.metrics.nmerci_settings import NmerciSettings

if TYPE_CHECKING:
    from uqeval.tallies.error_sums import ErrorSums, Intervals

#: Larger whole numbers are not exact in float64.
_EXACT = 2.0**53
MOST = 256


def by_depth(settings: NmerciSettings, least: float, most: float) -> Passes:
    """Return `by_depth`, a row for each interval that has pixels, and `by_depth_mean` of defined
    values.

    `least` and `most`: ends of the target. Raises `UsageError` for more than 256 intervals.
    """
    from uqeval.tallies.error_sums import ErrorSums, SumsBelow

    assert settings.depth_step is not None
    intervals = intervals_of(settings.depth_step, least, most)
    sums = ErrorSums(settings.sigma, intervals)
    ratio = lambda_of(settings.sigma)
    names = (ratio, "error")
    total, *values = yield from run_jointly(
        _total(sums), *(_ranks(name, settings, intervals) for name in names)
    )
    columns: dict[str, list[float | None]] = dict(zip(names, values, strict=True))
    # -1, below all values, means that the percentile is infinite or undefined.
    limits = [
        (v,) if v is not None and math.isfinite(v) else (-1.0,)
        for v in columns[settings.trimmed_by]
    ]
    tally = SumsBelow(settings.trimmed_by, tuple(limits), settings.sigma, intervals)
    below = (yield (tally,))[tally].total
    rows = []
    for g in range(intervals.count):
        totals = ns.Sums(
            int(total["count"][g]), float(total["sums"][g, 0]), float(total["sums"][g, 2])
        )
        if not totals.pixels:
            continue
        retained = running(below, g)[0]
        parts = ns.Parts(
            totals, columns[ratio][g], columns["error"][g], retained if retained.pixels else None
        )
        full = ns.record(parts, settings.alpha, settings.over, settings.mae)
        row: dict[str, Any] = {
            "lower": (intervals.base + g) * intervals.step,
            "upper": (intervals.base + g + 1) * intervals.step,
        }
        for field in ("pixels", "mae", "mae_trimmed", "nmerci"):
            row |= {k: v for k, v in full.items() if k in (field, f"{field}_reason")}
        rows.append(row)
    return of_intervals(rows)


def of_intervals(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the fields of the rows of the intervals that have pixels."""
    return {"by_depth": rows, "by_depth_mean": _mean(rows)}


def _total(tally: ErrorSums) -> Passes:
    return (yield (tally,))[tally].total


def _ranks(name: str, settings: NmerciSettings, intervals: Intervals) -> Passes:
    """Return the percentile of a map in every interval."""
    from uqeval.tallies.digits import DIGITS, Digits, GroupRanks

    tally = Digits(name, intervals, 0, tuple((g, 0) for g in range(intervals.count)))
    counts = (yield (tally,))[tally].total["counts"]
    ranks = GroupRanks(counts.sum(axis=1), settings.alpha, settings.interpolation)
    ranks.refine(tally, counts)
    for level in range(1, len(DIGITS)):
        required = ranks.wanted()
        if not required:
            break
        tally = Digits(name, intervals, level, required)
        ranks.refine(tally, (yield (tally,))[tally].total["counts"])
    return ranks.values()


def _mean(rows: list[dict[str, Any]]) -> dict[str, Any]:
    mean: dict[str, Any] = {}
    for field in ("mae_trimmed", "nmerci"):
        defined = [row[field] for row in rows if row[field] is not None]
        value = math.fsum(defined) / len(defined) if defined else None
        set_value(mean, field, value, "it is undefined in every interval")
        mean[f"{field}_intervals"] = len(defined)
    return mean


def intervals_of(step: float, least: float, most: float) -> Intervals:
    """Return the intervals of this width that cover all targets from `least` to `most`.

    Raises `UsageError`, naming a width that fits, for more than 256.
    """
    from uqeval.tallies.error_sums import Intervals, place_of

    with np.errstate(over="ignore"):  # the place of a target may be infinite
        first, last = (float(place_of(end, step)) for end in (least, most))
    is_exact = max(abs(first), abs(last)) < _EXACT
    if is_exact and last - first < MOST:
        return Intervals(step, int(first), int(last - first) + 1)
    count = f"{last - first + 1:.0f}" if is_exact else "too many"
    fits = (most - least or abs(most)) / (MOST - 1)
    digits = 10.0 ** (math.floor(math.log10(fits)) - 1)
    fits = math.ceil(fits / digits) * digits
    raise UsageError(
        f"--depth-step {step:g} cuts the targets, {least:g} to {most:g}, into {count} "
        f"intervals; at most {MOST} are evaluated. Give --depth-step {fits:.2g} or more."
    )
