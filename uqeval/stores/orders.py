"""Stores whose items, classes, rows or columns are in another order, which coordinates show."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial

from uqeval.arrays import Array, np
from uqeval.errors import StoreError, cut, quoted
from uqeval.stores.array import Store, StoredArray, arrays_of
from uqeval.stores.attribute_arrays import DESCRIBING, not_utf8, refuse_large_names
from uqeval.stores.axis_names import axis_called, axis_of_coordinate
from uqeval.stores.coordinates import (
    AXIS,
    COMPARED,
    INDEX,
    Coordinate,
    ends,
    is_count,
    is_other_order,
    names_like,
    numbers_in,
    texts_of,
)

#: Longer coordinates are not compared.
_MOST = 10_000_000
#: The name of the names of items as a coordinate, which no other has.
_NAMES = "names of items"


def placed(
    coordinates: Mapping[str, Coordinate],
    dimensions: Mapping[str, str],
    unnamed: Collection[str] = (),
    listed: Collection[str] = (),
) -> dict[str, Coordinate]:
    """Return the coordinates of axes that are compared, with their axes and names in lower case, by
    both: axes of one name may differ.

    `dimensions`: the axes of the dimensions of arrays, by name. `unnamed`: axes that have no name
    in an array. The coordinate of a dimension may have any name, others are called like an axis, or
    may be texts along items or classes (`filename`) that the arrays list as their coordinates
    (`listed`), or called like ids of items (`image_id`). Their axis is that of their own dimension,
    else that of their name.
    """
    found = {}
    for key, own in coordinates.items():
        name = own.name or key
        axis, is_guess = _axis_of(name, own, dimensions, unnamed)
        is_extra = own.is_extra
        if axis is None and name in listed and name not in DESCRIBING and not own.is_number:
            axis = dimensions.get(own.dimension or "")
            is_extra = axis in ("item", "class")
            axis = axis if is_extra else None
        is_id = axis is None and axis_of_coordinate(name) == "item"
        if is_id:
            is_guess = own.dimension is None
            axis = "item" if is_guess else dimensions.get(str(own.dimension))
        if axis not in COMPARED:
            continue
        is_scale = own.dimension is None and name in dimensions
        shows_index = own.is_index or is_scale or AXIS in own.attributes
        is_index = bool(own.attributes.get(INDEX, shows_index))
        name = name.lower()
        found[f"{axis} {name}"] = replace(
            own,
            axis=str(axis),
            is_guess=is_guess,
            is_index=is_index,
            name=name,
            is_extra=is_extra,
            is_id=is_id,
        )
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
    and `others`, by name. Raises `StoreError` if two arrays have one in another order, or if the
    names of its items are in another order than one."""
    stored = [own for parts in store.arrays.values() for own in arrays_of(parts)]
    arrays, others, warnings = dict(arrays), dict(others or {}), list(store.warnings)
    lengths = {store.items, *(length for own in stored for length in own.shape)}
    sizes = {name.lower(): own.shape[0] for name, own in arrays.items() if len(own.shape) == 1}
    for name, own in list(arrays.items()):
        if own.dtype.kind == "S" and len(own.shape) == 1 and own.shape[0] in lengths:
            del arrays[name]
            try:  # read now: bytes may be no text
                others[name] = _of_bytes(name, own)
            except StoreError as error:
                warnings.append(f"left out: {error}")
    beside = {
        name: Coordinate(
            own.where,
            partial(_read, own),
            own.attributes,
            dims[0],
            is_index=dims[0] == name,
            is_number=own.dtype.kind in "biuf",
        )
        for name, own in arrays.items()
        if len(own.shape) == 1 and own.shape[0] <= _MOST
        for dims in [own.dimension_names or (None,)]
    }
    of_store = placed(
        beside | others, _dimensions(stored), _unnamed_axes(stored), listed_in(stored)
    )
    of_store = {
        name: own for name, own in of_store.items()
        if not own.is_id or sizes.get(own.name, store.items) == store.items
    }  # fmt: skip
    of_arrays = [
        (own.where, placed(own.coordinates, own.dimensions, _unnamed_axes([own]), own.coordinates))
        for own in stored
    ]
    coordinates = of_store
    for where, found in [(store.path, of_store), *of_arrays]:
        others_found = Store("other arrays", {}, store.names, coordinates=coordinates)
        refuse_other_order(Store(where, {}, coordinates=found), others_found, by_name=False)
        coordinates = coordinates | found
    if not _has_rows(stored):  # In a table, a column that is called x or y is a quantity.
        coordinates = {
            name: own
            for name, own in coordinates.items()
            if not own.is_guess or own.axis in ("item", "class")
        }
    store = replace(store, warnings=tuple(warnings), coordinates=coordinates)
    if all(own.axis != "class" for own in coordinates.values()):
        return store
    from uqeval.stores.class_coordinates import with_classes

    return with_classes(store)


def _of_bytes(name: str, array: StoredArray) -> Coordinate:
    """Return bytes that are texts as a coordinate. Raises `StoreError` for other bytes."""
    refuse_large_names(array)
    try:
        texts = texts_of(_read(array))
    except UnicodeDecodeError:
        raise StoreError(not_utf8(array.where)) from None
    own, *_ = array.dimension_names or (None,)
    return Coordinate(array.where, partial(np.asarray, texts), {}, own, is_index=own == name)


def listed_in(arrays: Iterable[StoredArray]) -> set[str]:
    """Return the names of coordinates that arrays list in the attribute `coordinates` of CF, as
    xarray and netCDF store it."""
    texts = (own.attributes.get("coordinates") for own in arrays)
    return {name for text in texts if isinstance(text, str) for name in text.split()}


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
    return any(own.length("y") > 1 for own in arrays)


def refuse_other_orders(stores: Iterable[Store]) -> None:
    """Raise `StoreError` if two of these stores have a coordinate in another order."""
    firsts: list[Store] = []
    compared: set[str] = set()
    for store in stores:
        for other in firsts:
            by_name = store.names is not None and other.names is not None
            refuse_other_order(store, other, by_name=by_name)
        keys = {*store.coordinates, *([_NAMES] if store.names is not None else [])}
        if not keys <= compared:
            firsts.append(store)
            compared |= keys


def refuse_other_order(store: Store, other: Store, *, by_name: bool) -> None:
    """Raise `StoreError` if a coordinate of a store has the values of one of another store in
    another order, because arrays are matched by position.

    Two coordinates of one axis are compared if they have the same name. The indices of items are
    compared whatever their names, and with the names of items of a store if the other has none.
    So is the only other coordinate of different texts along the items of a store without index.
    `by_name`: their items are matched by name.
    """
    of_store, of_other = _compared(store, other), _compared(other, store)
    if not of_store or not of_other:
        return
    naming = _naming(of_store), _naming(of_other)
    for first in of_store:
        if by_name and first.axis == "item":
            continue
        for second in of_other:
            are_names = any(first is own for own in naming[0]) and any(
                second is own for own in naming[1]
            )
            if _is_other_order(first, second, are_names=are_names):
                raise _other_order(store, other, first, second)


def _naming(coordinates: Iterable[Coordinate]) -> list[Coordinate]:
    """Return the coordinates that tell which items these are, whatever their names: their indices,
    else the only other one of different texts. An index whose values cannot be compared does not
    count beside these."""
    of_items = [own for own in coordinates if own.axis == "item"]
    indices = [own for own in of_items if own.is_index]
    texts = [own for own in of_items if own.is_extra and own.values is not None]
    return texts if len(texts) == 1 and all(own.values is None for own in indices) else indices


def _compared(store: Store, other: Store) -> list[Coordinate]:
    """Return the coordinates of a store, among them the names of its items if another store has
    none."""
    coordinates = list(store.coordinates.values())
    if store.names is not None and other.names is None:
        load = partial(np.array, store.names, np.str_)
        coordinates.append(Coordinate("names of items", load, {}, None, True, "item", name=_NAMES))
    return coordinates


def _is_other_order(first: Coordinate, second: Coordinate, *, are_names: bool) -> bool:
    """Return whether two coordinates are of the same items, classes, rows or columns in another
    order. `are_names`: both tell which items these are."""
    is_same = first.name == second.name
    are_names &= first.is_index or second.is_index  # `image` and `label` may have the same texts
    if first is second or first.axis != second.axis or not (is_same or are_names):
        return False
    if second.name == _NAMES:
        first, second = second, first
    values = first.values
    if first.name == _NAMES and second.is_number and values is not None:
        values = numbers_in(values.tolist())  # Numbers are not read for names that are texts.
    others = None if values is None else second.values
    if values is None or others is None or first.unit != second.unit:
        return False
    if first.name == _NAMES and values.dtype.kind != others.dtype.kind:
        values = names_like(others, values.tolist())
        if values is None:
            return False
    # A count from 0 is of any items.
    if not is_same and (is_count(values) or is_count(others)):
        return False
    return is_other_order(values, others)


def _other_order(store: Store, other: Store, first: Coordinate, second: Coordinate) -> StoreError:
    """Return the error of two coordinates that are in another order."""
    what = {"item": "items", "class": "classes", "y": "rows", "x": "columns"}[first.axis]
    values, others = first.values, second.values
    assert values is not None and others is not None
    by_values = (
        "by the coordinate, such as ds.sortby('time') of xarray or df.sort_index() of pandas"
    )
    without = (
        "if those at the same place belong together, give the arrays without it, such as "
        "df.to_numpy()"
    )
    advice = f"Sort both {by_values}; {without}."
    if _NAMES in (first.name, second.name):
        advice = (
            "Give the index of each as its names, such as {'probs': df, 'names': list(df.index)}, "
            f"which match items by name; {without}."
        )
    elif first.is_extra or second.is_extra:
        own = quoted(first.name if first.is_extra else second.name)
        advice = (
            f"Sort both by it, such as ds.sortby({own}) of xarray; if those at the same place "
            f"belong together, remove it, such as by ds.drop_vars({own})."
        )
    elif first.name == second.name and first.dimension is second.dimension is None:
        advice = (
            f"Sort both by it, such as probs[numpy.argsort({first.name})]; if those at the same "
            f"place belong together, write the files without {quoted(first.name)}."
        )
    elif first.axis == "item" and (is_count(values) or is_count(others)):
        advice = (
            f"One of the coordinates may only number the rows: {without}; sorting would then pair "
            f"wrong items. If both number the same items, sort both {by_values}."
        )
    return StoreError(
        f"{cut(store.path)}: the {what} are in another order than those of {cut(other.path)}: the "
        f"coordinate {cut(first.where)} runs from {ends(values)}, {cut(second.where)} from "
        f"{ends(others)}. Expected the same order. {advice}"
    )


def names_in_coordinates(store: Store) -> tuple[str, ...] | None:
    """Return the names of items that coordinates give, for files that are matched by name: the
    texts of their index, else of the only other coordinate of different texts; None without any."""
    for own in _naming(store.coordinates.values()):
        values = None if own.is_number else own.values
        if values is not None and values.dtype.kind == "U":
            names = tuple(values.tolist())
            if len({*names} - {""}) == store.items == len(names):
                return names
    return None


def _read(array: StoredArray) -> Array:
    return array.read((slice(None),))
