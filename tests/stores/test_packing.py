"""Attributes of arrays that say what their numbers mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from number_stores import numbers
from scenes import zarr_array, zarr_group

import uqeval
from uqeval.errors import StoreError
from uqeval.stores.writing.convert import convert


def evaluated(path: Any) -> Any:
    return uqeval.evaluate(path, None, "regression", workers=1).results["regression"]


def with_target(path: Path, target: Any, **attributes: Any) -> Path:
    arrays = {name: numbers()[name] for name in ("mean", "std")}
    return zarr_group(path, arrays | {"target": (target, {"attributes": attributes})})


@pytest.mark.parametrize(
    ("dtype", "attributes", "code"),
    [
        ("i2", {"scale_factor": 0.01}, "numbers * 0.01"),
        ("i2", {"scale_factor": 0.01, "add_offset": 2.0}, "numbers * 0.01 + 2.0"),
        ("f4", {"scale_factor": 1.0, "add_offset": -1}, "numbers + -1"),
        ("u2", {"scale": 0.01}, "numbers * 0.01"),
    ],
)
def test_packed_numbers(tmp_path: Path, dtype: str, attributes: Any, code: str) -> None:
    target = np.ones(numbers()["target"].shape, dtype)
    with pytest.raises(StoreError, match=r"target: holds \w+ numbers that are packed") as told:
        evaluated(with_target(tmp_path / "r.zarr", target, **attributes))
    assert f"Store {code!r} as float32" in str(told.value)


def test_a_packed_map_that_is_not_read_is_left_out(tmp_path: Path) -> None:
    path = with_target(tmp_path / "r.zarr", numbers()["target"], scale_factor=1, add_offset=0.0)
    height = np.ones(numbers()["target"].shape, "i2")
    zarr_array(path / "height", height, attributes={"scale_factor": 0.5})
    report = uqeval.evaluate(path, None, "regression", workers=1)
    assert any("left out" in text and "height" in text for text in report.warnings)


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


@pytest.mark.parametrize("fill", [float("nan"), "NaN", "AAAAAAAA+H8="])
def test_nan_as_a_fill_value_changes_nothing(tmp_path: Path, fill: Any) -> None:
    """xarray writes it for all floats, in Zarr 3 as base64."""
    target = numbers()["target"]
    expected = evaluated(with_target(tmp_path / "a.zarr", target))
    path = with_target(tmp_path / "b.zarr", target, _FillValue=fill)
    assert evaluated(path) == expected
    convert(path, tmp_path / "c.zarr")
    assert evaluated(tmp_path / "c.zarr") == expected


def test_a_fill_value_that_is_no_number(tmp_path: Path) -> None:
    path = with_target(tmp_path / "r.zarr", numbers()["target"], _FillValue="none")
    with pytest.raises(StoreError, match="attribute _FillValue is 'none'; expected a number"):
        evaluated(path)
