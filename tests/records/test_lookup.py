"""The metric that was probably meant by an unknown one."""

from __future__ import annotations

import pytest

from uqeval.records.lookup import nearest_key

KEYS = (
    "segmentation", "pavpu", "pavpu@boundary:4", "pavpu[mutual_information]",
    "pavpu[mutual_information]@boundary:4", "calibration", "calibration@boundary:4",
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("pavpu[mi]", "pavpu[mutual_information]"),
        ("pavpu[mutual_informaton]", "pavpu[mutual_information]"),
        ("pavpo[mi]@boundary:8", "pavpu[mutual_information]@boundary:4"),
        ("calibration@boundary:8", "calibration@boundary:4"),
        ("pavpo", "pavpu"),
        ("PAvPU", "pavpu"),
        ("pavpu[std]", None),
        ("calibration@class:road", None),
        ("failure", None),
    ],
)
def test_the_nearest_key_compares_part_by_part(text: str, near: str | None) -> None:
    assert nearest_key(text, KEYS) == near
