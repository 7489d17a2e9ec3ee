"""The chunks or shards of an array that are stored: listed, or looked up by their keys; the chunks
in a shard by its index, at its end or beginning.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from uqeval.errors import StoreError
from uqeval.stores.compression import DamagedChunk
from uqeval.stores.zarr.codecs import checked_crc32c
from uqeval.stores.zarr.source import Entry, Source, array_place

if TYPE_CHECKING:
    from uqeval.stores.zarr.metadata import Layout, Shards

Position = tuple[int, ...]

#: The number of files that may always be missing; also the number that are looked up together.
FEW = 4096
#: Bytes and number of the blocks of a fingerprint, where files have no checksums.
_BLOCK, _BLOCKS = 4096, 64
#: The bytes of indices in memory: consecutive reads of an item are close to each other.
_KEPT = 1 << 26


class StoredFiles:
    """The stored chunks or shards of an array. Not thread-safe."""

    def __init__(self, source: Source, name: str, layout: Layout) -> None:
        self._source, self._name, self._layout = source, name, layout
        self._known: dict[Position, Entry] | None = None

    def entries(self, lost: int) -> dict[Position, Entry] | None:
        """Return the stored files with keys inside the grid, listed or looked up once.

        None for a web server that cannot look them up. `lost`: how many may be missing for each
        that is stored; only looking up checks it. Raises `StoreError`.
        """
        if self._known is None and self._source.listable:
            self._known = self._listed()
        elif self._known is None and self._source.finds:
            self._known = self._looked_up(lost)
        return self._known

    def is_absent(self, position: Position) -> bool:
        """Return whether a file was missing when the files were listed or looked up; false if they
        were not."""
        return self._known is not None and position not in self._known

    def digest(self, entries: Mapping[Position, Entry]) -> str:
        """Return the fingerprint of an array with these files, as `ZarrArray.fingerprint` does."""
        layout = self._layout
        checked = layout.codec.checksum_last
        if layout.shards:
            checked = layout.shards.index_at_end and layout.shards.index_checked
        digest, files = hashlib.sha256(layout.document), sorted(entries.items())
        for position, entry in files:
            tag = entry.tag
            if checked and not tag:
                tag = self._read(position, -4, 4).hex()
            digest.update(f"\n{layout.key(position)} {entry.size} {tag}".encode())
        if self._source.local and (layout.shards or not checked):  # an index has sizes only
            for block in self._blocks([own for own in files if not own[1].tag]):
                digest.update(block)
        return digest.hexdigest()

    def _blocks(self, files: Sequence[tuple[Position, Entry]]) -> Iterator[bytes]:
        """Yield blocks of files, spread evenly over all their bytes as if they were one file."""
        ends = np.cumsum([0, *(entry.size for _, entry in files)], dtype=np.int64)
        total = int(ends[-1])
        block = _BLOCK if total > _BLOCK * _BLOCKS else total  # all bytes of small ones
        for start in np.unique(np.linspace(0, total - block, _BLOCKS, dtype=np.int64)):
            k = int(np.searchsorted(ends, start, side="right")) - 1
            while k < len(files) and ends[k] < start + block:
                first = max(0, int(start - ends[k]))
                yield self._read(files[k][0], first, int(start + block - ends[k]) - first)
                k += 1

    def _read(self, position: Position, start: int, length: int) -> bytes:
        return bytes(self._source.get(self._path(position), start, length) or b"")

    def _path(self, position: Position) -> str:
        key = self._layout.key(position)
        return f"{self._name}/{key}" if self._name else key

    def _listed(self) -> dict[Position, Entry]:
        listed = {}
        for key, entry in self._source.entries(self._name).items():
            position = self._layout.position(key)
            if position is not None and all(map(int.__lt__, position, self._grid)):
                listed[position] = entry
        return listed

    def _looked_up(self, lost: int) -> dict[Position, Entry]:
        """Look up each file of the grid. Raises `StoreError` as soon as too many are missing."""
        found: dict[Position, Entry] = {}
        positions, looked = itertools.product(*map(range, self._grid)), 0
        while batch := list(itertools.islice(positions, FEW)):
            entries = self._source.find([*map(self._path, batch)])
            found |= {at: e for at, e in zip(batch, entries, strict=True) if e is not None}
            looked += len(batch)
            self.check_share(looked, len(found), lost)
        return found

    @cached_property
    def _grid(self) -> Position:
        return self._layout.grid(self._layout.files)

    def check_share(self, files: int, stored: int, lost: int) -> None:
        """Raise `StoreError` if too few of so many files are stored."""
        if files > max(FEW, lost * (stored + 1)):
            raise self.too_few(stored)

    def too_few(self, stored: int) -> StoreError:
        """Return the error for a shape that needs far more files than are stored."""
        return StoreError(
            f"{array_place(self._source, self._name)}: its metadata claim the shape "
            f"{self._layout.shape}, which needs {math.prod(self._grid):,} chunk files of "
            f"{self._layout.files}, and {stored:,} are stored. Write it again with the shape that "
            "the data have, or with larger chunks."
        )


class ShardIndices:
    """The indices of an array's shards, of which the last stay in memory; used by several
    threads.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._known: dict[str, NDArray[np.uint64] | None] = {}

    def of(self, key: str, shards: Shards, where: str) -> NDArray[np.uint64] | None:
        """Return offset and size of each chunk in the shard at `key`; None if there is no such
        shard.

        Raises `StoreError`, which begins with `where`.
        """
        try:
            return self._known[key]
        except KeyError:
            pass
        index = self._read(key, shards, where)
        if (len(self._known) + 1) * shards.index_bytes > _KEPT:
            self._known.clear()
        self._known[key] = index
        return index

    def _read(self, key: str, shards: Shards, where: str) -> NDArray[np.uint64] | None:
        size = shards.index_bytes
        data = self._source.get(key, -size if shards.index_at_end else 0, size)
        if data is None:
            return None
        try:
            if len(data) != size:
                raise DamagedChunk(f"cut short: {len(data)} of {size} bytes")
            body = checked_crc32c(data) if shards.index_checked else data
        except DamagedChunk as damage:
            raise StoreError(
                f"{where} is damaged: its index: {damage}. Copy it again from where it was "
                "written, or write it again."
            ) from damage
        index = np.frombuffer(body, f"{shards.index_endian}u8").astype(np.uint64)
        return index.reshape(*shards.per_shard, 2)
