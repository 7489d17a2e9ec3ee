"""Read one item of the stores, as plain NumPy arrays in float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from uqeval.arrays import Array

if TYPE_CHECKING:
    from uqeval.stores.array import ItemArray
    from uqeval.stores.stack import Stack


def members_of(stack: Stack, item: int) -> Iterator[Array]:
    """Yield each member or sample of an item as float64 [class, y, x], class 1 if not stored."""
    for member in stack.members:
        source, array = member.items[item], member.array_of(item)
        samples = array.length("sample")
        step = max(min(array.band("sample"), samples), 1)
        for begin in range(0, samples, step):
            block = _read(source, begin, min(begin + step, samples))
            scale = stack.scale(array) if block.dtype.kind in "iu" else 1.0
            for sample in block:
                yield sample.astype(np.float64) * scale


def _read(source: ItemArray, begin: int, end: int) -> Array:
    """Return some samples of an item as stored numbers [sample, class, y, x]."""
    array, index = source.array, source.index
    region = {axis: slice(0, array.length(axis)) for axis in ("class", "y", "x")}
    region["sample"] = slice(begin, end)
    region["item"] = slice(index, None if index is None else index + 1)
    values = array.read(tuple(region[axis] for axis in array.axes))
    axes = list(array.axes)
    if "item" in axes:
        values = np.take(values, 0, axis=axes.index("item"))
        axes.remove("item")
    for axis in ("sample", "class"):
        if axis not in axes:
            values, axes = values[None], [axis, *axes]
    return values.transpose([axes.index(axis) for axis in ("sample", "class", "y", "x")])


def probabilities_of(stack: Stack, item: int) -> Iterator[Array]:
    """Yield the class probabilities of each sample of an item, float64 [class, y, x].

    Logits go through softmax, or the logistic function where one class is stored; probabilities of
    one class are those of class 1 of two. Both in float32, and in float64 for float64: the rounding
    decides between classes whose mean probabilities are nearly equal.
    """
    precision = np.float64 if np.dtype("f8") in stack.dtypes else np.float32
    # The scale of integers may be rounded.
    one = stack.certain * stack.scale(stack.arrays[0]) if stack.certain else 1.0
    for values in members_of(stack, item):
        if stack.kind == "logits":
            with np.errstate(over="ignore"):
                values = _of_logits(values.astype(precision))
        if len(values) == 1:
            values = np.concatenate([one - values, values])
        yield values.astype(np.float64)


def _of_logits(values: Array) -> Array:
    """Return the probabilities of logits [class, y, x]."""
    if len(values) == 1:
        return 1 / (1 + np.exp(-values))
    powers: Array = np.exp(values - values.max(axis=0))
    return powers / np.add.accumulate(powers, axis=0)[-1]
