"""Zarr arrays written and read by the Zarr library alone, to compare our reader and writer with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from uqeval.arrays import Array


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
