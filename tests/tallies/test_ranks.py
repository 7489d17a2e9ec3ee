"""Percentiles from two passes of counts, against NumPy's on the values themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uqeval.tallies._values import Uncertainty
from uqeval.tallies.ranks import Ranks, bins_of, percentile

FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=32).map(lambda v: v + 0.0)


def two_passes(items: list[list[float]], percentiles: tuple[float, ...]) -> list[float | None]:
    maps = [
        {"u": np.array([values], "f4"), "label": np.zeros((1, len(values)), "u1")}
        for values in items
    ]
    first = Ranks(Uncertainty("u"), 1)
    coarse = first.empty()
    for one in maps:
        first.update(coarse, one)
    bins = bins_of(coarse["coarse"], percentiles)
    second = Ranks(Uncertainty("u"), 1, bins=bins)
    fine: Any = second.empty()
    for one in maps:
        second.update(fine, one)
    found = {b: fine["fine"][i] for i, (_, b) in enumerate(bins)} if bins else {}
    return [percentile(coarse["coarse"][0], found, p) for p in percentiles]


def check(items: list[list[float]], percentiles: tuple[float, ...]) -> None:
    values = np.concatenate([np.array(v, "f4") for v in items]).astype(np.float64)
    expected = [float(v) for v in np.percentile(values, percentiles)]
    assert two_passes(items, percentiles) == expected


@given(
    st.lists(st.lists(FLOATS, min_size=1, max_size=20), min_size=1, max_size=3),
    st.lists(st.floats(0, 100), min_size=1, max_size=4),
)
def test_any_percentile_of_any_floats(items: list[list[float]], percentiles: list[float]) -> None:
    check(items, (0.0, 50.0, 100.0, *percentiles))


@given(
    st.lists(st.sampled_from([-1.0, -0.25, 0.0, 0.1, 0.1 + 2**-27, 0.5]), min_size=1, max_size=9)
)
def test_duplicates(values: list[float]) -> None:
    check([values], tuple(float(p) for p in range(0, 101, 5)))


@pytest.mark.parametrize("n", [1, 2, 3, 99, 100, 101, 1000])
def test_neighbours_in_one_bin(n: int) -> None:
    values = (np.float32(0.5) + np.arange(n) * np.float32(2**-24)).astype("f4")
    check([values.tolist()], (1.0, 33.3, 50.0, 75.0, 99.0))


@pytest.mark.parametrize("values", [[5.0], [-3.0, -3.0], [0.0, 0.0, 0.0], [1e-45, 2e-45]])
def test_tiny_sets(values: list[float]) -> None:
    check([values], (0.0, 10.0, 50.0, 90.0, 100.0))


def test_no_values_have_no_percentile() -> None:
    assert bins_of(np.zeros((2, 8), np.int64), (50.0,)) == ()
    assert percentile(np.zeros(8, np.int64), {}, 50.0) is None


def test_a_long_spread_of_bins() -> None:
    values = np.random.default_rng(0).normal(size=5000).astype("f4") ** 3
    check([values[:1000].tolist(), values[1000:].tolist()], (0.1, 5.0, 50.0, 95.0, 99.99))


@pytest.mark.parametrize("first", [-1, 1 << 19])
def test_places_outside_the_state_are_refused(first: int) -> None:
    tally = Ranks(Uncertainty("u"), 1)
    raw = tally.pack(tally.empty())
    head = raw[: len(raw) - 8]
    bad = np.int64(1).tobytes() + np.int32(first).tobytes() + np.int64(7).tobytes()
    with pytest.raises(ValueError, match="outside"):
        tally.unpack(head + bad)
