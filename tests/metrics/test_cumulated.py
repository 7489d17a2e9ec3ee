"""Cumulative sums of counts, which are added up as integers, have the bits of float64 sums."""

from __future__ import annotations

import numpy as np
import pytest

from uqeval.metrics.failure_columns import cumulated


@pytest.mark.parametrize("bins", [3, 5000])
@pytest.mark.parametrize("kind", ["f8", "f4", "i8"])
def test_counts(bins: int, kind: str) -> None:
    counts = np.random.default_rng(0).integers(0, 9, (2, bins)).astype(kind)
    sums = cumulated(counts)
    assert sums.dtype == counts.dtype
    np.testing.assert_array_equal(sums, counts.cumsum(axis=1))


@pytest.mark.parametrize("value", [0.25, np.nan, np.inf, 1e300])
def test_other_numbers_are_added_as_they_are(value: float) -> None:
    values = np.random.default_rng(0).integers(0, 9, (2, 5000)).astype("f8")
    values[1, 7] = value
    np.testing.assert_array_equal(cumulated(values), values.cumsum(axis=1))
