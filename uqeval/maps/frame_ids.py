"""Class ids of video frames: stored as ids, or the likeliest class of stored probabilities. Each
frame is decoded once, although two pairs use it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from uqeval.arrays import Array
from uqeval.errors import StoreError, cut
from uqeval.maps.labels import label_map
from uqeval.maps.sources import Source
from uqeval.stores.class_ids import refuse_fill_ids
from uqeval.stores.planes import Planes

#: Batches of predictions in memory: two neighbours are in one batch or two.
_KEPT = 2


class FrameIds(Protocol):
    """Ids [y, x] of every frame, void as the largest value of their dtype."""

    where: str

    def read(self, frame: int, size: tuple[int, ...]) -> Array:
        """Return the ids of a frame of this height and width. Raises `StoreError` or
        `DataError`.
        """


@dataclass(eq=False)
class StoredIds:
    """Stored ids. `places`: the index of the plane of each frame, None if it has none.

    `resize`: whether a plane of another size is resized to its frame's by nearest neighbour; None
    if the command cannot.
    """

    planes: Planes
    names: Sequence[str]
    places: Sequence[int | None]
    classes: int
    void: int
    noun: str
    where: str
    resize: bool | None = None

    def read(self, frame: int, size: tuple[int, ...]) -> Array:
        """Return the ids of a frame."""
        place = self.places[frame]
        assert place is not None
        plane = self.planes.read(place)
        where = f"{self.planes.where_of(place)}, frame {cut(self.names[frame])}"
        refuse_fill_ids(plane, self.planes.parts[place].array, self.void, where, self.noun)
        if plane.ndim == 2:
            plane = fitted(plane, size, where, self.noun, self.resize)
        return label_map(
            plane, self.classes, self.void, where, (size[0], size[1]), noun=self.noun,
            images=self.planes.takes_label_map(place),
        )  # fmt: skip


class ReducedIds:
    """The likeliest class of stored probabilities. `places`: the item of each frame, None if it has
    none.
    """

    def __init__(
        self, source: Source, positions: Sequence[int | None], resize: bool | None
    ) -> None:
        self.source = source
        self.where = source.where
        self.places = tuple(positions)
        self.resize = resize
        source.want(["prediction"])
        self._batches = source.batches()
        self._batch_of = {i: batch for batch in self._batches for i in batch}
        self._read: OrderedDict[int, list[Array]] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, frame: int, size: tuple[int, ...]) -> Array:
        """Return the ids of a frame."""
        item = self.places[frame]
        assert item is not None
        batch = self._batch_of[item]
        if len(batch) == 1:
            ids = self.source.read(batch)[0]["prediction"]
        else:
            with self._lock:
                if batch.start not in self._read:
                    maps = self.source.read(batch)
                    self._read[batch.start] = [item_maps["prediction"] for item_maps in maps]
                    while len(self._read) > _KEPT:
                        self._read.popitem(last=False)
                ids = self._read[batch.start][item - batch.start]
        where = f"{self.where}, item {cut(self.source.names[item])}"
        return fitted(ids, size, where, "predictions", self.resize)


class OtherSize(StoreError):
    """Ids are not of the size of their frame. `problem`: the message without advice."""

    def __init__(self, problem: str, advice: str) -> None:
        super().__init__(f"{problem} {advice}")
        self.problem = problem


def fitted(ids: Array, size: tuple[int, ...], where: str, noun: str, resize: bool | None) -> Array:
    """Return ids [y, x] of their frame's size; others are resized by nearest neighbour if
    requested.

    The source of pixel i of n is ⌊(i + ½)·m/n⌋ of m. Raises `OtherSize` for another size.
    """
    if ids.shape == tuple(size):
        return ids
    if not resize:
        option = (
            "" if resize is None else ", or --resize nearest to resize ids by nearest neighbour"
        )
        raise OtherSize(
            f"{where}: {noun} are {ids.shape[0]}×{ids.shape[1]} (height×width), the frame is "
            f"{size[0]}×{size[1]}.",
            f"Give frames of the size of the predictions{option}.",
        )
    rows, columns = (
        np.minimum((2 * np.arange(n) + 1) * m // (2 * n), m - 1)
        for n, m in zip(size, ids.shape, strict=True)
    )
    return np.ascontiguousarray(ids[rows[:, None], columns])


@dataclass(frozen=True)
class Frame:
    """One frame: `rgb` [y, x, 3] if it is wanted, `grey` [y, x] uint8, the predicted `ids` [y, x]
    of each model, and the `label` [y, x] if there is one.
    """

    rgb: Array | None
    grey: Array
    ids: tuple[Array, ...]
    label: Array | None


class SharedFrames:
    """Frames by index. Each is loaded at its first use and dropped after its last.

    `uses`: how often each frame will be taken or skipped. With `sequential`, frames are loaded in
    ascending order: earlier frames are loaded too, and kept if they will be used.
    """

    def __init__(self, load: Callable[[int], Frame], uses: Sequence[int], sequential: bool) -> None:
        self._load = load
        self._uses = list(uses)
        self._left = list(uses)
        self._sequential = sequential
        self._frames: dict[int, Future[Frame]] = {}
        self._lock = threading.Lock()
        self._decoding = threading.Lock()
        self._next = 0
        #: Sequential frames that have had their last use.
        self._over: set[int] = set()

    def take(self, index: int) -> Frame:
        """Return the frame. Raises the errors of loading it."""
        with self._lock:
            self._over.discard(index)  # perhaps from an earlier pass
            future = self._frames.get(index)
            is_reader = future is None
            if future is None:
                future = self._frames[index] = Future()
        if self._sequential:
            self._load_up_to(index)
        elif is_reader:
            self._fill(index, future)
        frame = future.result()
        self.skip(index)
        return frame

    def skip(self, index: int) -> None:
        """Release one use of a frame without reading it."""
        with self._lock:
            self._left[index] -= 1
            if self._left[index] <= 0:
                self._frames.pop(index, None)
                self._left[index] = self._uses[index]
                if self._sequential:
                    self._over.add(index)

    def _load_up_to(self, index: int) -> None:
        with self._decoding:
            with self._lock:
                wanted = self._frames.get(index)
                if wanted is not None and wanted.done():
                    return
            if index < self._next:  # a new pass, although the last one did not finish
                self._next = 0
                self._over.clear()
            for i in range(self._next, index + 1):
                self._next = i + 1
                if not self._uses[i] or i in self._over:
                    continue
                with self._lock:
                    future = self._frames.setdefault(i, Future())
                if not future.done():
                    self._fill(i, future)

    def _fill(self, index: int, future: Future[Frame]) -> None:
        try:
            future.set_result(self._load(index))
        except BaseException as error:  # also for an interrupt: other threads wait for this frame
            future.set_exception(error)
            raise
