"""Zarr arrays to test with, and ways to damage them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import zarr
from command import refused
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, ZstdCodec

from uqeval.errors import StoreError
from uqeval.stores.zarr.array import ZarrArray
from uqeval.stores.zarr.group import open_zarr

SHAPE, CHUNKS = (3, 5, 7), (2, 2, 4)
EVERYTHING = (slice(None),) * 3

V3 = {
    "raw": [],
    "raw+crc32c": [Crc32cCodec()],
    "zstd": [ZstdCodec(level=1)],
    "zstd-checksum": [ZstdCodec(level=1, checksum=True)],
    "gzip": [GzipCodec(level=1)],
    "blosc": [BloscCodec(cname="lz4", shuffle="shuffle")],
    "blosc+crc32c": [BloscCodec(cname="zstd", shuffle="bitshuffle"), Crc32cCodec()],
    "zstd+crc32c": [ZstdCodec(level=1), Crc32cCodec()],
    "crc32c+zstd": [Crc32cCodec(), ZstdCodec(level=1)],
}
V2 = {
    "raw": None,
    "zstd": numcodecs.Zstd(),
    "gzip": numcodecs.GZip(),
    "zlib": numcodecs.Zlib(),
    "lz4": numcodecs.LZ4(),
    "bz2": numcodecs.BZ2(),
    "blosc": numcodecs.Blosc(),
}


def values(dtype: str = "f4", shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    # No zeros: zarr leaves out chunks that hold nothing else.
    return (np.arange(np.prod(shape)).reshape(shape) + 1).astype(dtype)


def write(
    path: Path, data: np.ndarray | None = None, *, kind: str = "zstd", form: int = 3, **options: Any
) -> np.ndarray:
    data = values() if data is None else data
    options = {"chunks": CHUNKS, "compressors": (V3 if form == 3 else V2)[kind]} | options
    array = zarr.create_array(
        str(path), shape=data.shape, dtype=data.dtype, zarr_format=form, **options
    )
    array[...] = data
    return data


def opened(path: Path | str, *, fill_missing: bool = False) -> ZarrArray:
    array = open_zarr(str(path))
    assert isinstance(array, ZarrArray)
    array.fill_missing = fill_missing
    return array


def zipped(folder: Path, *, deflated: bool = False, top: str = "") -> Path:
    path = folder.with_suffix(".zip")
    method = zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", method) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, f"{top}{file.relative_to(folder).as_posix()}")
    return path


def cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(bytes(data))


def read_refused(array: ZarrArray, *words: str, region: Any = EVERYTHING) -> str:
    return refused(lambda: array.read(region), *words, error=StoreError)


def change(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))
