"""Counts and ends of targets."""

from __future__ import annotations

import numpy as np
import pytest
from laws_regression import target_counts

from uqeval.kernels.members import count_targets


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("values", [1, 2, 3, 8, 9, 10, 1000])
def test_counts_of_targets(values: int, dtype: str) -> None:
    rng = np.random.default_rng(values)
    for share in (0.0, 0.5, 0.98, 1.0):
        target = rng.choice(rng.normal(0, 9, values).round(1), (12, 16)).astype(dtype)
        label = np.where(rng.random(target.shape) < share, 255, 0).astype("u1")
        counts = np.zeros(10)
        count_targets(target, label, 255, counts)
        assert counts.tolist() == target_counts(target[label == 0]).tolist()
