"""Order statistics from two passes of counts, and the edges of adaptive bins, against sorting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uqeval.tallies._values import RawMap, Uncertainty
from uqeval.tallies.ranks import Ranks, bins_at
from uqeval.tallies.ranks import order_statistics as values_at

CONFIDENCES = st.lists(
    st.floats(0, 1, width=32) | st.sampled_from([0.5, 0.9, 1.0]), min_size=1, max_size=60
)


def order_statistics(values: Any, ranks: list[int]) -> list[float]:
    maps = {"confidence": values[None], "label": np.zeros((1, len(values)), "u1")}
    first = Ranks(RawMap("confidence"), 1)
    coarse = first.state_of(maps)["coarse"][0]
    places = bins_at(coarse, ranks)
    fine: Any = Ranks(RawMap("confidence"), 1, bins=tuple((0, b) for b in places)).state_of(maps)
    found = {b: fine["fine"][i] for i, b in enumerate(places)}
    return values_at(coarse, found, ranks)


@given(CONFIDENCES)
def test_every_rank(values: list[float]) -> None:
    conf = np.array(values, "f4") + np.float32(0)
    assert order_statistics(conf, list(range(len(conf)))) == np.sort(conf).tolist()


@given(CONFIDENCES, st.integers(1, 20))
def test_edges_of_bins_of_equal_mass(values: list[float], bins: int) -> None:
    """⌊B·#{v < c}/N⌋ is the number of k with v_k < c, v_k the ⌈kN/B⌉-th smallest value."""
    conf = np.array(values, "f4") + np.float32(0)
    n = len(conf)
    edges = order_statistics(conf, [-(-k * n // bins) - 1 for k in range(1, bins)])
    for c in conf:
        assert sum(edge < c for edge in edges) == bins * int((conf < c).sum()) // n


def test_raw_maps_are_ranked_as_they_are() -> None:
    maps = {"confidence": np.array([[0.25, 1.0]], "f4")}
    assert RawMap("confidence").values(maps) is maps["confidence"]
    raw, complement = (
        Ranks(of, 4).parameters() for of in (RawMap("confidence"), Uncertainty("confidence"))
    )
    assert raw != complement


@pytest.mark.parametrize("ranks", [[], [0], [0, 1, 2]])
def test_bins_at(ranks: list[int]) -> None:
    assert bins_at(np.array([0, 2, 0, 1]), ranks) == [[], [1], [1, 3]][min(len(ranks), 2)]
