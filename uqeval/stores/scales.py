"""The scale of integers: the number that one unit stands for."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqeval.errors import StoreError, quoted
from uqeval.stores.array import StoredArray
from uqeval.stores.kinds import WITH_MEMBER_SCALE, single_of


def scale_of(array: StoredArray) -> Any:
    """Return the attribute `scale` of an array; None without it."""
    return single_of(array.attributes.get("scale"))


def check_dtype(array: StoredArray, kind: str) -> None:
    """Raise `StoreError` for a dtype that arrays of a kind in `SCALED` cannot have."""
    if array.dtype.kind not in "fu" or array.dtype.itemsize > 8:
        raise StoreError(
            f"{array.where}: {kind} of dtype {array.dtype}; expected float16, float32, float64, or "
            "uint8 or uint16 with `scale` in the attributes."
        )


def unit_of(array: StoredArray, kind: str) -> float:
    """Return the number of one unit of an array of a kind in `SCALED`; 1 for floating point.

    Raises `StoreError` as `check_dtype`, and for integers without a valid attribute `scale`.
    """
    check_dtype(array, kind)
    if array.dtype.kind == "f":
        return 1.0
    scale = scale_of(array)
    is_number = isinstance(scale, int | float) and not isinstance(scale, bool)
    if not is_number or not 0 < scale <= 1:
        member = ", or as a member `scale` of the .npz" * (kind in WITH_MEMBER_SCALE)
        raise StoreError(
            f"{array.where}: {array.dtype} {kind} with scale {quoted(scale)}; expected a number in "
            f"(0, 1], such as {1 / np.iinfo(array.dtype).max:.6g}, in the attributes of the "
            f"array{member}."
        )
    return float(scale)
