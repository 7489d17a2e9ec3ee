"""Intervals, quantiles and shares of Gaussian and Laplace distributions, in units of σ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist


def factors(levels: Sequence[float], distribution: str) -> tuple[float, ...]:
    """Return half widths, in units of σ, of the central intervals with these nominal coverages.

    Gaussian: Φ⁻¹((p + 1)/2). Laplace with standard deviation σ: -ln(1 - p)/√2.
    """
    if distribution == "laplace":
        return tuple(-math.log1p(-p) / math.sqrt(2) for p in levels)
    return tuple(NormalDist().inv_cdf((p + 1) / 2) for p in levels)


def quantiles(levels: Sequence[float], distribution: str) -> tuple[float, ...]:
    """Return the quantiles of these levels in ]0, 1[, in units of σ.

    Gaussian: Φ⁻¹(p). Laplace with standard deviation σ: ln(2p)/√2, and -ln(2 - 2p)/√2 above ½.
    """
    if distribution == "laplace":
        return tuple(
            math.copysign(math.log(2 * min(p, 1 - p)) / math.sqrt(2), p - 0.5) for p in levels
        )
    return tuple(NormalDist().inv_cdf(p) for p in levels)


def share_below(z: float, distribution: str) -> float:
    """Return the share of the distribution below z, in units of σ."""
    if distribution == "laplace":
        tail = math.exp(-math.sqrt(2) * abs(z)) / 2
        return 1 - tail if z > 0 else tail
    return NormalDist().cdf(z)
