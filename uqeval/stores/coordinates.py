"""Coordinates of axes: a value for each item, row or column, as xarray and netCDF store them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.errors import StoreError, cut, number_in
from uqeval.stores.axis_names import axis_called

#: The axes whose coordinates are compared.
COMPARED = ("item", "class", "y", "x")
#: The attribute of a coordinate with its axis, in a new store, whose dimensions have the canonical
#: names.
AXIS = "uqeval_axis"
#: The attribute of a coordinate in a new store: whether it was the index of its axis, whose
#: dimension had its name.
INDEX = "uqeval_index"
#: The key of a coordinate in the attributes of a new store: whether it is extra (`Coordinate`).
EXTRA = "uqeval_extra"
#: The key in the attribute `uqeval` of a new store for coordinates that cannot be arrays.
IN_ATTRIBUTES = "coordinates"
#: The dimension along the columns of a table of pandas or polars.
COLUMNS = "fields"
#: Seconds of the units of times, such as "days since 2026-01-01", by the spellings of CF.
_SECONDS = {
    name: seconds
    for names, seconds in {
        "d day days": 86400.0, "h hr hrs hour hours": 3600.0, "min mins minute minutes": 60.0,
        "s sec secs second seconds": 1.0, "ms msec msecs millisecond milliseconds": 1e-3,
        "us microsecond microseconds": 1e-6, "ns nanosecond nanoseconds": 1e-9,
    }.items()
    for name in names.split()
}  # fmt: skip
#: A name of an item that is a time, without a time zone or in UTC.
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d(?::\d\d(?::\d\d(?:\.\d+)?)?)?)?Z?")
#: The relative rounding of float32, in which one of two equal coordinates may be stored.
_ROUNDING = 2.0**-22


@dataclass(frozen=True)
class Coordinate:
    """The values along one axis, which `load` reads, and their attributes.

    `dimension`: the name of its own dimension, None if it has no name. `is_index`: whether it is
    the coordinate of this dimension, as one of the same name is. `axis`: the canonical axis, empty
    until `placed` finds it. `is_guess`: whether only its name tells the axis. `name`: its own name,
    if it is not the key that it has before `placed`. `is_number`: whether its values are numbers,
    if that is known before they are read. `is_extra`: whether it is neither an index nor called
    like an axis, as `filename`. Such a coordinate is compared only if it has different texts.
    `is_id`: whether it is called like ids of items, as `image_id`, and is compared only if it has
    different texts or whole numbers.
    """

    where: str
    load: Callable[[], Array]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    dimension: str | None = None
    is_index: bool = False
    axis: str = ""
    is_guess: bool = False
    name: str = ""
    is_number: bool = False
    is_extra: bool = False
    is_id: bool = False

    @property
    def values(self) -> Array | None:
        """Texts, or numbers as float64, times in seconds; None if they cannot be compared."""
        return self._values_and_unit[0]

    @property
    def unit(self) -> str:
        """The unit of times that are not in seconds, such as months; else empty."""
        return self._values_and_unit[1]

    def stored(self) -> tuple[Array, dict[str, Any]] | None:
        """Return its numbers or texts, and their attributes in a new store; None if they cannot be
        compared. Raises `StoreError`."""
        if (self.is_extra or self.is_id) and self.values is None:
            return None
        values, units = self.load(), self.attributes.get("units")
        if values.dtype.kind == "M":
            values, units = values.astype("M8[ns]").astype(np.int64), "ns since 1970-01-01"
        if values.dtype.kind not in "biuf":  # texts, or times of Python in seconds
            return None if self.values is None else (self.values, {INDEX: self.is_index})
        return values, {INDEX: self.is_index} | ({} if units is None else {"units": units})

    def as_attribute(self, values: Array, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Return what `stored` returns as an attribute of a store."""
        about = {EXTRA: self.is_extra, AXIS: self.axis, "values": values.tolist()}
        return {**attributes, **about}

    @cached_property
    def _values_and_unit(self) -> tuple[Array | None, str]:
        with suppress(StoreError, ValueError, TypeError, OverflowError):
            loaded = self.load()
            values, unit = _comparable(loaded, str(self.attributes.get("units", "")))
            are_texts = values is not None and values.dtype.kind == "U"
            is_other = (self.is_extra and not are_texts) or (
                self.is_id and not are_texts and loaded.dtype.kind not in "iu"
            )
            if is_other or ((self.is_extra or self.is_id) and not _are_different(values)):
                return None, ""
            return values, unit
        return None, ""


def coordinates_of(attributes: Mapping[str, Any], where: str) -> dict[str, Coordinate]:
    """Return the coordinates in the attributes of a store, by name. Raises `StoreError` for those
    that have another form than `Coordinate.as_attribute` returns."""
    of_store = attributes.get("uqeval")
    entries = of_store.get(IN_ATTRIBUTES, {}) if isinstance(of_store, dict) else {}
    coordinates = {}
    try:
        for name, entry in entries.items():
            values, axis = np.array(entry["values"]), entry[AXIS]
            if values.ndim != 1 or values.dtype.kind not in "biufU" or axis not in COMPARED:
                raise ValueError
            about = {key: value for key, value in entry.items() if key not in ("values", AXIS)}
            is_text = values.dtype.kind == "U"
            # Earlier versions did not store whether it is.
            is_extra = not entry[INDEX] and is_text and not axis_called(name)
            coordinates[name] = Coordinate(
                f"{cut(where)}: {cut(name)}", partial(np.asarray, values), about, axis,
                is_index=bool(entry[INDEX]), axis=axis, is_number=not is_text,
                is_extra=bool(entry.get(EXTRA, is_extra)),
            )  # fmt: skip
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"{cut(where)}: the attribute `uqeval` has coordinates in a form that uqeval does not "
            "write. Write the store again."
        ) from error
    return coordinates


def _are_different(values: Array | None) -> bool:
    """Return whether each value is there only once, as names are; those of cities may repeat."""
    return values is not None and len({*values.tolist()}) == len(values)


def _comparable(values: Array, units: str) -> tuple[Array | None, str]:
    """Return the values of a coordinate, and their unit, as in `Coordinate`."""
    if values.dtype.kind == "O":  # also tuples, of several levels
        own = values.tolist()
        if all(isinstance(value, datetime) and value.tzinfo is not None for value in own):
            return np.array([value.timestamp() for value in own]), ""
        values = np.array([str(value) for value in own], np.str_)
    if values.dtype.kind == "S":
        return texts_of(values), ""
    if values.dtype.kind in "UT":
        return values.astype(np.str_), ""
    if values.dtype.kind == "M":
        return values.astype("M8[ns]").astype(np.int64) / 1e9, ""
    numbers, unit = values.astype(np.float64), ""
    name, is_time, start = units.partition(" since ")
    if is_time:
        unit = units
        with suppress(KeyError, ValueError, OverflowError):  # other calendars and spellings
            origin = np.datetime64(start.strip().removesuffix("Z").replace(" ", "T", 1), "ns")
            begin = int(origin.astype("i8")) / 1e9
            numbers, unit = numbers * _SECONDS[name.strip().lower()] + begin, ""
    return (numbers if np.isfinite(numbers).all() else None), unit


def texts_of(values: Array) -> Array:
    """Return bytes as texts. Raises `UnicodeDecodeError` for bytes that are not UTF-8."""
    return np.array([value.decode() for value in values.tolist()], np.str_)


def numbers_in(names: Sequence[str]) -> Array | None:
    """Return names of items that are numbers or times, these in seconds, as `Coordinate.values`
    has them; None for other names."""
    with suppress(ValueError):
        if all(map(_TIME.fullmatch, names)):
            times = np.array([name.removesuffix("Z") for name in names], "M8[ns]")
            return _comparable(times, "")[0]
        numbers = np.array([number_in(name) for name in names])
        return numbers if np.isfinite(numbers).all() else None
    return None


def names_like(values: Array, names: Sequence[str]) -> Array | None:
    """Return names of items as texts or numbers, as the values of a coordinate are; None for names
    that are not numbers beside numbers."""
    return np.array(names, np.str_) if values.dtype.kind == "U" else numbers_in(names)


def count_like(values: Array) -> Array:
    """Return 0, 1, … as texts or numbers, as many as the values of a coordinate."""
    return np.arange(len(values)).astype(np.str_ if values.dtype.kind == "U" else np.float64)


def is_count(values: Array) -> bool:
    """Return whether the values of a coordinate are 0, 1, … in this order."""
    return np.array_equal(values, count_like(values))


def is_other_order(first: Array, second: Array) -> bool:
    """Return whether two arrays have the same values, apart from rounding, in another order."""
    if first.shape != second.shape or first.dtype.kind != second.dtype.kind:
        return False
    if np.array_equal(first, second):
        return False
    ordered, other = np.sort(first), np.sort(second)
    if first.dtype.kind == "U":
        return bool((ordered == other).all() and (first != second).any())
    steps = [gaps[gaps > 0].min(initial=np.inf) for gaps in (np.diff(ordered), np.diff(other))]
    step = max(steps)
    rounding = np.abs(ordered - other).max(initial=0.0)
    allowed = min(max(1e-3 * step, _ROUNDING * np.abs(ordered).max()), step / 2)
    return bool(rounding <= allowed < np.inf and np.abs(first - second).max() > step / 2)


def ends(values: Array) -> str:
    """Return the first and the last value of a coordinate in words."""
    return " to ".join(cut(v) if isinstance(v, str) else f"{v:.10g}" for v in values[[0, -1]])
