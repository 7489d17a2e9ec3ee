"""Kinds of arrays: which numbers their readers take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from number_stores import numbers, with_target
from scenes import zarr_array

import uqeval
from uqeval.errors import StoreError


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
        uqeval.evaluate(with_target(tmp_path / "r.zarr", target, **attributes), None)
    assert f"Store {code!r} as float32" in str(told.value)


def test_a_packed_map_that_is_not_read_is_left_out(tmp_path: Path) -> None:
    path = with_target(tmp_path / "r.zarr", numbers()["target"], scale_factor=1, add_offset=0.0)
    height = np.ones(numbers()["target"].shape, "i2")
    zarr_array(path / "height", height, attributes={"scale_factor": 0.5})
    report = uqeval.evaluate(path, None, "regression", workers=1)
    assert any("left out" in text and "height" in text for text in report.warnings)
