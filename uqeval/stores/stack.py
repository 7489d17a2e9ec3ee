"""Stacks of class probabilities, cut into tiles that follow the chunks.

A stack joins the samples of one or several stores (members of an ensemble) and hands them out as
tiles with axes [sample, class, y, x], whatever the stored order of axes. Every chunk is read once:
items that share chunks form a batch, boxes of pixels are unions of whole chunks, and where the
samples or classes of a box lie in several chunks they come as several tiles in ascending order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqeval.errors import StoreError, number_of, quoted
from uqeval.stores.array import ItemArray, Store, StoredArray

TILE_AXES = ("sample", "class", "y", "x")


@dataclass(frozen=True)
class Box:
    """A rectangle of pixels, rows `y0:y1` and columns `x0:x1`, made of whole chunks."""

    y0: int
    y1: int
    x0: int
    x1: int

    @property
    def pixels(self) -> int:
        """Return the number of pixels in the box."""
        return (self.y1 - self.y0) * (self.x1 - self.x0)


@dataclass(frozen=True)
class Tile:
    """Probabilities (or logits) [sample, class, y, x] of one item, from sample `t0`, class `c0`."""

    item: int
    t0: int
    c0: int
    box: Box
    values: NDArray[Any]
    array: StoredArray


@dataclass(frozen=True)
class Part:
    """What one member holds of one item: where, in which axis order, and its sizes."""

    source: ItemArray
    axes: tuple[str, ...]

    def size(self, axis: str) -> int:
        """Return length of `axis`, 1 for a sample axis that is not stored."""
        return self.source.array.shape[self.axes.index(axis)] if axis in self.axes else 1

    def chunk(self, axis: str) -> int:
        """Return length of a chunk along `axis`."""
        return self.source.array.chunks[self.axes.index(axis)] if axis in self.axes else 1


class Stack:
    """The samples of all items; `kind` is "probs" or "logits".

    `joins_classes`: whether tiles hold all classes, as a softmax needs them.

    Raises `StoreError` where members disagree on items, classes or sizes.
    """

    def __init__(self, stores: Sequence[Store], kind: str) -> None:
        self.kind = kind
        self.joins_classes = kind == "logits"
        self.members: list[list[Part]] = []
        for store in stores:
            parts = store.arrays[kind]
            self.members.append([Part(item_array, item_array.array.axes) for item_array in parts])
        first = self.members[0]
        self.items = len(first)
        for store, member in zip(stores[1:], self.members[1:], strict=True):
            if len(member) != self.items:
                raise StoreError(
                    f"{store.path} holds {number_of(len(member), 'item')}, {stores[0].path} holds "
                    f"{self.items}; "
                    "members of one ensemble hold the same items in the same order."
                )
            for i, (first_part, member_part) in enumerate(zip(first, member, strict=True)):
                axes = {"class": "classes", "y": "height", "x": "width"}
                if "class" not in first_part.axes + member_part.axes:
                    del axes["class"]
                sizes = [tuple(p.size(axis) for axis in axes) for p in (first_part, member_part)]
                if sizes[0] != sizes[1]:
                    raise StoreError(
                        f"{store.path}: item {i} has {', '.join(axes.values())} {sizes[1]}, but "
                        f"{stores[0].path} has {sizes[0]}; members of one ensemble agree."
                    )
        self.classes = self._common("class", "classes", stores)
        self.samples = self._common_samples(stores)
        arrays = {id(p.source.array): p.source.array for m in self.members for p in m}
        self.arrays: list[StoredArray] = list(arrays.values())
        self.dtypes = {a.dtype for a in self.arrays}
        for a in self.arrays:
            if a.dtype.kind not in "fu" or a.dtype.itemsize > 8:
                raise StoreError(
                    f"{a.where}: {kind} of dtype {a.dtype}; expected float16, float32, float64, or "
                    "uint8 or uint16 with `scale` in the attributes."
                )

    def _common(self, axis: str, noun: str, stores: Sequence[Store]) -> int:
        sizes = [part.size(axis) for part in self.members[0]]
        for i, size in enumerate(sizes):
            if size != sizes[0]:
                raise StoreError(
                    f"{stores[0].path}: item 0 has {sizes[0]} {noun}, item {i} has {size}; "
                    f"all items have the same {noun}."
                )
        return sizes[0]

    def _common_samples(self, stores: Sequence[Store]) -> int:
        counts = [sum(m[i].size("sample") for m in self.members) for i in range(self.items)]
        for i, count in enumerate(counts):
            if count != counts[0]:
                raise StoreError(
                    f"{stores[0].path}: item 0 has {counts[0]} samples, item {i} has {count}; "
                    "all items have the same number of samples."
                )
        return counts[0]

    def size(self, item: int) -> tuple[int, int]:
        """Return height and width of an item."""
        part = self.members[0][item]
        return part.size("y"), part.size("x")

    def scale(self, array: StoredArray) -> float:
        """Return the probability of one unit of an integer array.

        Raises `StoreError` where an integer array says no `scale`.
        """
        if array.dtype.kind == "f":
            return 1.0
        scale = array.attributes.get("scale")
        if not isinstance(scale, int | float) or not 0 < scale <= 1:
            raise StoreError(
                f"{array.where}: {array.dtype} {self.kind} with scale {quoted(scale)} in the "
                "attributes; "
                f"expected a number in (0, 1], such as {1 / np.iinfo(array.dtype).max:.6g}."
            )
        return float(scale)

    @cached_property
    def uniform(self) -> bool:
        """Return whether all arrays have one dtype and one scale."""
        return len({(a.dtype, self.scale(a)) for a in self.arrays}) == 1

    def batches(self) -> list[range]:
        """Return items that have to be read together because chunks hold several of them."""
        first = (self.members[0][0].source.index or 0) if self.items else 0
        step = 1
        for member in self.members:
            step = math.lcm(step, max(member[0].chunk("item"), 1))
            if step >= first + self.items:
                break
        starts = range(first - first % step, first + self.items, step)
        bounds = [max(start - first, 0) for start in starts] + [self.items]
        return [range(a, b) for a, b in pairwise(bounds)]

    def boxes(self, item: int) -> list[Box]:
        """Return the smallest rectangles made of whole chunks of every member, in row order."""
        height, width = self.size(item)
        steps = []
        for axis, size in (("y", height), ("x", width)):
            step = 1
            for member in self.members:
                step = min(math.lcm(step, min(member[item].chunk(axis), size)), size)
            steps.append(max(step, 1))
        return [
            Box(y, min(y + steps[0], height), x, min(x + steps[1], width))
            for y in range(0, height, steps[0])
            for x in range(0, width, steps[1])
        ]

    def whole(self, item: int) -> bool:
        """Return whether each box of an item comes as one tile with all samples and classes."""
        part = self.members[0][item]
        return len(self.members) == 1 and self._steps(part) == (
            part.size("sample"),
            part.size("class"),
        )

    def splits_classes(self, item: int) -> bool:
        """Return whether the classes of one sample come in several tiles."""
        return any(self._steps(m[item])[1] < m[item].size("class") for m in self.members)

    def _steps(self, part: Part) -> tuple[int, int]:
        """Return samples and classes of a tile."""
        classes = part.size("class")
        return (
            max(min(part.chunk("sample"), part.size("sample")), 1),
            classes if self.joins_classes else max(min(part.chunk("class"), classes), 1),
        )

    def tile_bytes(self, batch: range) -> int:
        """Return bytes of the largest tile of a batch, decoded, all its items together."""
        largest = 0
        for member in self.members:
            part = member[batch[0]]
            box = max(self.boxes(batch[0]), key=lambda b: b.pixels)
            samples, classes = self._steps(part)
            itemsize = part.source.array.dtype.itemsize
            tile = len(batch) * samples * classes * box.pixels * itemsize
            largest = max(largest, tile, part.source.array.chunk_bytes)
        return largest

    def tiles(self, batch: range, box: Box) -> Iterator[Tile]:
        """Yield the tiles of a box: samples ascending, within them classes ascending, items
        innermost.
        """
        before = 0
        for member in self.members:
            part = member[batch[0]]
            samples, classes = part.size("sample"), part.size("class")
            step_t, step_c = self._steps(part)
            for t in range(0, samples, step_t):
                for c in range(0, classes, step_c):
                    where = {
                        "sample": slice(t, min(t + step_t, samples)),
                        "class": slice(c, min(c + step_c, classes)),
                        "y": slice(box.y0, box.y1),
                        "x": slice(box.x0, box.x1),
                    }
                    yield from _read(member, batch, where, before + t, c, box)
            before += samples


def _read(
    member: list[Part], batch: range, where: dict[str, slice], t0: int, c0: int, box: Box
) -> Iterator[Tile]:
    """Read one region of a batch and give each item its view, in the order of `TILE_AXES`."""
    part = member[batch[0]]
    array = part.source.array
    if part.source.index is not None:
        first = part.source.index
        where = where | {"item": slice(first, first + len(batch))}
    values = array.read(tuple(where[axis] for axis in part.axes))
    stored = tuple(axis for axis in part.axes if axis != "item")
    for j, item in enumerate(batch):
        plane = values
        if part.source.index is not None:
            plane = values[(slice(None),) * part.axes.index("item") + (j,)]
        order = [stored.index(axis) for axis in TILE_AXES if axis in stored]
        plane = plane.transpose(order)
        if "sample" not in stored:
            plane = plane[None]
        yield Tile(item, t0, c0, box, plane, array)
