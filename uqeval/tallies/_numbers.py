"""The numbers of a packed state as bytes, wide or narrow.

Wide: as in memory. Narrow: one byte for the width of a number, then the numbers by byte: the first
byte of each, then the second of each, and so on. A count takes as few bytes as hold the largest;
most are below 256. Bytes of one place are alike, so that they compress better, and faster.
"""

from __future__ import annotations

from typing import Any

from uqeval.arrays import Array, np


def pack_wide(numbers: Array, dtype: np.dtype[Any]) -> bytes:
    """Return numbers of a dtype as bytes."""
    return numbers.astype(dtype, copy=False).tobytes()


def unpack_wide(data: bytes, at: int, count: int, dtype: np.dtype[Any]) -> tuple[Array, int]:
    """Return `count` numbers from byte `at` on, and the place of the next byte.

    Raises `ValueError` for data that are cut short.
    """
    return np.frombuffer(data, dtype, count, at), at + count * dtype.itemsize


def pack_narrow(numbers: Array, dtype: np.dtype[Any]) -> bytes:
    """Return numbers of a dtype as bytes; integers in the narrowest dtype, if none is negative."""
    if dtype.kind == "i" and numbers.min(initial=0) >= 0:
        dtype = np.min_scalar_type(numbers.max(initial=0)).newbyteorder("<")
    rows = np.ascontiguousarray(numbers, dtype).view(np.uint8).reshape(-1, dtype.itemsize)
    return bytes([dtype.itemsize]) + rows.T.tobytes()


def unpack_narrow(data: bytes, at: int, count: int, dtype: np.dtype[Any]) -> tuple[Array, int]:
    """Undo `pack_narrow`, as `unpack_wide` does.

    Raises `ValueError` for data that are cut short, and for a width that the dtype cannot have.
    """
    width = int(np.frombuffer(data, np.uint8, 1, at)[0])
    if width != dtype.itemsize and (dtype.kind != "i" or width not in (1, 2, 4)):
        raise ValueError(f"numbers of {width} bytes, where {dtype} has {dtype.itemsize}")
    own = dtype if width == dtype.itemsize else np.dtype(f"<u{width}")
    by_byte, at = unpack_wide(data, at + 1, count * width, np.dtype(np.uint8))
    rows = np.ascontiguousarray(by_byte.reshape(width, count).T)
    return rows.reshape(-1).view(own).astype(dtype, copy=False), at
