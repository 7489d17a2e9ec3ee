"""Every chunk file whose length cannot be right is found, without decoding any."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, ZstdCodec

from uqeval.stores.zarr.array import ZarrArray
from uqeval.stores.zarr.group import open_zarr
from uqeval.stores.zarr.source import FolderSource
from uqeval.usecases.inspect import inspect

VALUES = np.random.default_rng(0).normal(size=(4, 8, 8)).astype("f4")


def made(path: Path, **options: Any) -> Path:
    about: dict[str, Any] = {"chunks": (1, 8, 8)} | options
    array = zarr.create_array(path, shape=VALUES.shape, dtype="f4", **about)
    array[...] = VALUES
    return path


def wrong(path: Path) -> list[str]:
    array = open_zarr(FolderSource(str(path)))
    assert isinstance(array, ZarrArray)
    return array.wrong_lengths()


FORMS: dict[str, dict[str, Any]] = {
    "plain": {"compressors": None},
    "checksum": {"compressors": [Crc32cCodec()]},
    "blosc": {"compressors": [BloscCodec()]},
    "blosc, checksum": {"compressors": [BloscCodec(), Crc32cCodec()]},
    "shards": {"shards": (2, 8, 8), "compressors": [BloscCodec()]},
    "version 2": {"zarr_format": 2, "compressors": None},
}


@pytest.mark.parametrize("form", FORMS)
def test_a_chunk_of_another_length_is_found(tmp_path: Path, form: str) -> None:
    path = made(tmp_path / "a", **FORMS[form])
    assert wrong(path) == []
    stored = [file for file in path.rglob("*") if file.is_file()]
    chunks = sorted(file for file in stored if not file.name.startswith((".z", "z")))
    whole = chunks[1].read_bytes()
    if form != "shards":  # there the end of the file is its index
        chunks[1].write_bytes(whole[:-5])
        (found,) = wrong(path)
        assert f"has {len(whole) - 5} bytes, expected {len(whole)}" in found
        chunks[1].write_bytes(whole + b"x")
        assert len(wrong(path)) == 1
    else:
        chunks[1].write_bytes(whole[:40] + whole[-36:])
        assert "expected" in wrong(path)[0]
    chunks[1].write_bytes(b"")
    assert "is empty" in wrong(path)[0]


@pytest.mark.parametrize("compressor", [ZstdCodec(), GzipCodec()])
def test_an_empty_chunk_is_found_whatever_the_codec(tmp_path: Path, compressor: Any) -> None:
    path = made(tmp_path / "a", compressors=[compressor])
    assert wrong(path) == []
    (path / "c" / "2" / "0" / "0").write_bytes(b"")
    assert wrong(path) == ["c/2/0/0 is empty"]


def test_inspect_looks_at_all_items(tmp_path: Path) -> None:
    probs = np.full((9, 2, 8, 8), 0.5, "f4")
    group = zarr.create_group(tmp_path / "s")
    array = group.create_array("probs", shape=probs.shape, dtype="f4", chunks=(1, 2, 8, 8))
    array[...] = probs
    assert inspect(str(tmp_path / "s")).problems == []
    # Not among the three items that are read.
    (tmp_path / "s" / "probs" / "c" / "1" / "0" / "0" / "0").write_bytes(b"")
    (problem,) = inspect(str(tmp_path / "s")).problems
    assert problem.startswith("1 chunk of a wrong length: ")
    assert "probs: c/1/0/0/0 is empty. Copy" in problem
