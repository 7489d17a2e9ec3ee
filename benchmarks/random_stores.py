"""Write the arrays of small data in other formats: the same data for `uqeval`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ZstdCodec

from benchmarks.random_settings import Scene

Arrays = Mapping[str, Any]

#: The axes that a Zarr array may name, by its kind and rank.
_AXES = {
    ("probs", 5): ("item", "sample", "class", "y", "x"),
    ("logits", 5): ("item", "sample", "class", "y", "x"),
    ("probs", 4): ("item", "class", "y", "x"),
    ("labels", 3): ("item", "y", "x"),
    ("mean", 4): ("item", "sample", "y", "x"),
    ("mean", 3): ("item", "y", "x"),
}


def arrays_of(path: str) -> dict[str, Any]:
    """Return the arrays of an .npz file by name."""
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def _chunks(scene: Scene, shape: tuple[int, ...]) -> tuple[int, ...]:
    if scene.often(0.2):
        return (1, *shape[1:])
    return tuple(scene.one(1, n, scene.choose.randint(1, n)) for n in shape)


def _named(group: Any, arrays: Arrays) -> Arrays:
    """Write the names of the items as an attribute; return the other arrays."""
    if "names" in arrays:
        group.attrs["names"] = arrays["names"].tolist()
    return {name: values for name, values in arrays.items() if name != "names"}


def _write(group: Any, name: str, values: Any, *, dtype: Any = None, **options: Any) -> None:
    """Write an array with every chunk."""
    array = group.create_array(
        name, shape=values.shape, dtype=dtype or values.dtype,
        config={"write_empty_chunks": True}, **options,
    )  # fmt: skip
    array[...] = values


def zarr3(scene: Scene, arrays: Arrays, path: Path) -> Any:
    """Write a group of version 3: any chunks, shards, codecs, byte order and order of axes."""
    group = zarr.create_group(str(path), zarr_format=3)
    arrays = _named(group, arrays)
    for name, values in arrays.items():
        names = _AXES.get((name, values.ndim))
        order = list(range(values.ndim))
        if names and scene.often(0.5):
            scene.choose.shuffle(order)
        values = values.transpose(order)
        chunks = _chunks(scene, values.shape)
        shards = None
        if scene.often(0.25):
            shards = tuple(c * scene.one(1, 2, 3) for c in chunks)
        compressors = scene.one(
            None, ZstdCodec(level=1), ZstdCodec(level=1, checksum=True), GzipCodec(level=1),
            BloscCodec(cname="lz4"), BloscCodec(cname="zstd", shuffle="bitshuffle"),
            [ZstdCodec(), Crc32cCodec()],
        )  # fmt: skip
        _write(
            group, name, values, chunks=chunks, shards=shards,
            compressors=compressors, serializer=BytesCodec(endian=scene.one("little", "big")),
            dimension_names=[names[k] for k in order] if names else None,
        )  # fmt: skip
    return str(path)


def zarr2(scene: Scene, arrays: Arrays, path: Path) -> Any:
    """Write a group of version 2: any chunks, compressor, order and byte order."""
    import numcodecs

    group = zarr.create_group(str(path), zarr_format=2)
    arrays = _named(group, arrays)
    for name, values in arrays.items():
        compressors = scene.one(
            None, numcodecs.Zstd(1), numcodecs.LZ4(), numcodecs.Zlib(1), numcodecs.Blosc("lz4")
        )
        dtype = values.dtype.newbyteorder(scene.one("<", ">"))
        _write(
            group, name, values, dtype=dtype, chunks=_chunks(scene, values.shape),
            compressors=compressors, order=scene.one("C", "F"),
            chunk_key_encoding={"name": "v2", "separator": scene.one(".", "/")},
        )  # fmt: skip
    return str(path)


def zarr_zip(scene: Scene, arrays: Arrays, path: Path) -> Any:
    """Write a group of version 3 in a zip."""
    file = path.with_suffix(".zip")
    with zarr.storage.ZipStore(file, mode="w") as store:
        group = zarr.create_group(store, zarr_format=3)
        for name, values in arrays.items():
            _write(group, name, values, chunks=_chunks(scene, values.shape))
    return str(file)


def zarr_items(scene: Scene, arrays: Arrays, path: Path) -> Any:
    """Write a group `items/<name>/` for each item."""
    group = zarr.create_group(str(path), zarr_format=3)
    for k in range(len(next(iter(arrays.values())))):
        item = group.require_group(f"items/{k}")
        for name, values in arrays.items():
            _write(item, name, values[k], chunks=_chunks(scene, values.shape[1:]))
    return str(path)


def in_memory(scene: Scene, arrays: Arrays, path: Path) -> Any:
    """Return the arrays themselves, in any order of memory."""
    return {
        name: scene.one(values, np.asfortranarray(values), np.repeat(values, 2, axis=-1)[..., ::2])
        for name, values in arrays.items()
    }


def npz(scene: Scene, arrays: Arrays, path: Path) -> Any:
    """Write an .npz: compressed, or with other byte and memory orders."""
    file = path.with_suffix(".npz")
    if scene.often(0.5):
        np.savez_compressed(file, **arrays)
    else:
        big = {
            name: np.asfortranarray(values.astype(values.dtype.newbyteorder(">")))
            for name, values in arrays.items()
        }
        np.savez(file, allow_pickle=False, **big)
    return str(file)


def folder(scene: Scene, arrays: Arrays, path: Path) -> Any:
    """Write a folder with an .npz for each item, or with a folder for each array."""
    path.mkdir()
    items = len(next(iter(arrays.values())))
    for k in range(items):
        np.savez(path / f"{k}.npz", **{name: values[k] for name, values in arrays.items()})
    return str(path)


def hdf5(scene: Scene, arrays: Arrays, path: Path) -> Any:
    """Write an HDF5 file: chunks or none, compressed or not."""
    import h5py

    file = path.with_suffix(".h5")
    with h5py.File(file, "w") as group:
        for name, values in arrays.items():
            chunked = {"chunks": _chunks(scene, values.shape)} if scene.often(0.7) else {}
            packed = {"compression": scene.one("gzip", "lzf")} if chunked else {}
            group.create_dataset(name, data=values, **chunked, **packed)
    return str(file)


FORMATS: dict[str, Callable[[Scene, Arrays, Path], Any]] = {
    writer.__name__: writer
    for writer in (zarr3, zarr2, zarr_zip, zarr_items, in_memory, npz, folder, hdf5)
}
