"""The axes of items and of classes in arrays that a loop writes: one item need not have the first,
a single class need not have the second."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from uqeval.arrays import Array, np
from uqeval.errors import DataError, StoreError, quoted
from uqeval.stores.axis_names import axis_called
from uqeval.stores.coordinates import Coordinate, is_count, is_other_order, names_like
from uqeval.stores.described import DescribedArray, coordinates_in, ordered


def refuse_other_items(
    own: DescribedArray, names: Sequence[str], known: Collection[str], where: str
) -> None:
    """Raise `StoreError` if the index of an array shows that its items are not those of `names`.

    As in a store, an index that has the values of the names in another order is refused, unless one
    of the two counts from 0. So are texts that are all names of `known` items, but not of these;
    numbers may be positions in a batch, and times those at which forecasts began. If one index has
    the names, others do not count.
    """
    compared = []
    for index in _indices(own, len(names)):
        values = index.values
        if values is None or len(values) != len(names) or index.unit:
            continue
        expected = names_like(values, names)
        if expected is None or is_count(values) or is_count(expected):
            continue
        if (values == expected).all():
            return
        compared.append((index, values, expected))
    for index, values, expected in compared:
        are_known = values.dtype.kind == "U" and all(own in known for own in values.tolist())
        if not are_known and not is_other_order(values, expected):
            continue
        loaded = index.load()
        at = int(np.flatnonzero(values != expected)[0])
        name = quoted(index.dimension or index.name)
        raise StoreError(
            f"{where}: the items are not those of the names: the coordinate {name} has "
            f"{quoted(str(loaded[at]))} where the names have {quoted(names[at])}. Expected the "
            "same items in the same order. Take the names from this coordinate; if names and "
            "values at the same place belong together, give the array without it, such as "
            f"array.drop_vars({name}) or df.to_numpy()."
        )


def _indices(own: DescribedArray, count: int) -> Iterator[Coordinate]:
    """Return the indices of the items of an array, also that of the one item that xarray selected
    from others."""
    yield from (each for each in own.coordinates.values() if each.axis == "item" and each.is_index)
    for name, value in coordinates_in(own.source).items() if count == 1 else ():
        if getattr(value, "ndim", None) == 0 and axis_called(name) == "item":
            yield Coordinate(name, partial(np.atleast_1d, value), name=name)


def of_places(own: DescribedArray, places: Sequence[int]) -> DescribedArray:
    """Return the items at these places of an array of items, with their coordinates."""
    coordinates = {
        key: replace(each, load=partial(_at, each, places)) if each.axis == "item" else each
        for key, each in own.coordinates.items()
    }
    return replace(own, values=own.values[places], coordinates=coordinates)


def _at(coordinate: Coordinate, places: Sequence[int]) -> Array:
    return coordinate.load()[places]


def of_one(own: DescribedArray, name: str, known: Collection[str], where: str) -> DescribedArray:
    """Return the array of one item without its axis of items. Raises `DataError` for several, and
    `StoreError` for one that is another item than `name`."""
    refuse_other_items(own, [name], known, where)
    names = own.dimension_names or ()
    if names[:1] != ("item",):
        return own
    if len(own.values) != 1:
        raise DataError(
            f"{where} has {len(own.values)} items on its axis `item`; expected one item. Give "
            "several to add_batch, and the labels of each to add_labels."
        )
    return replace(own, values=own.values[0], dimension_names=names[1:])


def of_items(
    own: DescribedArray, names: Sequence[str], known: Collection[str], where: str
) -> DescribedArray:
    """Return the array of a batch with its axis of items: one item with named axes need not have
    it. Raises `DataError` for another number of items than `names`, and `StoreError` for other
    items."""
    refuse_other_items(own, names, known, where)
    axes = own.dimension_names or ()
    if axes and axes[0] != "item" and len(names) == 1:
        return replace(own, values=own.values[None], dimension_names=("item", *axes))
    if own.values.ndim in (4, 5) and len(own.values) == len(names) and axes[:1] in ((), ("item",)):
        return own
    count = len(names)
    called = ", ".join(map(str, axes))
    named = f" and the axes [{called}]" if axes else ""
    raise DataError(
        f"batch of {count} items has the shape {list(own.values.shape)}{named}, expected "
        f"[{count}, C, H, W] or [{count}, T, C, H, W].{_remedy(own.values, axes, names)}"
    )


def _remedy(values: Array, axes: Sequence[str | None], names: Sequence[str]) -> str:
    """Return the call for values that are probably one item, or whose samples come first; empty for
    other values."""
    if axes:
        is_one = axes[0] != "item"
        return " They are of one item: give each item to add(name, values)." if is_one else ""
    if values.ndim == 5 and values.shape[1] == len(names):
        return " If the samples come first, give values.swapaxes(0, 1)."
    if values.ndim in (3, 4) and len(names) == 1:
        return f" If they are of one item, give add({quoted(names[0])}, values)."
    return ""


def ordered_classes(
    values: Any, where: str, forms: Sequence[tuple[str, ...]], classes: int
) -> DescribedArray:
    """Return predictions in the order of their form, as `ordered` does, with an axis of classes.

    With one class, arrays with named axes may be without it.
    """
    without = [tuple(axis for axis in form if axis != "class") for form in forms]
    own = ordered(values, where, (*forms, *without) if classes == 1 else forms)
    axes = next((form for form in without if form == own.dimension_names), None)
    if axes is None:
        return own
    at = axes.index("y")
    stack, axes = np.expand_dims(own.values, at), (*axes[:at], "class", *axes[at:])
    return replace(own, values=stack, dimension_names=axes)
