"""Uncertainties by name, and the pieces that tallies share."""

from __future__ import annotations

import math

import numpy as np
import pytest

from uqeval.tallies._values import Uncertainty
from uqeval.tallies.patches import Patches, best_step, counts_along, curve_thresholds

MAPS = {
    name: np.array([[0.0, 0.25, 1.0]], "f4")
    for name in ("entropy", "mutual_information", "confidence", "std", "mine")
}


def test_confidence_counts_as_its_complement() -> None:
    found = Uncertainty("confidence").values(MAPS)
    assert found.dtype == np.float32
    assert found.tolist() == [[1.0, 0.75, 0.0]]


@pytest.mark.parametrize("name", ["std", "mine"])
def test_other_maps_are_taken_as_they_are(name: str) -> None:
    assert Uncertainty(name, 2.0).values(MAPS) is MAPS[name]


@pytest.mark.parametrize("name", ["entropy", "mutual_information"])
@pytest.mark.parametrize("base", [2.0, 19.0])
def test_entropies_in_other_units(name: str, base: float) -> None:
    expected = [[np.float32(v / math.log(base)) for v in (0.0, 0.25, 1.0)]]
    assert Uncertainty(name, base).values(MAPS).tolist() == expected


@pytest.mark.parametrize(("stride", "before", "after"), [(4, 1, 2), (1, 1, 2), (3, 0, 1)])
def test_padding_is_half_before(stride: int, before: int, after: int) -> None:
    patches = Patches(Uncertainty("entropy"), 3, 4, stride, "pad")
    assert patches.padding(9) == (before, after)


def test_thresholds_of_a_curve_begin_and_end_at_the_range() -> None:
    found = curve_thresholds(-1.0, 3.0)
    assert len(found) == 101
    assert (found[0], found[50], found[100]) == (-1.0, 1.0, 3.0)
    assert found == sorted(found)


def test_counts_along_a_curve() -> None:
    by_threshold = np.zeros((2, 2, 102), np.int64)
    by_threshold[0, 1, 0] = 3  # three accurate patches, certain at every threshold
    by_threshold[1, 0, 101] = 2  # two inaccurate ones, uncertain at every threshold
    found = counts_along(by_threshold)
    assert found.shape == (4, 101)
    assert (found.T == [3, 0, 0, 2]).all()
    assert (counts_along(np.stack([by_threshold] * 2)) == found[:, None]).all()
    assert best_step(by_threshold) == 0


def test_the_lowest_of_equal_steps_is_the_best() -> None:
    by_threshold = np.zeros((1, 2, 102), np.int64)
    by_threshold[0, 1, 30] = 1
    by_threshold[0, 0, 60] = 1
    assert best_step(by_threshold) == 30


def test_without_errors_no_step_is_best() -> None:
    by_threshold = np.zeros((1, 2, 102), np.int64)
    by_threshold[0, 1, 30] = 5
    assert best_step(by_threshold) is None
