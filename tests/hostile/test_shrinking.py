"""A file that shrinks while it is read is an error that names it, not the end of the process."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from uqeval.disk import files
from uqeval.engine.scratch import Scratch
from uqeval.errors import StoreError
from uqeval.stores.file_values import FileValues
from uqeval.stores.files.numpy_files import open_npy, open_npz
from uqeval.stores.store import open_store
from uqeval.stores.zarr.group import open_zarr

#: Pages of values, so that a map of what is cut off would end with SIGBUS.
SHAPE = (4, 64, 1024)


def cut(path: Path, by: int = 64 * 1024 * 4) -> None:
    """Take the last values away, in place."""
    os.truncate(path, path.stat().st_size - by)


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_a_numpy_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    if suffix == ".npy":
        np.save(path, np.zeros(SHAPE, "f4"))
        array = open_npy(str(path))
    else:
        np.savez(path, a=np.zeros(SHAPE, "f4"))
        array = open_npz(str(path))["a"]
    assert not array.read(np.s_[0:1, :, :]).any()
    cut(path)
    for _ in range(2):
        with pytest.raises(StoreError, match=r"a\.np.*changed while it was read"):
            array.read(np.s_[3:4, :, :])


def test_a_file_that_shrinks_between_its_check_and_the_last_byte(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(8192))
    values = FileValues(str(tmp_path / "a"), "a", (2, 4096), np.dtype("u1"), False, 0)
    before = values.read(np.s_[0:2, :])
    cut(tmp_path / "a", 4096)
    with pytest.raises(StoreError, match="a changed while it was read"):
        values.read(np.s_[0:2, :])
    assert not before.any()  # what was read stays


@pytest.mark.parametrize("compressors", [None, "auto"])
def test_a_chunk_of_zarr(tmp_path: Path, compressors: str | None) -> None:
    import zarr

    array = zarr.create_array(
        tmp_path / "a", shape=SHAPE, chunks=(1, 64, 1024), dtype="f4", compressors=compressors
    )
    array[...] = np.random.default_rng(0).random(SHAPE, np.float32)
    opened = open_zarr(str(tmp_path / "a"))
    assert opened is not None
    held = opened.read(np.s_[3:4, :, :])  # type: ignore[union-attr]
    copy = held.copy()
    os.truncate(tmp_path / "a/c/3/0/0", 4096)
    assert np.array_equal(held, copy)  # a map would end the process here
    with pytest.raises(StoreError, match="c/3/0/0 is damaged"):
        opened.read(np.s_[3:4, :, :])  # type: ignore[union-attr]


def test_maps_between_two_passes(tmp_path: Path) -> None:
    maps = {"a": np.zeros(SHAPE, "f4"), "b": np.ones(4, "f4")}
    source: Any = SimpleNamespace(read=lambda batch, heartbeat: [maps])

    def read(*names: str) -> list[str]:
        [found] = scratch.read(source, range(1), lambda _: None, names)
        return list(found)

    with Scratch(0) as scratch:
        assert read("a", "b") == ["a", "b"]
        assert read("b") == ["b"]  # only what is asked for is read again
        cut(scratch._path(0))
        with pytest.raises(StoreError, match="changed while it was read"):
            read("a", "b")


def test_no_input_is_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import mmap

    np.savez_compressed(tmp_path / "a.npz", probs=np.zeros((1, 2, 64, 64), "f4"))
    np.save(tmp_path / "b.npy", np.zeros((1, 2, 64, 64), "f4"))

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a file is mapped")

    monkeypatch.setattr(mmap, "mmap", refuse)
    monkeypatch.setattr(np, "memmap", refuse)
    for name in ("a.npz", "b.npy"):
        (part,) = open_store(tmp_path / name, role="predictions").arrays["probs"]
        assert not part.array.read(tuple(map(slice, part.array.shape))).any()


def test_short_reads_are_put_together(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(range(200)))
    whole = os.preadv

    def short(file: int, rooms: list[memoryview], begin: int) -> int:
        return whole(file, [rooms[0][:7]], begin)

    monkeypatch.setattr(os, "preadv", short)
    with files.open_file(tmp_path / "a") as file:
        read = files.read_into(file.fileno(), memoryview(bytearray(150)), 20)
        assert bytes(read) == bytes(range(20, 170))
        assert len(files.read_into(file.fileno(), memoryview(bytearray(150)), 100)) == 100
