"""Slow interval formulas from the papers, with scipy.stats; nothing of uqeval is imported."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import stats

Score = Callable[[list[int]], float]


def clopper_pearson(events: int, trials: int, level: float) -> tuple[float, float]:
    found = stats.binomtest(events, trials).proportion_ci(level, "exact")
    return float(found.low), float(found.high)


def left_out(units: Sequence[Any], score: Score) -> list[float]:
    """The score of all items but those of one unit, for each unit."""
    return [
        score([i for i, own in enumerate(units) if own != unit]) for unit in dict.fromkeys(units)
    ]


def jackknife_variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return (len(values) - 1) / len(values) * math.fsum((v - mean) ** 2 for v in values)


def skewness(values: Sequence[float]) -> float:
    """Skewness of a score, from its values without each unit: k₃/n² of n pseudo-values over the
    variance to the power of 3/2, with Fisher's unbiased k₃ (Johnson 1978)."""
    n, variance = len(values), jackknife_variance(values)
    if n < 3 or variance == 0:
        return 0.0
    pseudo = [-(n - 1) * value for value in values]
    mean = math.fsum(pseudo) / n
    k3 = n / ((n - 1) * (n - 2)) * math.fsum((p - mean) ** 3 for p in pseudo)
    return k3 / n**2 / float(variance**1.5)


def reaches(values: Sequence[float], theta: float, t: float, skewed: bool) -> tuple[float, float]:
    """How far the ends are from θ: t·se, more on the side of the bias, and on that of the
    skewness."""
    error = math.sqrt(jackknife_variance(values))
    bias = (len(values) - 1) * (math.fsum(values) / len(values) - theta)
    shift = skewness(values) / 6 * (1 + 2 * t**2) if skewed else 0.0
    down, up = (error * (t + max(side * shift, 0.0)) for side in (-1, 1))
    return down + max(bias, 0.0), up + max(-bias, 0.0)


def jackknife_t(
    units: Sequence[Any], score: Score, level: float, logit: bool, counted: int | None = None
) -> Any:
    """θ ± t·se with its bias and skewness; on the logit scale the wider of the delta method and the
    jackknife of the logit. `counted`: units of Student's t, where they are not all."""
    values = left_out(units, score)
    theta = score(list(range(len(units))))
    t = stats.t.ppf((1 + level) / 2, (counted or len(values)) - 1)
    if not logit:
        down, up = reaches(values, theta, t, True)
        return theta - down, theta + up
    centre, slope = math.log(theta / (1 - theta)), 1 / (theta * (1 - theta))
    inside = all(0 < value < 1 for value in values)
    found = [[slope * x for x in reaches(values, theta, t, not inside)]]
    if inside:
        logits = [math.log(value / (1 - value)) for value in values]
        found.append(list(reaches(logits, centre, t, True)))
    down, up = map(max, zip(*found, strict=True))
    return 1 / (1 + math.exp(down - centre)), 1 / (1 + math.exp(-up - centre))


def jackknife_log(units: Sequence[Any], score: Score, level: float) -> tuple[float, float]:
    """e^(ln θ ± t·se), with the jackknife of ln θ, its bias and skewness."""
    logs = [math.log(value) for value in left_out(units, score)]
    centre = math.log(score(list(range(len(units)))))
    t = stats.t.ppf((1 + level) / 2, len(logs) - 1)
    down, up = reaches(logs, centre, t, True)
    return math.exp(centre - down), math.exp(centre + up)


def korn_graubard(
    units: Sequence[Any], score: Score, counted: int, level: float, most_units: bool
) -> tuple[float, float]:
    """Korn & Graubard 1998: beta quantiles at the effective sample size adjusted for its degrees of
    freedom; with `most_units` no more than there are units."""
    p, g = score(list(range(len(units)))), len(set(units))
    v = jackknife_variance(left_out(units, score))
    tail = (1 - level) / 2
    ratio = stats.t.ppf(1 - tail, counted - 1) / stats.t.ppf(1 - tail, g - 1)
    n = min(counted, p * (1 - p) / v * ratio**2)
    n = max(min(n, g) if most_units else n, 1)
    x = p * n
    return float(stats.beta.ppf(tail, x, n - x + 1)), float(stats.beta.ppf(1 - tail, x + 1, n - x))


def expanded(drawn: Sequence[float], units: int, level: float) -> tuple[float, float]:
    """Hesterberg 2015, §5: percentiles at Φ(−√(n/(n−1))·t)."""
    t = stats.t.ppf((1 + level) / 2, units - 1)
    tail = stats.norm.cdf(-math.sqrt(units / (units - 1)) * t)
    low, high = np.quantile(np.asarray(drawn), [tail, 1 - tail])
    return float(low), float(high)


def beyond_bias(
    ends: tuple[float, float], drawn: Sequence[float], value: float, units: int
) -> tuple[float, float]:
    """The ends of an interval, with the one on the side of the truth moved by twice the bias. Draws
    of n units show (n − 1)/n of the bias.
    """
    bias = (math.fsum(drawn) / len(drawn) - value) * units / (units - 1)
    return (ends[0] - 2 * bias, ends[1]) if bias > 0 else (ends[0], ends[1] - 2 * bias)


def paired_mover(
    first: tuple[float, float, float], second: tuple[float, float, float], r: float
) -> tuple[float, float]:
    """Zou & Donner 2008 of errors (low, estimate, high) of two models, with the distances of the
    ends from the estimate; the part that both have in common moves both to one side."""

    def reach(
        away: float, other: float, same_way: float, other_same_way: float, at_zero: bool
    ) -> float:
        """How far the difference may be off: the first model is off by `away`, and the second by
        `other` to the other side. Both may be off to the same side by `away` and `same_way`, or by
        `other_same_way` and `other`."""
        common = max(0.0, away - same_way, other - other_same_way)
        if not at_zero:
            return math.sqrt((1 - r) * (away**2 + other**2) + r * common**2)
        found = math.sqrt(1 - r) * other + math.sqrt((1 - r) * away**2 + r * common**2)
        return min(found, away + other)

    (low_1, mid_1, high_1), (low_2, mid_2, high_2) = first, second
    up = reach(high_1 - mid_1, mid_2 - low_2, high_2 - mid_2, mid_1 - low_1, low_2 == 0)
    # The low end is the high end of the second model less the first one.
    down = reach(high_2 - mid_2, mid_1 - low_1, high_1 - mid_1, mid_2 - low_2, low_1 == 0)
    return mid_1 - mid_2 - down, mid_1 - mid_2 + up


def p_of_signs(gaps: Any, weights: Any, share: float, form: str) -> float:
    """The share of all 2^n signs whose score is at least the observed one: the true gaps are a
    `share` of those of all units, and the rest of each unit's gap has a random sign.
    """
    units, bins = len(gaps), range(len(weights))
    total = [math.fsum(gaps[i][b] for i in range(units)) for b in bins]

    def score(sums: list[float]) -> float:
        sizes = [max(v, 0.0) if form == "one_sided" else abs(v) for v in sums]
        parts = [size * w for size, w in zip(sizes, weights, strict=True)]
        return max(parts) if form == "largest" else math.fsum(parts)

    hits = 0
    for signs in itertools.product((1, -1), repeat=units):
        rest = [
            math.fsum(signs[i] * (gaps[i][b] - share * total[b] / units) for i in range(units))
            for b in bins
        ]
        moved = [share * total[b] + rest[b] for b in bins]
        hits += score(moved) >= score(total) * (1 - 1e-12)
    return hits / 2**units


def share_of_signs(signs: Any, gaps: Any, weights: Any, tail: float) -> float:
    """The smallest multiple of 1/256 whose successor the test by these signs [flip, unit] does not
    reject: more than `tail` of the errors are as large as that of the gaps [unit, bin]. The search
    halves the range, and the smallest one is 0."""
    total = gaps.sum(axis=0)
    least = (abs(total) * weights).sum() * (1 - 1e-12)

    def is_rejected(share: float) -> bool:
        hits = 1
        for own in signs:
            rest = own @ (gaps - share * total / len(gaps))
            hits += float((abs(share * total + rest) * weights).sum()) >= least
        return hits / (1 + len(signs)) <= tail

    if not is_rejected(0.0):
        return 0.0
    found = 0
    for step in (128, 64, 32, 16, 8, 4, 2, 1):
        found += step if is_rejected((found + step) / 256) else 0
    return found / 256


def holm(p: Sequence[float]) -> list[float]:
    """Holm 1979, as the smallest level at which each hypothesis is rejected."""
    found = []
    for own in p:
        below = sorted(other for other in p if other <= own)
        found.append(max(min(1.0, (len(p) - i) * q) for i, q in enumerate(below)))
    return found
