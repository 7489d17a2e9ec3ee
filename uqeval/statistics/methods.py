"""Interval formulas: Korn–Graubard, and percentiles of draws. `jackknife` and `mover` have others.

All take numbers that were computed from units (items, groups, batches of a video) and know nothing
of metrics. SciPy is imported when a formula is first used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from uqeval.arrays import Floats
from uqeval.records.resampling import Interval, Units
from uqeval.special import special

#: Below this many units with an event the effective sample size is at most the number of units.
FEW_EVENTS = 5
#: The relative rounding of a number of units that is computed from shares; 1 − share of one pixel
#: in a million is rounded by 1e-10 of itself.
_OF_SHARES = 1e-9
#: No interval from draws with fewer units than this.
LEAST_DRAWN = 6
#: Values that differ by at most this share of their size are equal up to rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Bounds:
    """Low and high end of an interval, the method that gave them, and the standard error."""

    low: float
    high: float
    method: str
    standard_error: float | None = None

    def interval(self, level: float, approximate: bool, units: Units) -> Interval:
        """Return the interval for a gate or a comparison."""
        return Interval(
            level, self.low, self.high, approximate, self.method, units, self.standard_error
        )


@dataclass(frozen=True)
class NoBounds:
    """The reason why there is no interval."""

    reason: str


def are_equal(values: Floats, scale: float = 0.0) -> bool:
    """Return whether values are equal up to rounding; False for undefined ones.

    `scale`: for differences, the size of the numbers that were subtracted.
    """
    is_defined = np.isfinite(values).all()
    return bool(is_defined and np.ptp(values) <= _ROUNDING * max(np.abs(values).max(), scale))


def student(probability: float, degrees: float) -> float:
    """Return the quantile of Student's t."""
    return float(special().stdtrit(degrees, probability))


def student_p(t: float, degrees: float) -> float:
    """Return the two-sided p-value of Student's t."""
    return float(2 * special().stdtr(degrees, -abs(t)))


def welch(first: Floats, second: Floats, level: float) -> tuple[Bounds, float]:
    """Return the interval of the difference of the means of two samples by Welch's t-test, and its
    two-sided p-value. Each sample has at least two values, and one of them two different ones.
    """
    # Scaled to 0.5 to 1, because float64 has no fourth powers above 1e308.
    power = math.frexp(max(np.abs(first).max(), np.abs(second).max()))[1]
    both = [np.ldexp(own, -power) for own in (first, second)]
    parts = [own.var(ddof=1) / len(own) for own in both]
    error = float(np.sqrt(sum(parts)))
    degrees = error**4 / sum(v**2 / (len(own) - 1) for v, own in zip(parts, both, strict=True))
    value = float(both[0].mean() - both[1].mean())
    reach = student((1 + level) / 2, degrees) * error
    low, high, error_of_scores = np.ldexp((value - reach, value + reach, error), power).tolist()
    return Bounds(low, high, "welch-t", error_of_scores), student_p(value / error, degrees)


def clopper_pearson(share: float, count: float, level: float) -> tuple[float, float]:
    """Return the exact interval of `share`·`count` events among `count` trials.

    Clopper & Pearson 1934, with the beta distribution, so that neither needs to be whole.
    """
    betaincinv = special().betaincinv
    tail, events = (1 - level) / 2, share * count
    low = float(betaincinv(events, count - events + 1, tail)) if events > 0 else 0.0
    high = float(betaincinv(events + 1, count - events, 1 - tail)) if events < count else 1.0
    # SciPy returns the smallest normal number in place of smaller ones.
    return low if low > np.finfo(np.float64).tiny else 0.0, high


def few_events(share: float, of_units: Floats) -> bool:
    """Return whether few units have the events of a share; the non-events if these are fewer.
    `of_units`: the share of each unit, NaN where it is undefined.

    Fewer than `FEW_EVENTS` have any; or most are those of so few, and of less than half of the
    units. For shares e of events in a unit, that is the effective number (Σe)²/Σe² of units.
    """
    own = of_units[np.isfinite(of_units)]
    events = own if share <= 0.5 else 1 - own
    squares = float((events * events).sum())
    if (events > 0).sum() < FEW_EVENTS or not squares:
        return True
    return is_fewer(float(events.sum()) ** 2 / squares, min(FEW_EVENTS, events.size / 2))


def is_fewer(number: float, limit: float) -> bool:
    """Return whether a number of units, computed from shares, is below a limit.

    A number that only rounding separates from the limit is equal to it: the shares of five equal
    units add up to a little less or more than five units, in another order of the units.
    """
    return number < limit * (1 - _OF_SHARES)


def korn_graubard(
    share: float, variance: float, units: int, few: bool, trials: float, level: float
) -> Bounds:
    """Return the interval of a share (of patches, pixels or items) over units that differ.

    Clopper–Pearson at the effective sample size n_df = min(n, n*·(t_{n−1}/t_{units−1})²) with
    n* = p(1−p)/variance and n = `trials`, at least 1 (Korn & Graubard 1998). `units`: those in
    which the share is defined. If `few` of them have the events (`few_events`), and for a share of
    0 or 1, n_df is at most the number of units.
    """
    effective = float(units)
    if 0 < share < 1:
        effective = trials
        if variance > 0:
            upper = (1 + level) / 2
            ratio = student(upper, max(trials - 1, 1)) / student(upper, units - 1)
            effective = min(trials, share * (1 - share) / variance * ratio * ratio)
        if few:
            effective = min(effective, units)
    effective = max(effective, 1.0)
    error = math.sqrt(variance)
    return Bounds(*clopper_pearson(share, effective, level), "korn-graubard", error)


def standard_deviation(draws: Floats) -> float:
    """Return the standard deviation, also if float64 has no squares of such values."""
    power = math.frexp(float(np.abs(draws).max()))[1]
    return (
        float(np.ldexp(np.ldexp(draws, -power).std(), power)) if power > 500 else float(draws.std())
    )


def expanded(draws: Floats, units: int, level: float) -> Bounds:
    """Return percentiles of `draws` values at the tail Φ(−√(n/(n−1))·t) of n units.

    Hesterberg 2015: the plain percentiles of few units are too narrow.
    """
    t = student((1 + level) / 2, units - 1)
    tail = float(special().ndtr(-math.sqrt(units / (units - 1)) * t))
    low, high = np.quantile(draws, [tail, 1 - tail])
    return Bounds(float(low), float(high), "expanded", standard_deviation(draws))


def beyond_bias(bounds: Bounds, draws: Floats, value: float, units: int) -> Bounds:
    """Return the bounds from draws of a score that noise shifts, such as a sum of absolute gaps.

    The mean of the draws is θ + b if that of the score is the truth + b: percentiles of the draws
    are shifted twice. So the low end is lower by 2b; with b < 0 the high end is higher by 2|b|. The
    draws have (n−1)/n of the variance of n units, and of a bias that is proportional to it:
    b = n/(n−1)·(mean of the draws − θ). The other end stays, so that the value is inside.
    """
    shift = 2 * units / (units - 1) * (float(draws.mean()) - value)
    return replace(bounds, low=bounds.low - max(shift, 0.0), high=bounds.high - min(shift, 0.0))


def unless_same(bounds: Bounds, draws: Floats, what: str, scale: float = 0.0) -> Bounds | NoBounds:
    """Return percentiles of `draws` values of `what`, unless both ends are the same (`are_equal`):
    such an interval would be inside any limit on its side."""
    if not are_equal(np.array([bounds.low, bounds.high]), scale):
        return bounds
    share = "all" if are_equal(draws, scale) else "nearly all"
    return NoBounds(f"{what} is the same in {share} draws")


def around(bounds: Bounds, other: Bounds | NoBounds) -> Bounds:
    """Return the bounds with the wider end of both on each side, if there are others."""
    if isinstance(other, NoBounds):
        return bounds
    return replace(bounds, low=min(bounds.low, other.low), high=max(bounds.high, other.high))


def up_to(bounds: Bounds, other: Bounds | NoBounds) -> Bounds:
    """Return the bounds with a high end of at least that of others, if these exist."""
    if isinstance(other, NoBounds):
        return bounds
    return replace(bounds, high=max(bounds.high, other.high))


def down_to(bounds: Bounds, share: float, value: float) -> Bounds:
    """Return the bounds with a low end of at most a share of the value."""
    return replace(bounds, low=min(bounds.low, share * value))


def units_for_quantile(quantile: float, level: float) -> float:
    """Return how many units an interval of a quantile needs: infinitely many of a largest value.

    With fewer, all units are on one side of the true quantile with a probability above
    (1 − level)/2, so that the smallest or the largest value is no end of an interval.
    """
    likely = max(quantile, 1 - quantile)
    return math.ceil(math.log((1 - level) / 2) / math.log(likely)) if likely < 1 else math.inf


def percentile(draws: Floats, level: float) -> Bounds:
    """Return the plain percentiles of `draws` values."""
    tail = (1 - level) / 2
    low, high = np.quantile(draws, [tail, 1 - tail])
    return Bounds(float(low), float(high), "percentile", standard_deviation(draws))
