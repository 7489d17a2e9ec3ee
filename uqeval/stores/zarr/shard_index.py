"""The offsets of chunks in a shard, from the index at its end or beginning."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from uqeval.errors import StoreError
from uqeval.stores.zarr.codecs import checked_crc32c
from uqeval.stores.zarr.decompress import DamagedChunk
from uqeval.stores.zarr.source import Source

if TYPE_CHECKING:
    from uqeval.stores.zarr.metadata import Shards

#: The bytes of indices in memory: consecutive reads of an item are close to each other.
_KEPT = 1 << 26


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
