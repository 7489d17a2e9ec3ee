"""Zarr arrays, versions 2 and 3, sharded or not, in folders, zip files and at URLs.

Zarr reads a missing chunk as its fill value, and may read a damaged one as anything. Here each
chunk of a region is fetched, checked and decoded once, or the read fails with a message that names
the chunk.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Iterator
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from uqeval.arrays import Array
from uqeval.errors import StoreError
from uqeval.stores.array import Region, StoredArray
from uqeval.stores.bfloat16 import widened
from uqeval.stores.compression import DamagedChunk
from uqeval.stores.watch import combining_with, looked_up
from uqeval.stores.zarr.codecs import checked_crc32c
from uqeval.stores.zarr.metadata import Layout
from uqeval.stores.zarr.read_ahead import ReadAhead
from uqeval.stores.zarr.source import Buffer, Entry, Source, TooLong, array_place
from uqeval.stores.zarr.stored_files import FEW, ShardIndices, StoredFiles

Position = tuple[int, ...]

_MOST_CHUNKS = 50_000_000
#: The number of chunk files that may be missing per stored chunk file, without and with
#: `fill_missing`.
_LOST, _SPARSE = 100, 10_000
_MOST_MISSING = 1_000_000
_ABSENT = 2**64 - 1
#: Bytes of an uncompressed chunk that are read at once: a fifth less time than chunks of 100 MB.
_BAND = 6 * 2**20


class ZarrArray(StoredArray):
    """A Zarr array. If `fill_missing` is set, missing chunks read as the fill value."""

    def __init__(self, source: Source, name: str, layout: Layout) -> None:
        self.where = array_place(source, name)
        self.shape = layout.shape
        self.dtype = np.dtype(np.float32) if layout.coarse else layout.dtype
        self.chunks = layout.chunks
        self.attributes = layout.attributes
        self.dimension_names = layout.dimension_names
        self._layout = layout
        self._source = source
        self._name = name
        self.fill_missing, self.is_remote = False, not source.local
        self._lock = threading.Lock()
        self._stored_files = StoredFiles(source, name, layout)
        self._indices = ShardIndices(source) if layout.shards is not None else None

    @cached_property
    def _take(self) -> Callable[[Position], Buffer | None]:
        """Return the function that fetches a stored chunk; from a server, also the next chunks."""
        if self._source.local:
            return self._stored
        return ReadAhead(
            self._stored, self.chunk_bytes, self._layout.grid(self.chunks), self.axes
        ).take

    @cached_property
    def bands(self) -> tuple[int, ...]:
        """Return rows of a chunk of about `_BAND` bytes if its file has just the values, else the
        chunk. The values are used before they leave the cache of the processor.
        """
        codec = self._layout.codec
        readable = self._source.reads_boxes and codec.raw and not codec.steps
        if not readable or self._layout.shards or self._layout.coarse or "y" not in self.axes:
            return self.chunks
        along = self.axes.index("y")
        rows = max(1, min(self.chunks[along], _BAND * self.chunks[along] // self.chunk_bytes))
        return (*self.chunks[:along], rows, *self.chunks[along + 1 :])

    def read(self, region: Region) -> Array:
        """Return the values of `region`, C-contiguous and in native byte order; see
        `StoredArray.read`.

        Raises `StoreError` for a chunk that is damaged, cut short or (without `fill_missing`)
        absent.
        """
        bounds = [bound.indices(size)[:2] for bound, size in zip(region, self.shape, strict=True)]
        shape = tuple(max(0, stop - start) for start, stop in bounds)
        if 0 in shape:
            return np.empty(shape, self.dtype)
        grid = [
            range(start // chunk, -(-stop // chunk))
            for (start, stop), chunk in zip(bounds, self.chunks, strict=True)
        ]
        cached_chunk: Array | None = None
        for position in itertools.product(*grid):
            in_chunk, outside = [], []
            for index, size, (start, stop) in zip(position, self.chunks, bounds, strict=True):
                low, high = max(start, index * size), min(stop, (index + 1) * size)
                in_chunk.append(slice(low - index * size, high - index * size))
                outside.append(slice(low - start, high - start))
            tile = self._box(position, tuple(in_chunk))
            if tile.shape == shape:
                return np.require(tile, requirements=["C", "A"])
            if cached_chunk is None:
                cached_chunk = np.empty(shape, tile.dtype)
            cached_chunk[tuple(outside)] = tile
        assert cached_chunk is not None  # the region is not empty
        return cached_chunk

    def check_claims(self) -> None:
        """Raise `StoreError` for a shape of far more chunks than are stored.

        `missing` reports a few missing chunks; this check allocates nothing of the shape.
        """
        files = math.prod(self._layout.grid(self._layout.files))
        empty = 0 in self.shape and max(self.shape) > 2**31
        if not empty and files <= FEW:
            return
        # Without a list, the look-up checks it: the run may not read this array.
        stored = len(self._entries() or ()) if self._source.listable else files
        if empty or math.prod(self._layout.grid(self.chunks)) > _MOST_CHUNKS:
            raise self._stored_files.too_few(stored)
        self._stored_files.check_share(files, stored, _SPARSE if self.fill_missing else _LOST)

    def missing(self) -> list[Position] | None:
        """Return the grid positions of missing chunks, in units of `chunks`.

        None for a web server that cannot look up chunks; `read` refuses missing chunks anyway.
        Raises `StoreError` if a shard's index is damaged, or if so many chunks are missing
        that the metadata cannot belong to the data.
        """
        grid = self._layout.grid(self.chunks)
        if math.prod(grid) > _MOST_CHUNKS:
            raise StoreError(
                f"{self.where}: its metadata claim the shape {self.shape}, which is "
                f"{math.prod(grid):,} chunks of {self.chunks}. Write it again with larger chunks, "
                "or with the shape that the data have."
            )
        entries = self._entries()
        if entries is None:
            return None
        absent = np.ones(grid, np.bool_)
        for position in entries:
            if (shards := self._layout.shards) is None:
                absent[position] = False
                continue
            index = self._index(position)
            if index is not None:
                box = tuple(
                    slice(at * count, (at + 1) * count)
                    for at, count in zip(position, shards.per_shard, strict=True)
                )
                target = absent[box]
                present = (index != _ABSENT).any(axis=-1)
                target[...] = ~present[tuple(map(slice, target.shape))]
        count = int(np.count_nonzero(absent))
        if count > _MOST_MISSING:
            raise StoreError(
                f"{self.where} holds {absent.size - count:,} of {absent.size:,} chunks. Either "
                f"the writer did not finish, or the shape in the metadata is wrong."
            )
        return [tuple(map(int, position)) for position in np.argwhere(absent)]

    def positions(self, first: int | None = None) -> Iterator[Position]:
        """Return all grid positions of chunks, or those with `first` on the first axis."""
        return self._positions(self.chunks, 0, first)

    def _positions(self, unit: Position, axis: int, number: int | None) -> Iterator[Position]:
        """Return all grid positions of units, or those with a `number` on an axis."""
        grid = [range(count) for count in self._layout.grid(unit)]
        if number is not None:
            grid[axis] = range(number, number + 1)
        return itertools.product(*grid)

    def is_whole(self, position: Position) -> bool:
        """Return whether a chunk (no shards) exists and passes its checksum, or its decoder."""
        codec = self._layout.codec
        try:
            data = self._fetch(self._layout.key(position))
            if data is None:
                return False
            (checked_crc32c if codec.checksum_last else codec.decode)(data)
        except DamagedChunk:
            return False
        return True

    def wrong_lengths(self) -> list[str]:
        """Return the keys of stored chunks with an impossible length, each with the reason.

        Raises `StoreError` if a shard's index is damaged.
        """
        messages = []
        for position, entry in sorted((self._entries() or {}).items()):
            key, chunks = self._layout.key(position), [(0, entry.size)]
            if self._layout.shards is not None and entry.size:
                index = self._index(position)
                assert index is not None  # it is among the entries
                chunks = [(a, b) for a, b in index.reshape(-1, 2).tolist() if b != _ABSENT]
            for start, length in chunks:
                try:
                    if start + length > entry.size:
                        raise DamagedChunk(f"has {entry.size} bytes, expected {start + length}")
                    head = partial(self._source.get, self._path(key), start)
                    self._layout.codec.check_length(length, head if self._source.local else None)
                except DamagedChunk as damage:
                    messages.append(f"{key} {damage}")
                    break
        return messages

    def stored_bytes(self) -> int | None:
        """Return the stored bytes of all chunks; None for a web server that cannot look them up.

        Raises `StoreError` if listing fails.
        """
        entries = self._entries()
        return None if entries is None else sum(entry.size for entry in entries.values())

    def fingerprint(self) -> str | None:
        """Return SHA-256 of the metadata and of every chunk's key, size and stored checksum or
        ETag (at a web server without ETags, the time of change); of chunks in local files without
        checksums also 64 blocks of 4 KiB, spread over all chunks, or all bytes of small arrays.

        None for a web server that gives neither of a chunk. Raises `StoreError` if the chunks
        cannot be listed.
        """
        entries = self._entries()
        if entries is None:
            return None
        if not self._source.listable and not all(entry.tag for entry in entries.values()):
            return None
        return self._stored_files.digest(entries)

    def stamp(self, index: int | None) -> str | None:
        """Return a stamp of the metadata without the item count, and of every chunk of the item.

        None for web servers: many make ETags of a size and a time in seconds, which may miss a
        change.
        """
        if not self._source.listable:
            return None
        shape: list[int | None] = list(self.shape)
        place = 0
        if index is not None:
            along = self.axes.index("item")
            shape[along], place = None, index % self._layout.files[along]
        group = None if index is None else self.file_group(index)
        combined = looked_up(
            (id(self), group),
            lambda: combining_with(
                self._stamps_of_files(index), self._layout.form, self.axes, shape
            ),
        )
        return combined(place)

    def _stamps_of_files(self, index: int | None) -> list[str | None]:
        """Return the stamps of the files of an item, or of all items."""
        entries = self._entries() or {}
        stamps: list[str | None] = []
        for position in self._files_of(index):
            entry, key = entries.get(position), self._path(self._layout.key(position))
            stamps.append(self._source.stamp(key, entry) if entry else "not stored")
        return stamps

    def states(self, index: int | None) -> dict[str, str]:
        states_by_key: dict[str, str] = {}
        if self._source.local:
            for at in self._files_of(index):
                states_by_key |= self._source.states(self._path(self._layout.key(at)))
        return states_by_key

    def file_group(self, index: int) -> int:
        return index // self._layout.files[self.axes.index("item")]

    def recheck(self) -> None:
        self._source.recheck(self._name)

    def watch_with(self, group: str) -> None:
        """Let the other arrays of a group be rechecked with the files of this one: its values are
        read when the store is opened."""
        chunks = map(self._layout.key, self._files_of(None))
        for key in ("zarr.json", ".zarray", ".zattrs", *chunks):
            self._source.watch(self._path(key), group)

    def _files_of(self, index: int | None) -> Iterator[Position]:
        """Yield the grid positions of the files (chunks or shards) of an item, or of all items."""
        files = self._layout.files
        if index is None:
            return self._positions(files, 0, None)
        along = self.axes.index("item")
        return self._positions(files, along, index // files[along])

    def _path(self, key: str) -> str:
        return f"{self._name}/{key}" if self._name else key

    def _entries(self) -> dict[Position, Entry] | None:
        """Return the stored chunks with keys inside the grid; None for a web server that cannot
        look them up."""
        with self._lock:
            return self._stored_files.entries(_SPARSE if self.fill_missing else _LOST)

    def _box(self, position: Position, box: Region) -> Array:
        """Return a box of the chunk at a grid position; of an uncompressed file, only that is read.

        A file of another size than the chunk needs is read as a whole, and refused.
        """
        if self.bands != self.chunks:
            key = self._path(self._layout.key(position))
            values = self._source.box(key, self.chunks, self.dtype, box)
            if values is not None:
                return values
        return self._chunk(position)[box]

    def _chunk(self, position: Position) -> Array:
        """Return the whole chunk at a grid position, including what is beyond the array's edge."""
        shards = self._layout.shards
        key = self._layout.key(position)
        try:
            if shards is not None:
                key = f"{list(position)} in shard {self._layout.key(shards.holding(position))}"
            data = self._take(position)
            if data is None:
                return self._absent(key)
            values = self._layout.codec.decode(data)
            return widened(values) if self._layout.coarse else values
        except DamagedChunk as damage:
            raise StoreError(
                f"{self.where}: chunk {key} is damaged: {damage}. Copy it again from where it was "
                "written, or write it again."
            ) from damage
        except MemoryError as error:
            raise StoreError(
                f"{self.where}: chunk {key} does not fit into memory: {self.chunks} of "
                f"{self.dtype} in one chunk. Write the array with smaller chunks."
            ) from error

    def _fetch(self, key: str, start: int = 0, length: int | None = None) -> Buffer | None:
        stored = self._layout.codec.stored
        try:
            data = self._source.get(self._path(key), start, length, stored.most)
        except TooLong as error:
            raise DamagedChunk(f"too long: {error}") from None
        if data is not None and not len(data) and not length:
            raise DamagedChunk("cut short: 0 bytes")
        return data

    def _stored(self, position: Position) -> Buffer | None:
        """Return the stored bytes of a chunk; None if it is missing.

        A server is not asked again for a file that was missing when the store was opened: the run
        reads the data of that time.
        """
        shards = self._layout.shards
        shard = position if shards is None else shards.holding(position)
        if self.is_remote and self._stored_files.is_absent(shard):
            return None
        if shards is None:
            return self._fetch(self._layout.key(position))
        index = self._index(shard)
        if index is None:
            return None
        start, length = map(int, index[tuple(map(int.__mod__, position, shards.per_shard))])
        if start == length == _ABSENT:
            return None
        if start + length >= 2**63:
            raise DamagedChunk(f"the shard's index puts {length} bytes at byte {start}")
        data = self._fetch(self._layout.key(shard), start, length)
        if data is None or len(data) != length:
            raise DamagedChunk(f"cut short: {len(data or b'')} of {length} bytes in the shard")
        return data

    def _index(self, shard: Position) -> NDArray[np.uint64] | None:
        """Return offset and size of every chunk in a shard, or None if there is no such shard."""
        shards, key = self._layout.shards, self._layout.key(shard)
        assert shards is not None and self._indices is not None
        return self._indices.of(self._path(key), shards, f"{self.where}: shard {key}")

    def _absent(self, key: str) -> Array:
        if not self.fill_missing:
            raise StoreError(
                f"{self.where}: chunk {key} is not stored. Copy or write it again; if it was left "
                f"out because all its values are the fill value, add --missing-chunks fill."
            )
        return np.full(self.chunks, self._layout.fill_value, self.dtype)
