"""A writer of NIfTI-1 files, from the table of the standard."""

from __future__ import annotations

import struct
from typing import Any, Literal

import numpy as np


def nifti(ids: np.ndarray, code: int = 2, order: Literal["<", ">"] = "<", **change: Any) -> bytes:
    """Return a NIfTI-1 file of `ids` [z, y, x], written from the standard's table."""
    sizes = change.get("sizes", ids.shape[::-1])
    dims = [change.get("axes", len(sizes)), *sizes] + [1] * (7 - len(sizes))
    head = bytearray(352)
    struct.pack_into(f"{order}i", head, 0, 348)
    struct.pack_into(f"{order}8h", head, 40, *dims)
    struct.pack_into(f"{order}2h", head, 70, code, change.get("bits", 8 * ids.dtype.itemsize))
    struct.pack_into(
        f"{order}3f", head, 108, change.get("offset", 352), *change.get("scale", (0, 0))
    )
    head[344:348] = change.get("magic", b"n+1\0")
    return bytes(head) + ids.astype(ids.dtype.newbyteorder(order)).tobytes()
