"""Stores whose items, rows or columns are in another order, which their coordinates show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from uqeval.arrays import Array
from uqeval.errors import StoreError, cut
from uqeval.stores.array import Store, StoredArray, arrays_of
from uqeval.stores.axis_names import axis_called
from uqeval.stores.coordinates import COMPARED, Coordinate, is_other_order

#: Longer coordinates are not compared.
_MOST = 10_000_000


def coordinate_called(
    name: str, dims: Sequence[str | None] | None, where: str, load: Callable[[], Array],
    attributes: Mapping[str, Any],
) -> dict[str, Coordinate]:  # fmt: skip
    """Return the coordinate `name` by its name; empty if its axis is not compared.

    Only what is named like an axis is a coordinate. Its axis is that of its own dimension `dims`,
    else that of its name.
    """
    own = axis_called(dims[0]) if dims else None
    axis = own or axis_called(name)
    if axis_called(name) not in COMPARED or axis not in COMPARED:
        return {}
    return {name.lower(): Coordinate(where, axis, own is None, load, attributes)}


def with_coordinates(
    store: Store, arrays: Mapping[str, StoredArray], others: Mapping[str, Coordinate] | None = None
) -> Store:
    """Return a store with the coordinates among its `arrays`, and `others`, by name."""
    coordinates: dict[str, Coordinate] = {}
    for name, array in arrays.items():
        if len(array.shape) == 1 and array.shape[0] <= _MOST:
            coordinates |= coordinate_called(
                name, array.dimension_names, array.where, partial(_read, array), array.attributes
            )
    coordinates |= others or {}
    if _has_rows(store):
        return replace(store, coordinates=coordinates)
    # In a table, a column that is called x or y is a quantity like others.
    items = {
        name: own for name, own in coordinates.items() if own.axis == "item" or not own.is_guess
    }
    return replace(store, coordinates=items)


def _has_rows(store: Store) -> bool:
    """Return whether a store holds images, and not only tables, which are images of one row."""
    arrays = (own for parts in store.arrays.values() for own in arrays_of(parts))
    return any(own.shape[own.axes.index("y")] > 1 for own in arrays)


def refuse_other_orders(stores: Iterable[Store]) -> None:
    """Raise `StoreError` if two of these stores have a coordinate in another order."""
    first_with: dict[str, Store] = {}
    for store in stores:
        for name in store.coordinates:
            other = first_with.setdefault(name, store)
            if other is not store:
                by_name = store.names is not None and other.names is not None
                refuse_other_order(store, other, by_name=by_name)


def refuse_other_order(store: Store, other: Store, *, by_name: bool) -> None:
    """Raise `StoreError` if a coordinate of a store has the values of that of the same name in
    another store in another order, because arrays are matched by position.

    `by_name`: their items are matched by name.
    """
    for name, coordinate in store.coordinates.items():
        axis, same = coordinate.axis, other.coordinates.get(name)
        if same is None or same.axis != axis or (axis == "item" and by_name):
            continue
        first, second = coordinate.values, same.values
        if first is None or second is None or coordinate.unit != same.unit:
            continue
        if not is_other_order(first, second):
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
