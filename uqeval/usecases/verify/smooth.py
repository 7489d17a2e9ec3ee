"""The smooth ECE of pixels: the kernel in real space, its convolution, and a bisection."""

from __future__ import annotations

import math

import numpy as np

from uqeval.arrays import Array

_NODES = 1 << 14
#: Nodes at which a run counts gaps.
_RUN_NODES = 1 << 12
#: A narrower kernel than so many nodes is not resolved.
_NARROW = 6


def smooth_ece(confidence: Array, right: Array) -> tuple[float, float] | None:
    """Return the smooth ECE, and the allowed difference of a run's value.

    Both share a gap between two nodes, which moves the score by at most 0.121·mean|gap|·(w/σ)² at a
    distance w of nodes.

    None without pixels, and where the bandwidth is too narrow for the nodes.
    """
    if not confidence.size:
        return None
    at = confidence.astype(np.float64) * _NODES
    low = np.clip(np.floor(at), 0, _NODES - 1).astype(np.int64)
    gap, upper = right - confidence.astype(np.float64), at - low
    counted = np.bincount(low, gap * (1 - upper), _NODES + 1)
    counted += np.bincount(low + 1, gap * upper, _NODES + 1)
    # Mirrored at 0 and at 1, the gaps have the period 2.
    around = np.zeros(2 * _NODES)
    around[: _NODES + 1] += counted
    around[-np.arange(_NODES + 1)] += counted
    spectrum = np.fft.rfft(around / confidence.size)
    low_end, high_end = _NARROW / _NODES, 1.0
    if _error(spectrum, low_end) <= low_end:
        return None
    while high_end - low_end > 1e-9:
        middle = (low_end + high_end) / 2
        above = _error(spectrum, middle) > middle
        low_end, high_end = (middle, high_end) if above else (low_end, middle)
    absolute = float(np.abs(gap).mean())
    shared = sum(0.121 * absolute / (nodes * low_end) ** 2 for nodes in (_NODES, _RUN_NODES))
    return low_end, min(shared, absolute) + 1e-6


def _error(spectrum: Array, sigma: float) -> float:
    """Return ∫|f| over [0, 1] of the gaps under a Gaussian of this bandwidth."""
    distances = np.arange(2 * _NODES) / _NODES
    kernel = np.zeros(2 * _NODES)
    for turn in range(-4, 4):
        kernel += np.exp(-(((distances + 2 * turn) / sigma) ** 2) / 2)
    kernel /= sigma * math.sqrt(2 * math.pi)
    f = np.fft.irfft(spectrum * np.fft.rfft(kernel), 2 * _NODES)[: _NODES + 1]
    return float(np.trapezoid(np.abs(f))) / _NODES
