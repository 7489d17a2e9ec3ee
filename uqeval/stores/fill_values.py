"""Attributes of targets that name the values without a measurement."""

from __future__ import annotations

import base64
import math
import struct
from typing import TYPE_CHECKING, Any

from uqeval.errors import StoreError, quoted

if TYPE_CHECKING:
    from uqeval.stores.array import StoredArray

#: The attributes of numbers that mean "no measurement": of uqeval, and of the CF conventions.
INVALID = ("invalid", "_FillValue", "missing_value")


def invalid_of(array: StoredArray) -> list[float]:
    """Return the target values that mean "no measurement", from the attributes of an array.

    NaN as a fill value says nothing: NaN is always invalid. Raises `StoreError` for anything but a
    number or a list of numbers.
    """
    return [value for name in INVALID for value in numbers_of(array, name)]


def numbers_of(array: StoredArray, name: str) -> list[float]:
    """Return the target values that one of the attributes names. Raises `StoreError`."""
    attribute = array.attributes.get(name)
    entries = attribute if isinstance(attribute, list) else [attribute]
    numbers = [_number(entry, name, array) for entry in entries if attribute is not None]
    return [v for v in numbers if name == "invalid" or not math.isnan(v)]


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
