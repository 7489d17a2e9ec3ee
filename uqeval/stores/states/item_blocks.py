"""Which items in a row are counted and saved together: small ones, by their sizes alone.

The blocks do not depend on chunks, workers or earlier runs, so that the same items give the same
file of states.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

#: Probabilities of a block, and its items, at most; a larger item is a block of its own.
_MOST_NUMBERS, _MOST_ITEMS = 1 << 20, 256


class ItemBlocks:
    """Blocks of consecutive items with `sizes` (height, width) and so many `classes`."""

    def __init__(self, sizes: Iterable[tuple[int, int]], classes: int) -> None:
        self._firsts: list[int] = []
        self.items = numbers = 0
        for height, width in sizes:
            new_numbers = height * width * max(classes, 1)
            in_block = self.items - self._firsts[-1] if self._firsts else _MOST_ITEMS
            if in_block == _MOST_ITEMS or numbers + new_numbers > _MOST_NUMBERS:
                self._firsts.append(self.items)
                numbers = 0
            numbers += new_numbers
            self.items += 1

    def of(self, item: int) -> range:
        """Return the items of the block that has an item."""
        at = bisect_right(self._firsts, item)
        end = self._firsts[at] if at < len(self._firsts) else self.items
        return range(self._firsts[at - 1], end)

    def split(self, items: range) -> Iterator[range]:
        """Yield some items in a row, block by block."""
        start = items.start
        while start < items.stop:
            stop = min(self.of(start).stop, items.stop)
            yield range(start, stop)
            start = stop
