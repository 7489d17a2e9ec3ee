"""Planes: one array [y, x] per item (labels, stored maps). Each chunk is decoded once.

The scale of integers: the number that one unit stands for.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.errors import StoreError, is_number, quoted
from uqeval.stores.array import ItemArray, StoredArray, arrays_of, digest_of, follow
from uqeval.stores.kinds import WITH_MEMBER_SCALE, single_of


def scale_of(array: StoredArray) -> Any:
    """Return the attribute `scale` of an array; None without it."""
    return single_of(array.attributes.get("scale"))


def check_dtype(array: StoredArray, kind: str) -> None:
    """Raise `StoreError` for a dtype that arrays of a kind in `SCALED` cannot have."""
    if array.dtype.kind not in "fu" or array.dtype.itemsize > 8:
        raise StoreError(
            f"{array.where}: {kind} of dtype {array.dtype}; expected float16, float32, float64, or "
            f"uint8 or uint16 with `scale` {_place_of_scale(array, kind)}."
        )


def _place_of_scale(array: StoredArray, kind: str) -> str:
    """Return where an array of this format can have a `scale`. In memory, xarray has attributes."""
    if array.has_attributes or (array.attributes and kind not in WITH_MEMBER_SCALE):
        return "in the attributes of the array"
    with_attributes = "in the attributes of an array of Zarr, HDF5 or xarray"
    if kind in WITH_MEMBER_SCALE:
        return f"as a member `scale` of the .npz or dict, or {with_attributes}"
    return (
        f"{with_attributes}; NumPy arrays have no attributes, and a member `scale` does not count "
        f"for {kind}: give {kind} as float32"
    )


def unit_of(array: StoredArray, kind: str) -> float:
    """Return the number of one unit of an array of a kind in `SCALED`; 1 for floating point.

    Raises `StoreError` as `check_dtype`, and for integers without a valid attribute `scale`.
    """
    check_dtype(array, kind)
    if array.dtype.kind == "f":
        return 1.0
    scale = scale_of(array)
    if not is_number(scale) or not 0 < scale <= 1:
        raise StoreError(
            f"{array.where}: {array.dtype} {kind} with scale {quoted(scale)}; expected a number in "
            f"(0, 1], such as {1 / np.iinfo(array.dtype).max:.6g}, {_place_of_scale(array, kind)}."
        )
    return float(scale)


#: The number of decoded chunks in memory, if a chunk has planes of several items.
_KEPT = 2


class Planes:
    """The planes of all items. With `channels`, each is [class, y, x]; `axis` names another axis
    than class.

    Raises `StoreError` for labels of several annotators where one plane is expected.
    """

    def __init__(
        self, parts: Sequence[ItemArray], channels: bool = False, axis: str = "class"
    ) -> None:
        self.parts = parts
        self._order: tuple[str, ...] = (axis, "y", "x") if channels else ("y", "x")
        self._chunks: OrderedDict[tuple[int, int], Array] = OrderedDict()
        self._lock = threading.Lock()
        for array in self.arrays:
            if "annotator" in array.axes and axis != "annotator":
                raise StoreError(
                    f"{array.where} holds labels of {array.length('annotator')} annotators; "
                    "expected one label per pixel here. Store the labels of one annotator "
                    "[item, y, x], or evaluate these with `uqeval annotators`."
                )

    @cached_property
    def arrays(self) -> list[StoredArray]:
        """Return the distinct arrays with the planes."""
        return arrays_of(self.parts)

    def size(self, item: int) -> tuple[int, int]:
        """Return height and width of an item's plane."""
        array = self._array_of(item)
        return array.length("y"), array.length("x")

    def where_of(self, item: int) -> str:
        """Return the name of the array with an item's plane, for messages."""
        return self._array_of(item).where

    def takes_label_map(self, item: int) -> bool:
        """Return whether --label-map would apply to an item's plane, and none is given."""
        return self._array_of(item).takes_label_map

    def _array_of(self, item: int) -> StoredArray:
        return self.arrays[0] if len(self.arrays) == 1 else self.parts[item].array

    def kept_bytes(self) -> int:
        """Return the largest number of bytes of decoded chunks that stay in memory for later
        items.
        """
        array = self.parts[0].array
        if self.parts[0].index is None:
            return 0
        if (n := array.in_chunk("item")) == 1:
            return 0
        other_sizes = [s for s, a in zip(array.shape, array.axes, strict=True) if a != "item"]
        return _KEPT * n * int(np.prod(other_sizes)) * array.dtype.itemsize

    @cached_property
    def chunk_bytes(self) -> int:
        """Return the bytes of the largest decoded chunk, including what is beyond the array's
        edge.
        """
        return max((array.chunk_bytes for array in self.arrays), default=0)

    def fingerprint(self) -> str | None:
        """Return SHA-256 of the arrays' own fingerprints; None if one has none."""
        return digest_of(self.arrays)

    def read(self, item: int) -> Array:
        """Return the plane [y, x] of an item (with channels [class, y, x])."""
        item_array = self.parts[item]
        axes = item_array.array.axes
        if item_array.index is None:
            values = item_array.array.read(tuple(slice(0, n) for n in item_array.array.shape))
        else:
            along = axes.index("item")
            step = item_array.array.in_chunk("item")
            values = self._chunk(item_array.array, along, item_array.index // step, step)
            values = values[(slice(None),) * along + (item_array.index % step,)]
            axes = tuple(a for a in axes if a != "item")
        return values.transpose([axes.index(a) for a in self._order])

    def read_together(self, items: range) -> Array:
        """Return the planes [item, y, x] of items of one size; those of a run of items of one array
        are read in one call."""
        parts = self.parts[items.start : items.stop]
        array, start = parts[0].array, parts[0].index
        if start is None or not follow(parts).all():
            return np.stack([self.read(item) for item in items])
        along, stop = array.axes.index("item"), start + len(parts)
        step = array.in_chunk("item")
        before = (slice(None),) * along
        values = np.concatenate(
            [
                self._chunk(array, along, k, step)[
                    (*before, slice(max(start - k * step, 0), stop - k * step))
                ]
                for k in range(start // step, (stop - 1) // step + 1)
            ],
            axis=along,
        )
        return values.transpose([array.axes.index(a) for a in ("item", *self._order)])

    def _chunk(self, array: StoredArray, along: int, number: int, step: int) -> Array:
        region = [slice(0, n) for n in array.shape]
        region[along] = slice(number * step, min((number + 1) * step, array.shape[along]))
        if step == 1:
            return array.read(tuple(region))
        key = (id(array), number)
        with self._lock:
            if key in self._chunks:
                self._chunks.move_to_end(key)
            else:
                self._chunks[key] = array.read(tuple(region))
                while len(self._chunks) > _KEPT:
                    self._chunks.popitem(last=False)
            return self._chunks[key]


class ScaledPlanes(Planes):
    """Planes [class, y, x] of a kind in `SCALED`; integers are read as the numbers they stand for.

    `read` raises `StoreError` for integers without a scale.
    """

    def __init__(self, parts: Sequence[ItemArray], kind: str) -> None:
        super().__init__(parts, channels=True)
        self.kind = kind

    def read(self, item: int) -> Array:
        values, unit = super().read(item), unit_of(self._array_of(item), self.kind)
        return values if values.dtype.kind == "f" else values * unit


class VideoPlanes(Planes):
    """Planes [class, y, x] of a stored video: frames, or flow of pairs of frames.

    `where` names their store, `parts` are the stored planes.
    """

    def __init__(self, where: str, parts: Sequence[ItemArray]) -> None:
        super().__init__(parts, channels=True)
        self.where = where

    def __len__(self) -> int:
        return len(self.parts)

    def stamp(self, i: int) -> str | None:
        """Return text that changes when plane `i` does; None if changes cannot be detected."""
        return self.parts[i].stamp()

    def states(self, i: int) -> dict[str, str]:
        """Return the states of the files of plane `i`, by path."""
        return self.parts[i].states()
