"""Distances to other classes, against all pairs of pixels and SciPy's distance transform."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.ndimage import distance_transform_edt

from uqeval.maps.region_maps import squared_distances

FAR = np.iinfo(np.int32).max


def of_all_pairs(label: Any, void: int) -> Any:
    """The smallest squared distance over all valid pixels of another class."""
    squares = np.full(label.shape, FAR)
    valid = np.argwhere(label != void)
    ids = label[label != void]
    pairs = np.square(valid[:, None] - valid).sum(2)
    squares[label != void] = np.where(ids[:, None] != ids, pairs, FAR).min(1, initial=FAR)
    return squares


@pytest.mark.parametrize("dtype", ["u1", "u2"])
@pytest.mark.parametrize("void_share", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_small_images(dtype: str, void_share: float) -> None:
    rng = np.random.default_rng(1)
    void = np.iinfo(dtype).max
    for _ in range(40):
        coarse = rng.integers(0, rng.integers(1, 5), rng.integers(1, 6, 2))
        label = np.kron(coarse, np.ones(rng.integers(1, 5, 2), int)).astype(dtype)
        label[rng.random(label.shape) < void_share] = void
        assert (squared_distances(label) == of_all_pairs(label, void)).all()


@pytest.mark.parametrize(("height", "width"), [(300, 1), (1, 300), (150, 200)])
def test_long_distances(height: int, width: int) -> None:
    label = np.zeros((height, width), "u1")
    label[:, width // 3 :] = 255
    label[height // 2 :, width // 2 :] = 4
    label[-1, -1] = 7
    expected = np.full(label.shape, FAR)
    for c in (0, 4, 7):
        other = (label != c) & (label != 255)
        if other.any():
            squares = np.rint(distance_transform_edt(~other) ** 2)
            expected = np.where(label == c, squares, expected)
    assert (squared_distances(label) == expected).all()
