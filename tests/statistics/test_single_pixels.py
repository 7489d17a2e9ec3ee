"""Items of one pixel each: scores without each item, and of each alone, are those of weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import uqeval
from uqeval.statistics.all_but import AllBut
from uqeval.statistics.ranked_items import RankedItems
from uqeval.statistics.scoring import Scoring
from uqeval.statistics.sets_of_units import InUnits
from uqeval.statistics.weighting import Each, ItemSets, Weighting
from uqeval.stores.states.saved import SavedStates

COUNT = 60
#: The scores that have the same bits: counts of pairs and shares.
EXACT = ("auroc", "fpr95", "detection_error", "pixels", "pixels_in", "pixels_out")


def probs(size: int, sharp: float = 1.0) -> Any:
    """Probabilities with ties: only a few values."""
    z = sharp * np.round(2 * np.random.default_rng(4).normal(size=(COUNT, 3, 1, size))) / 2
    return (np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)).astype(np.float32)


def scored(metric: str, folder: Path, size: int = 1) -> Scoring:
    """The states of `COUNT` items of `size` pixels; two of the labels are void."""
    states = folder / "run.states.zip"
    if metric == "ood":
        for name, rows in (("in", slice(0, 25)), ("fog", slice(25, 40)), ("rain", slice(40, None))):
            sharp = 1.0 if name == "in" else 0.5
            np.savez(folder / f"{name}.npz", probs=probs(size, sharp)[rows])
        first, *others = (folder / f"{name}.npz" for name in ("in", "fog", "rain"))
        uqeval.evaluate(first, None, ["ood"], out=others, states=states)
    else:
        p = probs(size)
        y = p.argmax(axis=1).astype(np.uint8)
        y[::3] = (y[::3] + 1) % 3
        y[[4, 9]] = 255
        uqeval.evaluate(p, y, ["failure"], states=states)
    return Scoring(SavedStates(states))


SETS: dict[str, Callable[[], ItemSets]] = {
    "all but one": lambda: AllBut(np.arange(COUNT)),
    "of some items": lambda: AllBut(np.arange(COUNT)[::-2].copy()),
    "kept": lambda: AllBut(np.arange(COUNT)).only(np.arange(COUNT) % 5 > 0),
    "each": lambda: Each(np.arange(COUNT)[::-1].copy()),
    "all but a group": lambda: InUnits(AllBut(np.arange(20)), np.arange(COUNT) % 20, 20),
}


@pytest.mark.parametrize("metric", ["ood", "failure"])
@pytest.mark.parametrize("name", SETS)
def test_scores_are_those_of_weights(
    metric: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scoring, sets = scored(metric, tmp_path), SETS[name]()
    addresses = [a for a in scoring.addresses if "per_class" not in a and ".images." not in a]
    found = scoring.table(sets, addresses)
    expected = scoring.table(Weighting(sets.dense(COUNT).astype(np.int64)), addresses)
    assert np.isfinite(expected).any() and len(addresses) > 8
    for column, address in enumerate(addresses):
        if address.split(".")[-1] in EXACT:
            np.testing.assert_array_equal(found[:, column], expected[:, column], err_msg=address)
        else:
            np.testing.assert_allclose(
                found[:, column], expected[:, column], rtol=1e-12, atol=1e-15, err_msg=address
            )
    # Blocks of few sets have the same scores.
    monkeypatch.setattr("uqeval.statistics.scoring._BLOCK", 64)
    np.testing.assert_allclose(scoring.table(sets, addresses), found, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("metric", ["ood", "failure"])
def test_all_sets_but_one_item_need_no_bins(
    metric: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrays [set, bin] would take the square of the number of items."""

    def refuse(*args: Any) -> Any:
        raise AssertionError("all bins of sets")

    scoring = scored(metric, tmp_path)
    named = ("auroc", "aupr_in", "aupr_out") if metric == "ood" else ("auroc", "aurc", "augrc")
    monkeypatch.setattr(RankedItems, "whole", refuse)
    table = scoring.table(AllBut(np.arange(COUNT)), [f"{metric}.{name}" for name in named])
    assert np.isfinite(table).all() and (np.ptp(table, axis=0) > 0).all()


def test_items_of_several_pixels_are_no_single_pixels(tmp_path: Path) -> None:
    for size in (1, 2):
        scoring = scored("failure", tmp_path, size)
        ranked = [scoring.stacked(tally).ranked for tally in scoring.tallies]
        (of_ranks,) = (own for own in ranked if own is not None)
        assert (of_ranks.single_pixels is not None) == (size == 1)


def test_errors_that_are_no_counts_are_no_single_pixels() -> None:
    item, column = np.arange(3, dtype="i4"), np.array([0, 2, 1], "i4")
    pixels = np.ones((1, 3), np.int32)
    for errors, is_single in (([0, 1, 1], True), ([0, 0.5, 1], False)):
        fields = {"pixels": pixels, "errors": np.array([errors])}
        ranked = RankedItems(4, np.arange(3), item, column, fields)
        assert (ranked.single_pixels is not None) == is_single
