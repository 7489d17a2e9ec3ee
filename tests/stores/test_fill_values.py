"""Attributes of numbers that name the values which are none: of targets and of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from group_files import group
from number_stores import SHAPE, numbers, with_target
from scenes import labels, softmax, zarr_group

import uqeval
from uqeval.errors import DataError, StoreError
from uqeval.inputs import InputOptions, open_inputs
from uqeval.usecases.convert import convert
from uqeval.usecases.reduce import reduce
from uqeval.usecases.verify.verifying import verify


def evaluated(path: Any) -> Any:
    return uqeval.evaluate(path, None, "regression", workers=1).results["regression"]


@pytest.mark.parametrize(
    ("name", "fill"),
    [
        ("invalid", -9999), ("_FillValue", [-9999.0]), ("missing_value", -9999.0),
        ("_FillValue", "AAAAAICHw8A="),
    ],
)  # fmt: skip
def test_fill_values_of_targets_are_invalid(tmp_path: Path, name: str, fill: Any) -> None:
    target = numbers()["target"]
    filled = np.nan_to_num(target, nan=-9999)
    expected = evaluated(with_target(tmp_path / "a.zarr", target))
    path = with_target(tmp_path / "b.zarr", filled, **{name: fill})
    assert evaluated(path) == expected
    convert(path, tmp_path / "c.zarr")
    assert evaluated(tmp_path / "c.zarr") == expected


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("fill", [-9999.0, 0.0, float("nan"), None])
def test_fill_values_of_zarr_2(tmp_path: Path, fill: float | None, named: bool) -> None:
    """xarray writes them to .zarray alone, with names of dimensions; zarr-python writes 0 to all
    arrays."""
    is_declared = named and fill == -9999
    target = np.nan_to_num(numbers()["target"], nan=-9999.0)
    valid = np.nan_to_num(numbers()["target"]) != 0
    arrays: dict[str, Any] = {name: numbers()[name] for name in ("mean", "std")}
    path = group(tmp_path / "r.zarr", arrays | {"target": (target, {"fill_value": fill})}, form=2)
    if named:
        array = zarr.open_group(str(path))["target"]
        array.attrs["_ARRAY_DIMENSIONS"] = ["item", "y", "x"]
    given = arrays | {"target": target} | ({"valid": valid} if is_declared else {})
    expected = evaluated(given)
    assert evaluated(path) == expected
    convert(path, tmp_path / "c.zarr")
    assert evaluated(tmp_path / "c.zarr") == expected


@pytest.mark.parametrize("fill", [float("nan"), "NaN", "AAAAAAAA+H8="])
def test_nan_as_a_fill_value_changes_nothing(tmp_path: Path, fill: Any) -> None:
    """xarray writes it for all floats, in Zarr 3 as base64."""
    target = numbers()["target"]
    expected = evaluated(with_target(tmp_path / "a.zarr", target))
    path = with_target(tmp_path / "b.zarr", target, _FillValue=fill)
    assert evaluated(path) == expected
    convert(path, tmp_path / "c.zarr")
    assert evaluated(tmp_path / "c.zarr") == expected


def test_an_invalid_value_that_is_no_number(tmp_path: Path) -> None:
    path = with_target(tmp_path / "r.zarr", numbers()["target"], invalid="none")
    with pytest.raises(StoreError, match="attribute invalid is 'none'; expected a number"):
        evaluated(path)


@pytest.mark.parametrize("name", ["_FillValue", "missing_value"])
@pytest.mark.parametrize("fill", ["", "n/a", True, ["n/a"], {"a": 1}])
def test_fill_values_that_are_no_numbers_are_ignored(tmp_path: Path, name: str, fill: Any) -> None:
    target = numbers()["target"]
    expected = evaluated(with_target(tmp_path / "a.zarr", target))
    path = with_target(tmp_path / "b.zarr", target, **{name: fill})
    report = uqeval.evaluate(path, None, "regression", workers=1)
    assert report.results["regression"] == expected
    (text,) = (text for text in report.warnings if name in text)
    assert "it is ignored" in text


def test_an_empty_fill_value_of_hdf5(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    stored = {name: numbers()[name] for name in ("mean", "std", "target")}
    with h5py.File(tmp_path / "r.h5", "w") as file:
        for name, values in stored.items():
            file[name] = values
        file["target"].attrs["_FillValue"] = h5py.Empty("f4")
    assert evaluated(tmp_path / "r.h5") == evaluated(stored)


def filled(tmp_path: Path, name: str, fill: Any, where: Any, valid: Any, dtype: str = "f4") -> Path:
    """Predicted numbers, in one of which `fill` stands at `where`, as its attribute says."""
    arrays: dict[str, Any] = numbers() | {"valid": valid}
    spread = {"std": np.sqrt, "variance": np.asarray}.get(name)
    if spread is not None:
        arrays[name] = spread(arrays.pop("std") ** 2)
    elif name not in arrays:
        arrays[name] = np.abs(arrays["mean"])
    scale = {"scale": 0.5} if dtype == "u2" else {}
    if scale:
        arrays[name] = arrays[name].clip(0, 90) * 2
    values = np.where(where, fill, arrays[name]).astype(dtype)
    arrays[name] = values, {"attributes": {"_FillValue": fill} | scale}
    return zarr_group(tmp_path / "r.zarr", arrays)


@pytest.mark.parametrize(
    ("name", "fill", "dtype"),
    [
        ("mean", -9999, "f4"), ("mean", 0.1, "f4"), ("mean", 65535, "u2"), ("std", 77, "f4"),
        ("variance", 5, "f8"), ("unsure", 99, "f4"),
    ],
)  # fmt: skip
def test_fill_values_of_predictions(tmp_path: Path, name: str, fill: Any, dtype: str) -> None:
    """They were numbers like any others."""
    metrics = {"sparsification": {"uncertainty": "unsure"}} if name == "unsure" else "regression"
    where = np.zeros(SHAPE, bool)
    where[:, :2] = True
    path = filled(tmp_path, name, fill, where, ~where, dtype)
    uqeval.evaluate(path, None, metrics, workers=1)  # they are not evaluated
    path = filled(tmp_path / "all", name, fill, where, where | True, dtype)
    expected = rf"{name}, item .*{fill}.* at row 0, column \d.* Mask .*`valid`"
    with pytest.raises(DataError, match=expected):
        uqeval.evaluate(path, None, metrics, workers=1)


def test_fill_values_of_samples_are_skipped_as_nan_is(tmp_path: Path) -> None:
    arrays = numbers(members=4)
    gaps = np.random.default_rng(0).random(arrays["mean"].shape) < 0.2
    gaps[:, 0] = False
    samples = np.where(gaps, np.nan, arrays["mean"])
    found = []
    for fill in (np.nan, -1.0):
        stored = np.nan_to_num(samples, nan=fill), {"attributes": {"missing_value": [-1]}}
        path = zarr_group(tmp_path / f"{fill}", {"samples": stored, "target": arrays["target"]})
        report = uqeval.evaluate(path, None, "regression", nan_samples="skip", workers=1)
        found.append(report.results["regression"])
    assert found[0] == found[1]


@pytest.mark.parametrize("size", [(2, 3), (40, 500)])
@pytest.mark.parametrize("kind", ["logits", "map"])
def test_fill_values_of_classes(tmp_path: Path, kind: str, size: tuple[int, int]) -> None:
    probs, truth = softmax(0, 3, 2, 4, *size), labels(0, 3, *size, classes=2)
    arrays = {
        "logits": {"logits": np.log(probs)},
        "map": {"probs": probs, "unsure": probs[:, 0, 0].copy()},
    }[kind]
    name, values = list(arrays.items())[-1]
    metrics = {"failure": {"uncertainty": "unsure"}} if kind == "map" else "calibration"
    for is_void in (True, False):
        truth[1, -1] = 255 if is_void else 0
        found = []
        for fill in (0.5, 0.75):
            values[1, ..., -1, :] = fill
            stored = {name: (values, {"attributes": {"_FillValue": 0.75}}), "labels": truth}
            path = zarr_group(tmp_path / f"{is_void} {fill}", arrays | stored)
            if fill == 0.75 and not is_void:
                expected = rf"{name}, item 1: {size[1]} eval.* 0.75, fir.* Label .* void; if they"
                with pytest.raises(DataError, match=expected):
                    uqeval.evaluate(path, None, metrics, workers=1)
            else:
                found.append(uqeval.evaluate(path, None, metrics, workers=1).results)
        assert not is_void or found[0] == found[1]


@pytest.mark.parametrize("kind", ["foreground", "map", "variance", "unsure"])
def test_fill_values_of_0_that_are_usual_values(tmp_path: Path, kind: str) -> None:
    """Tools write them to arrays without gaps."""
    zeros, everywhere = np.zeros(SHAPE, bool), np.ones(SHAPE, bool)
    zeros[:, :2] = True
    metrics: Any = {"sparsification": {"uncertainty": "unsure"}}
    if kind in ("foreground", "map"):
        probs = softmax(0, 3, 2, 4, 2, 3)
        own, values = "unsure", probs[:, 0, 0].copy()
        metrics = {"failure": {"uncertainty": own}}
        if kind == "foreground":
            own, values, metrics = "probs", probs[:, :, :1].copy(), "calibration"
        values[1, ..., -1, :] = 0
        stored = {"probs": probs, "labels": labels(0, 3, 2, 3, classes=2)}
        stored[own] = values, {"attributes": {"_FillValue": 0}}
        path = zarr_group(tmp_path / "r.zarr", stored)
    else:
        metrics = metrics if kind == "unsure" else "regression"
        path = filled(tmp_path, kind, 0, zeros, everywhere)
    uqeval.evaluate(path, None, metrics, workers=1)
    if kind != "foreground":  # somebody declares it
        array = zarr.open_group(str(path))["unsure" if kind == "map" else kind]
        array.attrs["invalid"] = 0
        with pytest.raises(DataError, match=r"item .*\b0\b"):
            uqeval.evaluate(path, None, metrics, workers=1)


def test_fill_values_of_classes_without_labels(tmp_path: Path) -> None:
    logits = np.log(softmax(0, 3, 2, 4, 2, 3))
    logits[1, 0, 0, 1, 2] = -999
    stored = {"logits": (logits, {"attributes": {"_FillValue": -999}})}
    inputs = open_inputs(zarr_group(tmp_path / "r.zarr", stored), None, InputOptions())
    with pytest.raises(DataError, match=r"Write other values there; if they .* remove the attr"):
        reduce(inputs, tmp_path / "out")


RANGES = [
    ({"valid_range": [5, 30]}, 5, 30), ({"valid_min": 5.0}, 5, np.inf),
    ({"valid_max": [30]}, -9, 30), ({"valid_min": 5, "valid_max": 30}, 5, 30),
    ({"valid_min": "5"}, 5, np.inf),
    ({"valid_range": [30, 5], "valid_min": 8}, -np.inf, np.inf),
    ({"valid_min": 8, "valid_max": 5}, -np.inf, np.inf),
]  # fmt: skip


@pytest.mark.parametrize(("attributes", "least", "most"), RANGES)
def test_targets_outside_of_their_valid_range(
    tmp_path: Path, attributes: dict[str, Any], least: float, most: float
) -> None:
    """netCDF masks them; they counted as targets."""
    target = numbers()["target"]
    known = np.where((target >= least) & (target <= most), target, np.nan)
    expected = evaluated(with_target(tmp_path / "a.zarr", known))
    path = with_target(tmp_path / "b.zarr", target, **attributes)
    assert evaluated(path) == expected
    is_other = expected != evaluated(with_target(tmp_path / "d.zarr", target))
    assert is_other == (least > -np.inf or most < np.inf)
    convert(path, tmp_path / "c.zarr")
    assert evaluated(tmp_path / "c.zarr") == expected


def test_a_valid_range_that_is_no_number_is_ignored(tmp_path: Path) -> None:
    target = numbers()["target"]
    path = with_target(tmp_path / "b.zarr", target, valid_range="5, 30")
    report = uqeval.evaluate(path, None, "regression", workers=1)
    assert report.results["regression"] == evaluated(with_target(tmp_path / "a.zarr", target))
    assert any("attribute valid_range is '5, 30'; it is ignored" in t for t in report.warnings)


def test_verify_takes_a_mask_as_the_evaluation_does(tmp_path: Path) -> None:
    """Its valid range does not count: 255 is true, too."""
    arrays = numbers()
    mask = np.where(arrays["valid"], 255, 0).astype(np.uint8)
    stored = {"valid": (mask, {"attributes": {"valid_range": [0, 1]}})}
    path = zarr_group(tmp_path / "m.zarr", arrays | stored)
    report = uqeval.evaluate(path, None, "regression", workers=1)
    assert report.results["regression"] == evaluated(zarr_group(tmp_path / "a.zarr", arrays))
    report.save(tmp_path / "m.json")
    assert verify(tmp_path / "m.json", [path], everything=True).passed


def test_the_valid_range_of_predictions_does_not_count(tmp_path: Path) -> None:
    """xarray copies attributes of the target to what is computed beside it."""
    arrays, reports = numbers(), []
    for attributes in ({}, {"valid_min": float(np.median(arrays["mean"]))}):
        stored = {"mean": (arrays["mean"], {"attributes": attributes})}
        path = zarr_group(tmp_path / f"{len(attributes)}.zarr", arrays | stored)
        reports.append(evaluated(path))
        convert(path, tmp_path / f"c{len(attributes)}.zarr")
        reports.append(evaluated(tmp_path / f"c{len(attributes)}.zarr"))
    assert reports[1:] == reports[:-1]


@pytest.mark.filterwarnings("ignore:The data type:zarr.errors.UnstableSpecificationWarning")
@pytest.mark.parametrize("form", [2, 3])
@pytest.mark.parametrize("name", ["names", "item", "class"])
def test_texts_as_bytes_in_zarr(tmp_path: Path, name: str, form: int) -> None:
    """xarray writes them so; they were left out, and other orders evaluated."""
    probs, truth = softmax(0, 3, 2, 4, 2, 3), labels(0, 3, 2, 3, classes=4)
    order, texts = [2, 0, 1], ["a", "böblingen", "c"]
    if name == "class":
        order, texts = [2, 0, 1, 3], [*texts, "d"]

    def stored(path: Path, own: str, values: Any, places: list[int]) -> Path:
        axes = {"probs": ["item", "sample", "class", "y", "x"], "labels": ["item", "y", "x"]}[own]
        root = zarr.create_group(str(path), zarr_format=form)
        text = np.array([texts[k].encode() for k in places])
        dims = {own: axes, name: ["class" if name == "class" else "item"]}
        for key, data in ((own, values), (name, text)):
            array = root.create_array(
                key, shape=data.shape, dtype=data.dtype,
                dimension_names=dims[key] if form == 3 else None,
            )  # fmt: skip
            array[...] = data
            if form == 2:
                array.attrs["_ARRAY_DIMENSIONS"] = dims[key]
        return path

    same = list(range(len(order)))
    first = stored(tmp_path / "a.zarr", "probs", probs, same)
    expected = uqeval.evaluate(probs, truth, "segmentation").results
    if name == "class":
        other = stored(tmp_path / "b.zarr", "probs", probs[:, :, order], order)
        with pytest.raises(StoreError, match="the classes have other numbers: 'c' is class 2 in"):
            uqeval.evaluate([first, other], truth, "segmentation")
        return
    other = stored(tmp_path / "b.zarr", "labels", truth[order], order)
    if name == "names":
        assert uqeval.evaluate(first, other, "segmentation").results == expected
    else:
        with pytest.raises(StoreError, match="the items are in another order"):
            uqeval.evaluate(first, other, "segmentation")
        same_order = stored(tmp_path / "c.zarr", "labels", truth, same)
        assert uqeval.evaluate(first, same_order, "segmentation").results == expected


@pytest.mark.filterwarnings("ignore:The data type:zarr.errors.UnstableSpecificationWarning")
def test_bytes_of_zarr_that_are_no_text(tmp_path: Path) -> None:
    probs, truth = softmax(0, 3, 2, 4, 2, 3), labels(0, 3, 2, 3, classes=4)
    bad = np.array([b"\xff", b"b", b"c"])
    path = group(tmp_path / "a.zarr", {"probs": probs, "labels": truth, "item": bad})
    report = uqeval.evaluate(path, None, "segmentation")
    assert any("a.zarr/item holds bytes that are not text in UTF-8" in t for t in report.warnings)
    path = group(tmp_path / "b.zarr", {"probs": probs, "labels": truth, "names": bad})
    with pytest.raises(StoreError, match=r"b\.zarr/names holds bytes that are not text in UTF-8"):
        uqeval.evaluate(path, None, "segmentation")
