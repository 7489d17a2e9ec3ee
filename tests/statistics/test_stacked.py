"""States of many sets of items at once: occupied columns, swaps, no draws where none are needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from saved_runs import run, scoring
from scipy.stats import rankdata

import uqeval
from uqeval.metrics._tiles import Cumulated, RankedSets, at_ranks
from uqeval.statistics.all_but import AllBut
from uqeval.statistics.draws import Resampling
from uqeval.statistics.intervals import interval
from uqeval.statistics.kinds import metric_at
from uqeval.statistics.samples import Samples
from uqeval.statistics.stacked import Stacked
from uqeval.statistics.swapping import Swaps
from uqeval.statistics.weighting import ItemSets, Weighting
from uqeval.tallies._errors import Error
from uqeval.tallies._values import Uncertainty
from uqeval.tallies.error_ranks import ErrorRanks
from uqeval.tallies.ranked_errors import RankedErrors
from uqeval.tallies.segmentation import ClassCounts

RANKED = RankedErrors(Uncertainty("entropy"), Error("zero-one"), 3)
#: The same counts by an error, whose values are in units that all models share.
BY_VALUE = RankedErrors(Error("brier"), Error("zero-one"), 3)


def ranked_states(count: int, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    states = []
    for _ in range(count):
        state = RANKED.empty()
        places = rng.integers(2**18, 2**19, 30)
        np.add.at(state["pixels"][0], places, 5)
        state["errors"][0, places[:9]] = rng.integers(0, 5, 9)
        states.append(state)
    return states


def test_columns_are_those_of_the_whole_states() -> None:
    states = [*ranked_states(3), RANKED.empty()]
    columns = RANKED.load_items([RANKED.pack(state) for state in states]).columns
    assert columns is not None and columns.items == 4
    for i, state in enumerate(states):
        own = columns.item == i
        np.testing.assert_array_equal(columns.column[own], np.flatnonzero(state["pixels"][0]))
        for name, values in columns.fields.items():
            np.testing.assert_array_equal(values[:, own], state[name][:, columns.column[own]])


def test_forged_columns_are_refused() -> None:
    sound, state = ranked_states(2)
    state["errors"] += state["pixels"] + 1
    for states in ([state], [sound, state, sound]):
        with pytest.raises(ValueError, match="more wrong pixels than pixels"):
            RANKED.load_items([RANKED.pack(own) for own in states])
    ranks = ErrorRanks()
    other = ranks.empty()
    other["coarse"][0, 7] = 3
    with pytest.raises(ValueError, match="other numbers of ratios than of errors"):
        ranks.load_items([ranks.pack(ranks.empty()), ranks.pack(other)])


def stacked(states: list[Any], tally: RankedErrors = RANKED) -> Stacked:
    loaded = tally.load_items([tally.pack(own) for own in states])
    return Stacked(tally, [loaded], len(states))


def test_swaps_are_sums_of_either_model() -> None:
    one, other = ranked_states(6, 1), ranked_states(5, 2)
    items = [[0, 2, 5, 1], [4, 1, 0, 3]]
    pair = Stacked.paired([stacked(one, BY_VALUE), stacked(other, BY_VALUE)], items)
    keeps = np.array([[1, 1, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0]])
    ours, theirs = pair.swapped(Swaps(keeps))
    for row, own in enumerate(keeps):
        for name in ("pixels", "errors"):
            mine, his = (
                [s[i][name] for i in at] for s, at in zip((one, other), items, strict=True)
            )
            either = [a if keep else b for a, b, keep in zip(mine, his, own, strict=True)]
            rest = [b if keep else a for a, b, keep in zip(mine, his, own, strict=True)]
            for found, expected in ((ours, either), (theirs, rest)):
                whole = np.zeros_like(sum(expected), dtype=float)
                whole[:, found.columns] = found[name][row]
                np.testing.assert_array_equal(whole, sum(expected), name)


def test_swaps_of_uncertainties_are_in_the_order_of_their_ranks() -> None:
    """Each pixel is placed by its mean rank among those of its own model, in these items."""
    both, items = (ranked_states(6, 1), ranked_states(5, 2)), [[0, 2, 5, 1], [4, 1, 0, 3]]
    keeps = np.array([[1, 1, 1, 1], [0, 1, 0, 1]])
    found, _ = Stacked.paired([stacked(states) for states in both], items).swapped(Swaps(keeps))
    ranks, places = [], []
    for states, at in zip(both, items, strict=True):
        pixels = [np.repeat(np.arange(2**19), states[i]["pixels"][0]) for i in at]
        values = np.concatenate(pixels)
        ranks.append(dict(zip(values.tolist(), rankdata(values).tolist(), strict=True)))
        places.append(pixels)
    for row, own in enumerate(keeps):
        expected = sorted(
            ranks[1 - keep][int(value)] / 600
            for item, keep in enumerate(own)
            for value in places[1 - keep][item]
        )
        counts = found["pixels"][row, 0].astype(int)
        first = np.flatnonzero(np.diff(expected, prepend=-1))
        assert counts[counts > 0].tolist() == np.diff(first, append=len(expected)).tolist()


@pytest.mark.parametrize("weight", [3, 100])
def test_sums_in_float32_are_exact(weight: int) -> None:
    """Columns of few pixels are summed in float32, those of many, and great weights, are not."""
    rng = np.random.default_rng(0)
    states = ranked_states(40, 3)
    for state in states:
        state["pixels"][0, 2**18 : 2**18 + 1500] = rng.integers(2**17, 2**20, 1500)
        state["pixels"][0, 2**18 + 1500 : 2**18 + 3000] = rng.integers(0, 2**13, 1500)
    own = stacked(states)
    weights = rng.integers(0, weight, (5, 40))
    sums = own.sets(Weighting(weights))["pixels"][:, 0]
    each = np.stack([state["pixels"][0, own.columns] for state in states])
    ranked = own.ranked
    assert ranked is not None
    tiles = range(len(ranked.spans))
    types = {ranked.tile("pixels", tile, False).dtype.name for tile in tiles}
    assert types == {"float32", "float64"}
    np.testing.assert_array_equal(sums, weights @ each)


@pytest.mark.parametrize("kind", ["f4", "f8", "i8", "infinite"])
def test_sums_without_an_item_are_sums_of_the_others(kind: str) -> None:
    """A large item costs the others no digits: nothing is subtracted."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 1000, (12, 30)).astype("f8" if kind == "infinite" else kind)
    if kind in ("f8", "infinite"):
        values[3] = 1e300 if kind == "f8" else np.inf
        values += rng.random(values.shape)
    items = [0, 1, 3, 4, 5, 7, 8, 9, 11]
    sets = AllBut(np.arange(9)).at(np.array(items), 12)
    found = sets.sums(values)
    for row, left_out in zip(found, items, strict=True):
        expected = values[[i for i in items if i != left_out]].sum(axis=0)
        np.testing.assert_allclose(row, expected, rtol=0 if kind in ("f4", "i8") else 1e-15)
    assert found.dtype == values.dtype


def test_a_field_is_summed_when_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    tally = ClassCounts(3)
    rng = np.random.default_rng(0)
    states = []
    for _ in range(8):
        state = tally.empty()
        state["correct"] += rng.integers(0, 9, 3)
        for name in ("labelled", "predicted"):
            state[name] += 9
        states.append(state)
    loaded = tally.load_items([tally.pack(state) for state in states])
    own, summed = Stacked(tally, [loaded], 8), list[int]()
    field = Stacked._field

    def recorded(self: Stacked, i: int, sets: ItemSets) -> Any:
        summed.append(i)
        return field(self, i, sets)

    monkeypatch.setattr(Stacked, "_field", recorded)
    found = own.sets(Weighting(np.ones((2, 8), np.int64)))
    assert set(found.fields) == set(tally.fields) and not summed
    expected = 2 * [np.sum([state["correct"] for state in states], axis=0).tolist()]
    assert found["correct"].tolist() == found["correct"].tolist() == expected
    assert summed == [own.names.index("correct")]


@pytest.mark.parametrize("occupied", [3, 2000])
def test_tiles_are_sums_of_all_bins(occupied: int) -> None:
    """Tiles hold the totals and cumulative sums of their bins; ranks lie where all bins say."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 5, (7, occupied)) * (rng.random((7, occupied)) < 0.3)
    pixels[:, 0] = 1
    states = []
    for row in pixels:
        state = RANKED.empty()
        state["pixels"][0, 2**18 + np.arange(occupied)] = row
        states.append(state)
    weights = rng.integers(0, 4, (5, 7))
    weights[0] = 0
    found = stacked(states).sets(Weighting(weights))
    assert isinstance(found, RankedSets)
    whole = found["pixels"][:, 0]
    np.testing.assert_array_equal(whole, (weights @ pixels)[:, pixels.any(axis=0)])
    for tile, span in enumerate(found.tiles.spans):
        own = found.tiles.upto("pixels", tile, 0)
        np.testing.assert_array_equal(own, whole[:, span].cumsum(axis=1))
        np.testing.assert_array_equal(found.tiles.totals("pixels")[:, 0, tile], own[:, -1])
    upto = whole.cumsum(axis=1)
    ranks = upto[:, -1:].astype(np.int64) * np.array([0, 1, 50, 100]) // 100
    at = at_ranks(found.tiles, ranks, Cumulated.from_tiles(found.tiles, "pixels"))
    for row in range(5):
        expected = np.searchsorted(upto[row], ranks[row])
        assert at.bins[row].tolist() == expected.tolist()
        assert at.upto[0][row].tolist() == upto[row, expected].tolist()
        below = upto[row, expected] - whole[row, expected]
        assert at.before[0][row].tolist() == below.tolist()


def test_no_draws_are_made_for_scores_of_the_jackknife(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, path = run(tmp_path, 6, ["pavpu", "calibration"])
    opened = scoring(path)

    def refuse(self: Resampling) -> Any:
        raise AssertionError("draws")

    monkeypatch.setattr(Resampling, "drawn", refuse)
    samples = Samples.of_run(opened, Resampling(opened.names))
    for text in ("segmentation.miou", "pavpu.pavpu", "pavpu.p_accurate"):
        record = interval(samples, text, 0.95)
        assert record["low"] is not None, record["reason"]
    assert {tally.id for tally in opened._stacks} == {"class_counts", "patch_counts"}
    with pytest.raises(AssertionError, match="draws"):
        interval(samples, "calibration.nll", 0.95)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_items_of_a_unit_are_added_up_first(tmp_path: Path, kind: str) -> None:
    """Draws of groups are draws of their summed states; items in no group are in no sum."""
    if kind == "classes":
        opened = scoring(run(tmp_path, 8, ["pavpu", "failure", "sparsification"])[1])
    else:
        rng = np.random.default_rng(0)
        std, target = rng.gamma(2, 1, (2, 8, 9, 11)) + 0.1
        data = {"mean": target + rng.normal(size=std.shape) * std, "std": std, "target": target}
        states = tmp_path / "report.states.zip"
        uqeval.evaluate(data, None, ["regression", "nmerci", "sparsification"], states=states)
        opened = scoring(tmp_path / "report.json")
    places = [7, 0, 3, 1, 6, 2]
    resampling = Resampling(tuple("abbaab"), draws=100, unit="group")
    samples = Samples([opened], [places], resampling)
    (drawn,) = resampling.drawn()
    weights = np.zeros((100, opened.items), np.int64)
    weights[:, places] = drawn.weights[:, resampling.codes]
    texts = [text for text in opened.addresses if metric_at(text) is not None]
    expected = opened.table(Weighting(weights), texts)
    found = np.stack([samples.scores("drawn", text)[0] for text in texts], axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-15)
    assert {key[1].id for key in samples._units} >= {"ranked_errors"}
