"""Stores whose items, rows or columns are in another order, which their coordinates show."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from uqeval.arrays import Array
from uqeval.errors import StoreError, cut
from uqeval.stores.array import Store, StoredArray, axis_called
from uqeval.stores.coordinates import COMPARED, Coordinate, is_other_order

#: Longer coordinates are not compared.
_MOST = 10_000_000


def coordinates_of(arrays: Mapping[str, StoredArray]) -> dict[str, Coordinate]:
    """Return the 1-D arrays of a store that are named like an axis of items, rows or columns, by
    that axis."""
    found = {}
    for name, array in arrays.items():
        axis = axis_called(name)
        if axis in COMPARED and len(array.shape) == 1 and array.shape[0] <= _MOST:
            found[axis] = Coordinate(array.where, partial(_read, array), array.attributes)
    return found


def refuse_other_order(store: Store, other: Store, *, by_name: bool) -> None:
    """Raise `StoreError` if a coordinate of a store has the values of another store in another
    order, because arrays are matched by position.

    `by_name`: their items are matched by name.
    """
    for axis, coordinate in store.coordinates.items():
        if axis not in other.coordinates or (axis == "item" and by_name):
            continue
        first, second = coordinate.values, other.coordinates[axis].values
        if first is None or second is None or not is_other_order(first, second):
            continue
        what = {"item": "items", "y": "rows", "x": "columns"}[axis]
        raise StoreError(
            f"{cut(store.path)}: the {what} are in another order than those of "
            f"{cut(other.path)}: the coordinate {cut(coordinate.where)} runs from "
            f"{_ends(first)}, the other from {_ends(second)}. Expected the same order. Sort both "
            "by the coordinate, such as ds.sortby('time') of xarray; if the order is the same and "
            "a coordinate is wrong, remove it."
        )


def _read(array: StoredArray) -> Array:
    return array.read((slice(None),))


def _ends(values: Array) -> str:
    return " to ".join(cut(v) if isinstance(v, str) else f"{v:.10g}" for v in values[[0, -1]])
