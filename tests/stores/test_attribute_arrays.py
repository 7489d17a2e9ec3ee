"""Attributes that are stored as arrays, such as members of an .npz, or keys of a mapping."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import zarr
from command import refused
from tensors import LabelledSet

import uqeval
from uqeval.errors import StoreError

RNG = np.random.default_rng(0)
PROBS = RNG.dirichlet(np.ones(4), (2, 5, 5)).transpose(0, 3, 1, 2).astype(np.float32)
LABELS = PROBS.argmax(1).astype(np.uint8)
SHAPE = (2, 5, 5)


def saved(form: str, path: Path, arrays: dict[str, Any]) -> Any:
    if form == "npz":
        np.savez(path / "a.npz", **arrays)
        return path / "a.npz"
    if form == "h5":
        with h5py.File(path / "a.h5", "w") as file:
            for name, values in arrays.items():
                file[name] = values
        return path / "a.h5"
    if form == "zarr":
        root = zarr.create_group(str(path / "a.zarr"))
        for name, values in arrays.items():
            root.create_array(name, data=np.asarray(values))
        return path / "a.zarr"
    return arrays


@pytest.mark.parametrize("form", ["memory", "npz", "h5", "zarr"])
def test_attributes_as_arrays(form: str, tmp_path: Path) -> None:
    arrays = {"probs": PROBS, "labels": LABELS, "ignore_index": 3}
    if form in ("memory", "npz"):
        arrays["class_names"] = np.array(list("abcd"))
    report = uqeval.evaluate(saved(form, tmp_path, arrays), None, "segmentation", workers=1)
    found = report.results["segmentation"]
    assert found["pixels"] == np.count_nonzero(LABELS != 3)
    if "class_names" in arrays:
        assert [row["name"] for row in found["per_class"]] == list("abcd")


@pytest.mark.parametrize("form", ["memory", "npz", "h5", "zarr"])
@pytest.mark.parametrize("invalid", [-1, [-1, -2]])
def test_invalid_is_that_of_the_target(form: str, invalid: Any, tmp_path: Path) -> None:
    arrays: dict[str, Any] = {"mean": np.full(SHAPE, 9.0), "std": np.ones(SHAPE)}
    target = np.full(SHAPE, 10.0)
    target[:, 0] = -1
    given = saved(form, tmp_path, arrays | {"target": target, "invalid": invalid})
    report = uqeval.evaluate(given, None, "regression", workers=1)
    assert report.results["regression"]["rmse"] == 1


@pytest.mark.parametrize("form", ["memory", "h5"])
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("ignore_index", (255, 3)), ("names", (["a", "b"], ["b", "a"])),
        ("class_names", ([*"abcd"], [*"dcba"])),
    ],
)  # fmt: skip
def test_an_attribute_that_an_array_contradicts(
    form: str, name: str, values: Any, tmp_path: Path
) -> None:
    declared, value = values

    def given(value: Any) -> Any:
        texts = h5py.string_dtype() if form == "h5" and isinstance(value, list) else None
        own = np.array(value, texts)
        arrays = {"probs": PROBS, "labels": LABELS, name: own}
        if form == "memory":
            return LabelledSet(arrays, {name: declared})
        folder = tmp_path / str(value)
        folder.mkdir()
        path = saved(form, folder, arrays)
        with h5py.File(path, "r+") as file:
            file.attrs[name] = declared
        return path

    refused(
        lambda: uqeval.evaluate(given(value), None, "segmentation"),
        f"attribute {name} is", f"and the array {name}", error=StoreError,
    )  # fmt: skip
    uqeval.evaluate(given(declared), None, "segmentation", workers=1)


@pytest.mark.parametrize("name", ["_FillValue", "missing_value", "scale_factor", "add_offset"])
def test_attributes_of_one_array_are_refused(name: str) -> None:
    arrays = {"mean": np.full(SHAPE, 9.0), "std": np.ones(SHAPE), "target": np.ones(SHAPE)}
    refused(
        lambda: uqeval.evaluate(arrays | {name: -1.0}, None, "regression"),
        f"{name} is -1.0, stored beside the arrays", error=StoreError,
    )  # fmt: skip


def test_what_is_no_attribute() -> None:
    """A mask, a factor that changes nothing, an offset of something else."""
    arrays = {"mean": np.full(9, 9.0), "std": np.ones(9), "target": np.full(9, 10.0)}
    others = {
        "invalid": np.zeros(9, bool), "scale_factor": [1.0], "_FillValue": np.nan, "offset": 7,
    }  # fmt: skip
    others = {name: np.asarray(value) for name, value in others.items()}
    report = uqeval.evaluate(arrays | others, None, "regression", workers=1)
    assert report.results["regression"]["rmse"] == 1
    assert any("offset is 7 and is not read" in text for text in report.warnings)
