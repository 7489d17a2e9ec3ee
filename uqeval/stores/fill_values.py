"""Attributes of numbers that name the values which are none: without a measurement."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Array, np
from uqeval.errors import DataError, StoreError, quoted

if TYPE_CHECKING:
    from uqeval.stores.array import StoredArray

#: The attributes of numbers that mean "no measurement": of uqeval, and of the CF conventions.
INVALID = ("invalid", "_FillValue", "missing_value")
#: The attributes of the CF conventions that name the valid values: others mean "no measurement".
RANGE = ("valid_range", "valid_min", "valid_max")
#: What netCDF fills floats with. In any file, only netCDF writes it.
_FILL_OF_FLOATS = 9.969209968386869e36


class AssumedFill(float):
    """The fill value that netCDF assumes for a variable without `_FillValue`."""


def fill_of_netcdf(dataset: Any) -> dict[str, Any]:
    """Return the `_FillValue` that a dataset of h5py has in netCDF without this attribute.

    Empty for datasets that netCDF did not write, or did not fill, and for numbers of one byte,
    which netCDF does not mask.
    """
    import h5py

    kind, of_file = dataset.dtype, dataset.file.attrs
    if kind.kind not in "iuf" or kind.itemsize == 1 or "_FillValue" in dataset.attrs:
        return {}
    settings = dataset.id.get_create_plist()
    if settings.fill_value_defined() != h5py.h5d.FILL_VALUE_USER_DEFINED:
        return {}
    fill = AssumedFill(dataset.fillvalue)
    is_netcdf = "_NCProperties" in of_file or "_Netcdf4Coordinates" in dataset.attrs
    return {"_FillValue": fill} if fill and (is_netcdf or fill == _FILL_OF_FLOATS) else {}


def invalid_of(array: StoredArray, *, zero_is_usual: bool = False) -> list[float]:
    """Return the values that mean "no measurement", from the attributes of an array.

    NaN as a fill value says nothing: NaN is always invalid. Nor does a `_FillValue` of 0 where
    `zero_is_usual`, as in uncertainties: tools write it to arrays that have no gaps. Raises
    `StoreError` for an `invalid` that is not a number or a list of numbers.
    """
    return [
        value for name in INVALID for value in numbers_of(array, name)
        if value or name != "_FillValue" or not zero_is_usual
    ]  # fmt: skip


def numbers_of(array: StoredArray, name: str) -> list[float]:
    """Return the values that one of the attributes names. Raises `StoreError`."""
    numbers = [_number(entry, name) for entry in _entries(array, name)]
    if name == "invalid" and None in numbers:
        raise StoreError(
            f"{_not_a_number(array, name)}; expected a number or a list of numbers: values "
            "without a measurement."
        )
    return [v for v in numbers if v is not None and (name == "invalid" or not math.isnan(v))]


def is_invalid(
    stored: Array, array: StoredArray, *, zero_is_usual: bool = False, has_range: bool = False
) -> Array | None:
    """Return where values of an array, in its dtype, are `invalid_of` it; None if it has none.

    `has_range`: or outside of its valid range, as of targets. Predictions often have copies of the
    attributes of their targets.
    """
    if not any(name in array.attributes for name in (*INVALID, *RANGE)):
        return None
    bad = is_outside(stored, array) if has_range else None
    if not (values := invalid_of(array, zero_is_usual=zero_is_usual)):
        return bad
    bad = np.zeros(stored.shape, bool) if bad is None else bad
    with np.errstate(over="ignore"):
        for value in values:  # rounded to the dtype of floats: 0.1 in float32 is not 0.1
            bad |= stored == (stored.dtype.type(value) if stored.dtype.kind == "f" else value)
    return bad


def range_of(array: StoredArray) -> tuple[float, float] | None:
    """Return the least and the greatest valid value, from the attributes of an array; None if they
    name none. A `valid_range` counts alone; a range without values is a mistake."""
    if not any(name in array.attributes for name in RANGE):
        return None
    if len(both := numbers_of(array, "valid_range")) == 2:
        return (both[0], both[1]) if both[0] < both[1] else None
    least = numbers_of(array, "valid_min") or [-math.inf]
    most = numbers_of(array, "valid_max") or [math.inf]
    is_bound = least[0] > -math.inf or most[0] < math.inf
    return (least[0], most[0]) if is_bound and least[0] < most[0] else None


def is_outside(stored: Array, array: StoredArray) -> Array | None:
    """Return where values of an array, in its dtype, are outside of its valid range; None without
    one. NaN is not."""
    if (ends := range_of(array)) is None:
        return None
    least, most = ends
    if stored.dtype.kind == "f":  # rounded to the dtype, as fill values are
        with np.errstate(over="ignore"):
            least, most = stored.dtype.type(least), stored.dtype.type(most)
    return (stored < least) | (stored > most)


def with_nan(
    values: Array, stored: Array, array: StoredArray, *, zero_is_usual: bool = False,
    has_range: bool = False,
) -> Array:  # fmt: skip
    """Return floats that were made from `stored` numbers of an array, with NaN where these are
    invalid."""
    bad = is_invalid(stored, array, zero_is_usual=zero_is_usual, has_range=has_range)
    return values if bad is None or not bad.any() else np.where(bad, np.nan, values)


def refuse_fill(
    values: Array, array: StoredArray, label: Array | None, void: int, where: str,
    start: tuple[int, int] = (0, 0), *, zero_is_usual: bool = False,
    remedy: str = "Label these pixels as void",
) -> None:  # fmt: skip
    """Raise `DataError` for stored values [..., y, x] that attributes declare to be none, unless
    the `label` [y, x] is void there. They are from row and column `start` on. `zero_is_usual`: as
    in `invalid_of`. `remedy`: how to leave out pixels, which needs labels."""
    if (bad := is_invalid(values, array, zero_is_usual=zero_is_usual)) is None:
        return
    pixels = bad.reshape(-1, *bad.shape[-2:]).any(axis=0)
    if label is not None:
        pixels &= label != void
    if pixels.any():
        y, x = (int(k[0]) for k in np.nonzero(pixels))
        fills = ", ".join(fill_texts([array], zero_is_usual=zero_is_usual))
        names = [name for name in INVALID if name in array.attributes]
        raise DataError(
            f"{where}: {int(pixels.sum())} evaluated pixels have a value that its attributes "
            f"({', '.join(names)}) declare to be no number, {fills}, first at row {start[0] + y}, "
            f"column {start[1] + x}. Expected numbers. "
            f"{'Write other values there' if label is None else remedy}; if they are "
            "numbers, remove the attribute (in Zarr 2, `fill_value` of .zarray: set it to null; in "
            "netCDF, where a variable without it has a default, set it to a value that is none)."
        )


def fill_texts(arrays: Iterable[StoredArray], *, zero_is_usual: bool = False) -> list[str]:
    """Return what attributes of arrays declare to be no number, for messages."""
    texts = []
    for array in arrays:
        texts += [f"{value:g}" for value in invalid_of(array, zero_is_usual=zero_is_usual)]
    return list(dict.fromkeys(texts))


def has_invalid(array: StoredArray) -> bool:
    """Return whether somebody declared values that mean "no measurement"; a default of netCDF is no
    declaration. Raises as `invalid_of`."""
    return any(not isinstance(value, AssumedFill) for value in invalid_of(array))


def ignored(array: StoredArray) -> list[str]:
    """Return a warning for each fill value that is not a number.

    Other tools write these attributes, also where they mean nothing.
    """
    return [
        f"{_not_a_number(array, name)}; it is ignored. Values without a measurement are numbers: "
        "set the attribute invalid, or use --invalid."
        for name in (*INVALID, *RANGE)
        if name != "invalid" and None in [_number(entry, name) for entry in _entries(array, name)]
    ]


def _entries(array: StoredArray, name: str) -> list[Any]:
    attribute = array.attributes.get(name)
    entries = attribute if isinstance(attribute, list) else [attribute]
    return [] if attribute is None else entries


def _not_a_number(array: StoredArray, name: str) -> str:
    value = str(array.attributes[name])[:100]
    return f"{array.where}: attribute {name} is {quoted(value)}"


def _number(value: Any, name: str) -> float | None:
    """Return the number that an entry of an attribute means; None if it means none."""
    try:
        if isinstance(value, bool):
            return None
        if isinstance(value, AssumedFill):
            return value
        if name == "_FillValue" and isinstance(value, str) and len(value) == 12:
            # xarray writes the eight bytes of a float to Zarr 3 as base64.
            return float(struct.unpack("<d", base64.b64decode(value, validate=True))[0])
        return float(value)  # also the text "NaN"
    except (TypeError, ValueError, OverflowError, struct.error):
        return None
