"""Zarr metadata that are invalid, false or unsupported."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.codecs import BytesCodec, Crc32cCodec, ShardingCodec
from zarr_files import CHUNKS, EVERYTHING, change, opened, read_refused, write

from uqeval.errors import StoreError
from uqeval.stores.zarr.group import open_zarr

LITTLE, BIG = ({"name": "bytes", "configuration": {"endian": e}} for e in ("little", "big"))
QUANTIZED = {"digits": 3, "dtype": "<f4"}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"shape": [3, -5, 7]}, "shape is [3, -5, 7]"),
        ({"shape": [3, 5.5, 7]}, "shape"),
        ({"shape": [3, True, 7]}, "shape"),
        ({"shape": [3, 5]}, "chunk_shape"),
        ({"shape": None}, "shape is None"),
        ({"data_type": "complex64"}, "neither numbers nor text"),
        ({"data_type": {"name": "numpy.datetime64"}}, "neither numbers nor text"),
        ({"codecs": [{"name": "bytes"}, {"name": "numcodecs.pickle"}]}, "'pickle'"),
        ({"codecs": 5}, "metadata are damaged"),
        ({"codecs": [{"name": "bytes"}, {"name": "zstd"}, {"name": "nobody"}]}, "'nobody'"),
        ({"codecs": [{"name": "bytes"}]}, "has endian None, expected 'little' or 'big'"),
        ({"codecs": [{"name": "bytes", "configuration": {"endian": "Big"}}]}, "endian 'Big'"),
        (
            {"codecs": [{"name": "transpose", "configuration": {"order": [0, 0, 1]}}, LITTLE]},
            "order [0, 0, 1], expected each axis from 0 to 2 once",
        ),
        (
            {"codecs": [{"name": "transpose", "configuration": {"order": "F"}}, LITTLE]},
            "order 'F'",
        ),
        (
            {"codecs": [{"name": "numcodecs.quantize", "configuration": QUANTIZED}, BIG]},
            "big-endian values after the filter 'quantize' are not read",
        ),
        ({"chunk_grid": {"name": "rectilinear"}}, "rectilinear"),
        ({"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [0, 2, 4]}}}, "0"),
        ({"chunk_key_encoding": {"name": "other"}}, "'other'"),
        ({"zarr_format": 4}, "zarr_format is 4"),
        ({"fill_value": "zero"}, "metadata are damaged"),
    ],
)
def test_wrong_metadata(tmp_path: Path, fields: dict[str, Any], words: str) -> None:
    write(tmp_path / "a")
    change(tmp_path / "a/zarr.json", **fields)
    with pytest.raises(StoreError) as caught:
        opened(tmp_path / "a")
    assert words in str(caught.value)
    assert str(tmp_path / "a") in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"dtype": "|O"}, "pickled objects are never read"),
        ({"dtype": "|O", "filters": [{"id": "pickle"}]}, "pickled objects are never read"),
        ({"filters": [{"id": "pickle"}]}, "'pickle'"),
        ({"dtype": [["a", "<f4"]]}, "neither numbers nor text"),
        ({"dtype": "<c8"}, "neither numbers nor text"),
        ({"dtype": "=f4"}, "dtype is '=f4' in its .zarray, without an order of bytes"),
        ({"order": "f"}, "order is 'f' in its .zarray, expected 'C' or 'F'"),
        ({"order": None}, "order is None"),
        ({"compressor": {"id": "nobody"}}, "'nobody'"),
        ({"compressor": {"id": "lz4", "wrong": 1}}, "cannot be set up"),
        ({"chunks": [2, 2]}, "chunks"),
    ],
)
def test_wrong_v2_metadata(tmp_path: Path, fields: dict[str, Any], words: str) -> None:
    write(tmp_path / "a", form=2)
    change(tmp_path / "a/.zarray", **fields)
    with pytest.raises(StoreError, match=words):
        opened(tmp_path / "a")


def test_shards_that_are_not_read(tmp_path: Path) -> None:
    write(tmp_path / "a", shards=(4, 4, 8))
    codecs = json.loads((tmp_path / "a/zarr.json").read_text())["codecs"]
    config = codecs[0]["configuration"]
    for wrong, words in [
        ([*codecs, {"name": "crc32c"}], "around"),
        ([{**codecs[0], "configuration": config | {"codecs": codecs}}], "inside shards"),
        ([{**codecs[0], "configuration": config | {"chunk_shape": [3, 2, 4]}}], "whole chunks"),
        ([{**codecs[0], "configuration": config | {"chunk_shape": [2, 2]}}], "in a shard"),
        ([{**codecs[0], "configuration": config | {"index_codecs": [{"name": "zstd"}]}}], "index"),
    ]:
        change(tmp_path / "a/zarr.json", codecs=wrong)
        with pytest.raises(StoreError, match=words):
            opened(tmp_path / "a")


@pytest.mark.parametrize("text", ["{", "[]", "", "\xff"])
def test_metadata_that_are_not_json(tmp_path: Path, text: str) -> None:
    write(tmp_path / "a")
    (tmp_path / "a/zarr.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(StoreError, match=r"zarr\.json"):
        opened(tmp_path / "a")


def test_huge_shapes_take_no_memory(tmp_path: Path) -> None:
    write(tmp_path / "a")
    change(tmp_path / "a/zarr.json", shape=[10**12, 10**6, 7])
    with pytest.raises(StoreError, match=r"1000000000000, 1000000, 7"):
        opened(tmp_path / "a").missing()
    change(tmp_path / "a/zarr.json", shape=[10**7, 5, 7])
    with pytest.raises(StoreError, match="holds 12 of 30,000,000 chunks"):
        opened(tmp_path / "a").missing()


def test_huge_chunks_take_no_memory(tmp_path: Path) -> None:
    write(tmp_path / "a")
    grid = {"name": "regular", "configuration": {"chunk_shape": [2**40, 2**10, 2**10]}}
    change(tmp_path / "a/zarr.json", chunk_grid=grid, shape=[2**40, 2**10, 2**10])
    read_refused(opened(tmp_path / "a"), "c/0/0/0", "damaged")
    (tmp_path / "a/c/0/0/0").unlink()
    read_refused(opened(tmp_path / "a", fill_missing=True), "does not fit into memory")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"storage_transformers": [{"name": "x"}]}, "'storage_transformers': [{'name': 'x'}]"),
        ({"encryption": {"name": "xor"}}, "has 'encryption': {'name': 'xor'}, an extension"),
        ({"extra": {"must_understand": True}}, "extension"),
        ({"extra": 1}, "extension"),
    ],
)
@pytest.mark.parametrize("of", ["a", "a/b"])
def test_extensions_of_groups_and_arrays(
    tmp_path: Path, of: str, fields: dict[str, Any], words: str
) -> None:
    zarr.create_group(tmp_path / "a")
    data = write(tmp_path / "a/b")
    known = {"storage_transformers": [], "consolidated_metadata": None}
    change(tmp_path / of / "zarr.json", **known, extra={"must_understand": False})
    assert np.array_equal(opened(tmp_path / "a/b").read(EVERYTHING), data)
    change(tmp_path / of / "zarr.json", **fields)
    with pytest.raises(StoreError, match=re.escape(words)):
        open_zarr(str(tmp_path / of))


@pytest.mark.parametrize(("file", "version"), [(".zgroup", 3), ("b/.zarray", 3), ("b/.zarray", 4)])
def test_another_version_in_metadata_of_version_2(tmp_path: Path, file: str, version: int) -> None:
    zarr.create_group(tmp_path / "a", zarr_format=2)
    write(tmp_path / "a/b", form=2)
    change(tmp_path / "a" / file, zarr_format=version)
    with pytest.raises(StoreError, match=f"zarr_format is {version}, expected 2"):
        open_zarr(str((tmp_path / "a" / file).parent))


@pytest.mark.parametrize("checked", [True, False])
def test_a_big_endian_index_of_shards(tmp_path: Path, checked: bool) -> None:
    index = [BytesCodec(endian="big"), *([Crc32cCodec()] if checked else [])]
    codec = ShardingCodec(chunk_shape=CHUNKS, codecs=[BytesCodec()], index_codecs=index)
    data = write(tmp_path / "a", chunks=(4, 4, 8), serializer=codec, compressors=None)
    assert np.array_equal(opened(tmp_path / "a").read(EVERYTHING), data)
    codecs = json.loads((tmp_path / "a/zarr.json").read_text())["codecs"]
    codecs[0]["configuration"]["index_location"] = "End"
    change(tmp_path / "a/zarr.json", codecs=codecs)
    with pytest.raises(StoreError, match="index_location is 'End', expected 'start' or 'end'"):
        opened(tmp_path / "a")
    codecs[0]["configuration"] |= {"index_location": "end", "index_codecs": [{"name": "bytes"}]}
    change(tmp_path / "a/zarr.json", codecs=codecs)
    with pytest.raises(StoreError, match="index of the shards: the codec bytes has endian None"):
        opened(tmp_path / "a")
