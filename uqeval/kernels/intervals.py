"""Predictive distributions: proper scores, and the intervals that hold the target."""

from __future__ import annotations

import math

import numpy as np

from uqeval.kernels._jit import kernel

_SQRT2 = math.sqrt(2.0)
_INV_SQRT_PI = 1.0 / math.sqrt(math.pi)
_INV_SQRT_2PI = 1.0 / math.sqrt(2.0 * math.pi)
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@kernel
def score_gaussian(e, s):
    """Negative log likelihood (σ > 0) and CRPS of N(μ, σ²) at |y - μ| = e."""
    if s == 0.0:
        return 0.0, e
    z = e / s
    nll = _HALF_LOG_2PI + math.log(s) + 0.5 * z * z
    density = _INV_SQRT_2PI * math.exp(-0.5 * z * z)
    crps = s * (z * math.erf(z / _SQRT2) + 2.0 * density - _INV_SQRT_PI)
    return nll, crps


@kernel
def score_laplace(e, s):
    """The same of a Laplace distribution of standard deviation σ: b = σ / √2."""
    if s == 0.0:
        return 0.0, e
    b = s / _SQRT2
    z = e / b
    return math.log(2.0 * b) + z, e + b * (math.exp(-z) - 0.75)


@kernel
def sum_scores(error, sigma, label, void, laplace, factors, shares, likelihood, crps, intervals):
    """Sums of evaluated pixels' NLL (σ > 0) and CRPS into [1], of interval scores into [level].

    The central interval of level k is μ ± factors[k] σ, and shares[k] = 2 / (1 - p_k).
    """
    height, width = label.shape
    for y in range(height):
        nll_row, crps_row = 0.0, 0.0
        for x in range(width):
            if label[y, x] == void:
                continue
            e, s = np.float64(error[y, x]), np.float64(sigma[y, x])
            nll, score = score_laplace(e, s) if laplace else score_gaussian(e, s)
            nll_row += nll
            crps_row += score
            for k in range(factors.shape[0]):
                half = factors[k] * s
                intervals[k] += 2.0 * half + shares[k] * max(e - half, 0.0)
        likelihood[0] += nll_row
        crps[0] += crps_row


@kernel
def count_levels(error, sigma, label, void, factors, levels, ties):
    """Evaluated pixels by the first of the ascending levels whose interval holds the target.

    Interval k holds it when ε <= factors[k] σ, in float64. Into `levels` [level, and none last];
    pixels with an ε on the end of an interval of σ > 0 into `ties` [1].
    """
    height, width = label.shape
    n = factors.shape[0]
    for y in range(height):
        for x in range(width):
            if label[y, x] == void:
                continue
            e, s = np.float64(error[y, x]), np.float64(sigma[y, x])
            low, high = 0, n
            while low < high:
                middle = (low + high) // 2
                if e <= factors[middle] * s:
                    high = middle
                else:
                    low = middle + 1
            levels[low] += 1
            ties[0] += low < n and s > 0.0 and e == factors[low] * s
