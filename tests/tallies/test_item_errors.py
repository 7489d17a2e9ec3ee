"""Percentiles and ties of one item, against sorting it."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest

from uqeval.tallies import item_errors
from uqeval.tallies.error_sums import SumsBelow
from uqeval.tallies.item_errors import ItemErrors
from uqeval.tallies.rank_keys import ties

#: Pixels of an item whose percentiles are guessed first; as plain Python, its kernels are slow.
LARGE = 1 << (12 if numba.config.DISABLE_JIT else 17)


def values(kind: str, n: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    found = np.abs(rng.standard_t(3, n)).astype(np.float32)
    if kind == "ties":
        return np.round(found)
    if kind == "sorted":
        return np.sort(found)
    if kind == "misleading":  # the pixels that are looked at first are not like the others
        found[::127] = 100.0
    if kind == "infinite":
        found[: n // 3] = np.inf
    return found


def ordered(value: np.ndarray, percentile: float, rule: str) -> float:
    """The percentile of sorted float64 numbers; NumPy's own makes NaN of infinite neighbours."""
    found = np.sort(value).astype(float)
    if rule == "inverted_cdf":
        return float(found[max(math.ceil(found.size * (percentile / 100) - 1), 0)])
    at = (found.size - 1) * (percentile / 100)
    low, high = found[math.floor(at)], found[min(math.floor(at) + 1, found.size - 1)]
    if low == high or at == math.floor(at):
        return float(low)
    return float("inf") if np.isinf(high) else float(np.percentile([low, high], 100 * (at % 1)))


@pytest.mark.parametrize("kind", ["plain", "ties", "sorted", "misleading", "infinite"])
@pytest.mark.parametrize("n", [1, 2, 1000, LARGE])
def test_percentiles_are_those_of_sorting(
    kind: str, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(item_errors, "FEW", LARGE // 2)
    error, label = values(kind, n), np.zeros(n, np.uint8)
    label[1::3] = 255
    known = label == 0
    sigma = np.random.default_rng(0).integers(0, 9, n).astype(np.float32)
    maps = {"error": error[None], "sigma": sigma[None], "label": label[None]}
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(error > 0, error / sigma, np.float32(0))[known]
    for percentile, rule in [
        *((p, "inverted_cdf") for p in (0.01, 1.0, 50.0, 95.0, 100.0)),
        *((p, "linear") for p in (50.0, 95.0)),
    ]:
        found = ItemErrors(percentile, rule).state_of(maps)
        expected = [ordered(v, percentile, rule) for v in (ratio, error[known])]
        assert found["own"].tolist() == expected
        kept = error[known] <= expected[1]
        assert found["count"][0] == kept.sum()
        assert found["most"][0] == error[known][kept].max()
        total = error[known][kept].sum(dtype=float)
        np.testing.assert_allclose(found["sums"], [total, 0.0], rtol=1e-12)
        by_ratio = ItemErrors(percentile, rule, True).state_of(maps)
        kept = ratio <= expected[0]
        assert by_ratio["count"][0] == kept.sum()
        assert by_ratio["most"][0] == error[known][kept].max()
        sums = [v[known][kept].sum(dtype=float) for v in (error, sigma)]
        np.testing.assert_allclose(by_ratio["sums"], sums, rtol=1e-12)


def test_ties_of_some_bins() -> None:
    rng = np.random.default_rng(0)
    score = rng.choice(np.float32([0.0, 0.1, 0.5, 2.0, np.inf]), (8, 9))
    error = rng.choice(np.float32([0.0, 0.25, 3.0]), (8, 9))
    label = rng.choice(np.uint8([0, 255]), (8, 9))
    known = label != 255
    every = ties(score, error, label, 255, int(known.sum()), squared=True)
    assert every is not None
    for i, s in enumerate(np.unique(score[known])):
        mine = known & (score == s)
        assert every[1][i] == mine.sum()
        assert every[2][i] == (error[mine].astype(float) ** 2).sum()
    assert ties(score, error, label, 255, int(known.sum()) - 1, squared=True) is None
    bins = (every[0] >> 13)[[1, 3]]
    some = ties(score, error, label, 255, int(every[1][[1, 3]].sum()), bins, squared=True)
    assert some is not None
    for part, whole in zip(some, every, strict=True):
        np.testing.assert_array_equal(part, whole[[1, 3]])


def test_sums_below_take_each_pixel_once_wherever_it_lies() -> None:
    rng = np.random.default_rng(1)
    maps = {name: rng.integers(0, 6, (7, 11)).astype(np.float32) for name in ("error", "sigma")}
    maps["error"] = maps["error"].astype(np.float64)
    maps["label"] = rng.choice(np.uint8([0, 255]), (7, 11))
    limits = (0.5, 2.0, 2.0, 4.0)
    state = SumsBelow("error", (limits,)).state_of(maps)
    error = maps["error"][maps["label"] == 0]
    below = (np.array(limits)[:, None] < error).sum(axis=0)
    np.testing.assert_array_equal(state["count"][0], np.bincount(below, minlength=5)[:4])
    np.testing.assert_array_equal(state["sums"][0, :, 0], np.bincount(below, error, 5)[:4])
