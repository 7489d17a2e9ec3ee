"""Predictive distributions: proper scores, and the intervals that hold the target."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqeval.kernels._jit import bits_of_float32, bits_of_float64, float64_of, kernel, kernel_part
from uqeval.kernels.exponential import exp_64
from uqeval.kernels.pairwise import pairwise_sum

#: Low bits of ε/σ that the search for a level ignores; 10 bits of the mantissa remain.
RATIO_BITS = 13
#: Pixels of a block, and lanes that sums are added up in: pixel i in lane i modulo `BLOCK`.
BLOCK = 256

_SQRT2 = math.sqrt(2.0)
_INV_SQRT_PI = 1.0 / math.sqrt(math.pi)
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_HALF_LOG_2 = 0.5 * math.log(2.0)
#: Nodes of `_crps` per unit of z, and the z from which `_crps` is exactly linear in float64.
_NODES, _LINE = 64, 9.0
#: A float64 in [1, 2) has the bits of 1 above its mantissa. The product of `_FACTORS` such numbers
#: is still a float64.
_MANTISSA, _ONE = np.int64((1 << 52) - 1), np.int64(1023 << 52)
_FACTORS = 512
#: Larger ratios ε/σ have no NLL: the sum of 2⁶³ halved squares below 2⁹⁶⁰ is a float64. The NLL of
#: a Laplace distribution has no square.
FARTHEST, FARTHEST_LAPLACE = 2.0**480, 2.0**960
#: Smaller numbers are subnormal: their mantissa has no leading 1.
_NORMAL, _RAISED, _BITS_RAISED = 2.0**-1022, 2.0**54, 54


def _normal() -> NDArray[np.float64]:
    """Return erf(z/√2) and the density φ(z) at each node, [which, node]."""
    z = [k / _NODES for k in range(int(_NODES * _LINE) + 1)]
    erf = [math.erf(v / _SQRT2) for v in z]
    return np.array([erf, [math.exp(-0.5 * v * v) / math.sqrt(2.0 * math.pi) for v in z]])


_ERF, _DENSITY = _normal()


@kernel_part
def _copy_evaluated(number, label, void, is_new):
    """Copy the evaluated numbers of a block as float64; 0 for others."""
    for i in range(label.shape[0]):
        is_new[i] = np.float64(number[i]) if label[i] != void else 0.0


@kernel_part
def _divide(e, s, unit, z):
    """Write ε/(σ·`unit`) of a block, 0 where σ = 0."""
    for i in range(e.shape[0]):
        z[i] = e[i] / (s[i] * unit) if s[i] > 0.0 else 0.0


@kernel_part
def _leave_far(s, z, farthest):
    """Set σ and ε/σ of a block to 0 where the ratio exceeds `farthest`; return at how many pixels.

    There the CRPS is ε, and the interval score that of σ = 0, to the last bit.
    """
    count = 0
    for i in range(s.shape[0]):
        is_far = z[i] > farthest
        count += is_far
        s[i] = 0.0 if is_far else s[i]
        z[i] = 0.0 if is_far else z[i]
    return count


@kernel_part
def _multiply(s, mantissas, exponents):
    """Multiply each lane by its σ > 0: the mantissas, and the sum of the exponents."""
    for i in range(s.shape[0]):
        is_positive, is_low = s[i] > 0.0, s[i] < _NORMAL
        bits = bits_of_float64(s[i] * _RAISED if is_low else s[i])
        one: Any = (bits & _MANTISSA) | _ONE
        mantissa = float64_of(one)
        mantissas[i] *= mantissa if is_positive else 1.0
        exponent = (bits >> np.int64(52)) - np.int64(1023 + _BITS_RAISED if is_low else 1023)
        exponents[i] += exponent if is_positive else np.int64(0)


@kernel_part
def _flush(mantissas):
    """Return Σ ln of the lanes, and reset them."""
    total = 0.0
    for i in range(mantissas.shape[0]):
        total += math.log(mantissas[i])
        mantissas[i] = 1.0
    return total


@kernel_part
def _sum(lanes):
    total = lanes.dtype.type(0)
    for i in range(lanes.shape[0]):
        total += lanes[i]
    return total


@kernel_part
def _nearest(z, node):
    for i in range(z.shape[0]):
        node[i] = np.int32((z[i] if z[i] < _LINE else _LINE) * _NODES + 0.5)


@kernel_part
def _look_up(table, node, values):
    for i in range(values.shape[0]):
        values[i] = table[np.uint32(node[i])]


@kernel_part
def _crps(z, erf, density):
    """Return z·erf(z/√2) + 2φ(z) for z >= 0. Minus 1/√π, this is the CRPS of N(0, 1).

    A Taylor series about the nearest node, from `erf` and `density` there. The first derivative is
    erf(z/√2) and the second 2φ; higher ones are Hermite polynomials times φ. The largest distance
    is 2⁻⁷, so the seventh power is below the precision of float64.
    """
    bounded = z if z < _LINE else _LINE
    x = np.float64(np.int32(bounded * _NODES + 0.5)) / _NODES
    d, square = bounded - x, x * x
    fifth = (3.0 - square) * x * (1.0 / 60.0)
    sixth = ((square - 6.0) * square + 3.0) * (1.0 / 360.0)
    remainder = 1.0 + d * (x * (-1.0 / 3.0) + d * ((square - 1.0) / 12.0 + d * (fifth + d * sixth)))
    score = x * erf + 2.0 * density + d * (erf + d * density * remainder)
    return z if z >= _LINE else score


@kernel_part
def _add_gaussian(e, s, z, erf, density, sums):
    for i in range(e.shape[0]):
        sums[i] += s[i] * (_crps(z[i], erf[i], density[i]) - _INV_SQRT_PI) if s[i] > 0.0 else e[i]


@kernel_part
def _add_laplace(e, s, z, sums):
    for i in range(e.shape[0]):
        sums[i] += e[i] + s[i] / _SQRT2 * (exp_64(-z[i]) - 0.75)


@kernel_part
def _add_squares(z, sums):
    for i in range(z.shape[0]):
        sums[i] += 0.5 * z[i] * z[i]


@kernel_part
def _add(z, sums):
    for i in range(z.shape[0]):
        sums[i] += z[i]


@kernel_part
def _add_interval(e, s, factor, share, sums):
    for i in range(e.shape[0]):
        half = factor * s[i]
        beyond = e[i] - half
        sums[i] += 2.0 * half + (share * beyond if beyond > 0.0 else 0.0)


@kernel_part
def _count_positive(s):
    n = 0
    for i in range(s.shape[0]):
        n += s[i] > 0.0
    return n


@kernel
def sum_scores(
    first, error, sigma, label, void, laplace, factors, shares, nll, crps, intervals, far
):  # fmt: skip
    """Sum the negative log likelihood where σ > 0, the CRPS and the interval score of each level
    over evaluated pixels [k], into `nll` [item, 1], `crps` [item, 1] and `intervals` [item, level].
    Where ε/σ is too large for a sum, `nll` has nothing, and `far` [item, 1] counts the pixel.

    The distribution is N(μ, σ²), or Laplace with standard deviation σ. The central interval of
    level j is μ ± factors[j] σ, and shares[j] = 2 / (1 - p_j). The pixels of item i are those from
    `first[i]` up to `first[i + 1]`.
    """
    e, s, z = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    erf, density, node = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK, np.int32)
    # Σ ln σ is the logarithm of a product: computing fewer logarithms is many times as fast.
    mantissas, exponents, exponential = np.ones(BLOCK), np.empty(BLOCK, np.int64), np.empty(BLOCK)
    lanes = np.empty((1 + factors.shape[0], BLOCK))
    for i in range(first.shape[0] - 1):
        lanes[:], exponents[:], exponential[:] = 0.0, 0, 0.0
        positive, logarithms, remaining = 0, 0.0, _FACTORS
        for start in range(first[i], first[i + 1], BLOCK):
            stop = min(start + BLOCK, first[i + 1])
            labels, n = label[start:stop], stop - start
            errors, sigmas, ratios = e[:n], s[:n], z[:n]
            _copy_evaluated(error[start:stop], labels, void, errors)
            _copy_evaluated(sigma[start:stop], labels, void, sigmas)
            _divide(errors, sigmas, 1.0 / _SQRT2 if laplace else 1.0, ratios)
            far[i, 0] += _leave_far(sigmas, ratios, FARTHEST_LAPLACE if laplace else FARTHEST)
            positive += _count_positive(sigmas)
            _multiply(sigmas, mantissas, exponents)
            remaining -= 1
            if remaining == 0:
                logarithms += _flush(mantissas)
                remaining = _FACTORS
            if laplace:
                _add(ratios, exponential)
                _add_laplace(errors, sigmas, ratios, lanes[0])
            else:
                _add_squares(ratios, exponential)
                _nearest(ratios, node)
                _look_up(_ERF, node, erf[:n])
                _look_up(_DENSITY, node, density[:n])
                _add_gaussian(errors, sigmas, ratios, erf, density, lanes[0])
            for j in range(factors.shape[0]):
                _add_interval(errors, sigmas, factors[j], shares[j], lanes[1 + j])
        logarithms += _flush(mantissas) + np.float64(_sum(exponents)) * math.log(2.0)
        constants = positive * (_HALF_LOG_2 if laplace else _HALF_LOG_2PI)
        nll[i, 0] += logarithms + constants + _sum(exponential)
        crps[i, 0] += pairwise_sum(lanes[0])
        for j in range(factors.shape[0]):
            intervals[i, j] += pairwise_sum(lanes[1 + j])


@kernel_part
def _codes(error, sigma, label, void, lowest, void_code, code):
    """Write the float32 bits of ε/σ of a block without the low `RATIO_BITS`, minus `lowest`: at
    least 0 and below `void_code`, the code of void pixels."""
    for i in range(label.shape[0]):
        e, s = error[i], sigma[i]
        at_zero = np.float32(np.inf) if e > 0 else np.float32(0.0)
        ratio: Any = np.float32(e / s if s > 0 else at_zero)
        c: Any = np.int32(np.int32(bits_of_float32(ratio) >> np.int32(RATIO_BITS)) - lowest)
        c = np.int32(0) if c < 0 else c
        c = np.int32(void_code - np.int32(1)) if c >= void_code else c
        code[i] = c if label[i] != void else void_code


@kernel
def count_levels(
    first, error, sigma, label, void, factors, count, lowest, first_level, unsure, steps, levels,
    ties,
):  # fmt: skip
    """Count evaluated pixels [k] by the first level whose interval contains the target.

    Levels ascend. Interval j of `count` contains the target if ε <= factors[j] σ, in float64. Adds
    to `levels` [item, level]; the last entry counts targets outside all intervals. `ties` [item, 1]
    counts pixels whose ε is exactly the end of an interval with σ > 0. The pixels of item i are
    those from `first[i]` up to `first[i + 1]`.

    `first_level` [high bits of ε/σ as float32, from `lowest` on] is the smallest possible level.
    uint8 `unsure` marks bits for which it may be larger, by at most `steps` levels. `factors` ends
    with `steps` infinite values.
    """
    void_code = np.int32(first_level.shape[0])
    by_code = np.empty(first_level.shape[0] + 1, np.int64)
    code, pixels = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    for i in range(first.shape[0] - 1):
        by_code[:] = 0
        of_item = levels[i]
        for start in range(first[i], first[i + 1], BLOCK):
            stop = min(start + BLOCK, first[i + 1])
            labels, errors, sigmas = label[start:stop], error[start:stop], sigma[start:stop]
            _codes(errors, sigmas, labels, void, np.int32(lowest), void_code, code)
            n: Any = np.uint64(0)
            for k in range(labels.shape[0]):
                level = np.uint32(code[k])
                by_code[level] += 1
                pixels[n] = k
                n += np.uint64(unsure[level])
            for j in range(np.int64(n)):
                at = pixels[j]
                e, s = np.float64(errors[at]), np.float64(sigmas[at])
                own = np.int64(first_level[code[at]])
                for _ in range(steps):
                    own += np.int64(not e <= factors[own] * s)  # a branch would be mispredicted
                own = min(own, count)
                of_item[own] += 1
                ties[i, 0] += own < count and s > 0.0 and e == factors[own] * s
        for c in range(first_level.shape[0]):
            if not unsure[c]:
                of_item[first_level[c]] += by_code[c]
