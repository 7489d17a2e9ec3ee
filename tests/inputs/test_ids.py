"""Ids of frames: which item of a store is a frame's."""

from __future__ import annotations

import pytest

from uqeval.inputs.ids import positions_of_frames
from uqeval.stores.array import Store


@pytest.mark.parametrize(
    ("stored", "names", "places", "warnings"),
    [
        (("s/2", "s/1"), ("s/1", "s/2"), (1, 0), 0),
        (("labels/s/2", "labels/s/1"), ("images/s/1", "images/s/2"), (1, 0), 0),
        # Nothing tells whether these are two sequences.
        (("s1/cam0/1", "s1/cam0/2"), ("s2/cam0/1", "s2/cam0/2"), (0, 1), 1),
        (None, ("a/1", "a/2"), (0, 1), 0),
    ],
)
def test_items_of_frames(
    stored: tuple[str, ...] | None, names: tuple[str, ...], places: tuple[int, ...], warnings: int
) -> None:
    found, texts = positions_of_frames(Store("ids.zarr", {}, stored), 2, names, 2, "label")
    assert found == places and len(texts) == warnings
    assert all(f"'{names[0]}' and {(stored or names)[0]}" in text for text in texts)
