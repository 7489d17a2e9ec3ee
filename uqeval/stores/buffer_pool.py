"""Memory of maps that are no longer in use, for the maps of the next item."""

from __future__ import annotations

import math
import weakref
from collections import deque
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

#: Bytes below which a block is left to the allocator; most free blocks of one size that are kept.
_SMALL, _MOST = 1 << 18, 8


class BufferPool:
    """Arrays whose memory is taken again once the last view of them is gone.

    Fresh memory comes from the system page by page, each of which it clears: as much work as to
    make the maps themselves.
    """

    def __init__(self) -> None:
        # No lock: the end of an array may be noticed at any place, also where one is held.
        self._free: dict[int, deque[memoryview]] = {}

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
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
            # Images of another size have come: what is free for those before is let go.
            for size_of_others, buffers in list(self._free.items()):
                if size_of_others != capacity:
                    buffers.clear()
            block = memoryview(np.empty(capacity, np.uint8).data)
        # Every view has this array as its base, so that it goes with the last of them.
        owner: NDArray[Any] = np.frombuffer(block, kind, count)
        free = self._free.setdefault(block.nbytes, deque(maxlen=_MOST))
        weakref.finalize(owner, free.append, block).atexit = False
        return owner.reshape(shape)

    def clear(self) -> None:
        """Give the free blocks back to the system."""
        for blocks in list(self._free.values()):
            blocks.clear()

    def _taken(self, capacity: int) -> memoryview | None:
        """Return a free block, which is free no more."""
        try:
            return self._free[capacity].pop()
        except (KeyError, IndexError):
            return None


#: Memory of chunks of all arrays, as they are stored and decoded; a run clears it at its end.
CHUNKS = BufferPool()
