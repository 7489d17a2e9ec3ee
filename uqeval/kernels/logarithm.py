"""p·log p and exp without function calls, so that the compiler vectorises the loops around them.

Elementary arithmetic in a fixed order: the same bits on every machine with IEEE floats, for any
vector width. 0·log 0 = 0 and 1·log 1 = 0 exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from uqeval.kernels._jit import (
    bits_of_float32,
    bits_of_float64,
    float32_of,
    float64_of,
    kernel,
    kernel_part,
)

# The bits of sqrt(1/2): subtracting them makes the exponent field count from a mantissa in
# [sqrt(1/2), sqrt(2)), where the polynomial is centred.
_HALF_ROOT_32 = np.int32(0x3F3504F3)
_HALF_ROOT_64 = np.int64(0x3FE6A09E667F3BCD)


@kernel_part
def p_log_p_32(p):
    """Return p·ln p for a float32 p >= 0, error below 4.5e-8 for p <= 1 (Cephes `logf`)."""
    bits = bits_of_float32(p)
    # NumPy's int32 arithmetic is widened to int64 by Numba; narrowing each step keeps 16 lanes.
    exponent = np.int32(np.int32(bits - _HALF_ROOT_32) >> np.int32(23))
    mantissa: Any = np.int32(bits - np.int32(exponent << np.int32(23)))
    f = float32_of(mantissa) - np.float32(1.0)
    e = np.float32(exponent)
    z = f * f
    y = np.float32(7.0376836292e-2)
    y = y * f + np.float32(-1.1514610310e-1)
    y = y * f + np.float32(1.1676998740e-1)
    y = y * f + np.float32(-1.2420140846e-1)
    y = y * f + np.float32(1.4249322787e-1)
    y = y * f + np.float32(-1.6668057665e-1)
    y = y * f + np.float32(2.0000714765e-1)
    y = y * f + np.float32(-2.4999993993e-1)
    y = y * f + np.float32(3.3333331174e-1)
    y = y * f * z
    y = y + np.float32(-2.12194440e-4) * e
    y = y - np.float32(0.5) * z
    return p * ((f + y) + np.float32(0.693359375) * e)


@kernel
def log_64(p):
    """Return ln p for a normal float64 p > 0, relative error below 3e-16 (fdlibm).

    For p = 0 and p < 2^-1022 the result is finite, but has no meaning.
    """
    bits = bits_of_float64(p)
    exponent = (bits - _HALF_ROOT_64) >> np.int64(52)
    mantissa: Any = bits - (exponent << np.int64(52))
    f = float64_of(mantissa) - 1.0
    k = np.float64(exponent)
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    odd = w * (
        3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01)
    )
    even = z * (
        6.666666666666735130e-01
        + w
        * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01))
    )
    half_square = 0.5 * f * f
    tail = s * (half_square + (odd + even)) + k * 1.90821492927058770002e-10
    return k * 6.93147180369123816490e-01 - ((half_square - tail) - f)


@kernel_part
def p_log_p_64(p):
    """Return p·ln p for a float64 p >= 0, relative error below 3e-16."""
    return p * log_64(p)


#: Below this, exp is 0: 1e-261 does not change sums near 1, and no product becomes subnormal.
LOWEST = -600.0
#: Adding it rounds a float64 to an integer, in the low bits of the sum.
_ROUND = 1.5 * 2.0**52
_ROUND_BITS = np.int64(0x4338000000000000)


@kernel_part
def exp_64(x):
    """Return e^x for a float64 x <= 0, relative error below 3e-16; 0 below `LOWEST`, 1 exactly
    at 0.

    e^x = 2^k · e^r with |r| <= ln 2 / 2, and Taylor's polynomial of degree 13 for e^r.
    """
    bounded = max(x, LOWEST)
    rounded = bounded * 1.4426950408889634 + _ROUND
    k = rounded - _ROUND
    r = (bounded - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10
    # Three independent parts, which the CPU computes in parallel.
    r2 = r * r
    r4 = r2 * r2
    low = (0.5 + r * (1.0 / 6.0)) + r2 * (1.0 / 24.0 + r * (1.0 / 120.0))
    middle = (1.0 / 720.0 + r * (1.0 / 5040.0)) + r2 * (1.0 / 40320.0 + r * (1.0 / 362880.0))
    high = (1.0 / 3628800.0 + r * (1.0 / 39916800.0)) + r2 * (
        1.0 / 479001600.0 + r * (1.0 / 6227020800.0)
    )
    y = r2 * (low + r4 * (middle + r4 * high)) + r + 1.0
    exponent: Any = (bits_of_float64(rounded) - _ROUND_BITS) << np.int64(52)
    value = float64_of(bits_of_float64(y) + exponent)
    return value if x >= LOWEST else 0.0
