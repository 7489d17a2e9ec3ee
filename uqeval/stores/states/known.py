"""States of items that were counted before, as a run reuses them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from uqeval.stores.states.entries import DAMAGED
from uqeval.stores.states.packed_items import PackedItems


class Block(NamedTuple):
    """Where the packed states of some items in a row lie: `items` from `first` on."""

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
        """Return whether each of so many items is in exactly one block, and no other item is."""
        end = 0
        for block in self._blocks:
            if block.first != end:
                return False
            end += block.items
        return end == items


class Layer(NamedTuple):
    """States in one file; `places` says where an item was in it, None: where it is now."""

    blocks: Blocks
    places: Mapping[int, int] | None = None

    def find(self, item: int) -> tuple[Block, int] | None:
        """Return the block of an item, and which of its items it is."""
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
    """States of one tally by item, in the first of the `layers` that has the item.

    They are read on request, by any thread. `most`: bytes of a state at most. Raises `KeyError`
    for an item whose states are damaged, as for one that there is not.
    """

    def __init__(self, layers: Sequence[Layer], most: int) -> None:
        self._layers, self._most = layers, most

    def _find(self, item: int) -> tuple[Block, int]:
        for layer in self._layers:
            if (found := layer.find(item)) is not None:
                return found
        raise KeyError(item)

    def __getitem__(self, item: int) -> bytes:
        return self.of(range(item, item + 1))[0]

    def of(self, items: range) -> list[bytes]:
        """Return the states of some items; each block is read once."""
        states: list[bytes] = []
        open_block, block_states = None, list[bytes]()
        for item in items:
            block, at = self._find(item)
            if block is not open_block:
                try:
                    block_states = PackedItems(block.read(), block.items).states(self._most)
                except DAMAGED as error:
                    raise KeyError(item) from error
                open_block = block
            states.append(block_states[at])
        return states

    def packed(self, items: range) -> PackedItems | None:
        """Return the states of some items as they are packed; None if not in one block alone."""
        block, _ = self._find(items[0])
        if block.items != len(items):
            return None
        if any(self._find(item) != (block, at) for at, item in enumerate(items)):
            return None
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
