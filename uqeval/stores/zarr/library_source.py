"""The stores of arrays of the Zarr library, which may be anywhere: in memory, behind fsspec."""

from __future__ import annotations

from typing import Any

from uqeval.disk.files import MOST_BYTES
from uqeval.stores.zarr.array import ZarrArray
from uqeval.stores.zarr.group import open_zarr
from uqeval.stores.zarr.source import Buffer, Entry, Source


class LibrarySource(Source):
    """A store of the Zarr library. Raises its errors."""

    def __init__(self, store: Any) -> None:
        self.path, self._store = str(store), store
        self.listable = bool(store.supports_listing)

    def get(
        self, key: str, start: int = 0, length: int | None = None, most: int = MOST_BYTES
    ) -> Buffer | None:
        from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest
        from zarr.core.buffer import default_buffer_prototype
        from zarr.core.sync import sync

        request: Any = OffsetByteRequest(start) if start else None
        if start < 0:
            request = SuffixByteRequest(-start)
        elif length is not None:
            request = RangeByteRequest(start, start + length)
        data = sync(self._store.get(key, default_buffer_prototype(), request))
        return None if data is None else bytes(data.to_bytes())[:length]

    def children(self, prefix: str) -> list[str]:
        raise NotImplementedError

    def entries(self, prefix: str) -> dict[str, Entry]:
        """Return every object below `prefix`, without its size."""
        from zarr.core.sync import sync

        async def listed() -> list[str]:
            return [key async for key in self._store.list_prefix(prefix)]

        start = f"{prefix}/" if prefix else ""
        keys = sync(listed())
        return {key[len(start) :]: Entry(0) for key in keys if key.startswith(start)}

    def stamp(self, key: str, entry: Entry) -> str | None:
        return None


def count_missing_chunks(values: Any) -> tuple[int, int]:
    """Return the number of missing chunks of an array of the Zarr library, also in its shards, and
    of all chunks.

    Raises `ValueError` for a store that cannot list its chunks, or that has another array by now,
    `StoreError` for an array that `ZarrArray` cannot read, and the errors of the store.
    """
    array = open_zarr(LibrarySource(values.store), values.path)
    if not isinstance(array, ZarrArray) or array.shape != values.shape:
        raise ValueError("the store has another array")
    missing = array.missing()
    if missing is None:
        raise ValueError("the store cannot list its chunks")
    return len(missing), array.chunk_count
