"""Confidences to bins, against exact fractions."""

from __future__ import annotations

from typing import Any

import naive_calibration as naive
import numpy as np
import pytest
from compiled import compiled
from hypothesis import given
from hypothesis import strategies as st

from uqeval.kernels import calibration
from uqeval.metrics.calibration_settings import CalibrationSettings
from uqeval.settings import options_of
from uqeval.tallies.reliability import Bins

bin_of = compiled(calibration.bin_of)
CONFIDENCE = st.floats(0, 1, width=32)
EDGES = options_of(CalibrationSettings)["edge"].choices


def found(conf: Any, bins: int, edge: str) -> int:
    rule = Bins(bins, edge)
    return int(bin_of(np.float32(conf), rule.edges(), rule.upper))


@pytest.mark.parametrize("edge", EDGES)
@given(conf=CONFIDENCE, bins=st.integers(1, 1000))
def test_any_confidence(edge: str, conf: float, bins: int) -> None:
    expected = naive.bin_of(conf, bins, edge, "own")
    assert found(conf, bins, edge) == (bins if conf == 1 else expected)


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("bins", [1, 2, 5, 10, 15, 16, 49, 100, 1000])
def test_around_the_edges(bins: int, edge: str) -> None:
    for k in range(0, bins, max(1, bins // 64)):
        middle = np.float32(k / bins)
        for conf in (
            np.nextafter(middle, np.float32(0)),
            middle,
            np.nextafter(middle, np.float32(1)),
        ):
            assert found(conf, bins, edge) == naive.bin_of(conf, bins, edge, "own")


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("conf", [1.0, np.nextafter(np.float32(1), np.float32(2)), 1.002, 7.0])
def test_from_one_on_there_is_a_bin_of_its_own(edge: str, conf: float) -> None:
    assert found(conf, 15, edge) == 15


def test_just_below_one_is_the_last_bin() -> None:
    assert found(np.nextafter(np.float32(1), np.float32(0)), 15, "lower") == 14


@pytest.mark.parametrize("conf", [-1e-9, -1.0, -np.inf])
def test_nonsense_stays_inside(conf: float) -> None:
    assert found(conf, 15, "lower") == 0
    assert found(conf, 15, "upper") == 0


def test_special_values_are_counted() -> None:
    value = np.array([1, 1, 0.5, 0.25, 0, 0.75, -1, 3, 1, np.nan, 1.001], "f4")
    label = np.array([0, 255, 0, 0, 0, 0, 0, 0, 0, 255, 0], "u1")
    hit = np.ones(11, "u1")
    for edge in ("lower", "upper"):
        count, right, total = (
            np.zeros((1, 2, 5), int),
            np.zeros((1, 2, 5), int),
            np.zeros((1, 2, 5)),
        )
        first, special, rule = np.array([0, 11]), np.zeros((1, 3), int), Bins(4, edge)
        calibration.count_bins(
            first, value, hit, label, 255, rule.edges(), rule.upper, 1, count, right, total, special
        )
        assert special.tolist() == [[2, 3, 2]]
        assert count[0, 1].sum() == right[0, 1].sum() == 9
        assert count[0, 1, 4] == 4
        assert not count[0, 0].any()


@given(st.lists(st.sampled_from([0.1, 0.2, 0.5, 0.7, 1.0]), min_size=1, max_size=30),
       st.lists(st.sampled_from([0.05, 0.2, 0.5, 0.7, 1.0]), max_size=6))  # fmt: skip
def test_intervals(values: list[float], edges: list[float]) -> None:
    value, ascending = np.array(values, "f4"), np.sort(np.array(edges, "f4"))
    n = len(edges) + 1
    count, right, total = np.zeros((1, n), int), np.zeros((1, n), int), np.zeros((1, n))
    label, first = np.zeros(len(values), "u1"), np.array([0, len(values)])
    hit = np.arange(len(values), dtype="u1") % 2
    calibration.count_intervals(first, value, hit, label, 255, ascending[None], count, right, total)
    place = np.searchsorted(ascending, value, side="left")
    assert count[0].tolist() == np.bincount(place, minlength=n).tolist()
    assert right[0].tolist() == np.bincount(place, hit, minlength=n).tolist()
    np.testing.assert_allclose(total[0], np.bincount(place, value.astype(float), minlength=n))


def test_scores() -> None:
    p = np.array([0.5, 0.25, 0, 1e-9, 1, 0.1], "f4")
    brier = np.array([0.1, 0.2, 1.5, 0.4, 0, 9], "f4")
    label = np.array([0, 0, 0, 0, 0, 255], "u1")
    first, counts, sums = np.array([0, 4, 6]), np.zeros((2, 3), int), np.zeros((2, 2))
    calibration.sum_scores(first, p, brier, label, 255, 2.0**-24, counts, sums)
    assert counts.tolist() == [[4, 2, 0], [1, 0, 0]]
    assert sums[:, 0].sum() == pytest.approx(5 * naive.nll(p[:5]), rel=1e-14)
    assert sums[0, 1] == pytest.approx(brier[:4].sum(dtype=float), rel=1e-14)
