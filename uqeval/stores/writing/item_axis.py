"""The axis of items in arrays that a loop writes: of one item without it, of a batch with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from uqeval.arrays import Array
from uqeval.errors import DataError, quoted
from uqeval.stores.described import DescribedArray


def of_one(own: DescribedArray, where: str) -> DescribedArray:
    """Return the array of one item without its axis of items. Raises `DataError` for several."""
    names = own.dimension_names or ()
    if names[:1] != ("item",):
        return own
    if len(own.values) != 1:
        raise DataError(
            f"{where}: has {len(own.values)} items on its axis `item`; expected one item. Give "
            "several to add_batch, and the labels of each to add_labels."
        )
    return replace(own, values=own.values[0], dimension_names=names[1:])


def of_items(own: DescribedArray, names: Sequence[str]) -> DescribedArray:
    """Return the array of a batch with its axis of items: one item with named axes need not have
    it. Raises `DataError` for an array of other items than `names`."""
    axes = own.dimension_names or ()
    if axes and axes[0] != "item" and len(names) == 1:
        return replace(own, values=own.values[None], dimension_names=("item", *axes))
    if own.values.ndim in (4, 5) and len(own.values) == len(names) and axes[:1] in ((), ("item",)):
        return own
    count = len(names)
    called = ", ".join(map(str, axes))
    named = f" and the axes [{called}]" if axes else ""
    raise DataError(
        f"batch of {count} items: has the shape {list(own.values.shape)}{named}, expected "
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
