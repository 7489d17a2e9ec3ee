"""Predictive distributions: proper scores, and the intervals that hold the target."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqeval.kernels._jit import bits_of_float32, kernel

#: Low bits of ε/σ that do not say where a level is looked for: 8 bits of the mantissa are left.
RATIO_BITS = 15

_SQRT2 = math.sqrt(2.0)
_INV_SQRT_PI = 1.0 / math.sqrt(math.pi)
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
#: Nodes of `_crps` in a unit of z, and the z from which it is a line to the last bit.
_NODES, _LINE = 64, 9


def _taylor() -> NDArray[np.float64]:
    """About each node the polynomial of z·erf(z/√2) + 2φ(z), [node, power].

    Its derivative is erf(z/√2), and its second 2φ, whose own are Hermite polynomials times φ. Half
    a step is 2⁻⁷, the seventh power of which is nothing beside a float64.
    """
    z = np.arange(_NODES * _LINE + 1) / _NODES
    erf = np.array([math.erf(v / _SQRT2) for v in z])
    density = np.array([math.exp(-0.5 * v * v) for v in z]) / math.sqrt(2.0 * math.pi)
    hermite = (z, z**2 - 1, z**3 - 3 * z, z**4 - 6 * z**2 + 3)
    parts = (-1 / 3, 1 / 12, -1 / 60, 1 / 360)
    higher = [density * own * part for own, part in zip(hermite, parts, strict=True)]
    return np.stack([z * erf + 2 * density, erf, density, *higher], axis=1)


_TAYLOR = _taylor()


@kernel
def _crps(z):
    """z·erf(z/√2) + 2φ(z) for z >= 0: less 1/√π the CRPS of N(0, 1). A table is several times as
    fast as erf."""
    if z >= _LINE:
        return z
    node = int(z * _NODES + 0.5)
    d, c = z - node / _NODES, _TAYLOR[node]
    return c[0] + d * (c[1] + d * (c[2] + d * (c[3] + d * (c[4] + d * (c[5] + d * c[6])))))


@kernel
def score_gaussian(e, s):
    """Negative log likelihood (σ > 0) and CRPS of N(μ, σ²) at |y - μ| = e."""
    if s == 0.0:
        return 0.0, e
    z = e / s
    nll = _HALF_LOG_2PI + math.log(s) + 0.5 * z * z
    return nll, s * (_crps(z) - _INV_SQRT_PI)


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
def count_levels(error, sigma, label, void, factors, count, first, steps, levels, ties):
    """Evaluated pixels by the first of the ascending levels whose interval holds the target.

    Interval k of `count` holds it when ε <= factors[k] σ, in float64. Into `levels` [level, and
    none last]; pixels with an ε on the end of an interval of σ > 0 into `ties` [1].

    `first` [high bits of ε/σ as float32] says which level it can be at least, and `steps` how many
    levels above it at most; so many infinite factors follow after the last.
    """
    height, width = label.shape
    for y in range(height):
        for x in range(width):
            if label[y, x] == void:
                continue
            e, s = np.float64(error[y, x]), np.float64(sigma[y, x])
            ratio: Any = np.float32(e / s) if s > 0.0 else np.float32(np.inf if e > 0.0 else 0.0)
            k = np.int64(first[bits_of_float32(ratio) >> RATIO_BITS])
            for _ in range(steps):
                k += np.int64(not e <= factors[k] * s)  # a branch would be guessed wrong
            k = min(k, count)
            levels[k] += 1
            ties[0] += k < count and s > 0.0 and e == factors[k] * s
