"""Interval formulas: Korn–Graubard, jackknife with Student's t, expanded percentile, paired MOVER.

All take numbers that were computed from units (items, groups, batches of a video) and know nothing
of metrics. SciPy is imported when a formula is first used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from uqeval.arrays import Floats, Ints
from uqeval.special import special

#: Below this many units with an event the effective sample size is at most the number of units.
FEW_EVENTS = 5
#: No interval from draws with fewer units than this.
LEAST_DRAWN = 6
#: Values that differ by at most this share of their size are equal up to rounding.
_ROUNDING = 1e-12
#: Why a score has no jackknife.
LEFT_OUT = "the score is undefined when one of the units is left out"


@dataclass(frozen=True)
class Bounds:
    """Low and high end of an interval, the method that gave them, and the standard error."""

    low: float
    high: float
    method: str
    standard_error: float | None = None


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


def jackknife_variance(without_unit: Floats) -> Floats:
    """Return (G−1)/G · Σ_g (θ₋g − mean θ₋)² of values [unit, …] that each leave one unit out."""
    units = len(without_unit)
    centred = without_unit - without_unit.mean(axis=0)
    return (units - 1) / units * (centred * centred).sum(axis=0)


@dataclass(frozen=True)
class Spread:
    """Variance, bias and skewness of a score by the jackknife, and Student's degrees of freedom."""

    variance: float
    bias: float
    degrees: float
    skewness: float = 0.0

    @classmethod
    def of(cls, value: float, without_unit: Floats, members: Sequence[Ints], units: int) -> Spread:
        """Return the spread of G values that each leave out one unit; `units`: those with a score.

        Variances, biases and third cumulants of several strata, with the `members` of each, are
        added. The degrees are Welch's: (Σ v)²/Σ v²/(n − 1) over the strata, of n units with the
        variance v.
        """
        parts = [float(jackknife_variance(without_unit[own])) for own in members]
        bias = sum(jackknife_bias(value, without_unit[own]) for own in members)
        variance = sum(parts)
        third = sum(_third_cumulant(without_unit[own]) for own in members)
        skewness = third / variance**1.5 if variance > 0 else 0.0
        if len(members) == 1:
            return cls(variance, bias, units - 1, skewness)
        least = sum(v * v / max(own.size - 1, 1) for v, own in zip(parts, members, strict=True))
        degrees = variance**2 / least if least > 0 else min(own.size for own in members) - 1
        return cls(variance, bias, degrees, skewness)

    @property
    def is_finite(self) -> bool:
        return math.isfinite(self.variance) and math.isfinite(self.bias)

    def reach(self, level: float) -> float:
        """Return t·√variance."""
        return student((1 + level) / 2, self.degrees) * math.sqrt(self.variance)

    def ends(self, centre: float, level: float) -> tuple[float, float]:
        """Return centre ± t·se, extended by the bias and the skewness.

        With a skewness γ of the score, (score − truth)/se is shifted by about −γ/6·(1 + 2t²)
        (Johnson 1978; Hall 1992): if few units have large values, sets without these have a low
        score and a low se, so that the truth is often above it. The end on this side is moved by
        as much, the other one stays.
        """
        t = student((1 + level) / 2, self.degrees)
        shift = self.skewness / 6 * (1 + 2 * t * t)
        error = math.sqrt(self.variance)
        low = centre - max(self.bias, 0.0) - error * (t + max(-shift, 0.0))
        return low, centre - min(self.bias, 0.0) + error * (t + max(shift, 0.0))


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
    return float(events.sum()) ** 2 / squares < min(FEW_EVENTS, events.size / 2)


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


def jackknife_bias(value: float, without_unit: Floats) -> float:
    """Return (G−1)·(mean θ₋ − θ) of G values that each leave one unit out: Quenouille's bias."""
    return float((len(without_unit) - 1) * (without_unit.mean() - value))


def _third_cumulant(without_unit: Floats) -> float:
    """Return (G−1)²/(G(G−2))·Σ_g (mean θ₋ − θ₋g)³: the third cumulant of a score by the jackknife.

    0 for fewer than 3 units, which show no skewness.
    """
    units = len(without_unit)
    if units < 3:
        return 0.0
    sum_of_cubes = float(((without_unit.mean() - without_unit) ** 3).sum())
    return (units - 1) ** 2 / (units * (units - 2)) * sum_of_cubes


@dataclass(frozen=True)
class LeftOut:
    """A score, and its values `without` each of G units.

    `members`: the units of each stratum; `defined`: how many units have the score, and `least` how
    many of the smallest stratum.
    """

    value: float
    without: Floats
    members: Sequence[Ints]
    defined: int
    least: int

    def spread(self) -> Spread:
        """Return the spread of the score."""
        return Spread.of(self.value, self.without, self.members, self.defined)

    def is_constant(self, scale: float = 0.0) -> bool:
        """Return whether it does not matter which unit of a stratum is left out (`are_equal`)."""
        return all(are_equal(self.without[own], scale) for own in self.members)


def batch_means(scores: LeftOut, level: float) -> Bounds | NoBounds:
    """Return θ ± t·se from batches of a video."""
    spread = scores.spread()
    if not spread.is_finite:
        return NoBounds(LEFT_OUT)
    reach = spread.reach(level)
    low, high = scores.value - reach, scores.value + reach
    return Bounds(low, high, "batch-means", math.sqrt(spread.variance))


def jackknife_t(scores: LeftOut, level: float, *, logit: bool) -> Bounds | NoBounds:
    """Return θ ± t·se by the jackknife, extended by bias and skewness (`Spread.ends`).

    With `logit` it is the wider of two intervals at each end, both on the logit scale: with the
    standard error √v/(θ(1 − θ)), and with the jackknife of the logit itself (Miller 1974, §4). Near
    0 and 1, single units move the logit more than the slope at θ shows. A value of 0 or 1 has no
    logit; it has the exact bounds of a share without events over the units of the smallest set.
    """
    value, spread = scores.value, scores.spread()
    if not spread.is_finite:
        return NoBounds(LEFT_OUT)
    error = math.sqrt(spread.variance)
    if not logit:
        return Bounds(*spread.ends(value, level), "jackknife-t", error)
    if value <= 0 or value >= 1:
        return Bounds(*clopper_pearson(round(value), scores.least, level), "korn-graubard")
    centre, slope = math.log(value / (1 - value)), 1 / (value * (1 - value))
    at_slope = replace(spread, variance=spread.variance * slope**2, bias=spread.bias * slope)
    if not ((scores.without > 0) & (scores.without < 1)).all():
        low, high = at_slope.ends(centre, level)
    else:
        logits = replace(
            scores, value=centre, without=np.log(scores.without / (1 - scores.without))
        )
        low, high = logits.spread().ends(centre, level)
        plain = replace(at_slope, skewness=0.0).ends(centre, level)
        low, high = min(low, plain[0]), max(high, plain[1])
    return Bounds(_logistic(low), _logistic(high), "jackknife-t", error)


def jackknife_log(scores: LeftOut, level: float) -> Bounds | NoBounds:
    """Return θ·exp(± t·se) of a score above 0, with the jackknife of its logarithm, extended by
    bias and skewness (`Spread.ends`). Reason: a mean of squared errors is mostly that of a few
    units, and sets without these have a low mean and a low spread. Percentiles of draws are then
    too low; on the scale of the logarithm mean and spread are about independent."""
    value, without = scores.value, scores.without
    if not np.isfinite(without).all():
        return NoBounds(LEFT_OUT)
    if value <= 0 or without.min() <= 0:
        return NoBounds("the score is not above 0 when one of the units is left out")
    logs = replace(scores, value=math.log(value), without=np.log(without))
    low, high = logs.spread().ends(logs.value, level)
    return Bounds(_exp(low), _exp(high), "jackknife-t", math.sqrt(scores.spread().variance))


def _exp(x: float) -> float:
    """Return e^x, or a huge number in place of infinity, which JSON does not have."""
    return math.exp(min(x, 700.0))


def _logistic(x: float) -> float:
    small = math.exp(-min(abs(x), 700.0))
    return 1 / (1 + small) if x >= 0 else small / (1 + small)


def expanded(draws: Floats, units: int, level: float) -> Bounds:
    """Return percentiles of `draws` values at the tail Φ(−√(n/(n−1))·t) of n units.

    Hesterberg 2015: the plain percentiles of few units are too narrow.
    """
    t = student((1 + level) / 2, units - 1)
    tail = float(special().ndtr(-math.sqrt(units / (units - 1)) * t))
    low, high = np.quantile(draws, [tail, 1 - tail])
    return Bounds(float(low), float(high), "expanded", float(draws.std()))


def beyond_bias(bounds: Bounds, draws: Floats, value: float, units: int) -> Bounds:
    """Return the bounds from draws of a score that noise shifts, such as a sum of absolute gaps.

    The mean of the draws is θ + b if that of the score is the truth + b: percentiles of the draws
    are shifted twice. So the low end is lower by 2b; with b < 0 the high end is higher by 2|b|. The
    draws have (n−1)/n of the variance of n units, and of a bias that is proportional to it:
    b = n/(n−1)·(mean of the draws − θ). The other end stays, so that the value is inside.
    """
    shift = 2 * units / (units - 1) * (float(draws.mean()) - value)
    return replace(bounds, low=bounds.low - max(shift, 0.0), high=bounds.high - min(shift, 0.0))


@dataclass(frozen=True)
class Limits:
    """The interval of a score of one model, and the estimate without bias inside it."""

    low: float
    centre: float
    high: float

    @classmethod
    def of(cls, bounds: Bounds, estimate: float) -> Limits:
        """Return the limits of an estimate, moved into its interval if it is outside."""
        return cls(bounds.low, min(max(estimate, bounds.low), bounds.high), bounds.high)

    def times(self, factor: float) -> Limits:
        """Return the limits of a multiple of the score."""
        return Limits(factor * self.low, factor * self.centre, factor * self.high)


def paired_mover(first: Limits, second: Limits, correlation: float) -> tuple[float, float]:
    """Return the interval of the difference of two errors on the same units, from that of each.

    Method of variance estimates recovery (Zou & Donner 2008). l and u are the distances of the ends
    from the estimates. The low end is the difference of the estimates minus √((1 − r)·l₁² + (1 −
    r)·u₂² + r·max(0, l₁ − l₂, u₂ − u₁)²); the high end likewise. Reason: the common part of two
    models moves both to the same side, so only the difference of l₁ and l₂, or of u₁ and u₂, counts
    for this part. With l = u this is the published √(l₁² + u₂² − 2r·l₁·u₂). If l belongs to a low
    end of 0, √(1 − r)·l is added to the root of the other two: the true error may be 0 itself, so
    that the estimate is too high by l in every set of units. No end is beyond the difference of the
    opposite ends.
    """
    down_1, up_1 = first.centre - first.low, first.high - first.centre
    down_2, up_2 = second.centre - second.low, second.high - second.centre
    r, apart = correlation, math.sqrt(1 - correlation)

    def reach(down: float, up: float, common: float, may_be_zero: bool) -> float:
        rest = math.hypot(apart * up, math.sqrt(r) * common)
        far = apart * down + rest if may_be_zero else math.hypot(apart * down, rest)
        return min(far, down + up)

    to_low = reach(down_1, up_2, max(0.0, down_1 - down_2, up_2 - up_1), first.low <= 0)
    to_high = reach(down_2, up_1, max(0.0, down_2 - down_1, up_1 - up_2), second.low <= 0)
    difference = first.centre - second.centre
    return difference - to_low, difference + to_high


def paired_mover_relative(first: Limits, second: Limits, correlation: float) -> tuple[float, float]:
    """Return the interval of the difference of two errors as a fraction of the second one.

    Fieller 1954: the fraction f is inside if 0 is in the interval of first − (1 + f)·second, whose
    ends fall as f rises. If the second error may be 0, the high end is infinite.
    """

    def end(which: int, low: float, high: float) -> float:
        for _ in range(60):
            middle = (low + high) / 2
            if paired_mover(first, second.times(middle), correlation)[which] > 0:
                low = middle
            else:
                high = middle
        return high - 1

    # At the quotients of the ends, the interval of the difference is on one side of 0.
    low = end(0, first.low / second.high, first.high / second.high)
    if second.low <= 0:
        return low, math.inf
    return low, end(1, first.low / second.low, first.high / second.low)


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
    return Bounds(float(low), float(high), "percentile", float(draws.std()))
