"""Intervals by the jackknife with Student's t: scores that each leave out one unit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from uqeval.arrays import Floats, Ints
from uqeval.statistics.methods import Bounds, NoBounds, are_equal, clopper_pearson, student

#: Why a score has no jackknife.
LEFT_OUT = "the score is undefined when one of the units is left out"
_TOO_LARGE = "the score is so large that float64 has no square of its spread"
#: Squares and cubes of smaller values, and their sums, are far from the largest float64.
_LARGE = 2.0**160


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
        variance v. A score that is undefined or infinite without a unit has none: NaN. The variance
        is infinite if it exceeds float64.
        """
        if not all(np.isfinite(without_unit[own]).all() for own in members):
            return cls(math.nan, math.nan, units - 1, 0.0)
        largest = max(float(np.abs(without_unit[own]).max()) for own in members)
        if largest > _LARGE or 0 < largest < 1 / _LARGE:
            power = math.frexp(largest)[1]
            small = cls.of(np.ldexp(value, -power), np.ldexp(without_unit, -power), members, units)
            with np.errstate(over="ignore"):
                variance, bias = np.ldexp((small.variance, small.bias), (2 * power, power))
            return replace(small, variance=float(variance), bias=float(bias))
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

    def standard_error(self) -> float:
        """Return the root of the variance, also if the variance exceeds float64."""
        error = math.sqrt(self.spread().variance)
        if math.isfinite(error):
            return error
        largest = float(np.abs(self.without).max())
        small = replace(self, value=self.value / largest, without=self.without / largest)
        return math.sqrt(small.spread().variance) * largest

    def no_spread(self) -> NoBounds:
        """Return why `spread` is not finite."""
        return NoBounds(_TOO_LARGE if np.isfinite(self.without).all() else LEFT_OUT)

    def is_constant(self, scale: float = 0.0) -> bool:
        """Return whether it does not matter which unit of a stratum is left out (`are_equal`)."""
        return all(are_equal(self.without[own], scale) for own in self.members)


def batch_means(scores: LeftOut, level: float) -> Bounds | NoBounds:
    """Return θ ± t·se from batches of a video."""
    spread = scores.spread()
    if not spread.is_finite:
        return scores.no_spread()
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
        return scores.no_spread()
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
    return Bounds(_exp(low), _exp(high), "jackknife-t", scores.standard_error())


def _exp(x: float) -> float:
    """Return e^x, or a huge number in place of infinity, which JSON does not have."""
    return math.exp(min(x, 700.0))


def _logistic(x: float) -> float:
    small = math.exp(-min(abs(x), 700.0))
    return 1 / (1 + small) if x >= 0 else small / (1 + small)
