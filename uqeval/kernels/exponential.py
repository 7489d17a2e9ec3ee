"""exp without a function call, so that the compiler vectorises the loops around it.

Elementary arithmetic in a fixed order: the same bits on every machine with IEEE floats, for any
vector width.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from uqeval.kernels._jit import bits_of_float64, float64_of, kernel_part

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
