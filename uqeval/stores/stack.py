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

import numpy as np

from uqeval.arrays import Array
from uqeval.errors import StoreError, number_of
from uqeval.stores.array import ItemArray, Store, StoredArray, arrays_of, distinct, follow
from uqeval.stores.bfloat16 import tolerance_of
from uqeval.stores.planes import check_dtype, unit_of

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


class Member:
    """The items of one member of an ensemble, and their arrays, each once."""

    def __init__(self, items: Sequence[ItemArray]) -> None:
        self.items = items
        self.arrays = arrays_of(items)
        self._only = self.arrays[0] if len(self.arrays) == 1 else None

    def array_of(self, item: int) -> StoredArray:
        """Return the array with an item."""
        return self.items[item].array if self._only is None else self._only


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
    def of(cls, arrays: Sequence[StoredArray], joins_classes: bool) -> Tiling:
        """Return the tiling of an item from its arrays, one of each member."""
        sizes = [(array.length("sample"), array.length("class")) for array in arrays]
        steps = tuple(
            (
                max(min(array.band("sample"), samples), 1),
                classes if joins_classes else max(min(array.band("class"), classes), 1),
            )
            for array, (samples, classes) in zip(arrays, sizes, strict=True)
        )
        splits = any(step[1] < size[1] for size, step in zip(sizes, steps, strict=True))
        return cls(_boxes(arrays), steps, len(arrays) == 1 and steps[0] == sizes[0], splits)


def _boxes(arrays: Sequence[StoredArray]) -> tuple[Box, ...]:
    height, width = arrays[0].length("y"), arrays[0].length("x")
    steps = []
    for axis, size in (("y", height), ("x", width)):
        step = 1
        for array in arrays:
            step = min(math.lcm(step, min(array.band(axis), size)), size)
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
        in_chunk = {id(array): array.in_chunk("item") for array in arrays_of(items)}
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
        self.items = len(first.items)
        for store, member in zip(stores[1:], self.members[1:], strict=True):
            if (count := len(member.items)) != self.items:
                raise StoreError(
                    f"{store.path} holds {number_of(count, 'item')}, {stores[0].path} holds "
                    f"{self.items}; members of one ensemble need the same items in the same order."
                )
            for i in range(count):
                arrays = first.array_of(i), member.array_of(i)
                axes = {"class": "classes", "y": "height", "x": "width"}
                if not any("class" in array.axes for array in arrays):
                    del axes["class"]
                sizes = [tuple(map(array.length, axes)) for array in arrays]
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
        self.arrays = distinct(array for member in self.members for array in member.arrays)
        self.dtypes = {a.dtype for a in self.arrays}
        for array in self.arrays:
            if array.dtype not in _FLOATS:
                check_dtype(array, kind)

    def _common(
        self, axis: str, members: Sequence[Member], path: str, noun: str, of_all: str
    ) -> int:
        """Return the length of an axis of all these members, which all items share."""
        first = sum(member.array_of(0).length(axis) for member in members)
        if all(len({a.length(axis) for a in member.arrays}) == 1 for member in members):
            return first
        for i in range(self.items):
            count = sum(member.array_of(i).length(axis) for member in members)
            if count != first:
                raise StoreError(
                    f"{path}: item 0 has {first} {noun}, item {i} has {count}; all items must "
                    f"have the same {of_all}."
                )
        return first

    def size(self, item: int) -> tuple[int, int]:
        """Return height and width of an item; items of one array share them."""
        array = self.members[0].array_of(item)
        if id(array) not in self._sizes:
            self._sizes[id(array)] = array.length("y"), array.length("x")
        return self._sizes[id(array)]

    def scale(self, array: StoredArray) -> float:
        """Return the probability of one unit of an integer array.

        Raises `StoreError` if it has no attribute `scale`.
        """
        return 1.0 if array.dtype in _FLOATS else unit_of(array, self.kind)

    @cached_property
    def uniform(self) -> bool:
        """Return whether all arrays have one dtype and one scale."""
        return len({(a.dtype, self.scale(a)) for a in self.arrays}) == 1

    @cached_property
    def certain(self) -> int | None:
        """Return which integer is a foreground probability of 1; None for floats, logits, several
        classes, several scales, and where no integer of the dtype is."""
        dtype = self.arrays[0].dtype
        if self.kind != "probs" or self.classes > 1 or dtype.kind != "u" or not self.uniform:
            return None
        scale = self.scale(self.arrays[0])
        certain = round(1 / scale)
        is_near = abs(certain * scale - 1) <= 1e-6
        return certain if is_near and certain <= np.iinfo(dtype).max else None

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
        arrays = [member.array_of(item) for member in self.members]
        key = self.joins_classes, *map(id, arrays)
        if key not in self._tilings:
            layouts = self.joins_classes, *map(self._layout, arrays)
            if layouts not in self._tilings:
                self._tilings[layouts] = Tiling.of(arrays, self.joins_classes)
            self._tilings[key] = self._tilings[layouts]
        return self._tilings[key]

    def _layout(self, array: StoredArray) -> Hashable:
        """Return all that determines the tiles of an array's items, and whether they are decoded
        together."""
        form = array.shape, array.bands, array.axes, array.dtype
        return *form, self.scale(array), self.tolerance(array)

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
            array = member.array_of(batch[0])
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
            source = member.items[batch[0]]
            samples, classes = source.array.length("sample"), source.array.length("class")
            for t in range(0, samples, step_t):
                for c in range(0, classes, step_c):
                    where = {
                        "sample": slice(t, min(t + step_t, samples)),
                        "class": slice(c, min(c + step_c, classes)),
                        "y": slice(box.y0, box.y1),
                        "x": slice(box.x0, box.x1),
                    }
                    yield from _read(source, batch, where, before + t, c, box)
            before += samples


def _read(
    source: ItemArray, batch: range, where: dict[str, slice], t0: int, c0: int, box: Box
) -> Iterator[Tile]:
    """Read one region of a batch from its first item; return the view of each, in the order of
    `TILE_AXES`."""
    array, first = source.array, source.index
    if first is not None:
        where = where | {"item": slice(first, first + len(batch))}
    values = array.read(tuple(where[axis] for axis in array.axes))
    stored = tuple(axis for axis in array.axes if axis != "item")
    for j, item in enumerate(batch):
        plane = values
        if first is not None:
            plane = values[(slice(None),) * array.axes.index("item") + (j,)]
        order = [stored.index(axis) for axis in TILE_AXES if axis in stored]
        plane = plane.transpose(order)
        if "sample" not in stored:
            plane = plane[None]
        yield Tile(item, t0, c0, box, plane, array)
