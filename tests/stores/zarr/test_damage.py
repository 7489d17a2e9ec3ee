"""Missing or damaged chunks of a Zarr array are reported by name, and never replaced."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import numcodecs
import numpy as np
import pytest
from zarr_files import (
    EVERYTHING,
    SHAPE,
    V2,
    V3,
    change,
    cut,
    flip,
    opened,
    read_refused,
    values,
    write,
    zipped,
)

from uqeval.errors import StoreError


@pytest.mark.parametrize(("form", "key"), [(3, "c/1/0/1"), (2, "1.0.1")])
def test_a_deleted_chunk_is_listed_and_never_filled_in(tmp_path: Path, form: int, key: str) -> None:
    data = write(tmp_path / "a", form=form)
    (tmp_path / "a" / key).unlink()
    assert opened(tmp_path / "a").missing() == [(1, 0, 1)]
    read_refused(
        opened(tmp_path / "a"), key, "not stored", "--missing-chunks fill", str(tmp_path / "a")
    )
    filled = opened(tmp_path / "a", fill_missing=True).read(EVERYTHING)
    data[2:, :2, 4:] = 0
    assert np.array_equal(filled, data)


def test_a_deleted_chunk_in_a_zip(tmp_path: Path) -> None:
    write(tmp_path / "a")
    (tmp_path / "a/c/0/2/0").unlink()
    array = opened(zipped(tmp_path / "a"))
    assert array.missing() == [(0, 2, 0)]
    read_refused(array, "c/0/2/0", "not stored")


def test_a_deleted_shard_and_a_deleted_inner_chunk(tmp_path: Path) -> None:
    data = values(shape=(4, 4, 8))
    data[:2, 2:, :4] = 0  # zarr leaves this inner chunk out
    write(tmp_path / "a", data, shards=(2, 4, 8))
    (tmp_path / "a/c/1/0/0").unlink()
    array = opened(tmp_path / "a")
    assert array.missing() == [(0, 1, 0), (1, 0, 0), (1, 0, 1), (1, 1, 0), (1, 1, 1)]
    read_refused(array, "[0, 1, 0] in shard c/0/0/0", "not stored", region=np.s_[0:2, 2:4, 0:4])
    read_refused(array, "shard c/1/0/0", "not stored", region=np.s_[2:4, :, :])
    filled = opened(tmp_path / "a", fill_missing=True)
    assert np.array_equal(filled.read(np.s_[0:2, :, :]), data[:2])


@pytest.mark.parametrize(
    ("fill", "dtype"),
    [(255, "u1"), (float("nan"), "f2"), (float("inf"), "f4"), (-1.5, "f8"), (1, "?")],
)
@pytest.mark.parametrize("form", [2, 3])
def test_fill_values(tmp_path: Path, fill: float, dtype: str, form: int) -> None:
    write(tmp_path / "a", values(dtype), form=form, fill_value=fill)
    shutil.rmtree(tmp_path / "a/c", ignore_errors=True)
    for chunk in (tmp_path / "a").glob("[0-9]*"):
        chunk.unlink()
    array = opened(tmp_path / "a", fill_missing=True)
    expected = np.full(SHAPE, fill, dtype)
    assert len(array.missing()) == 12
    assert np.array_equal(array.read(EVERYTHING), expected, equal_nan=dtype.startswith("f"))


def test_fill_value_as_bits(tmp_path: Path) -> None:
    write(tmp_path / "a", values("f2"))
    change(tmp_path / "a/zarr.json", fill_value="0x3c00")
    shutil.rmtree(tmp_path / "a/c")
    assert (opened(tmp_path / "a", fill_missing=True).read(EVERYTHING) == 1).all()


def test_files_that_are_no_chunks_are_not_counted(tmp_path: Path) -> None:
    write(tmp_path / "a")
    before = opened(tmp_path / "a").fingerprint()
    for name in ("c/9/0/0", "c/0/0/.partial", "c/x/0/0"):
        (tmp_path / "a" / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / "a" / name).write_bytes(b"x")
    array = opened(tmp_path / "a")
    assert array.missing() == []
    assert array.fingerprint() == before


@pytest.mark.parametrize("kind", V3)
@pytest.mark.parametrize("keep", [0, 3, 15, 20, -1])
def test_v3_chunk_cut_short(tmp_path: Path, kind: str, keep: int) -> None:
    write(tmp_path / "a", kind=kind)
    cut(tmp_path / "a/c/0/1/0", keep)
    read_refused(opened(tmp_path / "a"), "c/0/1/0", "damaged", "Copy it again")


@pytest.mark.parametrize("kind", V2)
@pytest.mark.parametrize("keep", [0, 3, 15, 20, -1])
def test_v2_chunk_cut_short(tmp_path: Path, kind: str, keep: int) -> None:
    write(tmp_path / "a", kind=kind, form=2)
    cut(tmp_path / "a/0.1.0", keep)
    read_refused(opened(tmp_path / "a"), "0.1.0", "damaged", "Copy it again")


@pytest.mark.parametrize("kind", V3)
def test_chunk_cut_short_in_a_zip(tmp_path: Path, kind: str) -> None:
    write(tmp_path / "a", kind=kind)
    cut(tmp_path / "a/c/0/1/0", 20)
    read_refused(opened(zipped(tmp_path / "a")), "c/0/1/0", "damaged")


def test_raw_chunk_says_how_much_is_there(tmp_path: Path) -> None:
    write(tmp_path / "a", kind="raw")
    cut(tmp_path / "a/c/0/1/0", 20)
    read_refused(opened(tmp_path / "a"), "cut short: 20 of 64 bytes")
    (tmp_path / "a/c/0/1/0").write_bytes(bytes(70))
    read_refused(opened(tmp_path / "a"), "too long: c/0/1/0 has 70 bytes, expected at most 64")


@pytest.mark.parametrize("kind", [kind for kind in V3 if "c" in kind.replace("blosc", "", 1)])
def test_flipped_bit_under_a_checksum(tmp_path: Path, kind: str) -> None:
    write(tmp_path / "a", kind=kind)
    file = tmp_path / "a/c/0/1/0"
    flip(file, file.stat().st_size - 2)
    read_refused(opened(tmp_path / "a"), "c/0/1/0", "damaged")


def test_flipped_bit_in_a_zip_member(tmp_path: Path) -> None:
    write(tmp_path / "a", kind="raw")
    path = zipped(tmp_path / "a")
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("c/0/1/0")
    flip(path, info.header_offset + 30 + len(info.filename) + 5)
    read_refused(opened(path), "c/0/1/0", "CRC")


@pytest.mark.parametrize("at", range(16))
def test_blosc_header_is_never_trusted(tmp_path: Path, at: int) -> None:
    data = write(tmp_path / "a", kind="blosc")
    file = tmp_path / "a/c/0/1/0"
    raw = file.read_bytes()
    for byte in (0, 1, 0x7F, 0xFF, raw[at] ^ 1):
        file.write_bytes(raw[:at] + bytes([byte]) + raw[at + 1 :])
        try:
            read = opened(tmp_path / "a").read(np.s_[0:2, 2:4, 0:4])
        except StoreError as error:
            assert "c/0/1/0" in str(error)
        else:
            assert read.shape == data[:2, 2:4, :4].shape


@pytest.mark.parametrize("kind", ["raw", "blosc", "zstd"])
@pytest.mark.parametrize("keep", [0, 10, -40, -1])
@pytest.mark.parametrize("fill_missing", [False, True])
def test_shard_cut_short(tmp_path: Path, kind: str, keep: int, fill_missing: bool) -> None:
    write(tmp_path / "a", kind=kind, shards=(4, 4, 8))
    cut(tmp_path / "a/c/0/0/0", keep)
    read_refused(opened(tmp_path / "a", fill_missing=fill_missing), "shard c/0/0/0", "index")
    with pytest.raises(StoreError, match="c/0/0/0"):
        opened(tmp_path / "a").missing()


@pytest.mark.parametrize("kind", ["raw", "blosc", "zstd"])
def test_shard_with_its_index_first_cut_short(tmp_path: Path, kind: str) -> None:
    shards = {"shape": (4, 4, 8), "index_location": "start"}
    write(tmp_path / "a", kind=kind, shards=shards)
    cut(tmp_path / "a/c/0/0/0", -5)
    assert opened(tmp_path / "a").missing() == []  # the index is whole, a chunk is not
    read_refused(opened(tmp_path / "a"), "in shard c/0/0/0", "cut short")


@pytest.mark.parametrize("entry", [(2**64 - 1, 5), (5, 2**64 - 1), (2**40, 8), (0, 2**40), (0, 0)])
def test_shard_index_that_points_anywhere(tmp_path: Path, entry: tuple[int, int]) -> None:
    import google_crc32c

    write(tmp_path / "a", kind="raw", shards=(4, 4, 8))
    file = tmp_path / "a/c/0/0/0"
    raw = file.read_bytes()
    index = np.frombuffer(raw[-(16 * 8 + 4) : -4], "<u8").copy()
    index[:2] = entry
    tail = google_crc32c.value(index.tobytes()).to_bytes(4, "little")
    file.write_bytes(raw[: -(16 * 8 + 4)] + index.tobytes() + tail)
    read_refused(opened(tmp_path / "a"), "[0, 0, 0] in shard c/0/0/0", "damaged")


def test_inner_blosc_chunk_is_checked(tmp_path: Path) -> None:
    write(tmp_path / "a", kind="blosc", shards=(4, 4, 8))
    flip(tmp_path / "a/c/0/0/0", 13)  # the packed size in the first inner chunk's header
    read_refused(opened(tmp_path / "a"), "in shard c/0/0/0", "damaged")


def test_damaged_text(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    document = {
        "zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "|O", "compressor": None,
        "fill_value": "", "order": "C", "filters": [{"id": "vlen-utf8"}],
    }  # fmt: skip
    (tmp_path / "a/.zarray").write_text(json.dumps(document))
    good = b"\x02\0\0\0\x01\0\0\0a\x02\0\0\0bc"
    for raw, word in [
        (good[:-1], "end early"), (good[:9], "end early"), (b"\xff\xff\xff\xff", "of 2 strings"),
        (good[:-1] + b"\xff", "UTF-8"), (b"\x01\0\0\0\x01\0\0\0a", "1 of 2 strings"),
    ]:  # fmt: skip
        (tmp_path / "a/0").write_bytes(raw)
        read_refused(opened(tmp_path / "a"), word, region=(slice(None),))


def test_zstd_that_unpacks_to_another_size(tmp_path: Path) -> None:
    write(tmp_path / "a")
    (tmp_path / "a/c/0/0/0").write_bytes(numcodecs.Zstd().encode(bytes(63)))
    read_refused(opened(tmp_path / "a"), "unpacks to 63 bytes where the shape needs 64")


def test_gzip_that_unpacks_to_more_is_not_unpacked(tmp_path: Path) -> None:
    write(tmp_path / "a", kind="gzip")
    (tmp_path / "a/c/0/0/0").write_bytes(numcodecs.GZip().encode(bytes(10**7)))
    read_refused(opened(tmp_path / "a"), "unpacks to more than the 64 bytes that the shape needs")


@pytest.mark.parametrize("codec", [numcodecs.BZ2(), numcodecs.Zlib(), numcodecs.LZMA()])
@pytest.mark.parametrize("extra", [b"x", bytes(8)])
def test_bytes_after_a_compressed_stream(tmp_path: Path, codec: object, extra: bytes) -> None:
    write(tmp_path / "a", form=2, compressors=codec)
    path = tmp_path / "a/0.0.0"
    path.write_bytes(path.read_bytes() + extra)
    read_refused(opened(tmp_path / "a"), f"{len(extra)} bytes follow the end of its")
