"""`.npy` and `.npz` files: read by region, never unpickled, refused where they are cut short."""

from __future__ import annotations

import gc
import io
import shutil
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from uqeval.disk import files
from uqeval.errors import StoreError
from uqeval.stores import file_values
from uqeval.stores.files.numpy_files import open_npy, open_npz

EVERYTHING = (slice(None),) * 4


def values(dtype: str = "f2") -> np.ndarray:
    return np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5).astype(dtype)


@pytest.mark.parametrize("dtype", ["?", "u1", "<f2", ">f2", ">i4", "<f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_reads_as_saved(tmp_path: Path, dtype: str, order: str) -> None:
    data = np.asarray(values(dtype), order=order)
    np.save(tmp_path / "a.npy", data)
    array = open_npy(str(tmp_path / "a.npy"))
    region = np.s_[1:2, :, 1:3, :]
    read = array.read(region)
    assert array.shape == data.shape
    assert array.dtype == read.dtype == data.dtype.newbyteorder("=")
    assert np.array_equal(read, data[region])
    assert read.flags.c_contiguous
    assert array.stored_bytes() == data.nbytes
    assert array.missing() == []


@pytest.mark.parametrize("order", ["C", "F"])
def test_any_region_is_read(tmp_path: Path, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.asarray(np.arange(3 * 4 * 5 * 700, dtype="<i4").reshape(3, 4, 5, 700), order=order)
    np.save(tmp_path / "a.npy", data)
    array = open_npy(str(tmp_path / "a.npy"))
    for block in (1 << 20, 1 << 10, 1):  # runs in one block, in several, larger than any
        monkeypatch.setattr(file_values, "_BLOCK", block)
        for region in [
            np.s_[1:2, :, :, :], np.s_[:, 1:3, 2:3, :], np.s_[0:2, 3:4, 1:5, 5:9],
            np.s_[2:3, 0:1, 0:1, 699:700], np.s_[1:1, :, :, :], np.s_[:, :, :, 0:1],
        ]:  # fmt: skip
            assert np.array_equal(array.read(region), data[region])


def test_no_more_is_read_than_the_region(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "a.npy", np.zeros((4, 8, 64, 64)))
    array = open_npy(str(tmp_path / "a.npy"))
    counts: list[int] = []
    read = files.read_into

    def counting(descriptor: int, room: memoryview, begin: int) -> memoryview:
        counts.append(len(room))
        return read(descriptor, room, begin)

    monkeypatch.setattr(file_values, "read_into", counting)
    array.read(np.s_[1:2, :, 10:20, :])
    assert sum(counts) == 8 * 10 * 64 * 8


@pytest.mark.parametrize("version", [(2, 0), (3, 0)])
def test_header_of_later_versions(tmp_path: Path, version: tuple[int, int]) -> None:
    with (tmp_path / "a.npy").open("wb") as file:
        np.lib.format.write_array(file, values(), version=version)
    assert np.array_equal(open_npy(str(tmp_path / "a.npy")).read(EVERYTHING), values())


@pytest.mark.parametrize("keep", [-1, 130, 128])
def test_npy_cut_short(tmp_path: Path, keep: int) -> None:
    file = tmp_path / "a.npy"
    np.save(file, values())
    data = file.read_bytes()[:keep]
    file.write_bytes(data)
    with pytest.raises(StoreError, match=f"cut short: {len(data)} bytes .* needs 368"):
        open_npy(str(file))


def test_npy_too_long(tmp_path: Path) -> None:
    file = tmp_path / "a.npy"
    np.save(file, values())
    file.write_bytes(file.read_bytes() + b"x")
    with pytest.raises(StoreError, match="too long: 369 bytes"):
        open_npy(str(file))


@pytest.mark.parametrize("data", [b"", b"\x93NUM", b"no array at all", b"\x93NUMPY\x09\x00"])
def test_what_is_no_npy(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.npy").write_bytes(data)
    with pytest.raises(StoreError, match=r"numpy\.save"):
        open_npy(str(tmp_path / "a.npy"))


def test_npy_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file"):
        open_npy(str(tmp_path / "a.npy"))


def test_pickles_are_never_read(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "a.npz", probs=np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(StoreError, match="never read"):
        open_npy(str(tmp_path / "a.npy"))
    with pytest.raises(StoreError, match="never read"):
        open_npz(str(tmp_path / "a.npz"))


@pytest.mark.parametrize("dtype", ["c8", "M8[s]", "V3"])
def test_neither_numbers_nor_text(tmp_path: Path, dtype: str) -> None:
    np.save(tmp_path / "a.npy", np.zeros(3, dtype))
    with pytest.raises(StoreError, match="neither numbers nor text"):
        open_npy(str(tmp_path / "a.npy"))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npz_reads_as_saved(tmp_path: Path, save: object, order: str) -> None:
    data = np.asarray(values(), order=order)
    save(tmp_path / "a.npz", probs=data, names=np.array(["ä", "b"]))  # type: ignore[operator]
    members = open_npz(str(tmp_path / "a.npz"))
    assert set(members) == {"probs", "names"}
    assert np.array_equal(members["probs"].read(EVERYTHING), data)
    assert members["names"].read((slice(None),)).tolist() == ["ä", "b"]
    assert members["probs"].where == f"{tmp_path}/a.npz[probs]"


def test_stored_members_are_mapped_and_aligned(tmp_path: Path) -> None:
    for shift in range(9):  # a name more moves the next member by a byte
        np.savez(
            tmp_path / "a.npz", **{"n" * (shift + 1): np.zeros(1, "u1"), "probs": values("f8")}
        )
        read = open_npz(str(tmp_path / "a.npz"))["probs"].read(EVERYTHING)
        assert read.flags.aligned
        assert np.array_equal(read, values("f8"))


def test_unpacked_members_leave_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    np.savez_compressed(tmp_path / "a.npz", probs=values())
    array = open_npz(str(tmp_path / "a.npz"))["probs"]
    before = len(list(Path("/proc/self/fd").iterdir()))
    read = array.read(EVERYTHING)
    assert list((tmp_path / "tmp").iterdir()) == []
    del read, array
    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_no_room_to_unpack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez_compressed(tmp_path / "a.npz", probs=values())
    array = open_npz(str(tmp_path / "a.npz"))["probs"]

    def full(**_: object) -> io.BytesIO:
        class Full(io.BytesIO):
            def write(self, _data: object) -> int:
                raise OSError(28, "No space left on device")

        return Full()

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with pytest.raises(StoreError, match=r"No space left.*needs 368 bytes"):
        array.read(EVERYTHING)


def test_npz_cut_short(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    np.savez(file, probs=values())
    file.write_bytes(file.read_bytes()[:-30])
    with pytest.raises(StoreError, match=r"cannot be opened as an \.npz"):
        open_npz(str(file))


def test_npz_with_two_members_of_one_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", probs=np.ones(2), other=np.zeros(2))
    raw = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(raw.replace(b"other.npy", b"probs.npy"))
    with pytest.raises(StoreError, match="holds 'probs' twice; expected each name once"):
        open_npz(str(tmp_path / "a.npz"))


def test_npz_with_a_damaged_member(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    rng = np.random.default_rng(0)
    np.savez_compressed(file, probs=rng.random((2, 3, 40, 50)))
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(bytes(data))
    array = open_npz(str(file))["probs"]
    with pytest.raises(StoreError, match=r"probs.*cannot be unpacked"):
        array.read(EVERYTHING)


def test_a_stored_member_with_altered_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regions of a stored member are read in place, which never meets its checksum."""
    file = tmp_path / "a.npz"
    np.savez(file, probs=values(), labels=np.arange(9000, dtype="u2").view("u1"))
    data = file.read_bytes()
    file.write_bytes(data.replace(b"\x10\x20\x11\x20", b"\x10\x20\x12\x20", 1))
    members = open_npz(str(file))
    for _ in range(2):
        with pytest.raises(StoreError, match=r"\[labels\]: its bytes do not match the checksum"):
            members["labels"].read((slice(0, 5),))
    assert np.array_equal(members["probs"].read(EVERYTHING), values())
    monkeypatch.setattr(zlib, "crc32", lambda *_: pytest.fail("the sound member is read again"))
    members["probs"]._close()
    assert np.array_equal(members["probs"].read(EVERYTHING), values())


def test_a_small_stored_member_with_altered_values(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", labels=np.arange(5, dtype="u1"))
    data = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(data.replace(bytes(range(5)), bytes(5)))
    with pytest.raises(StoreError, match=r"\[labels\] cannot be read \(Bad CRC-32"):
        open_npz(str(tmp_path / "a.npz"))


def test_npz_member_whose_header_lies(tmp_path: Path) -> None:
    saved = io.BytesIO()
    np.save(saved, values())
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("probs.npy", saved.getvalue().replace(b"(2, 3, 4, 5)", b"(9999999, 5)"))
        archive.writestr("readme.txt", "not an array")
    with pytest.raises(StoreError, match="is 368 bytes where its header"):
        open_npz(str(tmp_path / "a.npz"))


def test_fingerprint_is_of_the_content(tmp_path: Path) -> None:
    data = np.random.default_rng(0).random((4, 3, 64, 64))
    np.save(tmp_path / "a.npy", data)
    shutil.copy(tmp_path / "a.npy", tmp_path / "b.npy")
    first = open_npy(str(tmp_path / "a.npy")).fingerprint()
    assert open_npy(str(tmp_path / "b.npy")).fingerprint() == first
    np.save(tmp_path / "b.npy", data + 1)
    assert open_npy(str(tmp_path / "b.npy")).fingerprint() != first
    np.save(tmp_path / "b.npy", data.reshape(3, 4, 64, 64))
    assert open_npy(str(tmp_path / "b.npy")).fingerprint() != first


@pytest.mark.parametrize("count", [0, 5, 600, 70_000])
def test_a_file_is_opened_once_for_its_fingerprint(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "a.npy", np.arange(count, dtype="f4"))
    stored = open_npy(str(tmp_path / "a.npy"))
    stored.read((slice(0, 1),))
    opened: list[str] = []

    def counted(path: str) -> int:
        opened.append(path)
        return files.open_descriptor(path)

    monkeypatch.setattr(file_values, "open_descriptor", counted)
    stored.fingerprint()
    assert opened == [str(tmp_path / "a.npy")]


def test_empty_npy(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((0, 4, 4), "u1"))
    assert open_npy(str(tmp_path / "a.npy")).read((slice(None),) * 3).shape == (0, 4, 4)
