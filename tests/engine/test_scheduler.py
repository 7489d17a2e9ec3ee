"""Turns of a run: how many evaluations are counted together, and the memory for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scenes import labels, softmax

import uqeval
from uqeval.errors import UsageError


def test_many_regions_are_counted_one_after_the_other_in_little_memory() -> None:
    rng = np.random.default_rng(0)
    data: dict[str, Any] = {
        "probs": softmax(1, 2, 2, 2, 16, 16), "labels": labels(1, 2, 16, 16, classes=2),
        "areas": rng.integers(0, 20, (2, 16, 16)).astype("u1"),
    }  # fmt: skip
    requested: dict[str, Any] = {"metrics": ["sparsification", "failure"], "region": "map:areas"}
    little = uqeval.evaluate(data, **requested, memory="1MB", workers=1)
    much = uqeval.evaluate(data, **requested, memory="8GB", workers=1)
    assert len(little.results) == 3 * 21
    assert little.results == much.results
    assert little.items == much.items
    fitted = {record["uncertainty_threshold"] for key, record in little.results.items()
              if key.startswith("failure")}  # fmt: skip
    assert len(fitted) == 1  # of the whole image


def test_a_refusal_names_the_largest_need() -> None:
    """Not that of the first metrics, with which the run is refused again."""
    probs = np.full((1, 200, 300, 2, 2), 1 / 300, np.float32)
    truth = np.zeros((1, 4, 2, 2), np.uint16)
    with pytest.raises(UsageError, match=r"1kB is too small for the counts of annotators.*\dMB"):
        uqeval.evaluate(probs, truth, ["segmentation", "annotators"], memory="1kB")
