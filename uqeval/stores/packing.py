"""Attributes that say what the stored numbers mean: packed numbers, and values that are no
measurement.
"""

from __future__ import annotations

import base64
import math
import struct
from typing import TYPE_CHECKING, Any

from uqeval.errors import StoreError, quoted

if TYPE_CHECKING:
    from uqeval.stores.array import StoredArray

#: The attributes of packed numbers (CF conventions, as of netCDF and xarray), with the values that
#: change no number.
_PACKED = {"scale_factor": 1, "add_offset": 0}
#: The attributes of numbers that mean "no measurement": of uqeval, and of the CF conventions.
INVALID = ("invalid", "_FillValue", "missing_value")


def refuse_packed(array: StoredArray, is_scaled: bool) -> None:
    """Raise `StoreError` for stored numbers that stand for others.

    `is_scaled`: whether the reader of the array multiplies integers by its attribute `scale`.
    """
    neutral = dict(_PACKED)
    if array.dtype.kind in "iu" and not is_scaled:
        neutral["scale"] = 1
    packed = {
        name: value
        for name, same in neutral.items()
        if (value := _single(array.attributes.get(name))) is not None and value != same
    }
    if not packed:
        return
    listed = ", ".join(f"{name} {quoted(value)}" for name, value in packed.items())
    factor = packed.get("scale_factor", packed.get("scale"))
    steps = "numbers" + (f" * {factor}" if factor is not None else "")
    steps += f" + {packed['add_offset']}" if "add_offset" in packed else ""
    raise StoreError(
        f"{array.where}: holds {array.dtype} numbers that are packed (attribute {listed}); "
        f"expected the numbers themselves. Store {quoted(steps)} as float32, without these "
        "attributes; where the numbers are unpacked already, remove the attributes."
    )


def invalid_of(array: StoredArray) -> list[float]:
    """Return the target values that mean "no measurement", from the attributes of an array.

    NaN as a fill value says nothing: NaN is always invalid. Raises `StoreError` for anything but a
    number or a list of numbers.
    """
    values: list[float] = []
    for name in INVALID:
        attribute = array.attributes.get(name)
        entries = attribute if isinstance(attribute, list) else [attribute]
        numbers = [_number(entry, name, array) for entry in entries if attribute is not None]
        values += [v for v in numbers if name == "invalid" or not math.isnan(v)]
    return values


def _number(value: Any, name: str, array: StoredArray) -> float:
    try:
        if isinstance(value, bool):
            raise ValueError
        if name == "_FillValue" and isinstance(value, str) and len(value) == 12:
            # xarray writes the eight bytes of a float to Zarr 3 as base64.
            return float(struct.unpack("<d", base64.b64decode(value, validate=True))[0])
        return float(value)  # also the text "NaN"
    except (TypeError, ValueError, OverflowError, struct.error):
        raise StoreError(
            f"{array.where}: attribute {name} is {quoted(str(value)[:100])}; expected a number or "
            "a list of numbers: values of targets without a measurement."
        ) from None


def _single(value: Any) -> Any:
    """Return the only entry of a list, as HDF5 stores a number; other values unchanged."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value
