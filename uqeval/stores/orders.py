"""Stores whose items, classes, rows or columns are in another order, which coordinates show."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial

from uqeval.arrays import Array, np
from uqeval.errors import StoreError, cut
from uqeval.stores.array import Store, StoredArray, arrays_of
from uqeval.stores.axis_names import axis_called
from uqeval.stores.class_names import other_words, refuse_other_numbers
from uqeval.stores.coordinates import AXIS, COMPARED, Coordinate, is_other_order
from uqeval.stores.kinds import shown_axes

#: Longer coordinates are not compared.
_MOST = 10_000_000


def placed(
    coordinates: Mapping[str, Coordinate],
    dimensions: Mapping[str, str],
    unnamed: Collection[str] = (),
) -> dict[str, Coordinate]:
    """Return the coordinates of axes that are compared, with their axes, by names in lower case.

    `dimensions`: the axes of the dimensions of arrays, by name. `unnamed`: axes that have no name
    in an array. The coordinate of a dimension may have any name, others are called like an axis.
    Their axis is that of their own dimension, else that of their name.
    """
    found = {}
    for name, coordinate in coordinates.items():
        axis, is_guess = _axis_of(name, coordinate, dimensions, unnamed)
        if axis in COMPARED:
            found[name.lower()] = replace(coordinate, axis=str(axis), is_guess=is_guess)
    return found


def _axis_of(
    name: str, coordinate: Coordinate, dimensions: Mapping[str, str], unnamed: Collection[str]
) -> tuple[str | None, bool]:
    """Return the axis of a coordinate, and whether only its name tells it."""
    if coordinate.axis:
        return coordinate.axis, coordinate.is_guess
    own = coordinate.dimension
    if own is None and name in dimensions:  # a scale of HDF5 does not name its own dimension
        return dimensions[name], False
    of_dimension = None if own is None else dimensions.get(own) or axis_called(own)
    called = "class" if name == "class_names" else axis_called(name)
    if own is not None and own not in dimensions and (of_dimension or called) not in unnamed:
        return None, False  # of another array
    if AXIS in coordinate.attributes:
        return str(coordinate.attributes[AXIS]), False
    if coordinate.is_index and own in dimensions:
        return of_dimension, False
    # Without its dimension, a band or a category may be of anything.
    if called not in COMPARED or (of_dimension is None and called == "class" != name):
        return None, False
    return of_dimension or called, of_dimension is None


def with_coordinates(
    store: Store, arrays: Mapping[str, StoredArray], others: Mapping[str, Coordinate] | None = None
) -> Store:
    """Return a store with the coordinates among its `arrays`, those that its arrays in memory have,
    and `others`, by name. Raises `StoreError` if two arrays have one in another order."""
    stored = [own for parts in store.arrays.values() for own in arrays_of(parts)]
    beside = {
        name: Coordinate(
            own.where, partial(_read, own), own.attributes, dims[0], is_index=dims[0] == name
        )
        for name, own in arrays.items()
        if len(own.shape) == 1 and own.shape[0] <= _MOST
        for dims in [own.dimension_names or (None,)]
    }
    coordinates = placed(
        beside | dict(others or {}), _dimensions(stored), _unnamed_axes(stored)
    )
    for array in stored:
        of_array = placed(array.coordinates, array.dimensions, _unnamed_axes([array]))
        own = Store(array.where, {}, coordinates=of_array)
        refuse_other_order(own, Store("other arrays", {}, coordinates=coordinates), by_name=False)
        coordinates |= own.coordinates
    if not _has_rows(stored):  # In a table, a column that is called x or y is a quantity.
        coordinates = {
            name: own for name, own in coordinates.items() if own.axis == "item" or not own.is_guess
        }
    return _with_classes(store, coordinates)


def _with_classes(store: Store, coordinates: Mapping[str, Coordinate]) -> Store:
    """Return a store with its coordinates. Texts along the axis of classes become its
    `class_names`.

    Raises `StoreError` for ids of classes that are in another order than the classes, and for texts
    that contradict the names that the store declares.
    """
    others = {name: own for name, own in coordinates.items() if own.axis != "class"}
    classes = _classes(store)
    if len(others) == len(coordinates) or classes is None:
        return replace(store, coordinates=others)
    texts: list[tuple[str, list[str]]] = []
    for name, own in sorted(coordinates.items(), key=lambda pair: not pair[1].is_index):
        if own.axis != "class" or (values := own.values) is None or len(values) != classes:
            continue
        if own.is_guess and store.items == classes:  # perhaps the class of each item
            continue
        is_text = values.dtype.kind == "U"
        ids = np.arange(classes).astype(np.str_ if is_text else np.float64)
        if is_other_order(values, ids):
            raise StoreError(
                f"{cut(store.path)}: the classes are in another order than their ids: the "
                f"coordinate {cut(own.where)} runs from {_ends(values)}, but class 0 is the first. "
                "Sort the classes by number, such as table[sorted(table, key=int)] of pandas; if "
                "labels are positions, give the numbers without it, such as table.to_numpy()."
            )
        if is_text and classes > 1 and (values != ids).any():
            texts.append((own.where, values.tolist()))
        elif not is_text:
            others[name] = own
    if not texts:
        return replace(store, coordinates=others)
    where, names = texts[0]
    declared = store.attributes.get("class_names") or names
    pair = (store.path, declared), (where, names)
    refuse_other_numbers(pair, "; the option --class-names does not help")
    warnings = store.warnings
    if len(declared) == len(names):
        warnings += tuple(other_words(declared, store.path, pair[1:]))
    attributes = {**store.attributes, "class_names": list(declared)}
    return replace(store, coordinates=others, attributes=attributes, warnings=warnings)


def _classes(store: Store) -> int | None:
    """Return the size of the axis of classes; None if no array has one."""
    sizes = (
        own.shape[own.axes.index("class")]
        for kind, parts in store.arrays.items()
        for own in arrays_of(parts)
        if "class" in shown_axes(kind, own.axes)
    )
    return next(sizes, None)


def _dimensions(arrays: Iterable[StoredArray]) -> dict[str, str]:
    """Return the axes of the dimensions of arrays by name; empty for one that is several axes."""
    dimensions: dict[str, str] = {}
    for array in arrays:
        for name, axis in array.dimensions.items():
            if dimensions.setdefault(name, axis) != axis:
                dimensions[name] = ""
    return dimensions


def _unnamed_axes(arrays: Iterable[StoredArray]) -> set[str]:
    """Return the axes that have no name in one of the arrays. The items of a table without names
    may be its x."""
    unnamed: set[str] = set()
    for array in arrays:
        if array.dimensions:
            names = array.dimension_names or ()
            unnamed |= {axis for name, axis in zip(names, array.axes, strict=False) if not name}
        else:
            unnamed |= {*array.axes, "item"}
    return unnamed


def _has_rows(arrays: Iterable[StoredArray]) -> bool:
    """Return whether arrays are images, and not only tables, which are images of one row."""
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
        what = {"item": "items", "class": "classes", "y": "rows", "x": "columns"}[axis]
        raise StoreError(
            f"{cut(store.path)}: the {what} are in another order than those of "
            f"{cut(other.path)}: the coordinate {cut(coordinate.where)} runs from "
            f"{_ends(first)}, the other from {_ends(second)}. Expected the same order. Sort both "
            "by the coordinate, such as ds.sortby('time') of xarray or df.sort_index() of pandas; "
            "if those at the same place belong together, give the arrays without it, such as "
            "df.to_numpy()."
        )


def _read(array: StoredArray) -> Array:
    return array.read((slice(None),))


def _ends(values: Array) -> str:
    return " to ".join(cut(v) if isinstance(v, str) else f"{v:.10g}" for v in values[[0, -1]])
