"""Order statistics and ties of one item, against sorting it."""

from __future__ import annotations

import numpy as np
import pytest

from uqeval.tallies._select import order_statistics
from uqeval.tallies._sorted import ties
from uqeval.tallies.error_sums import SumsBelow


def values(kind: str, n: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    found = rng.standard_t(3, n).astype(np.float32)
    if kind == "ties":
        return np.round(np.abs(found))
    if kind == "sorted":
        return np.sort(found)
    if kind == "misleading":  # the pixels that are looked at first are not like the others
        found[::127] = 100.0
    if kind == "infinite":
        found[: n // 3] = np.inf
    return found


@pytest.mark.parametrize("kind", ["plain", "ties", "sorted", "misleading", "infinite"])
@pytest.mark.parametrize("n", [1, 2, 1000, 1 << 17])
def test_order_statistics_are_those_of_sorting(kind: str, n: int) -> None:
    value, label = values(kind, n), np.zeros(n, np.uint8)
    label[1::3] = 255
    pixels = int((label == 0).sum())
    ordered = np.sort(value[label == 0])
    for share in (0.0, 0.01, 0.5, 0.95, 1.0):
        lower = int(share * (pixels - 1))
        upper = min(lower + 1, pixels - 1)
        found = order_statistics(value, label, 255, pixels, lower, upper)
        assert found == (ordered[lower], ordered[upper])


def test_ties_of_some_bins() -> None:
    rng = np.random.default_rng(0)
    score = rng.choice(np.float32([0.0, 0.1, 0.5, 2.0, np.inf]), (8, 9))
    error = rng.choice(np.float32([0.0, 0.25, 3.0]), (8, 9))
    label = rng.choice(np.uint8([0, 255]), (8, 9))
    known = label != 255
    every = ties(score, error, label, 255, int(known.sum()), squared=True)
    for i, s in enumerate(np.unique(score[known])):
        mine = known & (score == s)
        assert every[1][i] == mine.sum()
        assert every[2][i] == (error[mine].astype(float) ** 2).sum()
    bins = (every[0] >> 13)[[1, 3]]
    some = ties(score, error, label, 255, int(every[1][[1, 3]].sum()), bins, squared=True)
    for part, whole in zip(some, every, strict=True):
        np.testing.assert_array_equal(part, whole[[1, 3]])


def test_sums_below_take_each_pixel_once_wherever_it_lies() -> None:
    rng = np.random.default_rng(1)
    maps = {name: rng.integers(0, 6, (7, 11)).astype(np.float32) for name in ("error", "sigma")}
    maps["label"] = rng.choice(np.uint8([0, 255]), (7, 11))
    limits = (0.5, 2.0, 2.0, 4.0)
    state = SumsBelow("error", (limits,)).state_of(maps)
    error = maps["error"][maps["label"] == 0]
    below = (np.array(limits)[:, None] < error).sum(axis=0)
    np.testing.assert_array_equal(state["count"][0], np.bincount(below, minlength=5))
    np.testing.assert_array_equal(state["sums"][0, :, 0], np.bincount(below, error, 5))
