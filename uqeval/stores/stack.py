"""Stacks of class probabilities, divided into tiles along the chunks, or along bands of rows of
uncompressed chunks.

A stack joins the samples of one or several stores (members of an ensemble). It yields them as tiles
with axes [sample, class, y, x], for any stored order of axes. Each chunk is read once: items that
share chunks form a batch, and boxes of pixels are unions of whole chunks. If the samples or classes
of a box are in several chunks, they are several tiles in ascending order.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, overload

import numpy as np

from uqeval.arrays import Array
from uqeval.errors import StoreError, number_of
from uqeval.stores.array import ItemArray, Store, StoredArray, arrays_of, follow
from uqeval.stores.bfloat16 import tolerance_of
from uqeval.stores.scales import check_dtype, unit_of

TILE_AXES = ("sample", "class", "y", "x")
#: Probabilities and logits of these types have no scale.
_FLOATS = frozenset(map(np.dtype, ("float16", "float32", "float64")))


@dataclass(frozen=True)
class Box:
    """A rectangle of pixels, rows `y0:y1` and columns `x0:x1`, that consists of whole bands."""

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
    """Probabilities (or logits) [sample, class, y, x] of one item, from sample `t0`, class `c0`.

    With `items`, the pixels of so many items from `item` on, in one row.
    """

    item: int
    t0: int
    c0: int
    box: Box
    values: Array
    array: StoredArray
    items: int = 1


@dataclass(frozen=True, slots=True)
class Part:
    """The data of one item in one member: array, order of axes, and sizes."""

    source: ItemArray
    axes: tuple[str, ...]

    def size(self, axis: str) -> int:
        """Return the length of `axis`, 1 for a sample axis that is not stored."""
        return self.source.array.shape[self.axes.index(axis)] if axis in self.axes else 1

    def band(self, axis: str) -> int:
        """Return the length along `axis` of the boxes that are read alone (`StoredArray.bands`)."""
        return self.source.array.bands[self.axes.index(axis)] if axis in self.axes else 1

    @property
    def layout(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[str, ...], np.dtype[Any]]:
        """Return all that determines the tiles of an item: shape, chunks, axes and dtype."""
        array = self.source.array
        return array.shape, array.bands, self.axes, array.dtype


class Member(Sequence[Part]):
    """The parts of all items of one member of an ensemble."""

    def __init__(self, items: Sequence[ItemArray]) -> None:
        self.items = items
        self.arrays = arrays_of(items)
        self._only = self.arrays[0] if len(self.arrays) == 1 else None

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, item: int) -> Part: ...
    @overload
    def __getitem__(self, item: slice) -> Member: ...
    def __getitem__(self, item: int | slice) -> Part | Member:
        if isinstance(item, slice):
            return Member(self.items[item])
        source = self.items[item]
        return Part(source, source.array.axes)

    def __iter__(self) -> Iterator[Part]:
        return (Part(source, source.array.axes) for source in self.items)

    def array_of(self, item: int) -> StoredArray:
        """Return the array with an item."""
        return self.items[item].array if self._only is None else self._only

    def sizes(self, axis: str) -> set[int]:
        """Return the lengths of an axis, 1 for a sample axis that is not stored, each once."""
        return {
            array.shape[array.axes.index(axis)] if axis in array.axes else 1
            for array in self.arrays
        }


@dataclass(frozen=True, eq=False)
class Tiling:
    """How an item is divided into tiles.

    `boxes`: the smallest rectangles that consist of whole bands of every member, in row order.
    `steps`: samples and classes of a tile of each member. `whole`: each box is one tile with all
    samples and classes. `splits_classes`: the classes of one sample are in several tiles.
    """

    boxes: tuple[Box, ...]
    steps: tuple[tuple[int, int], ...]
    whole: bool
    splits_classes: bool

    @cached_property
    def box_pixels(self) -> int:
        """Return the number of pixels of the largest box."""
        return max(box.pixels for box in self.boxes)

    @classmethod
    def from_parts(cls, parts: Sequence[Part], joins_classes: bool) -> Tiling:
        """Return the tiling of an item from its parts, one of each member."""
        steps = tuple(
            (
                max(min(part.band("sample"), part.size("sample")), 1),
                part.size("class")
                if joins_classes
                else max(min(part.band("class"), part.size("class")), 1),
            )
            for part in parts
        )
        whole = len(parts) == 1 and steps[0] == (parts[0].size("sample"), parts[0].size("class"))
        splits = any(step[1] < part.size("class") for part, step in zip(parts, steps, strict=True))
        return cls(_boxes(parts), steps, whole, splits)


def _boxes(parts: Sequence[Part]) -> tuple[Box, ...]:
    height, width = parts[0].size("y"), parts[0].size("x")
    steps = []
    for axis, size in (("y", height), ("x", width)):
        step = 1
        for part in parts:
            step = min(math.lcm(step, min(part.band(axis), size)), size)
        steps.append(max(step, 1))
    return tuple(
        Box(y, min(y + steps[0], height), x, min(x + steps[1], width))
        for y in range(0, height, steps[0])
        for x in range(0, width, steps[1])
    )


def batch_ends(members: Sequence[Sequence[ItemArray]]) -> list[int]:
    """Return the first item of each batch, and the number of items. The items of a batch share
    chunks, and follow each other in each member.
    """
    count = len(members[0])
    may_end, must_end = np.ones(count + 1, bool), np.zeros(max(count - 1, 0), bool)
    for items in members:
        in_chunk = {
            id(array): max(array.chunks[array.axes.index("item")], 1) if "item" in array.axes else 1
            for array in arrays_of(items)
        }
        chunks = [(item.index or 0) // in_chunk[id(item.array)] for item in items]
        is_next = follow(items)
        may_end[1:-1] &= ~(is_next & (np.diff(chunks) == 0))
        must_end |= ~is_next
    may_end[1:-1] |= must_end
    return np.flatnonzero(may_end).tolist()


class Stack:
    """The samples of all items; `kind` is "probs" or "logits".

    `joins_classes`: whether tiles hold all classes, as a softmax needs them.

    Raises `StoreError` if members differ in items, classes or sizes.
    """

    def __init__(self, stores: Sequence[Store], kind: str) -> None:
        self.kind = kind
        self.joins_classes = kind == "logits"
        self.members = [Member(store.arrays[kind]) for store in stores]
        first = self.members[0]
        self.items = len(first)
        for store, member in zip(stores[1:], self.members[1:], strict=True):
            if len(member) != self.items:
                raise StoreError(
                    f"{store.path} holds {number_of(len(member), 'item')}, {stores[0].path} holds "
                    f"{self.items}; members of one ensemble need the same items in the same order."
                )
            for i, (first_part, member_part) in enumerate(zip(first, member, strict=True)):
                axes = {"class": "classes", "y": "height", "x": "width"}
                if "class" not in first_part.axes + member_part.axes:
                    del axes["class"]
                sizes = [tuple(p.size(axis) for axis in axes) for p in (first_part, member_part)]
                if sizes[0] != sizes[1]:
                    raise StoreError(
                        f"{store.path}: item {i} has {', '.join(axes.values())} {sizes[1]}, but "
                        f"{stores[0].path} has {sizes[0]}; members of one ensemble must agree."
                    )
        #: Tilings by the arrays of an item, and by their layouts; heights and widths by array.
        self._tilings: dict[Hashable, Tiling] = {}
        self._sizes: dict[int, tuple[int, int]] = {}
        path = stores[0].path
        self.classes = self._common("class", self.members[:1], path, "classes", "classes")
        self.samples = self._common("sample", self.members, path, "samples", "number of samples")
        arrays = {id(array): array for member in self.members for array in member.arrays}
        self.arrays: list[StoredArray] = list(arrays.values())
        self.dtypes = {a.dtype for a in self.arrays}
        for array in self.arrays:
            if array.dtype not in _FLOATS:
                check_dtype(array, kind)

    def _common(
        self, axis: str, members: Sequence[Member], path: str, noun: str, of_all: str
    ) -> int:
        """Return the length of an axis of all these members, which all items share."""
        first = sum(member[0].size(axis) for member in members)
        if all(len(member.sizes(axis)) == 1 for member in members):
            return first
        for i, parts in enumerate(zip(*members, strict=True)):
            count = sum(part.size(axis) for part in parts)
            if count != first:
                raise StoreError(
                    f"{path}: item 0 has {first} {noun}, item {i} has {count}; all items have the "
                    f"same {of_all}."
                )
        return first

    def size(self, item: int) -> tuple[int, int]:
        """Return height and width of an item; items of one array share them."""
        key = id(self.members[0].array_of(item))
        if key not in self._sizes:
            part = self.members[0][item]
            self._sizes[key] = part.size("y"), part.size("x")
        return self._sizes[key]

    def scale(self, array: StoredArray) -> float:
        """Return the probability of one unit of an integer array.

        Raises `StoreError` if it has no attribute `scale`.
        """
        return 1.0 if array.dtype in _FLOATS else unit_of(array, self.kind)

    @cached_property
    def uniform(self) -> bool:
        """Return whether all arrays have one dtype and one scale."""
        return len({(a.dtype, self.scale(a)) for a in self.arrays}) == 1

    def tolerance(self, array: StoredArray) -> float:
        """Return the largest |Σ_c p - 1| that the probabilities of an array may have.

        Raises `StoreError` if an integer array has no attribute `scale`.
        """
        if array.dtype.kind == "u":
            return self.classes * self.scale(array)
        return tolerance_of(array, array.dtype.name)

    def batches(self) -> list[range]:
        """Return ranges of items that share chunks and so must be read together."""
        return [range(start, stop) for start, stop in pairwise(self._batch_ends)]

    @cached_property
    def _batch_ends(self) -> list[int]:
        """Return the first item of each batch, and the number of items."""
        return batch_ends([member.items for member in self.members])

    def tiling(self, item: int) -> Tiling:
        """Return the tiling of an item; items of the same layout, scales and tolerances share it,
        and only such items are decoded together (`runs`).
        """
        arrays = self.joins_classes, *(id(member.array_of(item)) for member in self.members)
        if arrays not in self._tilings:
            parts = [member[item] for member in self.members]
            layouts = (
                self.joins_classes,
                *((p.layout, self.scale(a := p.source.array), self.tolerance(a)) for p in parts),
            )
            if layouts not in self._tilings:
                self._tilings[layouts] = Tiling.from_parts(parts, self.joins_classes)
            self._tilings[arrays] = self._tilings[layouts]
        return self._tilings[arrays]

    def runs(self, items: range) -> list[range]:
        """Return consecutive items of one tiling each: items of several batches may have others."""
        ends = self._run_ends
        inner = ends[bisect_right(ends, items.start) : bisect_left(ends, items.stop)]
        return [range(a, b) for a, b in pairwise([items.start, *inner, items.stop])]

    @cached_property
    def _run_ends(self) -> list[int]:
        """Return the ends of the longest runs of items of one tiling."""
        if all(len(member.arrays) == 1 for member in self.members):
            return [self.items]
        tilings = [self.tiling(item) for item in range(self.items)]
        return [*(i for i in range(1, self.items) if tilings[i] is not tilings[i - 1]), self.items]

    def boxes(self, item: int) -> tuple[Box, ...]:
        """Return the boxes of an item in row order."""
        return self.tiling(item).boxes

    def tile_bytes(self, batch: range) -> int:
        """Return the bytes of the largest decoded tile of a batch, with all its items."""
        tiling, largest = self.tiling(batch[0]), 0
        for member, (samples, classes) in zip(self.members, tiling.steps, strict=True):
            array = member[batch[0]].source.array
            numbers = len(batch) * samples * classes * tiling.box_pixels
            band_bytes = math.prod(array.bands) * array.dtype.itemsize
            largest = max(largest, numbers * array.dtype.itemsize, band_bytes)
        return largest

    def tiles(self, items: range, box: Box) -> Iterator[Tile]:
        """Yield the tiles of a box of one or several whole batches with the same tiling.

        The order is by batch, then by sample, then by class, then by item, each ascending.
        """
        start = items.start
        while start < items.stop:
            end_of_batch = self._batch_ends[bisect_right(self._batch_ends, start)]
            batch = range(start, min(end_of_batch, items.stop))
            yield from self._tiles_of_batch(batch, box)
            start = batch.stop

    def _tiles_of_batch(self, batch: range, box: Box) -> Iterator[Tile]:
        before = 0
        steps = self.tiling(batch[0]).steps
        for member, (step_t, step_c) in zip(self.members, steps, strict=True):
            part = member[batch[0]]
            samples, classes = part.size("sample"), part.size("class")
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
    member: Sequence[Part], batch: range, where: dict[str, slice], t0: int, c0: int, box: Box
) -> Iterator[Tile]:
    """Read one region of a batch; return the view of each item, in the order of `TILE_AXES`."""
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
