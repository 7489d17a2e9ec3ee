"""Target values that mean "no measurement", as numbers of the array's dtype."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from uqeval.arrays import Array
from uqeval.errors import StoreError, quoted

if TYPE_CHECKING:
    from uqeval.stores.array import StoredArray


def invalid_of(array: StoredArray) -> list[float]:
    """Return the target values that mean "no measurement", from the attribute `invalid` of an
    array.

    Raises `StoreError` for anything but a number or a list of numbers.
    """
    attribute = array.attributes.get("invalid")
    entries = attribute if isinstance(attribute, list) else [] if attribute is None else [attribute]
    try:
        if any(isinstance(value, bool) for value in entries):
            raise ValueError
        return [float(value) for value in entries]  # also the text "NaN"
    except (TypeError, ValueError, OverflowError):
        raise StoreError(
            f"{array.where}: attribute invalid is {quoted(str(attribute)[:100])}; expected a "
            "number or a list of numbers: values of targets without a measurement."
        ) from None


def as_stored(invalid: Sequence[float], stored: np.dtype[Any], plain: np.dtype[Any]) -> Array:
    """Return invalid values rounded to the dtype `stored`: 0.1 in float32 is not 0.1."""
    values = np.array([v for v in invalid if math.isfinite(v)], np.float64)
    if stored.kind == "f":
        with np.errstate(over="ignore"):
            values = values.astype(stored)
    return values.astype(plain)
