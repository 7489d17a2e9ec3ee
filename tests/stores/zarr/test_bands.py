"""Large uncompressed chunks are read in bands of rows: the same values, the same refusals."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import uqeval
from uqeval.errors import ChangedError, StoreError
from uqeval.stores.store import open_store
from uqeval.stores.zarr import array as zarr_array
from uqeval.stores.zarr.array import ZarrArray
from uqeval.stores.zarr.source import FolderSource

N, T, C, H, W = 2, 3, 4, 13, 11
ORDERS = ["item sample class y x", "item y x class sample", "sample class item x y"]


@pytest.fixture(autouse=True)
def small_bands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zarr_array, "_BAND", 512)


def written(folder: Path, order: str = ORDERS[0], **options: Any) -> tuple[Path, Any, Any]:
    """A store in this order of axes, whose chunks do not divide the shape; values and labels."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet((1.0,) * C, (N, T, H, W)).transpose(0, 1, 4, 2, 3).astype("f2")
    axes = dict(zip(["item", "sample", "class", "y", "x"], range(5), strict=True))
    stored = probs.transpose([axes[name] for name in order.split()])
    chunk = {"item": 1, "sample": 2, "class": C, "y": 8, "x": 7}
    group = zarr.open_group(folder / "s.zarr", mode="w")
    own = {"compressors": None} | options
    array = group.create_array(
        "probs", shape=stored.shape, chunks=tuple(chunk[n] for n in order.split()), dtype="f2",
        dimension_names=order.split(), **own,
    )  # fmt: skip
    array[...] = stored
    return folder / "s.zarr", stored, rng.integers(0, C, (N, H, W)).astype("u1")


def opened(path: Path) -> ZarrArray:
    array = open_store(str(path), role="predictions").arrays["probs"][0].array
    assert isinstance(array, ZarrArray)
    return array


@pytest.mark.parametrize("order", ORDERS)
def test_values(tmp_path: Path, order: str) -> None:
    path, stored, _ = written(tmp_path, order)
    array = opened(path)
    along = order.split().index("y")
    assert array.bands[along] < array.chunks[along] == 8
    assert array.bands[:along] == array.chunks[:along]
    steps = [range(0, size, band) for size, band in zip(array.shape, array.bands, strict=True)]
    for start in itertools.product(*steps):
        region = tuple(slice(s, s + b) for s, b in zip(start, array.bands, strict=True))
        assert (array.read(region) == stored[region]).all()
    assert (array.read((slice(None),) * 5) == stored).all()


@pytest.mark.parametrize(
    "options",
    [
        {"compressors": zarr.codecs.ZstdCodec()},
        {"compressors": zarr.codecs.Crc32cCodec()},
        {"shards": (1, 2, 4, 16, 14)},
        {"serializer": zarr.codecs.BytesCodec(endian="big")},
    ],
    ids=["zstd", "checksum", "shards", "big-endian"],
)
def test_whole_chunks_of_other_files(tmp_path: Path, options: dict[str, Any]) -> None:
    path, stored, _ = written(tmp_path, **options)
    array = opened(path)
    assert array.bands == array.chunks
    assert (array.read((slice(None),) * 5) == stored).all()


@pytest.mark.parametrize(("change", "words"), [(-2, "cut short"), (2, "bytes")])
def test_files_of_another_size_are_refused(tmp_path: Path, change: int, words: str) -> None:
    path, _, _ = written(tmp_path)
    array = opened(path)
    chunk = path / "probs" / "c" / "0" / "0" / "0" / "0" / "0"
    data = chunk.read_bytes()
    chunk.write_bytes(data[:change] if change < 0 else data + b"\0" * change)
    with pytest.raises(StoreError, match=rf"chunk c/0/0/0/0/0 is damaged.*{words}"):
        array.read((slice(0, 1), slice(0, 1), slice(0, C), slice(0, 1), slice(0, 1)))


def test_missing_chunks(tmp_path: Path) -> None:
    path, _, _ = written(tmp_path)
    array = opened(path)
    (path / "probs" / "c" / "0" / "0" / "0" / "0" / "0").unlink()
    first = (slice(0, 1), slice(0, 1), slice(0, C), slice(0, 1), slice(0, 1))
    with pytest.raises(StoreError, match="is not stored"):
        array.read(first)
    array.fill_missing = True
    assert (array.read(first) == 0).all()


def test_the_same_report_as_from_whole_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _, labels = written(tmp_path)
    families = {"segmentation": {}, "pavpu": {"window": 2}, "calibration": {}, "failure": {}}
    found = []
    for band in (100, 512, 10**6):
        monkeypatch.setattr(zarr_array, "_BAND", band)
        report = uqeval.evaluate(path, labels, families)
        found.append((report.results, report.items))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("bytes_left", [None, 100])
def test_a_chunk_that_changes_between_its_bands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bytes_left: int | None
) -> None:
    path, _, labels = written(tmp_path)
    read, calls = FolderSource.box, []

    def changing(source: FolderSource, key: str, *box: Any) -> Any:
        calls.append(key)
        if calls.count(key) == 2:  # its first band is read
            file = path / key
            file.write_bytes(bytes(bytes_left or file.stat().st_size))
        return read(source, key, *box)

    monkeypatch.setattr(FolderSource, "box", changing)
    with pytest.raises(ChangedError, match="changed after this run had begun"):
        uqeval.evaluate(path, labels, "failure", workers=1)
    assert max(map(calls.count, calls)) > 1
