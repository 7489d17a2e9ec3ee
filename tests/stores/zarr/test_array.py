"""Zarr arrays are read as written, and have a fingerprint."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
from zarr.codecs import TransposeCodec
from zarr_files import (
    CHUNKS,
    EVERYTHING,
    SHAPE,
    V2,
    V3,
    flip,
    opened,
    read_refused,
    values,
    write,
    zipped,
)


@pytest.mark.parametrize("kind", V3)
def test_v3_chains_read_as_written(tmp_path: Path, kind: str) -> None:
    data = write(tmp_path / "a", kind=kind)
    array = opened(tmp_path / "a")
    assert array.shape == SHAPE
    assert array.chunks == CHUNKS
    assert np.array_equal(array.read(EVERYTHING), data)
    assert array.missing() == []


@pytest.mark.parametrize("kind", V2)
@pytest.mark.parametrize("order", ["C", "F"])
def test_v2_chains_read_as_written(tmp_path: Path, kind: str, order: str) -> None:
    data = write(tmp_path / "a", kind=kind, form=2, order=order)
    array = opened(tmp_path / "a")
    assert np.array_equal(array.read(EVERYTHING), data)
    assert array.missing() == []


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("kind", V3)
def test_shards_read_as_written(tmp_path: Path, kind: str, location: str) -> None:
    shards = {"shape": (4, 4, 8), "index_location": location}
    data = write(tmp_path / "a", kind=kind, shards=shards)
    array = opened(tmp_path / "a")
    assert array.chunks == CHUNKS
    assert np.array_equal(array.read(EVERYTHING), data)
    assert array.missing() == []


@pytest.mark.parametrize("deflated", [False, True])
@pytest.mark.parametrize("top", ["", "preds.zarr/"])
def test_zip_reads_as_the_folder(tmp_path: Path, deflated: bool, top: str) -> None:
    data = write(tmp_path / "a", kind="raw", shards=(4, 4, 8))
    array = opened(zipped(tmp_path / "a", deflated=deflated, top=top))
    assert np.array_equal(array.read(EVERYTHING), data)
    assert array.missing() == []


def test_zip_store_of_zarr_is_read(tmp_path: Path) -> None:
    with zarr.storage.ZipStore(tmp_path / "a.zip", mode="w") as store:
        zarr.create_array(store, shape=SHAPE, chunks=CHUNKS, dtype="f4")[...] = values()
    assert np.array_equal(opened(tmp_path / "a.zip").read(EVERYTHING), values())


@pytest.mark.parametrize("dtype", ["?", "u1", "i2", ">u2", "<f2", ">f2", ">f4", "<f8", ">i8"])
@pytest.mark.parametrize("form", [2, 3])
def test_every_dtype_comes_in_native_order(tmp_path: Path, dtype: str, form: int) -> None:
    data = write(tmp_path / "a", values(dtype), form=form)
    read = opened(tmp_path / "a").read(EVERYTHING)
    assert read.dtype == np.dtype(dtype).newbyteorder("=")
    assert read.dtype.isnative
    assert np.array_equal(read, data)


@pytest.mark.parametrize("orders", [[(2, 0, 1)], [(1, 2, 0), (0, 2, 1)]])
def test_transposed_chunks(tmp_path: Path, orders: list[tuple[int, ...]]) -> None:
    filters = [TransposeCodec(order=order) for order in orders]
    data = write(tmp_path / "a", filters=filters)
    assert np.array_equal(opened(tmp_path / "a").read(EVERYTHING), data)


def test_v2_filters(tmp_path: Path) -> None:
    filters = [numcodecs.FixedScaleOffset(offset=0, scale=2, dtype="f4", astype="u1")]
    data = write(tmp_path / "a", filters=filters, form=2, kind="blosc")
    assert np.array_equal(opened(tmp_path / "a").read(EVERYTHING), data)


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr")
def test_v3_filters_of_numcodecs(tmp_path: Path) -> None:
    from zarr.codecs.numcodecs import BitRound, FixedScaleOffset

    data = write(tmp_path / "a", filters=[BitRound(keepbits=10)])
    scaled = FixedScaleOffset(offset=0, scale=2, dtype="<f4", astype="|u1")
    write(tmp_path / "b", filters=[scaled])
    assert np.array_equal(opened(tmp_path / "a").read(EVERYTHING), data)
    assert np.array_equal(opened(tmp_path / "b").read(EVERYTHING), data)


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr")
def test_codecs_that_only_zarr_knows_are_left_to_it(tmp_path: Path) -> None:
    from zarr.codecs.numcodecs import Delta

    data = write(tmp_path / "a", filters=[Delta(dtype="<f4")], kind="blosc+crc32c")
    assert np.array_equal(opened(tmp_path / "a").read(EVERYTHING), data)
    flip(tmp_path / "a/c/1/1/1", 20)
    read_refused(opened(tmp_path / "a"), "c/1/1/1", "checksum")


@pytest.mark.parametrize("encoding", [("v2", "."), ("v2", "/"), ("default", "."), ("default", "/")])
def test_every_spelling_of_chunk_keys(tmp_path: Path, encoding: tuple[str, str]) -> None:
    spelled = {"name": encoding[0], "separator": encoding[1]}
    data = write(tmp_path / "a", chunk_key_encoding=spelled)
    array = opened(tmp_path / "a")
    assert np.array_equal(array.read(EVERYTHING), data)
    assert array.missing() == []


def test_any_region_is_cut_out_of_its_chunks(tmp_path: Path) -> None:
    data = write(tmp_path / "a")
    array = opened(tmp_path / "a")
    for region in [
        np.s_[0:2, 2:4, 0:4],
        np.s_[2:3, 4:5, 4:7],
        np.s_[1:3, 1:4, 3:6],
        np.s_[0:0, :, :],
    ]:
        read = array.read(region)
        assert np.array_equal(read, data[region])
        assert read.flags.c_contiguous


def test_no_chunk_is_decoded_twice_in_a_read(tmp_path: Path, monkeypatch: Any) -> None:
    write(tmp_path / "a")
    array = opened(tmp_path / "a")
    seen: list[Any] = []
    fetch = array._chunk
    monkeypatch.setattr(array, "_chunk", lambda position: seen.append(position) or fetch(position))
    array.read(EVERYTHING)
    assert len(seen) == len(set(seen)) == 2 * 3 * 2


@pytest.mark.parametrize("kind", ["raw", "raw+crc32c"])
def test_raw_chunks_are_read_only_views_of_what_was_read(tmp_path: Path, kind: str) -> None:
    data = write(tmp_path / "a", kind=kind)
    read = opened(tmp_path / "a").read(np.s_[0:2, 0:2, 0:4])
    assert not read.flags.owndata
    assert not read.flags.writeable
    assert np.array_equal(read, data[:2, :2, :4])


@pytest.mark.parametrize("codec", ["blosc", "lz4", "zstd"])
def test_chunks_are_decoded_into_memory_that_nobody_uses(tmp_path: Path, codec: str) -> None:
    data = np.random.default_rng(0).integers(0, 9, (3, 512, 600)).astype(np.float32)
    zarr.create_array(
        tmp_path / "a", data=data, chunks=(1, 512, 600), zarr_format=2,
        compressors=numcodecs.registry.get_codec({"id": codec}),
    )  # fmt: skip
    array = opened(tmp_path / "a")

    def read(item: int) -> Any:
        found = array.read((slice(item, item + 1), slice(None), slice(None)))
        assert np.array_equal(found[0], data[item]) and not found.flags.writeable
        return found

    first = read(0)
    at, part = first.__array_interface__["data"][0], first[0, 3:5]
    del first
    second = read(1)
    assert np.array_equal(part, data[0, 3:5]) and second.__array_interface__["data"][0] != at
    del part
    assert read(2).__array_interface__["data"][0] == at


def test_raw_values_off_their_alignment_are_copied(tmp_path: Path) -> None:
    # A chunk of 4-byte values behind one of 1 byte more, as a shard's index may have it.
    data = write(tmp_path / "a", kind="raw", shards=(4, 4, 8))
    file = tmp_path / "a/c/0/0/0"
    raw = file.read_bytes()
    index = np.frombuffer(raw[-(16 * 8 + 4) : -4], "<u8").copy()
    there = index[::2] != 2**64 - 1
    index[::2][there] += 1
    import google_crc32c

    tail = google_crc32c.value(index.tobytes()).to_bytes(4, "little")
    file.write_bytes(b"\0" + raw[: -(16 * 8 + 4)] + index.tobytes() + tail)
    read = opened(tmp_path / "a").read(np.s_[0:2, 0:2, 0:4])
    assert read.flags.aligned
    assert np.array_equal(read, data[:2, :2, :4])


def test_dimension_names_and_attributes(tmp_path: Path) -> None:
    write(tmp_path / "a", dimension_names=["item", None, "x"], attributes={"scale": 255})
    write(tmp_path / "b", form=2, attributes={"_ARRAY_DIMENSIONS": ["n", "h", "w"], "k": 1})
    assert opened(tmp_path / "a").dimension_names == ("item", None, "x")
    assert opened(tmp_path / "a").attributes == {"scale": 255}
    assert opened(tmp_path / "b").dimension_names == ("n", "h", "w")
    assert opened(tmp_path / "b").attributes == {"k": 1}


@pytest.mark.filterwarnings("ignore:The data type")
@pytest.mark.filterwarnings("ignore:The codec")
@pytest.mark.parametrize("form", [2, 3])
@pytest.mark.parametrize("dtype", ["U6", "string"])
def test_text(tmp_path: Path, form: int, dtype: str) -> None:
    texts = ["a", "über", "", "nacht"]
    spelled = str if dtype == "string" else dtype
    array = zarr.create_array(
        str(tmp_path / "a"), shape=(4,), chunks=(3,), dtype=spelled, zarr_format=form
    )
    array[...] = np.array(texts, dtype=object if dtype == "string" else dtype)
    read = opened(tmp_path / "a")
    assert read.dtype.kind in "OU"
    assert read.read((slice(None),)).tolist() == texts


@pytest.mark.parametrize("kind", ["zstd", "raw+crc32c"])
def test_fingerprint_is_of_the_content(tmp_path: Path, kind: str) -> None:
    write(tmp_path / "a", kind=kind)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    first = opened(tmp_path / "a")
    assert first.fingerprint() == opened(tmp_path / "b").fingerprint()
    chunks = [file for file in (tmp_path / "a/c").rglob("*") if file.is_file()]
    assert first.stored_bytes() == sum(file.stat().st_size for file in chunks)
    (tmp_path / "b/c/0/0/0").unlink()
    assert opened(tmp_path / "b").fingerprint() != first.fingerprint()


def test_fingerprint_sees_the_stored_checksum(tmp_path: Path) -> None:
    data = write(tmp_path / "a", kind="raw+crc32c")
    data[0, 0, 0] += 1
    write(tmp_path / "b", data, kind="raw+crc32c")
    assert opened(tmp_path / "a").fingerprint() != opened(tmp_path / "b").fingerprint()


def test_fingerprint_sees_the_metadata(tmp_path: Path) -> None:
    write(tmp_path / "a")
    write(tmp_path / "b", attributes={"scale": 255})
    assert opened(tmp_path / "a").fingerprint() != opened(tmp_path / "b").fingerprint()


@pytest.mark.parametrize("shard", [None, (2, 256, 256)])
def test_fingerprint_sees_values_where_nothing_is_checked(tmp_path: Path, shard: Any) -> None:
    """Chunks of equal sizes may hold other values: blocks are compared, spread over all of them."""
    data = np.arange(2 * 512 * 512, dtype="u1").reshape(2, 512, 512)
    prints = set()
    for k, change in enumerate((0, 0, 7)):
        path = tmp_path / str(k)
        array = zarr.create_array(
            str(path), shape=data.shape, chunks=(1, 128, 128), shards=shard, dtype="u1",
            compressors=None,
        )  # fmt: skip
        array[...] = data
        array[1, 300:350, 256:512] += np.uint8(change)
        prints.add(opened(path).fingerprint())
    assert len(prints) == 2


@pytest.mark.parametrize("shape", [(80,), (4, 32, 32), (10, 20, 20)])
def test_fingerprint_sees_each_byte_of_a_small_array(tmp_path: Path, shape: Any) -> None:
    data = np.zeros(shape, "u1")
    for at in (0, data.size // 2, data.size - 1, None):
        changed = data.copy()
        if at is not None:
            changed.flat[at] = 7
        zarr.create_array(
            str(tmp_path / str(at)), data=changed, chunks=(1, *shape[1:]), compressors=None,
            config={"write_empty_chunks": True},
        )  # fmt: skip
    assert len({opened(path).fingerprint() for path in tmp_path.iterdir()}) == 4
