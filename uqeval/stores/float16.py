"""Conversion to float16 and back, with NumPy's results.

NumPy's casts take ten times as long for tiny values. A confident softmax has many values below
2^-14, which are subnormal in float16.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

#: Values converted at a time, so that intermediate results stay in a core's cache.
_BLOCK = 2**15
_SMALL = np.float32(2.0**-14)


def to_half(values: NDArray[np.float32]) -> NDArray[np.float16]:
    """Return `values` in [0, 2) rounded to float16 as NumPy rounds them: to nearest, ties
    to even.
    """
    flat = np.ascontiguousarray(values).reshape(-1)
    float16_bits = np.empty(flat.size, np.uint16)
    bits, small_bits = np.empty((2, _BLOCK), np.uint32)
    for start in range(0, flat.size, _BLOCK):
        block = flat[start : start + _BLOCK]
        u, s = bits[: block.size], small_bits[: block.size]
        # Normal numbers: shift the exponent, and add a half so that dropping the low bits rounds.
        np.right_shift(block.view(np.uint32), 13, out=u)
        np.bitwise_and(u, 1, out=u)
        np.add(u, block.view(np.uint32), out=u)
        np.add(u, np.uint32((((15 - 127) << 23) + 0xFFF) % 2**32), out=u)
        np.right_shift(u, 13, out=u)
        # Subnormal numbers: after adding 0.5, the low bits of the sum are their bits.
        np.add(block, np.float32(0.5), out=s.view(np.float32))
        np.subtract(s, np.uint32(126 << 23), out=s)
        np.copyto(u, s, where=block < _SMALL)
        float16_bits[start : start + _BLOCK] = u
    return float16_bits.view(np.float16).reshape(values.shape)


def to_single(values: NDArray[np.float16]) -> NDArray[np.float32]:
    """Return `values` as float32, exactly."""
    return _table()[np.ascontiguousarray(values).view(np.uint16)]


@cache
def _table() -> NDArray[np.float32]:
    """Return the float32 of each float16, indexed by its bits."""
    return np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
