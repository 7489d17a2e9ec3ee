"""Intervals of differences of two errors on the same units, by the paired MOVER."""

from __future__ import annotations

import math
from dataclasses import dataclass

from uqeval.statistics.methods import Bounds


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
