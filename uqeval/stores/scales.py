"""The scale of integers: the number that one unit stands for."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqeval.errors import StoreError, is_number, quoted
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
            f"uint8 or uint16 with `scale` {_place_of_scale(array, kind)}."
        )


def _place_of_scale(array: StoredArray, kind: str) -> str:
    """Return where an array of this format can have a `scale`. In memory, xarray has attributes."""
    if array.has_attributes or (array.attributes and kind not in WITH_MEMBER_SCALE):
        return "in the attributes of the array"
    with_attributes = "in the attributes of an array of Zarr, HDF5 or xarray"
    if kind in WITH_MEMBER_SCALE:
        return f"as a member `scale` of the .npz or dict, or {with_attributes}"
    return (
        f"{with_attributes}; NumPy arrays have no attributes, and a member `scale` does not count "
        f"for {kind}: give {kind} as float32"
    )


def unit_of(array: StoredArray, kind: str) -> float:
    """Return the number of one unit of an array of a kind in `SCALED`; 1 for floating point.

    Raises `StoreError` as `check_dtype`, and for integers without a valid attribute `scale`.
    """
    check_dtype(array, kind)
    if array.dtype.kind == "f":
        return 1.0
    scale = scale_of(array)
    if not is_number(scale) or not 0 < scale <= 1:
        raise StoreError(
            f"{array.where}: {array.dtype} {kind} with scale {quoted(scale)}; expected a number in "
            f"(0, 1], such as {1 / np.iinfo(array.dtype).max:.6g}, {_place_of_scale(array, kind)}."
        )
    return float(scale)
