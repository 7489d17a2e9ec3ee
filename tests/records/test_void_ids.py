"""Void ids of results: whose they are, and which of them can be compared."""

from __future__ import annotations

from typing import Any

import pytest

from uqeval.records.void_ids import other_void_ids, void_ids

IDS = {"arrays": {"predictions": {}}}
PROBABILITIES = {"arrays": {"probs": {}}}


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({"labels": {"path": "l"}}, {"labels": 7}),
        ({}, {"labels": 7}),  # not recorded
        ({"labels": None}, {}),
        ({"labels": None, "ood_mask": {"path": "m"}}, {"labels": 7}),
        ({"labels": None, "regions": [{"region": "map:zones"}]}, {"labels": 7}),
        ({"labels": None, "regions": [{"region": "depth"}, None]}, {}),
    ],
)
def test_of_labels_masks_and_maps(inputs: dict[str, Any], expected: dict[str, int]) -> None:
    assert void_ids({"ignore_index": 7, **inputs}, {}) == expected


@pytest.mark.parametrize(
    ("inputs", "settings", "expected"),
    [
        ({}, {"model": "a", "ignore_index": 3}, 3),
        ({}, {"model": "a", "ignore_index": None}, None),  # computed ids
        # Earlier versions recorded none in the settings.
        ({"predictions": [IDS]}, {"model": "a"}, 7),
        ({"predictions": [PROBABILITIES]}, {"model": "a"}, None),
        ({"predictions": [IDS, IDS]}, {"model": "a"}, None),
        ({"predictions": [IDS], "labels": {"path": "l"}}, {"model": "a"}, None),
        ({"predictions": [IDS, IDS], "options": {"ignore_index": 2}}, {"model": "a"}, 2),
        ({"predictions": [IDS]}, {}, None),  # no video
        ({"predictions": 3, "options": 4, "ignore_index": "x"}, {"model": "a"}, None),
    ],
)
def test_of_the_predictions_of_a_video(
    inputs: dict[str, Any], settings: dict[str, Any], expected: int | None
) -> None:
    record = {"ignore_index": 7, "labels": None, **inputs}
    assert void_ids(record, settings).get("predictions") == expected


def test_only_ids_that_both_have_differ() -> None:
    both = {"labels": 1, "predictions": 2}
    assert not list(other_void_ids(both, {}))
    assert not list(other_void_ids(both, {"labels": 1}))
    assert list(other_void_ids(both, {"labels": 3, "predictions": 4})) == [
        ("ignore_index", 1, 3), ("ignore_index of predictions", 2, 4),
    ]  # fmt: skip
