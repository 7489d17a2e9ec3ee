"""Fetch several chunks of an array from a server before they are read."""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import cache, partial

from uqeval.stores.zarr.source import Buffer
from uqeval.threads import Answer, Threads

Position = tuple[int, ...]

#: The largest number of chunks fetched ahead of one that is read; also the number of threads.
_MOST = 16
#: The largest number of chunks of an array that are fetched or wait to be read. Several threads
#: read in different places, each in order.
_MOST_WAITING = 4 * _MOST
#: The largest number of decoded bytes of waiting chunks, of all arrays of this process.
_MOST_BYTES = 64 << 20
#: Arrays with more chunks are not fetched ahead.
_MOST_CHUNKS = 20_000_000

_all: weakref.WeakSet[ReadAhead] = weakref.WeakSet()
_lock = threading.Lock()


@cache
def _threads() -> Threads:
    return Threads(_MOST, "uqeval-ahead")


class ReadAhead:
    """The next chunks of an array, in the order of items; used by several threads.

    `fetch` returns the stored bytes of a chunk; `nbytes`: its decoded size. `grid`: the number of
    chunks on each of the `axes`. The number of chunks fetched ahead starts at one and grows with
    each read, so a single read costs little more. Reading a chunk a second time begins a new pass.
    """

    def __init__(
        self,
        fetch: Callable[[Position], Buffer | None],
        nbytes: int,
        grid: Position,
        axes: Sequence[str],
    ) -> None:
        self._fetch, self._nbytes = fetch, nbytes
        along = axes.index("item") if "item" in axes else 0
        order = [along, *(axis for axis in range(len(grid)) if axis != along)]
        self._order = order
        self._grid = [grid[axis] for axis in order]
        self._count = math.prod(grid) if math.prod(grid) <= _MOST_CHUNKS else 0
        #: The number of reads after which an unread chunk is dropped, because its item was skipped.
        self._patience = 2 * (_MOST_WAITING + math.prod(self._grid[1:]))
        self._restart()
        _all.add(self)

    def _restart(self) -> None:
        self._is_read = bytearray(self._count)
        self._waiting: dict[int, tuple[Answer[Buffer | None], int]] = {}
        self._reads = 0
        self._window = 1

    @property
    def waiting_bytes(self) -> int:
        """Return the largest number of bytes that are fetched or wait to be read."""
        return len(self._waiting) * self._nbytes

    def take(self, position: Position) -> Buffer | None:
        """Return the stored bytes of a chunk, None if it is missing, and start to fetch the next
        chunks.
        """
        if not self._count:
            return self._fetch(position)
        index = self._index(position)
        with _lock:
            if self._is_read[index]:
                self._restart()
            self._is_read[index] = 1
            self._reads += 1
            waiting = self._waiting.pop(index, None)
            self._drop()
            self._start(index + 1)
        return waiting[0].result() if waiting else self._fetch(position)

    def _drop(self) -> None:
        """Delete chunks that were not read within the last `_patience` reads."""
        old = self._reads - self._patience
        for index in [i for i, (_, begun) in self._waiting.items() if begun < old]:
            self._waiting.pop(index)[0].drop()

    def _start(self, first: int) -> None:
        """Start to fetch the chunks from `first` on, within the limits."""
        room = _MOST_BYTES - sum(ahead.waiting_bytes for ahead in _all)
        for index in range(first, min(first + self._window, self._count)):
            if self._is_read[index] or index in self._waiting:
                continue
            room -= self._nbytes
            if room < 0 or len(self._waiting) >= _MOST_WAITING:
                break
            answer = _threads().start(partial(self._fetch, self._position(index)))
            self._waiting[index] = answer, self._reads
        self._window = min(2 * self._window, _MOST)

    def _index(self, position: Position) -> int:
        index = 0
        for axis, count in zip(self._order, self._grid, strict=True):
            index = index * count + position[axis]
        return index

    def _position(self, index: int) -> Position:
        position = [0] * len(self._grid)
        for axis, count in zip(reversed(self._order), reversed(self._grid), strict=True):
            index, position[axis] = divmod(index, count)
        return tuple(position)
