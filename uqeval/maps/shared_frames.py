"""Decode each frame once, although two pairs use it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from uqeval.arrays import Array


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
