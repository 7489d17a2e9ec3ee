"""p·log p without a function call, so that the compiler vectorises the loops around it.

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
