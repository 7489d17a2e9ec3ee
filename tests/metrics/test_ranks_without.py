"""Scores by rank without each item: as of the other items alone, for every item."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scenes import softmax

import uqeval
from uqeval.metrics import _ranked_items as ranked
from uqeval.metrics._ranks_without import WITHOUT, without_each
from uqeval.metrics.failure_columns import SCORES
from uqeval.metrics.ood import _OF_ITEMS
from uqeval.statistics.all_but import AllBut
from uqeval.statistics.sets_of_units import InUnits
from uqeval.statistics.weighting import Each, ItemSets, Weighting

OF_RISKS = ("aurc", "e_aurc", "augrc", "spearman", "kendall")
#: Their sums are of whole numbers, of halves and of quarters, or they are a single share.
EXACT = ("auroc", "fpr95", "detection_error", "spearman", "kendall")
KINDS = ("distinct", "ties", "copies", "constant", "huge", "undefined", "one", "two", "many")


def items(kind: str) -> tuple[Any, Any, Any]:
    """Risks, uncertainties, and which items are counted."""
    rng = np.random.default_rng(len(kind))
    count = {"one": 1, "two": 2, "many": 300}.get(kind, 14)
    risk, uncertainty = rng.exponential(size=(2, count))
    uncertainty += risk
    is_counted = np.ones(count, bool)
    if kind in ("ties", "many", "huge"):
        risk, uncertainty = np.round(risk, 1), np.round(uncertainty)
    if kind == "copies":
        risk[7:], uncertainty[7:] = risk[:7], uncertainty[:7]
    if kind == "constant":
        risk[:], uncertainty[:] = 0.1, 2.0
    if kind == "huge":
        risk[5] = 1e17
    if kind == "undefined":
        risk[2], uncertainty[[2, 5]] = np.nan, [0.5, np.nan]
        is_counted[[0, 11]] = False
    return risk, uncertainty, is_counted


def assert_without_each(
    name: str, score: Any, without: Any, is_counted: Any, *values: Any
) -> None:  # fmt: skip
    found = without(is_counted, *values)
    assert found.shape == is_counted.shape
    for i in range(found.size):
        others = is_counted & (np.arange(found.size) != i)
        own = [v[others] for v in values]
        with np.errstate(all="ignore"):
            (expected,) = score(np.ones((1, own[0].size), np.int64), *own)
        if name in EXACT:
            np.testing.assert_equal(found[i], expected, err_msg=f"{name} {i}")
        else:
            np.testing.assert_allclose(found[i], expected, rtol=1e-13, atol=1e-15, err_msg=name)


# The e-AURC is a difference of two areas, which has the digits of the larger one.
@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for name in OF_RISKS for kind in KINDS if (name, kind) != ("e_aurc", "huge")],
)
def test_a_score_of_risks_without_an_item_is_that_of_the_others(name: str, kind: str) -> None:
    risk, uncertainty, is_counted = items(kind)
    score = getattr(ranked, name)
    without = without_each(score, WITHOUT[name])
    assert_without_each(name, score, without, is_counted, risk, uncertainty)
    if name not in EXACT:  # the risks of the report may be negative
        assert_without_each(name, score, without, is_counted, -risk, -uncertainty)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*_OF_ITEMS, *(f"{name} of pixels" for name in SCORES)])
@pytest.mark.parametrize("positives", ["some", "one", "all but one", "all", "none"])
def test_a_score_of_two_kinds_without_an_item_is_that_of_the_others(
    name: str, kind: str, positives: str
) -> None:
    risk, uncertainty, is_counted = items(kind)
    first = np.arange(risk.size) == 0
    out = {
        "some": risk > 0.5, "one": first, "all but one": ~first, "all": first | True,
        "none": first & False,
    }[positives].astype(float)  # fmt: skip
    if name in _OF_ITEMS:
        score, without = _OF_ITEMS[name].score, _OF_ITEMS[name].without
    else:
        name = name.split()[0]
        score = ranked.of_items(SCORES[name])
        without = without_each(score, WITHOUT[name])
    assert_without_each(name, score, without, is_counted, out, uncertainty)


def test_fpr95_without_an_item_moves_its_threshold() -> None:
    """With 20 and 21 positives, the threshold may lie at another item without one of them."""
    rng = np.random.default_rng(3)
    of_items = _OF_ITEMS["fpr95"]
    for positives in (19, 20, 21, 40, 41):
        out = rng.permutation(np.arange(120) < positives).astype(float)
        for score in (rng.normal(size=120), rng.integers(0, 30, 120) / 30):
            is_counted = np.ones(120, bool)
            args = is_counted, out, score + out / 9
            assert_without_each("fpr95", of_items.score, of_items.without, *args)


SETS: dict[str, tuple[ItemSets, bool]] = {
    "all but one": (AllBut(np.arange(6)), True),
    "part": (AllBut(np.arange(6)).part(slice(2, 5)), True),
    "of some items": (AllBut(np.arange(4)).at(np.array([5, 0, 2, 3]), 6), True),
    "kept": (AllBut(np.arange(6)).only(np.arange(6) != 2).part(slice(1, 4)), True),
    "each": (Each(np.arange(6)), False),
    "drawn": (Weighting(np.array([[2, 0, 1, 1, 1, 1]])), False),
    "all but a group": (InUnits(AllBut(np.arange(3)), np.array([0, 0, 1, 1, 2, 2]), 3), False),
}


@pytest.mark.parametrize("name", SETS)
def test_sets_that_lack_one_item_have_the_scores_of_their_weights(name: str) -> None:
    sets, lacks_one = SETS[name]
    risk, uncertainty = np.random.default_rng(6).normal(size=(2, 6))
    without = without_each(ranked.kendall, WITHOUT["kendall"])
    found = sets.without_each(6, name, lambda own: without(own, risk, uncertainty))
    assert (found is not None) == lacks_one
    if found is not None:
        expected = ranked.kendall(sets.dense(6), risk, uncertainty)
        np.testing.assert_array_equal(found, expected)


def test_all_parts_of_sets_share_one_computation() -> None:
    calls = []

    def score(is_counted: Any) -> Any:
        calls.append(is_counted)
        return np.arange(6.0)

    sets = AllBut(np.arange(6))
    parts = [sets.part(slice(i, i + 2)).without_each(6, "a", score) for i in (0, 2, 4)]
    assert np.concatenate(parts).tolist() == [0, 1, 2, 3, 4, 5] and len(calls) == 1
    sets.only(np.arange(6) > 1).without_each(6, "a", score)
    assert len(calls) == 2 and calls[1].tolist() == [False, False, True, True, True, True]


@pytest.mark.parametrize("metric", ["ood", "failure"])
def test_intervals_need_no_weights_of_all_items_but_one(
    metric: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would take the square of the number of items; groups of items still have them."""

    def refuse(self: AllBut, items: int) -> Any:
        raise AssertionError("weights of all items")

    monkeypatch.setattr(AllBut, "dense", refuse)
    p = softmax(5, 40, 3, 1, 1)
    if metric == "ood":
        for name, own in (("in", p[:20]), ("out", p[20:] ** 0.5)):
            np.savez(tmp_path / f"{name}.npz", probs=own / own.sum(axis=1, keepdims=True))
        paths = tmp_path / "in.npz", [tmp_path / "out.npz"]
        report = uqeval.evaluate(paths[0], None, ["ood"], out=paths[1], ci=0.9, draws=100)
        scored = [f"ood.images.{name}" for name in ("auroc", "aupr_in", "aupr_out")]
    else:
        y = p.argmax(axis=1).astype(np.uint8)
        y[::3] = 0
        settings = {"image_failure": {"risk": "accuracy"}}
        report = uqeval.evaluate(p, y, settings, ci=0.9, draws=100)
        scored = [f"image_failure.{name}" for name in ("aurc", "augrc", "auroc", "kendall")]
    for address in scored:
        assert report.intervals[address]["low"] < report.intervals[address]["high"]
