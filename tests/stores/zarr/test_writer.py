"""Written stores are read back, by uqeval and by zarr, and write errors are reported."""

from __future__ import annotations

import errno
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from uqeval.errors import DataError, OutputError, StoreError
from uqeval.stores.store import open_store
from uqeval.stores.writing.new_store import NewStore
from uqeval.stores.zarr import writer as zw

AXES = ("item", "sample", "class", "y", "x")


def finished(path: Path, values: np.ndarray, **options: Any) -> None:
    zw.create_group(path, zw.group_attributes("predictions"))
    chunks = (1, *values.shape[1:3], 4, values.shape[-1])
    array = zw.create_array(path / "probs", values.shape, values.dtype, chunks, AXES, **options)
    zw.write(array, (slice(None),), values, path)
    zw.mark_complete(path)


@pytest.mark.parametrize("compression", ["lz4", "zstd", "none"])
def test_all_chunks_are_stored_with_a_checksum(tmp_path: Path, compression: Any) -> None:
    values = np.zeros((2, 3, 4, 10, 6), np.float16)  # zarr itself would leave all of this out
    values[:, :, 0] = 1
    finished(tmp_path / "s", values, compression=compression)
    part = open_store(tmp_path / "s", role="predictions").arrays["probs"][1]
    assert part.array.missing() == []
    assert part.array.dimension_names == AXES
    np.testing.assert_array_equal(part.array.read((slice(0, 2),) + (slice(None),) * 4), values)
    np.testing.assert_array_equal(zarr.open_group(tmp_path / "s", mode="r")["probs"][:], values)
    chunk = tmp_path / "s" / "probs" / "c" / "1" / "0" / "0" / "2" / "0"
    data = bytearray(chunk.read_bytes())
    data[-9] ^= 1
    chunk.write_bytes(data)
    with pytest.raises(StoreError, match="chunk c/1/0/0/2/0 is damaged: checksum"):
        part.array.read((slice(1, 2),) + (slice(None),) * 4)
    chunk.unlink()
    again = open_store(tmp_path / "s", role="predictions").arrays["probs"][1]
    assert again.array.missing() == [(1, 0, 0, 2, 0)]


def test_a_store_is_unfinished_until_it_says_otherwise(tmp_path: Path) -> None:
    zw.create_group(tmp_path / "s", {**zw.group_attributes("maps", samples=3), "names": ["a"]})
    assert zw.is_complete(tmp_path / "s") is False
    with pytest.raises(StoreError, match="unfinished"):
        open_store(tmp_path / "s", role="predictions")
    zw.mark_complete(tmp_path / "s")
    assert zw.is_complete(tmp_path / "s") is True
    attributes = zarr.open_group(tmp_path / "s", mode="r").attrs.asdict()
    ours = {"format": "maps", "version": 1, "complete": True, "samples": 3}
    assert attributes == {"uqeval": ours, "names": ["a"]}
    assert zw.is_complete(tmp_path) is None


def test_fill_values_cannot_occur() -> None:
    assert np.isnan(zw.fill_value("float16"))
    assert [zw.fill_value(d) for d in ("uint8", "uint16", "int32", "bool")] == [
        255, 65535, 2**31 - 1, 0,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("pixel_bytes", "height", "width", "expected"),
    [
        (2 * 20 * 19, 1024, 2048, (5, 2048)),
        (2 * 19, 1024, 2048, (103, 2048)),
        (4, 100, 200, (100, 200)),
        (2 * 100 * 150, 1024, 2048, (1, 256)),
        (2**30, 3, 3, (1, 1)),
        (1, 4097, 2048, (2049, 2048)),
    ],
)
def test_chunks_are_of_a_few_megabytes(
    pixel_bytes: int, height: int, width: int, expected: tuple[int, int]
) -> None:
    assert zw.pixel_chunks(pixel_bytes, height, width) == expected
    assert pixel_bytes > zw.CHUNK_BYTES or (
        pixel_bytes * expected[0] * expected[1] <= zw.CHUNK_BYTES
    )


NAMES = [
    "a",
    "..",
    ".",
    ".a",
    "a/../b",
    "a%2Fb",
    "a/b",
    "/etc/passwd",
    "__x",
    "c:\\x",
    "ü",
    "\n",
    "zarr.json",
]


def test_item_folders_are_different_and_stay_inside(tmp_path: Path) -> None:
    folders = [zw.item_folder(name) for name in NAMES]
    assert len(set(folders)) == len(NAMES)
    for folder in folders:
        assert (tmp_path / folder).resolve().parent == tmp_path.resolve()
        assert not folder.startswith((".", "__")) and folder != "zarr.json"


def test_a_name_too_long_for_a_folder(tmp_path: Path) -> None:
    for name, size in (("x" * 300, 300), ("/" * 86, 258)):
        with pytest.raises(OutputError, match=f"takes {size} bytes .* expected at most 255"):
            NewStore(tmp_path / "s", 1, [name], dense=False).create({})
        NewStore(tmp_path / "dense", 1, [name], dense=True).create({})
        zw.discard(tmp_path / "dense")


def test_processes_may_race_for_an_array(tmp_path: Path) -> None:
    stores = [NewStore(tmp_path / "s", 2, ["a", "b"], dense=False) for _ in range(2)]
    stores[0].create(zw.group_attributes("predictions"))
    for store in stores:  # the second finds the first one's
        assert store.array(0, "probs", (4, 3, 6, 8), "f2", (1, 3, 6, 8), AXES[1:])[0] == 1
    with pytest.raises(DataError, match=r"probs of item 'a'.*3, 6, 9.*was written before"):
        stores[1].array(0, "probs", (4, 3, 6, 9), "f2", (1, 3, 6, 9), AXES[1:])
    loser = tmp_path / "loser"
    loser.mkdir()
    assert not zw.put_in_place(loser, tmp_path / "s" / "items" / "a")
    assert not loser.exists()


def test_what_the_system_refuses_is_an_output_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be written"):
        zw.create_group(tmp_path / "file" / "s", {})
    array = zw.create_array(tmp_path / "a", (4, 4), "f4", (4, 4), ("y", "x"))

    async def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("zarr.storage.LocalStore.set", full)
    with pytest.raises(OutputError, match=r"No space left on device. Free some space"):
        zw.write(array, (slice(None),), np.ones((4, 4), "f4"), tmp_path / "a")


def test_an_interrupt_waits_until_zarr_has_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else Zarr's thread writes into a folder that is being removed, and prints a traceback."""
    ended = []

    def create(*_: Any, **__: Any) -> None:
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)  # to the main thread
        time.sleep(0.1)
        ended.append(True)

    monkeypatch.setattr(zarr, "create_group", create)
    with pytest.raises(KeyboardInterrupt):
        zw.create_group(tmp_path / "s.zarr", {})
    assert ended


def test_publish_keeps_the_old_until_the_new_is_there(tmp_path: Path) -> None:
    old, new = tmp_path / "s", tmp_path / "new"
    zw.create_group(old, {"which": "old"})
    with pytest.raises(OutputError):
        zw.publish(new, old)  # there is none
    assert zarr.open_group(old, mode="r").attrs["which"] == "old"
    zw.create_group(new, {"which": "new"})
    zw.publish(new, old)
    assert zarr.open_group(old, mode="r").attrs["which"] == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["s"]
