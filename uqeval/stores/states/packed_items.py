"""The states of one item, or of several in a row, as one compressed entry of a states file.

Small states compress better together, and an entry of a zip costs more than a small state.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import overload

#: Bytes to which the states of several items may unpack: a writer begins a new entry before.
MOST_TOGETHER = 32 * 10**6


@dataclass(frozen=True)
class PackedItems:
    """The states of `items` items in a row, compressed. `states` has the bytes of each."""

    data: bytes
    items: int

    @classmethod
    def of(cls, states: Sequence[bytes]) -> PackedItems:
        """Compress states; the same states give the same bytes.

        One state is compressed alone; several follow their lengths, uint32 [item].
        """
        if len(states) == 1:
            return cls(zlib.compress(states[0], 1), 1)
        lengths = struct.pack(f"<{len(states)}I", *map(len, states))
        return cls(zlib.compress(b"".join((lengths, *states)), 1), len(states))

    @classmethod
    def joined(cls, parts: Sequence[PackedItems]) -> PackedItems:
        """Return the items of several, one after another. Raises `ValueError` for damaged bytes."""
        if len(parts) == 1:
            return parts[0]
        return cls.of([state for part in parts for state in part.states(MOST_TOGETHER)])

    def states(self, most: int) -> list[bytes]:
        """Return the state of each item, of `most` bytes at most.

        Raises `ValueError` for damaged bytes, before it takes more memory than they may claim.
        """
        if self.items == 1:
            return [_decompressed(self.data, most, exactly=False)]
        head = 4 * self.items
        decompressor = zlib.decompressobj()
        try:
            text = decompressor.decompress(self.data, head)
        except zlib.error as error:
            raise ValueError(f"no packed states: {error}") from None
        if len(text) < head:
            raise ValueError(f"{self.items} packed states that are cut short")
        lengths = struct.unpack(f"<{self.items}I", text)
        if max(lengths) > most:
            raise ValueError(f"a state of {max(lengths)} bytes, where {most} is the most")
        total = head + sum(lengths)
        if total > max(MOST_TOGETHER, most) + head:
            raise ValueError(f"{self.items} states of {total} bytes together")
        text = _decompressed(self.data, total, exactly=True)
        states, at = [], head
        for length in lengths:
            states.append(text[at : at + length])
            at += length
        return states


def _decompressed(data: bytes, most: int, exactly: bool) -> bytes:
    """Return decompressed bytes. Raises `ValueError` where there are others, or more than
    `most`.
    """
    decompressor = zlib.decompressobj()
    try:
        text = decompressor.decompress(data, most + 1)
    except zlib.error as error:
        raise ValueError(f"no packed state: {error}") from None
    if len(text) > most:
        raise ValueError(f"more than the {most} bytes that it can have")
    if not decompressor.eof or (exactly and len(text) != most):
        raise ValueError("it is cut short")
    return text


@dataclass
class ItemStates(Sequence[bytes]):
    """The states of the items of a run in memory, in their order, packed until they are read.

    `most`: bytes that the state of one item has at most.
    """

    most: int
    blocks: list[PackedItems] = field(default_factory=list)

    @classmethod
    def of(cls, states: Sequence[bytes]) -> ItemStates:
        """Return states that are given item by item."""
        blocks = [PackedItems.of([state]) for state in states]
        return cls(max(map(len, states), default=0), blocks)

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
                return block.states(self.most)[at]
            at -= block.items
        raise IndexError("there is no such item")
