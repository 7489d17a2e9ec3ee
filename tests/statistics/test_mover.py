"""Intervals of differences by the paired MOVER against a slow formula, and published values."""

from __future__ import annotations

import naive_statistics as naive
import numpy as np
import pytest
from scipy.stats import binomtest

from uqeval.statistics import mover
from uqeval.statistics.methods import Bounds


def limits(rng: np.random.Generator) -> mover.Limits:
    low, centre, high = np.sort(rng.random(3)).tolist()
    low = 0.0 if rng.random() < 0.4 else low
    return mover.Limits(low, low if rng.random() < 0.2 else centre, high)


@pytest.mark.parametrize("seed", range(20))
def test_paired_mover(seed: int) -> None:
    """Against a slow formula; the same errors cancel, and independent ones add up."""
    rng = np.random.default_rng(seed)
    first, second = limits(rng), limits(rng)
    for r in (0.0, 0.7, 1.0):
        found = mover.paired_mover(first, second, r)
        ends = [(own.low, own.centre, own.high) for own in (first, second)]
        assert found == pytest.approx(naive.paired_mover(*ends, r), abs=1e-12)
        # No end is beyond those of the two intervals, and the other order mirrors them.
        assert first.low - second.high - 1e-12 <= found[0]
        assert found[1] <= first.high - second.low + 1e-12
        assert mover.paired_mover(second, first, r) == pytest.approx((-found[1], -found[0]))
    assert mover.paired_mover(first, first, 1.0) == (0.0, 0.0)


def test_paired_mover_is_the_published_one_for_symmetric_intervals() -> None:
    """Zou & Donner 2008, and for r = 0 Newcombe's method 10 of two independent proportions."""
    first, second, r = mover.Limits(0.3, 0.5, 0.7), mover.Limits(0.1, 0.2, 0.3), 0.6
    reach = (0.2**2 + 0.1**2 - 2 * r * 0.2 * 0.1) ** 0.5
    found = mover.paired_mover(first, second, r)
    assert found == pytest.approx((0.3 - reach, 0.3 + reach))
    # Newcombe 1998, table II: 56/70 − 48/80, from the Wilson intervals.
    wilson = []
    for events, trials in ((56, 70), (48, 80)):
        ends = binomtest(events, trials).proportion_ci(0.95, "wilson")
        wilson.append(mover.Limits(ends.low, events / trials, ends.high))
    assert mover.paired_mover(*wilson, 0.0) == pytest.approx((0.0524, 0.3339), abs=1e-4)


@pytest.mark.parametrize("seed", range(20))
def test_paired_mover_of_fractions(seed: int) -> None:
    """A fraction f is inside if and only if 0 is in the interval of first − (1 + f)·second."""
    rng = np.random.default_rng(seed)
    first, second, r = limits(rng), limits(rng), float(rng.random())
    low, high = mover.paired_mover_relative(first, second, r)
    assert (high == np.inf) == (second.low == 0)
    for factor in np.linspace(0.001, 1.5 * first.high / second.high, 50).tolist():
        ends = mover.paired_mover(first, second.times(factor), r)
        assert (ends[0] <= 1e-9) == (low <= factor - 1 + 1e-9)
        if high < np.inf:
            assert (ends[1] >= -1e-9) == (factor - 1 - 1e-9 <= high)


def test_the_estimate_is_inside_its_interval() -> None:
    bounds = Bounds(0.1, 0.3, "expanded")
    centres = [mover.Limits.of(bounds, estimate).centre for estimate in (0.0, 0.2, 0.4)]
    assert centres == [0.1, 0.2, 0.3]
