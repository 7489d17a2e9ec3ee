"""An item of void pixels alone, with a threshold for each item."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import uqeval


def scene() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    p = np.moveaxis(rng.dirichlet(np.ones(3), (2, 8, 8)), -1, 1).astype("f4")
    label = rng.integers(0, 3, (2, 8, 8)).astype("u1")
    label[1] = 255
    return p, label


def counts(**settings: Any) -> Any:
    found = uqeval.evaluate(*scene(), {"pavpu": settings | {"void": "inaccurate"}})
    return [[own["pavpu"][n] for n in ("n_ac", "n_au", "n_ic", "n_iu")] for own in found.items]


def test_a_number_is_the_same_for_the_set_and_for_each_item() -> None:
    items = counts(threshold="0.7", threshold_scope="item")
    assert items == counts(threshold="0.7", threshold_scope="set")
    assert sum(items[1]) == 4 and items[1][:2] == [0, 0]


@pytest.mark.parametrize("rule", ["mean", "median", "range:0.5", "max-surplus"])
def test_a_fitted_threshold_needs_pixels(rule: str) -> None:
    assert counts(threshold=rule, threshold_scope="item")[1] == [0, 0, 0, 0]
