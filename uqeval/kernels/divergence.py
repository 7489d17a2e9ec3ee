"""KL divergence of one predictive distribution from another, pixel by pixel, summed."""

from __future__ import annotations

import math

import numpy as np

from uqeval.kernels._jit import kernel, kernel_part
from uqeval.kernels.logarithm import log_64

#: Smaller float64 numbers are subnormal, which `log_64` does not support. A clip may be subnormal.
_NORMAL = 2.0**-1022
_RAISED = 2.0**54
_OF_RAISED = 54 * math.log(2.0)
#: Larger divergences count as infinite: the sum of 2⁶³ below it is a float64.
_LARGEST = 2.0**960


@kernel_part
def _log(p):
    """Return ln p for any float64 p > 0."""
    low = p < _NORMAL
    return log_64(p * _RAISED if low else p) - (_OF_RAISED if low else 0.0)


@kernel_part
def _add_masses(p, q, clip, mass_p, mass_q):
    """Add clipped probabilities of one class to each pixel [x]."""
    for x in range(p.shape[0]):
        mass_p[x] += max(np.float64(p[x]), clip)
        mass_q[x] += max(np.float64(q[x]), clip)


@kernel_part
def _add_terms(p, q, clip, mass_p, mass_q, divergence, unbounded):
    """Add p·ln(p/q) of one class to each pixel [x]. No branch: the compiler vectorizes it."""
    for x in range(p.shape[0]):
        a = max(np.float64(p[x]), clip) / mass_p[x]
        b = max(np.float64(q[x]), clip) / mass_q[x]
        term = a * (_log(a) - _log(b))
        divergence[x] += term if (a > 0.0) & (b > 0.0) else 0.0
        unbounded[x] |= (a > 0.0) & (b <= 0.0)


@kernel
def kl_categorical(p, q, clip, total, finite, infinite):
    """Sum Σ_c p·ln(p/q) over pixels of `p`, `q` float32 [class, y, x], into float64 and int64 [1].

    p = 0 adds 0. A pixel with q = 0 < p is infinite: counted, not summed. With `clip` above 0, both
    are first raised to at least `clip` and renormalised.
    """
    classes, height, width = p.shape
    mass_p, mass_q, divergence = np.ones(width), np.ones(width), np.empty(width)
    unbounded = np.empty(width, np.bool_)
    for y in range(height):
        if clip > 0.0:
            mass_p[:], mass_q[:] = 0.0, 0.0
            for c in range(classes):
                _add_masses(p[c, y], q[c, y], clip, mass_p, mass_q)
        divergence[:], unbounded[:] = 0.0, False
        for c in range(classes):
            _add_terms(p[c, y], q[c, y], clip, mass_p, mass_q, divergence, unbounded)
        for x in range(width):
            if unbounded[x]:
                infinite[0] += 1
            else:
                finite[0] += 1
                total[0] += divergence[x]


@kernel_part
def _gaussian(s, t, d):
    """Return KL(N(·, s²) ‖ N(·, t²)) for s, t > 0 and means that differ by d; not finite if it is
    too large for float64."""
    bottom = 2.0 * t * t
    if bottom >= _NORMAL and t / s < np.inf:
        return math.log(t / s) + (s * s + d * d) / bottom - 0.5
    # The square of a tiny number loses its digits; those of quotients do not.
    a, b = s / t, d / t
    return (_log(t) - _log(s)) + 0.5 * (a * a + b * b) - 0.5


@kernel
def kl_gaussian(
    label, mean, sigma, other_label, other_mean, other_sigma, void, total, finite, infinite
):  # fmt: skip
    """Sum ln(σ₂/σ₁) + (σ₁² + (μ₁ - μ₂)²)/(2σ₂²) - ½ over pixels [y, x], into float64 and int64 [1].

    Pixels that are `void` in either label map do not count. Infinite if exactly one deviation is 0,
    if both are 0 and the means differ, or if it is too large for a sum. 0 if both are 0 and the
    means are equal.
    """
    height, width = mean.shape
    for y in range(height):
        for x in range(width):
            if label[y, x] == void or other_label[y, x] == void:
                continue
            s, t = np.float64(sigma[y, x]), np.float64(other_sigma[y, x])
            d = np.float64(mean[y, x]) - np.float64(other_mean[y, x])
            divergence = 0.0 if s == t and d == 0.0 else np.inf
            if s > 0.0 and t > 0.0:
                divergence = _gaussian(s, t, d)
            if divergence <= _LARGEST:
                total[0] += divergence
                finite[0] += 1
            else:
                infinite[0] += 1
