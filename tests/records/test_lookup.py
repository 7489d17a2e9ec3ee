"""The metric and the address that were probably meant by unknown ones."""

from __future__ import annotations

import pytest
from family_reports import of_sweep

from uqeval.records.addresses import Address
from uqeval.records.lookup import NoScore, Score, find, nearest_key
from uqeval.records.suggestions import suggestion

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


@pytest.mark.parametrize("text", ["sweep.pavpu.surplus", 'sweep."pavpu.surplus".mean'])
def test_a_score_of_a_sweep_has_quotes_and_a_row(text: str) -> None:
    """The row of the most samples."""
    sweep = of_sweep()
    found = find(sweep, Address.parse(text))
    assert isinstance(found, NoScore) and "the nearest is 'pavpu.pavpu'" not in found.why
    near = suggestion([sweep], Address.parse(text), found)
    assert near == 'sweep."pavpu.surplus".mean.2'
    assert isinstance(find(sweep, Address.parse(near)), Score)
