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


def student(probability: float, degrees: float) -> float:
    """Return the quantile of Student's t."""
    return float(special().stdtrit(degrees, probability))


def jackknife_variance(without_unit: Floats) -> Floats:
    """Return (G−1)/G · Σ_g (θ₋g − mean θ₋)² of values [unit, …] that each leave one unit out."""
    units = len(without_unit)
    centred = without_unit - without_unit.mean(axis=0)
    return (units - 1) / units * (centred * centred).sum(axis=0)


@dataclass(frozen=True)
class Spread:
    """Variance and bias of a score by the jackknife, and the degrees of freedom of Student's t."""

    variance: float
    bias: float
    degrees: float

    @classmethod
    def of(cls, value: float, without_unit: Floats, members: Sequence[Ints], units: int) -> Spread:
        """Return the spread of G values that each leave out one unit; `units`: those with a score.

        Variances and biases of several strata, with the `members` of each, are added. The degrees
        are Welch's: (Σ v)²/Σ v²/(n − 1) over the strata, of n units with the variance v.
        """
        if len(members) == 1:
            variance = float(jackknife_variance(without_unit))
            return cls(variance, jackknife_bias(value, without_unit), units - 1)
        parts = [float(jackknife_variance(without_unit[own])) for own in members]
        bias = sum(jackknife_bias(value, without_unit[own]) for own in members)
        least = sum(v * v / max(own.size - 1, 1) for v, own in zip(parts, members, strict=True))
        degrees = sum(parts) ** 2 / least if least > 0 else min(own.size for own in members) - 1
        return cls(sum(parts), bias, degrees)


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


def korn_graubard(
    share: float, variance: float, units: int, with_event: int, trials: float, level: float
) -> Bounds:
    """Return the interval of a share (of patches, pixels or items) over units that differ.

    Clopper–Pearson at the effective sample size n_df = min(n, n*·(t_{n−1}/t_{units−1})²) with
    n* = p(1−p)/variance and n = `trials`, at least 1 (Korn & Graubard 1998). `units`: those in
    which the share is defined; `with_event`: those that show the rarer of event and non-event.
    Below `FEW_EVENTS` of these, and for a share of 0 or 1, n_df is at most the number of units.
    """
    effective = float(units)
    if 0 < share < 1:
        effective = trials
        if variance > 0:
            upper = (1 + level) / 2
            ratio = student(upper, max(trials - 1, 1)) / student(upper, units - 1)
            effective = min(trials, share * (1 - share) / variance * ratio * ratio)
        if with_event < FEW_EVENTS:
            effective = min(effective, units)
    effective = max(effective, 1.0)
    error = math.sqrt(variance)
    return Bounds(*clopper_pearson(share, effective, level), "korn-graubard", error)


def jackknife_bias(value: float, without_unit: Floats) -> float:
    """Return (G−1)·(mean θ₋ − θ) of G values that each leave one unit out: Quenouille's bias."""
    return float((len(without_unit) - 1) * (without_unit.mean() - value))


def jackknife_t(
    value: float, spread: Spread, units: int, level: float, *, logit: bool
) -> Bounds | NoBounds:
    """Return θ ± t·√variance of a spread; with `logit` on the logit scale.

    With `logit` the interval goes from the lower of θ and θ − bias, minus t·se, to the higher one
    plus t·se, all on the logit scale. Reason: mIoU is too low in small sets, where a class without
    labels counts as 0. A value of 0 or 1 has no logit; it has the exact bounds of a share without
    events over `units`.
    """
    if not math.isfinite(spread.variance) or not math.isfinite(spread.bias):
        return NoBounds(LEFT_OUT)
    error = math.sqrt(spread.variance)
    reach = student((1 + level) / 2, spread.degrees) * error
    if not logit:
        return Bounds(value - reach, value + reach, "jackknife-t", error)
    if value <= 0 or value >= 1:
        return Bounds(*clopper_pearson(round(value), units, level), "korn-graubard")
    centre, slope = math.log(value / (1 - value)), 1 / (value * (1 - value))
    low, high = sorted((centre, centre - spread.bias * slope))
    reach *= slope
    return Bounds(_logistic(low - reach), _logistic(high + reach), "jackknife-t", error)


def jackknife_log(
    value: float, without_unit: Floats, members: Sequence[Ints], units: int, level: float
) -> Bounds | NoBounds:  # fmt: skip
    """Return θ·exp(± t·se) of a score above 0, with the jackknife of its logarithm; arguments as in
    `Spread.of`. As with the logit, it goes from the lower of θ and θ minus its bias to the higher
    one. Reason: a mean of squared errors is mostly that of a few units, and sets without these have
    a low mean and a low spread. Percentiles of draws are then too low; on the scale of the
    logarithm mean and spread are about independent."""
    if not np.isfinite(without_unit).all():
        return NoBounds(LEFT_OUT)
    if value <= 0 or without_unit.min() <= 0:
        return NoBounds("the score is 0 when one of the units is left out")
    centre = math.log(value)
    spread = Spread.of(centre, np.log(without_unit), members, units)
    reach = student((1 + level) / 2, spread.degrees) * math.sqrt(spread.variance)
    low, high = sorted((centre, centre - spread.bias))
    error = math.sqrt(Spread.of(value, without_unit, members, units).variance)
    return Bounds(_exp(low - reach), _exp(high + reach), "jackknife-t", error)


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
