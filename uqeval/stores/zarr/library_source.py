"""The stores of arrays of the Zarr library, which may be anywhere: in memory, behind fsspec.

Zarr arrays written and read by the library alone, to compare our reader and writer with.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from uqeval.arrays import Array
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


def write_array(
    path: Path, data: Array, chunks: tuple[int, ...], codec: str, form: int = 3
) -> None:
    """Write an array in Zarr format `form` (2 or 3); `codec`: a name that `_compressors` has."""
    import zarr

    array = zarr.create_array(
        str(path), shape=data.shape, dtype=data.dtype, chunks=chunks,
        compressors=_compressors(codec, form), zarr_format=form, fill_value=0,
    )  # fmt: skip
    array[...] = data


def read_array(path: Path, name: str) -> Array:
    """Return an array of a group."""
    import zarr

    return np.asarray(zarr.open_group(str(path), mode="r")[name][...])


def _compressors(codec: str, form: int) -> Any:
    import numcodecs
    from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, ZstdCodec

    third: dict[str, Callable[[], Any]] = {
        "none": list, "zstd": lambda: [ZstdCodec(level=1)], "gzip": lambda: [GzipCodec(level=1)],
        "blosc": lambda: [BloscCodec(cname="lz4", shuffle="shuffle")],
        "crc32c": lambda: [ZstdCodec(level=1), Crc32cCodec()],
    }  # fmt: skip
    second: dict[str, Callable[[], Any]] = {
        "none": lambda: None, "zlib": numcodecs.Zlib, "lz4": numcodecs.LZ4,
        "blosc": numcodecs.Blosc,
    }  # fmt: skip
    return (third if form == 3 else second)[codec]()
