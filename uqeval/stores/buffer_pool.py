"""Reuse the memory of maps that are no longer used, for the maps of the next item."""

from __future__ import annotations

import math
import weakref
from collections import deque

import numpy as np
from numpy.typing import DTypeLike

from uqeval.arrays import Array

#: Smaller blocks, in bytes, come from the allocator. At most this many free blocks of a size are
#: kept.
_SMALL, _MOST = 1 << 18, 8
#: Sizes up to this factor apart are those of the same kind of array. Blocks of a size that the last
#: `_LATELY` requests did not use are freed, too.
_SIMILAR, _LATELY = 4, 64


class BufferPool:
    """Arrays whose memory is reused after their last view is deleted.

    The system clears each page of fresh memory, which takes as long as computing the maps.
    """

    def __init__(self) -> None:
        # No lock: Python may delete an array at any point, even while this thread has the lock.
        self._free: dict[int, deque[memoryview]] = {}
        #: Requests until now, roughly if threads count at once, and the last one of each size.
        self._requests, self._last = 0, dict[int, int]()

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return an array as `numpy.empty` does."""
        kind, count = np.dtype(dtype), math.prod(shape)
        size = count * kind.itemsize
        if size < _SMALL:
            return np.empty(shape, kind)
        # Images of about the same size share blocks: sizes are rounded to three bits, and the next
        # size serves too, so that sizes on both sides of a bound do not drop each other's blocks.
        step = 1 << (size.bit_length() - 4)
        capacity = -(-size // step) * step
        block = next(filter(None, map(self._taken, (capacity, capacity + step))), None)
        if block is None:
            self._free_unused(capacity)
            block = memoryview(np.empty(capacity, np.uint8).data)
        self._requests += 1
        self._last[block.nbytes] = self._requests
        # All views have this array as their base, so it is deleted after the last of them.
        owner: Array = np.frombuffer(block, kind, count)
        free = self._free.setdefault(block.nbytes, deque(maxlen=_MOST))
        weakref.finalize(owner, free.append, block).atexit = False
        return owner.reshape(shape)

    def clear(self) -> None:
        """Return the free blocks to the system."""
        for blocks in list(self._free.values()):
            blocks.clear()

    def _free_unused(self, capacity: int) -> None:
        """Free the blocks of sizes near `capacity`: the images now have this size. Also those of
        sizes that were not requested of late.

        Blocks of much larger or smaller sizes stay: chunks and labels are requested in turn.
        """
        for size, blocks in list(self._free.items()):
            is_similar = size != capacity and max(size, capacity) <= _SIMILAR * min(size, capacity)
            if is_similar or self._requests - self._last[size] > _LATELY:
                blocks.clear()

    def _taken(self, capacity: int) -> memoryview | None:
        """Remove a free block from the pool and return it; None if there is none."""
        try:
            return self._free[capacity].pop()
        except (KeyError, IndexError):
            return None


#: Memory of the chunks of all arrays, compressed and decoded. A run clears it at its end.
CHUNKS = BufferPool()
