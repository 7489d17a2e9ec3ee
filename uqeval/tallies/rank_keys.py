"""Rank keys: whole numbers in [0, 2^32) that order as float32 numbers do."""

from __future__ import annotations

from uqeval.arrays import Array, np

#: A key has 19 high bits, its coarse bin, and 13 low bits; as `uqeval.kernels.counting` has them.
COARSE, FINE_BITS = 1 << 19, 13
#: The key of 0; negative numbers have smaller keys.
ZERO_KEY = 1 << 31


def keys_of(values: Array) -> Array:
    """Return the keys, int64, of numbers, which are rounded to float32."""
    bits = np.ascontiguousarray(values, np.float32).view(np.int32).astype(np.int64)
    return np.where(bits >= 0, bits + ZERO_KEY, -bits - 1)


def values_of(keys: Array) -> Array:
    """Return the float32 numbers [i] of keys int64 [i]."""
    bits = np.where(keys >= ZERO_KEY, keys - ZERO_KEY, -keys - 1)
    return bits.astype(np.int32).view(np.float32)


def value_of(key: int) -> float:
    """Return the float32 number of a key."""
    return float(values_of(np.array([key]))[0])
