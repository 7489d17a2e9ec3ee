"""Isotonic regression and vector scaling, fitted out of core.

Isotonic regression pools adjacent violators (Zadrozny & Elkan 2002) over exact counts by bin of
confidence: one pass. Vector scaling (Guo et al. 2017, §4.2) minimises the NLL of softmax(w·z + b)
by Newton's method: one pass per step, with exact gradients, and second derivatives of some pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from uqeval.arrays import Array, State, np
from uqeval.metrics._evaluation import Passes

#: Vector scaling ends when a step would lower the mean NLL by less than this, and after this number
#: of passes at the latest.
_SMALL, _PASSES = 1e-12, 60
#: Weights beyond this run to infinity, and so do those at which the mean NLL is below this.
_MOST, _CERTAIN = 1e4, 1e-9
#: Part of the curvature's trace that is added to its diagonal.
_RIDGE = 1e-12
NO_PIXEL = "no item that it is fitted on has a labelled pixel"
UNBOUNDED = "the NLL has no minimum: it still falls as the weights grow"


@dataclass(frozen=True)
class Knots:
    """A fitted isotonic function: linear between values at bins of confidence."""

    places: list[int]
    values: list[float]
    pixels: int
    steps: int


def pooled(count: Sequence[int], correct: Sequence[int]) -> Knots:
    """Return the isotonic regression of the share of right pixels in each bin.

    Adjacent bins whose shares fall are pooled: comparisons are of integers, so exact.
    """
    blocks: list[tuple[int, int, int, int]] = []  # first bin, last bin, pixels, right ones
    for b, (n, k) in enumerate(zip(count, correct, strict=True)):
        if not n:
            continue
        first, last = b, b
        while blocks and blocks[-1][3] * n >= k * blocks[-1][2]:
            before = blocks.pop()
            first, n, k = before[0], n + before[2], k + before[3]
        blocks.append((first, last, n, k))
    places: list[int] = []
    values: list[float] = []
    for first, last, n, k in blocks:
        ends = [first] if first == last else [first, last]
        places += ends
        values += [k / n] * len(ends)
    return Knots(places, values, sum(count), len(blocks))


@dataclass(frozen=True)
class Vector:
    """Fitted weights and biases, or why there are none; pixels, and passes that it took."""

    weights: list[float]
    biases: list[float]
    reason: str
    pixels: int
    absent: list[int]


def fit_vector(classes: int, items: Sequence[int] | None, clip: float) -> Passes:
    """Return the `Vector` with the least NLL of some items (None: all).

    Classes without a labelled pixel keep their probability. A step that raises the NLL is halved.
    """
    from uqeval.tallies.recalibrated import LogitSlopes

    point = np.stack([np.ones(classes), np.zeros(classes)])
    best: Array | None = None
    least, step = np.inf, np.zeros_like(point)
    absent: list[int] = []
    for _ in range(_PASSES):
        weights, biases = point.tolist()
        tally = LogitSlopes(
            classes, tuple(weights), tuple(biases), clip, tuple(absent), items is not None
        )
        state = (yield (tally,))[tally].of(tally, items)
        pixels = int(state["labels"].sum())
        if not pixels:
            return Vector([], [], NO_PIXEL, 0, [])
        if not absent and (absent := np.flatnonzero(state["labels"] == 0).tolist()):
            continue  # count again, without these classes
        nll = float(state["nll"][0]) / pixels
        if best is not None and not nll <= least + _SMALL:
            step = step / 2
            point = best + step
            continue
        best, least = point, nll
        step, gain = _newton(state, pixels, absent)
        if gain <= _SMALL:
            if nll <= _CERTAIN:
                break
            return Vector(weights, biases, "", pixels, absent)
        point = best + step
        if float(abs(point).max()) > _MOST:
            break
    return Vector([], [], UNBOUNDED, pixels, absent)


def _newton(state: State, pixels: int, absent: Sequence[int]) -> tuple[Array, float]:
    """Return the step [2, class] of Newton's method, and the decrease of the mean NLL."""
    ww, wb, bb = state["curvature"] / pixels
    slopes = state["slopes"] / pixels
    classes = len(ww)
    hessian = np.block([[ww, wb], [wb.T, bb]])
    # A constant added to all biases changes nothing: their mean stays.
    hessian[classes:, classes:] += 1 / classes
    hessian[np.diag_indices(2 * classes)] += _RIDGE * max(np.trace(hessian), 1.0)
    is_free = np.ones((2, classes), bool)
    is_free[:, list(absent)] = False
    free = np.flatnonzero(is_free)
    step = np.zeros(2 * classes)
    gradient = slopes.reshape(-1)
    step[free] = -np.linalg.solve(hessian[np.ix_(free, free)], gradient[free])
    return step.reshape(2, classes), float(-gradient @ step) / 2
