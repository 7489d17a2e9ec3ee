"""Chunks of HDF5 files: the values that h5py reads, within bounded memory."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uqeval.errors import StoreError
from uqeval.stores.files import hdf5
from uqeval.stores.files.hdf5 import Hdf5Group, open_hdf5
from uqeval.stores.files.hdf5_array import Hdf5Array

h5py = pytest.importorskip("h5py", reason="stores in HDF5 need uqeval[hdf5]")

RNG = np.random.default_rng(7)
SHAPE, CHUNKS = (3, 7, 10), (2, 3, 4)
WHOLE = tuple(map(slice, SHAPE))
FILTERS: list[dict[str, Any]] = [
    {}, {"compression": "gzip"}, {"compression": "lzf"}, {"fletcher32": True}, {"shuffle": True},
    {"compression": "gzip", "shuffle": True, "fletcher32": True},
    {"compression": "lzf", "shuffle": True, "fletcher32": True},
]  # fmt: skip


def values(dtype: str) -> np.ndarray:
    return (100 * RNG.random(SHAPE)).astype(dtype) if dtype != "?" else RNG.random(SHAPE) < 0.5


def array_in(path: Path) -> Hdf5Array:
    opened = open_hdf5(str(path), "/probs")
    assert isinstance(opened, Hdf5Array)
    return opened


def saved(path: Path, data: np.ndarray | None = None, **options: Any) -> Path:
    data = values("<f4") if data is None else data
    with h5py.File(path, "w") as file:
        file.create_dataset("probs", data=data, chunks=CHUNKS, **options)
    return path


def rewritten(path: Path, change: Any, data: np.ndarray | None = None, **filters: Any) -> Path:
    """A file with the stored bytes of each chunk as `change` returns them, after the bits of the
    filters that were left out.
    """
    with h5py.File(saved(path, data, **filters)) as file:
        own = file["probs"]
        starts = [own.id.get_chunk_info(k).chunk_offset for k in range(own.id.get_num_chunks())]
        stored = {start: own.id.read_direct_chunk(start)[1] for start in starts}
    with h5py.File(path, "w") as file:
        own = file.create_dataset("probs", SHAPE, "<f4", chunks=CHUNKS, **filters)
        for start, chunk in stored.items():
            mask, changed = change(bytes(chunk))
            own.id.write_direct_chunk(start, changed, mask)
    return path


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f2", "<f8", "u1", "<i2", ">u4", "?"])
@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_all_values_are_those_of_h5py(tmp_path: Path, filters: Any, dtype: str) -> None:
    data = values(dtype)
    found = array_in(saved(tmp_path / "a.h5", data, **filters)).read(WHOLE)
    np.testing.assert_array_equal(found, data)
    assert found.dtype == np.dtype(dtype).newbyteorder("=")


@given(st.data())
def test_any_region(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("a") / "a.h5"
    expected = values("<f4")
    saved(path, expected, compression="gzip", shuffle=True)
    cuts = [sorted(data.draw(st.tuples(st.integers(0, n), st.integers(0, n)))) for n in SHAPE]
    region = tuple(slice(*cut) for cut in cuts)
    np.testing.assert_array_equal(array_in(path).read(region), expected[region])


def test_filters_that_were_left_out_of_chunks(tmp_path: Path) -> None:
    data = values("<f4")
    filters: dict[str, Any] = {"compression": "gzip", "shuffle": True}
    path = rewritten(
        tmp_path / "a.h5", lambda stored: (0b10, zlib.decompress(stored)), data, **filters
    )
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["probs"][...], data)
    np.testing.assert_array_equal(array_in(path).read(WHOLE), data)


def test_missing_chunks_have_the_fill_value(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        own = file.create_dataset(
            "probs", SHAPE, "f4", chunks=CHUNKS, compression="gzip", fillvalue=7
        )
        own[1, :2] = 1
    array = array_in(path)
    array.fill_missing = True
    with h5py.File(path) as file:
        np.testing.assert_array_equal(array.read(WHOLE), file["probs"][...])


@pytest.mark.parametrize("chunks", [None, CHUNKS])
def test_bfloat16(tmp_path: Path, chunks: Any) -> None:
    """h5py gives these numbers as float32, of twice the size on disk."""
    bits = (np.ascontiguousarray(values("<f4")).view("u4") >> 16).astype("u2")
    kind = h5py.h5t.IEEE_F32LE.copy()
    kind.set_fields(15, 7, 8, 0, 7)
    kind.set_size(2)
    kind.set_ebias(127)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        if chunks:
            settings.set_chunk(chunks)
            settings.set_deflate(4)
        space = h5py.h5s.create_simple(SHAPE)
        own = h5py.h5d.create(file.id, b"probs", kind, space, settings)
        own.write(h5py.h5s.ALL, h5py.h5s.ALL, bits, kind)
    array = array_in(tmp_path / "a.h5")
    assert array.missing() == [] and array.attributes["source_dtype"] == "bfloat16"
    expected = (bits.astype("u4") << 16).view("f4")
    np.testing.assert_array_equal(array.read(WHOLE), expected)


def test_what_is_damaged(tmp_path: Path) -> None:
    gzip: dict[str, Any] = {"compression": "gzip"}
    plain = bytes(int(np.prod(CHUNKS)) * 4)
    for filters, change, says in [
        (gzip, lambda _: zlib.compress(plain + plain), "unpacks to more than the 96 bytes"),
        (gzip, lambda _: zlib.compress(plain[4:]), "92 bytes where the shape needs 96"),
        (gzip, lambda stored: stored[:-6], "cut short"),
        (gzip, lambda _: bytes(1000), "too long"),
        ({"fletcher32": True}, lambda stored: bytes(3) + stored[3:], "its checksum is wrong"),
        ({"compression": "lzf"}, lambda stored: bytes(1000), "too long"),
    ]:
        path = tmp_path / "a.h5"
        rewritten(path, lambda stored, change=change: (0, change(stored)), **filters)
        with pytest.raises(StoreError, match=f"chunk .* is damaged: .*{says}"):
            array_in(path).read(WHOLE)


def test_filters_without_a_bound_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.h5", values("<i2"), scaleoffset=0)
    with pytest.raises(StoreError, match=r"has the filter scaleoffset; .*h5repack -f GZIP=4"):
        array_in(path)


def names_of(path: Path) -> Any:
    opened = open_hdf5(str(path), "/")
    assert isinstance(opened, Hdf5Group)
    return opened.attributes["names"]


@pytest.mark.parametrize("options", [{}, {"chunks": (2,), "compression": "gzip"}])
@pytest.mark.parametrize("length", [8, None])
def test_names(tmp_path: Path, length: int | None, options: Any) -> None:
    names = ["a", "b", "ç", "longer"]
    data: Any = names if length is None else [name.encode() for name in names]
    kind = h5py.string_dtype("utf-8", length)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("names", data=data, dtype=kind, **options)
    assert names_of(tmp_path / "a.h5") == names


def test_many_names_that_are_one_long_text(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(hdf5, "MOST_BYTES", 1 << 16)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("names", data=["n" * 30000] * 4)
    with pytest.raises(StoreError, match="names of more than 65,536 letters"):
        names_of(tmp_path / "a.h5")


def test_more_than_names_need(tmp_path: Path) -> None:
    chunked: dict[str, Any] = {"chunks": (1 << 16,)}
    for shape, dtype, options, says in [
        ((1 << 29,), h5py.string_dtype(), chunked, "claims 536,870,912 names"),
        ((1,), "S2000000000", {"chunks": (1,), "compression": "gzip"}, "claims 1 names"),
    ]:
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file.create_dataset("names", shape, dtype, **options)
        with pytest.raises(StoreError, match=says):
            names_of(tmp_path / "a.h5")


def test_names_in_a_chunk_that_unpacks_to_too_much(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        own = file.create_dataset("names", (2,), "S8", chunks=(2,), compression="gzip")
        own.id.write_direct_chunk((0,), zlib.compress(bytes(1 << 14)))
    with pytest.raises(StoreError, match=r"names: chunk .* is damaged: .*more than the 16 bytes"):
        names_of(tmp_path / "a.h5")
