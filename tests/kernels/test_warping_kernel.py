"""Ids that are checked before anything is counted by them."""

from __future__ import annotations

import numpy as np
import pytest

from uqeval.kernels.warping import first_beyond


@pytest.mark.parametrize("dtype", ["u1", "u2", "i2", "i4", "i8"])
def test_ids_of_classes_and_void_pass(dtype: str) -> None:
    ids = np.array([[0, 18, 200], [3, 200, 1]], dtype)
    assert first_beyond(ids, 19, 200) == -1


@pytest.mark.parametrize(("place", "value"), [(0, 19), (4, 254), (5, 20)])
def test_the_first_strange_id_is_found(place: int, value: int) -> None:
    ids = np.zeros((2, 3), "u1")
    ids.reshape(-1)[place:] = value
    assert first_beyond(ids, 19, 255) == place


def test_negative_ids_are_strange_unless_void() -> None:
    ids = np.array([[0, -1], [-2, 1]], "i4")
    assert first_beyond(ids, 2, -1) == 2
    assert first_beyond(ids, 2, 255) == 1
