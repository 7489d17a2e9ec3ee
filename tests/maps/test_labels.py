"""Ids that are checked before anything is counted by them."""

from __future__ import annotations

import numpy as np
import pytest
from command import refused

import uqeval
from uqeval.errors import DataError
from uqeval.maps.labels import label_map


@pytest.mark.parametrize("dtype", ["u1", "u2", "i2", "i4", "i8"])
def test_ids_of_classes_and_void_pass(dtype: str) -> None:
    ids = np.array([[0, 18, 200], [3, 200, 1]], dtype)
    found = label_map(ids, 19, 200, "labels", (2, 3))
    assert found.dtype == np.uint8
    assert found.tolist() == [[0, 18, 255], [3, 255, 1]]


@pytest.mark.parametrize(("place", "value"), [(0, 19), (4, 254), (5, 20)])
def test_the_first_strange_id_is_found(place: int, value: int) -> None:
    ids = np.zeros((2, 3), "u1")
    ids.reshape(-1)[place:] = value
    row, column = divmod(place, 3)
    with pytest.raises(DataError, match=rf"{value} \(first at row {row}, column {column}\)"):
        label_map(ids, 19, 255, "labels", (2, 3))


def test_negative_ids_are_strange_unless_void() -> None:
    ids = np.array([[0, -1], [-2, 1]], "i4")
    with pytest.raises(DataError, match=r"1 of 4 .* -2 \(first at row 1, column 0\)"):
        label_map(ids, 2, -1, "labels", (2, 2))
    with pytest.raises(DataError, match=r"2 of 4 .* -2, -1 \(first at row 0, column 1\)"):
        label_map(ids, 2, 255, "labels", (2, 2))


@pytest.mark.parametrize(
    ("value", "says"), [(7, "Give ignore_index."), (2**32 - 1, "in its place")]
)
def test_the_hint_can_be_followed(value: int, says: str) -> None:
    """Only images of ids have a label map, and an option has 32 bits."""
    labels = np.array([[[0, 1], [1, value]]])
    probs = np.full((1, 3, 2, 2), 1 / 3)
    message = refused(lambda: uqeval.evaluate(probs, labels, "segmentation"), f"{value}", says)
    assert "label_map" not in message
