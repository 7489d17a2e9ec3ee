"""Attributes of targets that name the values without a measurement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from number_stores import numbers, with_target

import uqeval
from uqeval.errors import StoreError
from uqeval.usecases.convert import convert


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
