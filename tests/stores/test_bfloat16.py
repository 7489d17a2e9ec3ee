"""bfloat16: its probabilities pass or fail by their values, and there is one warning."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import uqeval
from uqeval.errors import DataError, StoreError
from uqeval.stores.bfloat16 import TOLERANCE, is_coarse
from uqeval.stores.incoming import as_array
from uqeval.stores.store import open_store
from uqeval.usecases.convert import convert

NAMES = ("a", "b")
LABELS = np.zeros((2, 16, 16), np.uint8)


def softmax(classes: int, sharp: float) -> np.ndarray:
    """Probabilities [2, class, 16, 16] of which each step was rounded, as JAX does it."""
    rng = np.random.default_rng(classes)
    z = (rng.normal(size=(2, classes, 16, 16)) * sharp).astype(ml_dtypes.bfloat16)
    e = np.exp(z - z.max(axis=1, keepdims=True))
    total = e.astype(np.float32).sum(axis=1, keepdims=True).astype(ml_dtypes.bfloat16)
    return e / total


def write(path: Path, probs: Any, **settings: Any) -> list[str]:
    """Write two items, each of one sample, and return the warnings."""
    about = {"samples": 1, "classes": probs.shape[1], "size": (16, 16)} | settings
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with uqeval.PredictionWriter(path, names=NAMES, **about) as writer:
            for name, item in zip(NAMES, probs, strict=True):
                writer.add(name, item)
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(("classes", "sharp"), [(2, 0.5), (2, 20), (11, 3), (150, 20)])
def test_every_softmax_is_written_and_read_with_one_warning(
    tmp_path: Path, classes: int, sharp: float, dtype: Any
) -> None:
    probs = softmax(classes, sharp)
    (said,) = write(tmp_path / "p.zarr", probs, dtype=dtype)
    assert "bfloat16" in said and ".float().softmax" in said and "kind='logits'" in said
    report = uqeval.evaluate(tmp_path / "p.zarr", LABELS, "failure")
    assert sum("bfloat16" in text for text in report.warnings) == 1
    in_memory = uqeval.evaluate(probs, LABELS, "failure")
    assert sum("bfloat16" in text for text in in_memory.warnings) == 1
    assert in_memory.results["segmentation"] == report.results["segmentation"]


@pytest.mark.parametrize("batch", [False, True])
def test_the_warning_is_at_the_line_of_the_caller(tmp_path: Path, batch: bool) -> None:
    probs = softmax(3, 1)
    about: dict[str, Any] = {"names": NAMES, "samples": 1, "classes": 3, "size": (16, 16)}
    writer = uqeval.PredictionWriter(tmp_path / "p.zarr", **about)
    with pytest.warns(UserWarning, match="bfloat16") as caught:
        writer.add_batch(NAMES, probs) if batch else writer.add("a", probs[0])
    assert [own.filename for own in caught] == [__file__]


def test_logits_in_bfloat16_are_no_matter(tmp_path: Path) -> None:
    logits = np.zeros((2, 3, 16, 16), ml_dtypes.bfloat16)
    assert write(tmp_path / "p.zarr", logits, kind="logits") == []
    assert not uqeval.evaluate(tmp_path / "p.zarr", LABELS, "pavpu").warnings


def test_what_is_no_probability_is_refused_still(tmp_path: Path) -> None:
    probs = softmax(3, 1)
    probs[1] *= 0.95
    message = rf"item 'b'.*do not sum to 1.*tolerance {TOLERANCE:g} for bfloat16.*\.float\(\)"
    with pytest.raises(DataError, match=message):
        write(tmp_path / "p.zarr", probs)
    with pytest.raises(DataError, match=r"do not sum to 1"):
        uqeval.evaluate(probs, LABELS, "pavpu")
    fine = softmax(3, 1).astype(np.float32)
    with pytest.raises(DataError, match=r"do not sum to 1.*tolerance 0.0001 for float32"):
        write(tmp_path / "q.zarr", fine / fine.sum(axis=1, keepdims=True) * 1.005, dtype="float32")


def test_a_store_is_of_one_kind(tmp_path: Path) -> None:
    mixed = tmp_path / "p.zarr"
    writer = uqeval.PredictionWriter(mixed, names=NAMES, samples=1, classes=3, size=(16, 16))
    writer.add("a", softmax(3, 1)[0].astype(np.float32) * 0 + np.float32(1 / 3))
    with (
        pytest.warns(UserWarning, match="bfloat16"),
        pytest.raises(DataError, match=r"probs of item 'b'.*all items of a store in one dtype"),
    ):
        writer.add("b", softmax(3, 1)[1])


def test_copies_and_maps_remember_it(tmp_path: Path) -> None:
    write(tmp_path / "p.zarr", softmax(11, 3))
    write(tmp_path / "m.zarr", softmax(11, 3), keep="maps", mean_probs=True)
    for source in ("p.zarr", "m.zarr"):
        convert(str(tmp_path / source), str(tmp_path / f"copy-{source}"))
        arrays = open_store(tmp_path / f"copy-{source}", role="predictions").arrays
        assert is_coarse(arrays["probs" if source == "p.zarr" else "mean_probs"][0].array)


@pytest.mark.parametrize("version", [2, 3])
def test_zarr_of_bfloat16_is_read(tmp_path: Path, version: int) -> None:
    probs = softmax(3, 2)
    folder = tmp_path / "p.zarr"
    folder.mkdir()
    shape = list(probs.shape)
    chunk = probs.view(np.uint16).tobytes()
    if version == 3:
        codecs = [{"name": "bytes", "configuration": {"endian": "little"}}]
        grid = {"name": "regular", "configuration": {"chunk_shape": shape}}
        keys = {"name": "default", "configuration": {"separator": "/"}}
        document = {
            "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "bfloat16",
            "chunk_grid": grid, "chunk_key_encoding": keys, "fill_value": "0x3f80",
            "codecs": codecs, "attributes": {},
        }  # fmt: skip
        (folder / "zarr.json").write_text(json.dumps(document))
        (folder / "c/0/0/0").mkdir(parents=True)
        (folder / "c/0/0/0/0").write_bytes(chunk)
    else:
        document = {
            "zarr_format": 2, "shape": shape, "chunks": shape, "dtype": "bfloat16", "order": "C",
            "compressor": None, "fill_value": 0, "filters": None,
        }  # fmt: skip
        (folder / ".zarray").write_text(json.dumps(document))
        (folder / "0.0.0.0").write_bytes(chunk)
    (part, _) = open_store(folder, role="predictions").arrays["probs"]
    whole = tuple(slice(0, n) for n in shape)
    np.testing.assert_array_equal(part.array.read(whole), probs.astype(np.float32))
    report = uqeval.evaluate(folder, LABELS, "pavpu")
    assert sum("bfloat16" in text for text in report.warnings) == 1


def test_npy_of_bfloat16_says_what_to_save(tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", softmax(3, 1))
    with pytest.raises(
        StoreError, match=r"numpy\.save writes bfloat16 like this: save array\.astype"
    ):
        open_store(tmp_path / "p.npy", role="predictions")


def test_what_cannot_convert_itself_is_refused() -> None:
    class Opaque:
        dtype = "bfloat16"

    with pytest.raises(DataError, match=r"item 'a' is a Opaque of bfloat16.*float32 first"):
        as_array(Opaque(), "item 'a'")
