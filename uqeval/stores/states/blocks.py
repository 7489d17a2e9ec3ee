"""Blocks of items, which are counted and saved together: their states are one entry of the zip.

Small states compress better together, and an entry of a zip takes more bytes than a small state.
Blocks do not depend on chunks, workers or earlier runs, so the same items give the same states
file.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, overload

from uqeval.stores.compression import compressed, decompressed
from uqeval.stores.states.entries import DAMAGED

#: Largest unpacked size in bytes of an entry with several items; a writer starts a new entry before
#: that.
MOST_TOGETHER = 32 * 10**6


@dataclass(frozen=True)
class PackedItems:
    """The states of `items` consecutive items, compressed. `states` returns the bytes of each."""

    data: bytes
    items: int

    @classmethod
    def of(cls, states: Sequence[bytes]) -> PackedItems:
        """Compress states; equal states give equal bytes.

        Before several states, their lengths are stored, uint32 [item].
        """
        if len(states) == 1:
            return cls(compressed(states[0]), 1)
        lengths = struct.pack(f"<{len(states)}I", *map(len, states))
        return cls(compressed(b"".join((lengths, *states))), len(states))

    @classmethod
    def joined(cls, parts: Sequence[PackedItems]) -> PackedItems:
        """Return the items of several, one after another. Raises `ValueError` for damaged bytes."""
        if len(parts) == 1:
            return parts[0]
        return cls.of([state for part in parts for state in part.states(MOST_TOGETHER)])

    def states(self, most: int) -> list[bytes]:
        """Return the state of each item, of at most `most` bytes.

        Raises `ValueError` for damaged bytes, before it allocates more memory than that.
        """
        if self.items == 1:
            return [decompressed(self.data, most, exactly=False)]
        head, limit = 4 * self.items, max(MOST_TOGETHER, most)
        text = decompressed(self.data, head + limit, exactly=False)
        if len(text) < head:
            raise ValueError(f"{self.items} packed states that are cut short")
        lengths = struct.unpack_from(f"<{self.items}I", text)
        if max(lengths) > most:
            raise ValueError(f"a state of {max(lengths)} bytes, where {most} is the most")
        if head + sum(lengths) != len(text):
            raise ValueError(f"{self.items} states of {sum(lengths)} bytes in {len(text) - head}")
        states, at = [], head
        for length in lengths:
            states.append(text[at : at + length])
            at += length
        return states


@dataclass
class ItemStates(Sequence[bytes]):
    """The states of the items of a run in memory, in their order, packed until they are read.

    `most`: the largest number of bytes of one state.
    """

    most: int
    blocks: list[PackedItems] = field(default_factory=list)
    #: The block of the last item that was read, and its states: items are mostly read in order.
    _unpacked: tuple[PackedItems, list[bytes]] | None = None

    def __len__(self) -> int:
        return sum(block.items for block in self.blocks)

    def __iter__(self) -> Iterator[bytes]:
        for block in self.blocks:
            yield from block.states(self.most)

    @overload
    def __getitem__(self, at: int) -> bytes: ...
    @overload
    def __getitem__(self, at: slice) -> list[bytes]: ...
    def __getitem__(self, at: int | slice) -> bytes | list[bytes]:
        if isinstance(at, slice):
            return list(self)[at]
        if at < 0:
            at += len(self)
        for block in self.blocks if at >= 0 else ():
            if at < block.items:
                return self._states_of(block)[at]
            at -= block.items
        raise IndexError("there is no such item")

    def _states_of(self, block: PackedItems) -> list[bytes]:
        last = self._unpacked  # another thread may replace it
        if last is None or last[0] is not block:
            last = self._unpacked = block, block.states(self.most)
        return last[1]


class Block(NamedTuple):
    """The place of the packed states of consecutive items: `items` items from `first` on."""

    first: int
    items: int
    read: Callable[[], bytes]


class Blocks:
    """The blocks of one tally, in any order; no item is in two of them."""

    def __init__(self, blocks: Sequence[Block] = ()) -> None:
        self._blocks = sorted(blocks, key=lambda block: block.first)
        self._firsts = [block.first for block in self._blocks]

    def add(self, block: Block) -> None:
        """Add a block of other items."""
        at = bisect_right(self._firsts, block.first)
        self._firsts.insert(at, block.first)
        self._blocks.insert(at, block)

    def find(self, item: int) -> Block | None:
        """Return the block with an item."""
        at = bisect_right(self._firsts, item) - 1
        if at < 0 or item >= self._firsts[at] + self._blocks[at].items:
            return None
        return self._blocks[at]

    def __iter__(self) -> Iterator[Block]:
        return iter(self._blocks)

    def cover(self, items: int) -> bool:
        """Return whether the blocks have each of `items` items exactly once, and no other item."""
        end = 0
        for block in self._blocks:
            if block.first != end:
                return False
            end += block.items
        return end == items


class Layer(NamedTuple):
    """States in one file. `places`: the index in this file of each item; None if the indices are
    equal.
    """

    blocks: Blocks
    places: Mapping[int, int] | None = None

    def find(self, item: int) -> tuple[Block, int] | None:
        """Return the block of an item, and the item's index in the block."""
        place = item if self.places is None else self.places.get(item)
        block = None if place is None else self.blocks.find(place)
        return None if block is None or place is None else (block, place - block.first)

    def items(self) -> Iterator[int]:
        if self.places is not None:
            yield from (item for item in self.places if self.find(item))
        else:
            for block in self.blocks:
                yield from range(block.first, block.first + block.items)


class KnownStates(Mapping[int, bytes]):
    """States of one tally by item, in one of the `layers` that have the item.

    They are read on request, by any thread. `most`: the largest number of bytes of a state. Raises
    `KeyError` for an item without states, and for damaged states.
    """

    def __init__(self, layers: Sequence[Layer], most: int) -> None:
        self._layers, self._most = layers, most

    def _find(self, item: int) -> tuple[Block, int]:
        for layer in self._layers:
            if (found := layer.find(item)) is not None:
                return found
        raise KeyError(item)

    def _runs(self, items: range) -> Iterator[tuple[Block, range]]:
        """Yield the blocks of some items in their order, and the places in the block."""
        # Whether the items of a block in the file are consecutive in this run.
        in_row = all(layer.places is None for layer in self._layers)
        item = items.start
        while item in items:
            block, at = self._find(item)
            end = min(block.items, at + items.stop - item) if in_row else at + 1
            yield block, range(at, end)
            item += end - at

    def __getitem__(self, item: int) -> bytes:
        return self.of(range(item, item + 1))[0]

    def of(self, items: range) -> list[bytes]:
        """Return the states of some items; each block is read once."""
        states: list[bytes] = []
        open_block, block_states = None, list[bytes]()
        for block, places in self._runs(items):
            if block is not open_block:
                try:
                    block_states = PackedItems(block.read(), block.items).states(self._most)
                except DAMAGED as error:
                    raise KeyError(items[len(states)]) from error
                open_block = block
            states += block_states[places.start : places.stop]
        return states

    def has(self, items: range) -> bool:
        """Return whether the states of all of these items are known."""
        try:
            for _ in self._runs(items):
                pass
        except KeyError:
            return False
        return True

    def packed(self, items: range) -> PackedItems | None:
        """Return the packed states of some items; None if they are not one block."""
        block, _ = self._find(items[0])
        if block.items != len(items):
            return None
        end = 0
        for other, places in self._runs(items):
            if other is not block or places.start != end:
                return None
            end = places.stop
        try:
            return PackedItems(block.read(), block.items)
        except DAMAGED as error:
            raise KeyError(block.first) from error

    def __contains__(self, item: object) -> bool:
        return isinstance(item, int) and any(layer.find(item) for layer in self._layers)

    def __iter__(self) -> Iterator[int]:
        return iter(dict.fromkeys(item for layer in self._layers for item in layer.items()))

    def __len__(self) -> int:
        return sum(1 for _ in self)


#: The largest number of probabilities and of items in a block; a larger item is its own block.
_MOST_NUMBERS, _MOST_ITEMS = 1 << 20, 256


class ItemBlocks:
    """Blocks of consecutive items. `sizes`: height and width of each; `classes`: their number."""

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

    def stops(self) -> list[int]:
        """Return where the blocks end."""
        return [*self._firsts[1:], self.items]

    def split(self, items: range) -> Iterator[range]:
        """Yield consecutive items, block by block."""
        start = items.start
        while start < items.stop:
            stop = min(self.of(start).stop, items.stop)
            yield range(start, stop)
            start = stop
