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


class BufferPool:
    """Arrays whose memory is reused after their last view is deleted.

    The system clears each page of fresh memory, which takes as long as computing the maps.
    """

    def __init__(self) -> None:
        # No lock: Python may delete an array at any point, even while this thread has the lock.
        self._free: dict[int, deque[memoryview]] = {}

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
            # The images now have another size: free the blocks of the size before.
            for size_of_others, buffers in list(self._free.items()):
                if size_of_others != capacity:
                    buffers.clear()
            block = memoryview(np.empty(capacity, np.uint8).data)
        # All views have this array as their base, so it is deleted after the last of them.
        owner: Array = np.frombuffer(block, kind, count)
        free = self._free.setdefault(block.nbytes, deque(maxlen=_MOST))
        weakref.finalize(owner, free.append, block).atexit = False
        return owner.reshape(shape)

    def clear(self) -> None:
        """Return the free blocks to the system."""
        for blocks in list(self._free.values()):
            blocks.clear()

    def _taken(self, capacity: int) -> memoryview | None:
        """Remove a free block from the pool and return it; None if there is none."""
        try:
            return self._free[capacity].pop()
        except (KeyError, IndexError):
            return None


#: Memory of the chunks of all arrays, compressed and decoded. A run clears it at its end.
CHUNKS = BufferPool()
