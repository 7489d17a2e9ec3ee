"""Temperature scaling fitted out of core: Guo et al. 2017, §4.2, of the mean or of each sample.

The NLL of p̄^β / Σ p̄^β is convex in β = 1/T, with derivative g(β) = Σ (E_β[ln p̄] - ln p̄_y) and
g'(β) = Σ Var_β[ln p̄]. One pass evaluates both for some pixels of each item, at β from 1/32 to 32;
the next for all pixels, at five β around where the polynomial through the first crosses zero; T is
read from the polynomial through those. If they do not enclose the zero, all pixels are evaluated at
β from 1/32 to 32, and then around it. So the first pass affects only the time, not the result.

The NLL that is reported is clipped, and not convex. Where pixels are clipped at that T, and for
samples that are scaled each by itself and then averaged, a pass gives its values at nine β around
the least, and T is where the polynomial through those is least.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from uqeval.arrays import State
from uqeval.metrics._evaluation import TallyResult

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally
    from uqeval.tallies.tempered import Likelihoods, SampleLikelihoods, TemperatureSlopes

#: The least and the largest temperature that is looked for.
LEAST, MOST = 1 / 32, 32.0
_DOUBLINGS = 11
#: Number of β around an estimate, and their relative distance. Between two neighbours the
#: polynomial of degree 7 is exact to rounding.
_AROUND, _CLOSE = 9, 0.01
#: The number of β around the first estimate that almost always enclose the solution.
_FEW = 5
#: A clip below all probabilities but 0, which do not enter.
_UNCLIPPED = 2.0**-1000

_WITHOUT = "no pixel gives its label's class a probability above 0"
_CONSTANT = "the NLL is the same at every temperature"


@dataclass(frozen=True)
class Sample:
    """About how many pixels of each item estimates use. The more items, the fewer of each.

    `first`: for the first estimate of β, at 21 β each; `clipped`: for the power of two at which the
    clipped NLL is least, at 11 β each.
    """

    first: int
    clipped: int

    @classmethod
    def of(cls, items: int) -> Sample:
        """Return the sample of each of so many items."""
        return cls(
            *(max(min(most, total // items), _LEAST_OF_ITEM) for most, total in _MOST_PIXELS)
        )


#: Pixels of an item at most, and of all items together, of both samples; and at least of an item.
_MOST_PIXELS, _LEAST_OF_ITEM = ((2**15, 2**20), (2**12, 2**18)), 2**7


@dataclass(frozen=True)
class Fit:
    """A fitted β = 1/T, or why there is none; pixels that entered, and those with p̄_y = 0."""

    beta: float | None
    reason: str
    pixels: int
    left_out: int


#: Relative distances of the β around an estimate.
_APART = 0.08
#: Values are sums of float32: differences below this count as 0.
_FLAT = 1e-7
#: Mean NLLs that differ by less are the same.
_SAME = 1e-9
_BOUND = "the NLL still falls at T = {}, the limit of the search"
#: Most passes; each reduces the distance by up to a third.
_TRIES = 8

Point = tuple[float, float, float]  # β, g, g'
Fitting = Generator["tuple[Tally, ...]", "dict[Tally, TallyResult]", Fit]


def fit(
    classes: int,
    items: Sequence[int] | None,
    sample: Sample,
    clip: float,
    at: Callable[[float], Tally],
) -> Fitting:
    """Return the β at which the clipped NLL of some items (None: all) is least.

    The unclipped NLL is convex: its β is within 1e-9 relative. It is also the β of the clipped NLL
    if no pixel is clipped there, and if the clipped NLL of some pixels of each item is not lower
    elsewhere. The pixels that are clipped are those of `at(β)`, a `Tempered`.
    """
    from uqeval.tallies.tempered import Likelihoods

    def tally(lowest: float, step: float, count: int) -> Likelihoods:
        return Likelihoods(classes, lowest, step, count, clip)

    convex, least = yield from _fit_convex(classes, items, sample, clip)
    if convex.beta is None and (not convex.pixels or convex.reason == _CONSTANT):
        return convex
    if convex.beta is None or abs(math.log2(least / convex.beta)) > 1:
        return (yield from _fit_values(tally, items, None))
    # Of the sample, without and with clipping: at the convex NLL's β, and at the power of two.
    between = least - convex.beta
    free, clipped = (
        Likelihoods(classes, convex.beta, between, 2, lowest, sample.clipped)
        for lowest in (_UNCLIPPED, clip)
    )
    tempered = at(convex.beta)
    results = yield (tempered, free, clipped)
    if between and _is_lower_by_clipping(
        results[free].of(free, items)["nll"].tolist(),
        results[clipped].of(clipped, items)["nll"].tolist(),
    ):
        return (yield from _fit_values(tally, items, None))
    if int(results[tempered].of(tempered, items)["clipped"][0]) <= convex.left_out:
        return convex
    return (yield from _fit_values(tally, items, convex.beta))


def _is_lower_by_clipping(free: Sequence[float], clipped: Sequence[float]) -> bool:
    """Return whether the clipped NLL is lower at the second of two β, and clipping lowers it there.

    Without the latter, it is lower because the pixels are a sample of those that count.
    """
    return clipped[1] < clipped[0] and clipped[1] < free[1]


def _fit_convex(
    classes: int, items: Sequence[int] | None, sample: Sample, clip: float
) -> Generator[tuple[Tally, ...], dict[Tally, TallyResult], tuple[Fit, float]]:
    """Return the fit of the unclipped NLL, and the β of the least clipped NLL of some pixels."""
    from uqeval.tallies.tempered import TemperatureSlopes

    points: list[Point] = []
    guess, least = yield from _guess(classes, items, sample, clip)
    first = guess * (1 - _CLOSE * (_FEW // 2))
    if first >= 1 / MOST and 2 * guess - first <= 1 / LEAST:
        tally = TemperatureSlopes(classes, first, guess * _CLOSE, _FEW)
        state = (yield (tally,))[tally].of(tally, items)
        points = _points(tally, state)
    close = _cross(points)
    if not close:
        tally = TemperatureSlopes(classes, 1 / MOST, 0.0, _DOUBLINGS)
        state = (yield (tally,))[tally].of(tally, items)
        points = _points(tally, state)
    pixels, left_out = state["pixels"].tolist()
    if not pixels:
        return Fit(None, _WITHOUT, pixels, left_out), least
    if all(slope == 0 for _, slope, _ in points):
        return Fit(None, _CONSTANT, pixels, left_out), least
    if not _cross(points):
        bound = LEAST if points[-1][1] <= 0 else MOST
        return Fit(None, _BOUND.format(bound), pixels, left_out), least
    while True:
        low, high, beta = _crossing(points)
        if high - low <= 1.05 * _CLOSE * beta:
            return Fit(beta, "", pixels, left_out), least
        # Near the estimate first; if the solution is not there, in the whole remaining range.
        step = (high - low) / (_AROUND - 1) if close else _CLOSE * beta
        first = low if close else max(beta - step * (_AROUND // 2), low)
        close = True
        tally = TemperatureSlopes(classes, first, step, _AROUND)
        state = (yield (tally,))[tally].of(tally, items)
        point_of_beta = {point[0]: point for point in points + _points(tally, state)}
        points = sorted(point_of_beta.values())


def _guess(
    classes: int, items: Sequence[int] | None, sample: Sample, clip: float
) -> Generator[tuple[Tally, ...], dict[Tally, TallyResult], tuple[float, float]]:
    """Return the β at which the NLL of some pixels of each item is least, 0 where there is none;
    and the power of two at which their clipped NLL is."""
    from uqeval.tallies.tempered import Likelihoods, TemperatureSlopes

    # Twice as near to each other as the powers of one pass are.
    tallies = tuple(
        TemperatureSlopes(classes, lowest / MOST, 0.0, count, sample.first)
        for lowest, count in ((1.0, _DOUBLINGS), (math.sqrt(2), _DOUBLINGS - 1))
    )
    clipped = Likelihoods(classes, 1 / MOST, 0.0, _DOUBLINGS, clip, sample.clipped)
    results = yield (*tallies, clipped)
    values = results[clipped].of(clipped, items)["nll"].tolist()
    least = clipped.betas()[values.index(min(values))]
    points = sorted(
        point for tally in tallies for point in _points(tally, results[tally].of(tally, items))
    )
    return (_crossing(points)[2] if _cross(points) else 0.0), least


def fit_samples(classes: int, items: Sequence[int] | None, clip: float) -> Fitting:
    """Return the β of the samples at which the clipped NLL of some items is least."""
    from uqeval.tallies.tempered import SampleLikelihoods

    def tally(lowest: float, step: float, count: int) -> SampleLikelihoods:
        return SampleLikelihoods.of(classes, lowest, step, count, clip)

    return (yield from _fit_values(tally, items, None))


def _fit_values(
    make: Callable[[float, float, int], Likelihoods | SampleLikelihoods],
    items: Sequence[int] | None,
    start: float | None,
) -> Fitting:
    """Return the β near `start` (None: of the best of 1/32, 1/16 … 32) with the least clipped NLL.

    A pass has the values at nine β. The next are around where the polynomial through them is
    least, four times as near to each other once the least lies inside, until their middle is least.
    """
    beta = start
    if beta is None:
        tally = make(1 / MOST, 0.0, _DOUBLINGS)
        state = (yield (tally,))[tally].of(tally, items)
        pixels, left_out = state["pixels"].tolist()
        if not pixels:
            return Fit(None, _WITHOUT, pixels, left_out)
        values = state["nll"].tolist()
        best = values.index(min(values))
        if max(values) - min(values) <= _FLAT * pixels:
            return Fit(None, _CONSTANT, pixels, left_out)
        if best in (0, len(values) - 1):
            bound = MOST if best == 0 else LEAST
            return Fit(None, _BOUND.format(bound), pixels, left_out)
        neighbours = slice(max(best - 2, 0), best + 3)
        beta = _least(tally.betas()[neighbours], values[neighbours])
    spacing = _APART
    for _ in range(_TRIES):
        step = spacing * beta
        tally = make(beta - step * (_AROUND // 2), step, _AROUND)
        state = (yield (tally,))[tally].of(tally, items)
        pixels, left_out = state["pixels"].tolist()
        values = [value / pixels for value in state["nll"].tolist()]
        beta = _least(tally.betas(), values)
        if values[_AROUND // 2] - min(values) <= _SAME and spacing < _APART:
            break
        if abs(values.index(min(values)) - _AROUND // 2) <= 2:
            spacing /= 4
    return Fit(beta, "", pixels, left_out)


def _least(betas: Sequence[float], values: Sequence[float]) -> float:
    """Return the β near the least value where the polynomial in ln β through all values is least.

    Bisects the derivative of Newton's form between the neighbours of the least value.
    """
    nodes = [math.log(beta) for beta in betas]
    polynomial = _polynomial(nodes, values)
    best = values.index(min(values))
    neighbours = nodes[max(best - 1, 0)], nodes[min(best + 1, len(nodes) - 1)]
    return math.exp(_bisected(lambda x: polynomial(x)[1], *neighbours))


def _polynomial(
    nodes: Sequence[float], values: Sequence[float], slopes: Sequence[float] = ()
) -> Callable[[float], tuple[float, float]]:
    """Return a function that gives value and derivative of the polynomial through these values.

    Neighbouring nodes may be equal: the polynomial then has the slope of this index there.
    """
    column, coefficients = list(values), [values[0]]
    for order in range(1, len(nodes)):
        column = [
            slopes[i]
            if nodes[i + order] == nodes[i]
            else (column[i + 1] - column[i]) / (nodes[i + order] - nodes[i])
            for i in range(len(column) - 1)
        ]
        coefficients.append(column[0])

    def at(x: float) -> tuple[float, float]:
        total = slope = 0.0
        for coefficient, node in zip(reversed(coefficients), reversed(nodes), strict=True):
            slope = slope * (x - node) + total
            total = total * (x - node) + coefficient
        return total, slope

    return at


def _points(tally: TemperatureSlopes, state: State) -> list[Point]:
    return list(
        zip(tally.betas(), state["slope"].tolist(), state["curvature"].tolist(), strict=True)
    )


def _cross(points: Sequence[Point]) -> bool:
    """Return whether g is 0 between ascending points."""
    return bool(points) and points[0][1] < 0 < points[-1][1]


def _crossing(ascending: Sequence[Point]) -> tuple[float, float, float]:
    """Return the two points between which g is 0, and where the polynomial through them is.

    The polynomial in ln β has the values and derivatives of the two and of their neighbours:
    Newton's divided differences with each point twice (Hermite), bisected.
    """
    upper = next(i for i, (_, slope, _) in enumerate(ascending) if slope >= 0)
    low, high = ascending[upper - 1][0], ascending[upper][0]
    points = ascending[max(upper - 2, 0) : upper + 2]
    nodes = [math.log(beta) for beta, _, _ in points for _ in range(2)]
    values = [slope for _, slope, _ in points for _ in range(2)]
    slopes = [beta * slope for beta, _, slope in points for _ in range(2)]  # dg/d(ln β) = β g'
    polynomial = _polynomial(nodes, values, slopes)
    zero = _bisected(lambda x: polynomial(x)[0], math.log(low), math.log(high))
    return low, high, math.exp(zero)


def _bisected(value: Callable[[float], float], a: float, b: float) -> float:
    """Return the zero of a function that is negative at `a` and not at `b`, to the last bits."""
    for _ in range(60):
        middle = (a + b) / 2
        if value(middle) < 0:
            a = middle
        else:
            b = middle
    return (a + b) / 2
