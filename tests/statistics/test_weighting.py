"""Sums over sets of items."""

from __future__ import annotations

import numpy as np
import pytest

from uqeval.statistics.weighting import AllThenEach, Weighting

RNG = np.random.default_rng(4)
VALUES = {
    "counts": RNG.integers(0, 99, (12, 5)),
    "sums": RNG.normal(size=(12, 5)),
    "infinite": np.where(RNG.random((12, 5)) < 0.1, np.inf, RNG.normal(size=(12, 5))),
}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("items", [range(12), [3], [7, 1, 5]])
def test_all_items_then_each_are_those_of_weights(kind: str, items: list[int]) -> None:
    values, items = VALUES[kind], list(items)
    weights = np.zeros((1 + len(items), 12), np.int64)
    weights[0, items] = 1
    weights[1 + np.arange(len(items)), items] = 1
    expected, found = Weighting(weights), AllThenEach(items)
    assert found.sets == expected.sets
    np.testing.assert_allclose(found.sums(values), expected.sums(values), rtol=1e-14)
    for best, identity in ((np.maximum, -np.inf), (np.minimum, np.inf)):
        found_values = found.extremes(best, values.astype(float), identity)
        np.testing.assert_array_equal(
            found_values, expected.extremes(best, values.astype(float), identity)
        )
