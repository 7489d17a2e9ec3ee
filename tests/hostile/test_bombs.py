"""Data that unpack to far more than their metadata declare are refused within bounded memory."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest

from uqeval.errors import StoreError
from uqeval.stores.array import StoredArray
from uqeval.stores.compression import DamagedChunk, content_size, decompress
from uqeval.stores.files.numpy_files import open_npz
from uqeval.stores.files.png_array import PngArray
from uqeval.stores.store import open_store
from uqeval.stores.zarr.group import open_zarr

#: What each bomb unpacks to, and what a chunk should.
BOMB, SIZE = 24 << 20, 256
#: What reading it may take.
MOST = 8 << 20

ZEROS = bytes(BOMB)


def lz4_claim() -> bytes:
    """Two GiB claimed in the header of a few bytes."""
    return struct.pack("<I", 2**31 - 1) + bytes(numcodecs.LZ4().encode(bytes(SIZE)))[4:]


def zstd_without_size(data: bytes) -> bytes:
    """A frame of blocks of one byte repeated, whose header does not tell the size."""
    frame = (0xFD2FB528).to_bytes(4, "little") + bytes([0, 0x50])
    blocks = -(-len(data) // 2**17)
    for k in range(blocks):
        size = min(2**17, len(data) - k * 2**17)
        frame += (size << 3 | 1 << 1 | (k == blocks - 1)).to_bytes(3, "little") + data[:1]
    return frame


PACK: dict[str, Callable[[bytes], bytes]] = {
    "zlib": lambda data: zlib.compress(data, 1),
    "gzip": lambda data: gzip.compress(data, 1),
    "bz2": lambda data: bz2.compress(data, 1),
    "lzma": lambda data: lzma.compress(data, preset=0),
    "zstd": lambda data: bytes(numcodecs.Zstd().encode(data)),
    "zstd, of unknown size": zstd_without_size,
    "blosc": lambda data: bytes(numcodecs.Blosc().encode(data)),
    "lz4": lambda data: bytes(numcodecs.LZ4().encode(data)),
}  # fmt: skip


@contextmanager
def bounded(most: int = MOST) -> Iterator[None]:
    """Memory that Python and NumPy allocate inside stays below `most`."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def store(folder: Path, codecs: list[dict[str, Any]], form: int, shape: Any = (1, 8, 8)) -> Path:
    """An array of float32 in one chunk, without any chunk."""
    folder.mkdir(parents=True)
    document: dict[str, Any] = {"shape": list(shape), "zarr_format": form, "fill_value": 0}
    if form == 2:
        document |= {"chunks": list(shape), "dtype": "<f4", "order": "C"}
        document |= {"filters": codecs[:-1] or None, "compressor": codecs[-1] if codecs else None}
        (folder / ".zarray").write_text(json.dumps(document))
        return folder / ".".join("0" for _ in shape)
    chain = [{"name": "bytes", "configuration": {"endian": "little"}}, *codecs]
    document |= {
        "node_type": "array", "data_type": "float32", "codecs": chain, "attributes": {},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(shape)}},
        "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}},
    }  # fmt: skip
    (folder / "zarr.json").write_text(json.dumps(document))
    return folder / ".".join("0" for _ in shape)


def array_of(folder: Path) -> StoredArray:
    opened = open_zarr(str(folder))
    assert isinstance(opened, StoredArray)
    return opened


def read(folder: Path) -> Any:
    array = array_of(folder)
    return array.read(tuple(map(slice, array.shape)))


@pytest.mark.parametrize("form", [2, 3])
@pytest.mark.parametrize("name", PACK)
def test_a_chunk_that_unpacks_to_too_much(tmp_path: Path, name: str, form: int) -> None:
    codec = name.split(",")[0]
    spelled = {"id": codec} if form == 2 else {"name": f"numcodecs.{codec}", "configuration": {}}
    chunk = store(tmp_path / "a", [spelled], form)
    values = np.arange(SIZE // 4, dtype="<f4")
    packed = PACK[name](values.tobytes() if name == codec else bytes(SIZE))
    chunk.write_bytes(packed)
    assert read(tmp_path / "a").sum() == (values.sum() if name == codec else 0)  # it is read
    chunk.write_bytes(PACK[name](ZEROS)[: 2 * SIZE + 2**16])
    with bounded(), pytest.raises(StoreError, match=r"chunk .* is damaged"):
        read(tmp_path / "a")


def test_a_bomb_behind_a_filter_and_in_two_layers(tmp_path: Path) -> None:
    filtered = store(tmp_path / "a", [{"id": "delta", "dtype": "<f4"}, {"id": "zlib"}], 2)
    filtered.write_bytes(zlib.compress(ZEROS))
    layered = store(tmp_path / "b", [{"id": "zlib"}, {"id": "zlib"}], 2)
    layered.write_bytes(zlib.compress(zlib.compress(ZEROS)))
    for folder in ("a", "b"):
        with bounded(), pytest.raises(StoreError, match="unpacks to more than"):
            read(tmp_path / folder)


def test_a_bomb_of_several_frames(tmp_path: Path) -> None:
    """Each zstd frame claims little; the codec would unpack all of them."""
    frames = bytes(numcodecs.Zstd().encode(bytes(SIZE))) * (BOMB // SIZE)
    with bounded(), pytest.raises(DamagedChunk, match="cannot be unpacked"):
        decompress("zstd", numcodecs.Zstd(), frames, None, SIZE)
    chunk = store(tmp_path / "a", [{"id": "zstd"}, {"id": "zstd"}], 2)
    chunk.write_bytes(bytes(numcodecs.Zstd().encode(frames)))
    with bounded(), pytest.raises(StoreError, match=r"chunk .* is damaged"):
        read(tmp_path / "a")


def test_sizes_that_are_claimed_are_never_allocated() -> None:
    with bounded():
        for name, data in (
            ("lz4", lz4_claim()),
            ("zstd", b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 2**62) + bytes(9)),
            ("blosc", struct.pack("<4B3I", 2, 1, 0x21, 4, 2**31 - 1, 128, 16 + 8) + bytes(8)),
        ):
            codec = numcodecs.get_codec({"id": name})
            with pytest.raises(DamagedChunk, match="unpacks to"):
                decompress(name, codec, data, SIZE, SIZE)
            with pytest.raises(DamagedChunk, match="expected at most"):
                decompress(name, codec, data, None, SIZE)


@pytest.mark.parametrize("size", [0, 1, 255, 256, 300, 65791, 65792, 10**6])
def test_the_size_in_a_zstd_header(size: int) -> None:
    assert content_size(memoryview(bytes(numcodecs.Zstd().encode(bytes(size))))) == size
    assert content_size(memoryview(zstd_without_size(bytes(max(size, 1))))) is None


def test_codecs_without_a_bound_are_not_read(tmp_path: Path) -> None:
    for name in ("zfpy", "pcodec", "pickle", "vlen-bytes", "lzip"):
        store(tmp_path / name, [{"id": name}], 2)
        with pytest.raises(StoreError, match="is not read"):
            read(tmp_path / name)
    store(tmp_path / "wide", [{"id": "astype", "encode_dtype": "u1", "decode_dtype": "U9999"}], 2)
    with pytest.raises(StoreError, match="decode_dtype is not of numbers"):
        read(tmp_path / "wide")


@pytest.mark.parametrize("compressed", [False, True])
def test_a_sparse_chunk_of_a_terabyte(tmp_path: Path, compressed: bool) -> None:
    chunk = store(tmp_path / "a", [{"id": "zlib"}] if compressed else [], 2)
    with chunk.open("wb") as file:
        file.truncate(1 << 40)
    with bounded(), pytest.raises(StoreError, match="too long: 0"):
        read(tmp_path / "a")


def test_metadata_of_a_gigabyte(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with (tmp_path / "a/zarr.json").open("wb") as file:
        file.write(b"{}")
        file.truncate(1 << 30)
    with (
        bounded(),
        pytest.raises(StoreError, match=r"zarr\.json has .* at most 67108864"),
    ):
        open_zarr(str(tmp_path / "a"))


@pytest.mark.parametrize("name", ["zarr.json", "probs/zarr.json"])
def test_a_member_of_a_zip_that_unpacks_to_too_much(tmp_path: Path, name: str) -> None:
    group = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    chunk = store(tmp_path / "a", [], 3, (64,))
    text = (chunk.parent / "zarr.json").read_text().replace('"v2"', '"default"')
    texts = {"zarr.json": json.dumps(group), "probs/zarr.json": text}
    texts[name] += " " * (65 << 20)  # a little more than is read
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for member, content in texts.items():
            archive.writestr(member, content)
    with (
        bounded(),
        pytest.raises(StoreError, match=r"zarr\.json has .* at most 67108864"),
    ):
        open_store(tmp_path / "a.zip", role="predictions")


def test_a_member_that_hides_its_size(tmp_path: Path) -> None:
    """The directory says 256 bytes, the data are 24 MB: the rest is never unpacked."""
    chunk = store(tmp_path / "a", [], 2)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.write(chunk.parent / ".zarray", ".zarray")
        archive.writestr("0.0.0", ZEROS)
    raw = (tmp_path / "a.zip").read_bytes().replace(struct.pack("<I", BOMB), struct.pack("<I", 256))
    (tmp_path / "a.zip").write_bytes(raw)
    with bounded(), pytest.raises(StoreError, match=r"0\.0\.0"):
        read(tmp_path / "a.zip")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_methods_of_zip_are_refused(tmp_path: Path, method: int) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", method) as archive:
        archive.writestr("zarr.json", ZEROS)
    (tmp_path / "a.npz").write_bytes((tmp_path / "a.zip").read_bytes().replace(b".json", b".npy_"))
    with bounded(), pytest.raises(StoreError, match="expected stored or deflated"):
        open_zarr(str(tmp_path / "a.zip"))


def test_an_npz_that_claims_more_than_its_bytes_can_hold(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", probs=np.zeros(1000, "u1"))
    raw = (tmp_path / "a.npz").read_bytes()
    size = 1000 + 128
    for old in (struct.pack("<Q", size), struct.pack("<I", size)):
        raw = raw.replace(old, struct.pack("<Q" if len(old) == 8 else "<I", 2**31))
    (tmp_path / "a.npz").write_bytes(raw)
    with bounded(), pytest.raises(StoreError, match="claims 2147483648 bytes"):
        open_npz(str(tmp_path / "a.npz"))


def test_an_image_that_is_larger_than_its_file_can_be(tmp_path: Path) -> None:
    head = struct.pack(">IIBBBBB", 9000, 9000, 8, 0, 0, 0, 0)
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + head + bytes(60))
    with bounded(), pytest.raises(StoreError, match="too few"):
        PngArray(tmp_path / "a.png")
