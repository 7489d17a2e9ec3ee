"""Sums of single columns over sets of items, against the sums of all columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from uqeval.metrics._tiles import AllSums, AtRanks, Cumulated, RankedSets, at_ranks
from uqeval.statistics import ranked_items
from uqeval.statistics.column_sums import ColumnSums, ColumnValues
from uqeval.statistics.stacked import Stacked
from uqeval.statistics.swapping import Swaps
from uqeval.statistics.weighting import Subset, Weighting
from uqeval.tallies._errors import Error
from uqeval.tallies._values import Uncertainty
from uqeval.tallies.ranked_errors import RankedErrors

BRIER = RankedErrors(Uncertainty("entropy"), Error("brier"), 3)


@pytest.mark.parametrize("items", [1, 63, 64, 200])
@pytest.mark.parametrize("kind", ["i2", "i4", "i8", "f8"])
def test_columns_are_those_of_all_sums(items: int, kind: str) -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(0, 3, (50, items)).cumsum(axis=0).astype(kind)
    weights = rng.integers(0, 4, (7, items), np.int8)
    weights[0] = 0
    base = rng.integers(0, 5, 50).cumsum().astype(np.float64)
    upto = base + weights.astype(np.float64) @ values.T
    sums = ColumnSums(ColumnValues(values), weights, base)
    sets, columns = np.repeat(np.arange(7), 50), np.tile(np.arange(50), 7)
    before, own = sums.around(sets, columns)
    np.testing.assert_array_equal(own.reshape(7, 50), upto)
    np.testing.assert_array_equal(before.reshape(7, 50)[:, 1:], upto[:, :-1])
    assert (before.reshape(7, 50)[:, 0] == 0).all()
    if kind == "f8":
        return
    sets = np.repeat(np.arange(7), 9)
    ranks = np.floor(upto[:, -1:] * np.linspace(0, 1, 9)).reshape(-1)
    found = sums.first_reaching(sets, ranks)
    for mine, theirs in zip(found, AllSums(upto).first_reaching(sets, ranks), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(("kind", "most"), [("i2", 2**15 - 1), ("i4", 2**31 - 1)])
def test_sums_above_32_bits(kind: str, most: int) -> None:
    values = np.full((3, 1000), most, kind)
    weights = np.full((1, 1000), 127, np.int8)
    sums = ColumnSums.of(ColumnValues(values), weights)
    column, before, upto = sums.first_reaching(np.array([0]), np.array([1.0]))
    assert (column[0], before[0], upto[0]) == (0, 0.0, 127_000.0 * most)


def stacked(seed: int, items: int = 6, bins: int = 1300) -> Stacked:
    rng = np.random.default_rng(seed)
    states = []
    for _ in range(items):
        state = BRIER.empty()
        pixels = rng.integers(0, 4, bins) * (rng.random(bins) < 0.4)
        state["pixels"][0, 2**18 + np.arange(bins)] = pixels
        state["errors"][0, 2**18 + np.arange(bins)] = pixels * rng.random(bins)
        states.append(BRIER.pack(state))
    return Stacked(BRIER, [BRIER.load_items(states)], items)


def at_percents(states: Any) -> AtRanks:
    assert isinstance(states, RankedSets)
    total = states.tiles.totals("pixels")[:, 0].sum(axis=1)
    ranks = (total[:, None] * np.arange(101) / 100).astype(np.int64)
    fields = (Cumulated.from_tiles(states.tiles, name) for name in ("pixels", "errors"))
    return at_ranks(states.tiles, ranks, *fields)


def assert_same(found: AtRanks, expected: AtRanks) -> None:
    np.testing.assert_array_equal(found.bins, expected.bins)
    for mine, theirs in ((found.before, expected.before), (found.upto, expected.upto)):
        np.testing.assert_array_equal(mine[0], theirs[0])
        np.testing.assert_allclose(mine[1], theirs[1], rtol=1e-14)


def test_sums_at_ranks_of_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = np.random.default_rng(1).multinomial(6, np.full(6, 1 / 6), 20)
    expected = at_percents(stacked(0).sets(Weighting(weights)))
    monkeypatch.setattr(ranked_items, "_FEW", 0)
    own = stacked(0)
    assert_same(at_percents(own.sets(Weighting(weights))), expected)
    assert own.ranked is not None and own.ranked._columns


def test_weights_above_8_bits_are_summed_in_all_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = np.array([[0, 1, 2, 300, 0, 1]])
    expected = at_percents(stacked(0).sets(Weighting(weights)))
    monkeypatch.setattr(ranked_items, "_FEW", 0)
    own = stacked(0)
    assert_same(at_percents(own.sets(Weighting(weights))), expected)
    assert own.ranked is not None and not own.ranked._columns


def test_sums_at_ranks_of_swaps(monkeypatch: pytest.MonkeyPatch) -> None:
    keeps = np.asfortranarray(np.random.default_rng(1).integers(0, 2, (20, 4), np.int8))
    items = [[0, 2, 5, 1], [4, 1, 0, 3]]
    expected = Stacked.paired([stacked(0), stacked(1)], items).swapped(Swaps(keeps))
    of_runs = [at_percents(states) for states in expected]
    monkeypatch.setattr(ranked_items, "_FEW", 0)
    pair = Stacked.paired([stacked(0), stacked(1)], items)
    for states, run in zip(pair.swapped(Swaps(keeps)), of_runs, strict=True):
        assert_same(at_percents(states), run)
    assert pair.ranked is not None and pair.ranked._column_halves


def test_the_set_of_all_items_has_the_bits_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is added up item by item, as the run does."""
    monkeypatch.setattr(ranked_items, "_FEW", 0)
    own = stacked(0)
    at_percents(own.sets(Subset(range(6), 6)))
    assert own.ranked is not None and not own.ranked._columns


def test_infinite_numbers_are_summed_in_all_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    """An item of weight 0 adds nothing, not even infinity."""
    monkeypatch.setattr(ranked_items, "_FEW", 0)
    own = stacked(0)
    assert own.ranked is not None
    own.ranked.fields["errors"][0, -1] = np.inf
    weights = np.ones((1, 6), np.int64)
    weights[0, own.ranked.item[-1]] = 0
    assert np.isfinite(at_percents(own.sets(Weighting(weights))).upto[1]).all()
    assert own.ranked._columns["errors", 2, 0] is None
