"""Read one item of the stores, as plain NumPy arrays in float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from uqeval.arrays import Array

if TYPE_CHECKING:
    from uqeval.stores.stack import Part, Stack


def members_of(stack: Stack, item: int) -> Iterator[Array]:
    """Yield each member or sample of an item as float64 [class, y, x], class 1 if not stored."""
    for member in stack.members:
        member_part = member[item]
        step = max(min(member_part.band("sample"), member_part.size("sample")), 1)
        for begin in range(0, member_part.size("sample"), step):
            block = _read(member_part, begin, min(begin + step, member_part.size("sample")))
            scale = stack.scale(member_part.source.array) if block.dtype.kind in "iu" else 1.0
            for sample in block:
                yield sample.astype(np.float64) * scale


def _read(member_part: Part, begin: int, end: int) -> Array:
    """Return some samples of a part as stored numbers [sample, class, y, x]."""
    sizes = {axis: member_part.size(axis) for axis in ("class", "y", "x")}
    region = {axis: slice(0, size) for axis, size in sizes.items()} | {"sample": slice(begin, end)}
    index = member_part.source.index
    region["item"] = slice(index, None if index is None else index + 1)
    values = member_part.source.array.read(tuple(region[axis] for axis in member_part.axes))
    axes = list(member_part.axes)
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
    for values in members_of(stack, item):
        if stack.kind == "logits":
            with np.errstate(over="ignore"):
                values = _of_logits(values.astype(precision))
        if len(values) == 1:
            values = np.concatenate([1 - values, values])
        yield values.astype(np.float64)


def _of_logits(values: Array) -> Array:
    """Return the probabilities of logits [class, y, x]."""
    if len(values) == 1:
        return 1 / (1 + np.exp(-values))
    powers: Array = np.exp(values - values.max(axis=0))
    return powers / np.add.accumulate(powers, axis=0)[-1]
