"""Comparisons against a bootstrap by hand, and what makes reports comparable."""

from __future__ import annotations

import csv
import itertools
import json
import math
import shutil
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import naive_statistics as naive
import numpy as np
import pytest
from command import refused
from family_reports import of_sweep
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import bootstrap, rankdata, ttest_ind
from small_report import report
from trained import NAMES, SIDE, C, N, change, labels, probs, save

import uqeval
from uqeval import Report, StoreError, UsageError, evaluate
from uqeval.compare import Cell, Choice, Comparison, Row, compare, load_models
from uqeval.compare.holm import holm
from uqeval.gate import Units
from uqeval.metrics.conformal_scores import BY_FIELD
from uqeval.report.comparison_files import to_csv, to_json
from uqeval.report.tables.comparison import differences, to_markdown
from uqeval.report.tables.scores import scores
from uqeval.statistics import swaps

GOOD, BAD = (1, 1.6), (0, 1.0)
#: Scores that are cheap to resample, and that a loop by hand computes.
CHEAP = ("segmentation.pixel_accuracy", "segmentation.miou")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("compare")
    save(made / "bad.json", *BAD)
    save(made / "good.json", *GOOD)
    save(made / "same" / "bad.json", *BAD)
    for seed in (2, 3, 4):
        save(made / f"seed{seed}.json", seed, 1.3)
    return made


@pytest.fixture(autouse=True)
def few_swaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swaps, "MOST", 300)


def held(
    folder: Path, *names: str, replicates: tuple[str, ...] = (), **choice: object
) -> Comparison:
    paths = [str(folder / f"{name}.json") for name in names]
    groups = [[str(folder / f"{name}.json") for name in replicates]] if replicates else []
    few: dict[str, Any] = {"draws": 200, **choice}
    return compare(load_models(paths, groups), Choice(**few))


def row(found: Comparison, address: str) -> Row:
    (own,) = [own for own in found.rows if str(own.address) == address]
    return own


def correct(seed: int, skill: float) -> np.ndarray:
    """Right pixels of each item."""
    return (probs(seed, skill).argmax(1) == labels()).sum((1, 2))


def miou(seed: int, skill: float, weights: np.ndarray) -> float:
    """Mean IoU of items taken so often, pixel by pixel."""
    predicted = probs(seed, skill).argmax(1)
    ious = []
    for c in range(C):
        both = either = 0
        for n, w in enumerate(weights):
            both += w * ((predicted[n] == c) & (labels()[n] == c)).sum()
            either += w * ((predicted[n] == c) | (labels()[n] == c)).sum()
        ious.append(both / either)
    return float(np.mean(ious))


def difference(cell: Cell) -> tuple[float, float, float]:
    assert cell.difference is not None
    assert cell.difference.interval is not None
    own = cell.difference
    return own.value, own.interval.low, own.interval.high


def test_intervals_are_those_of_a_jackknife_by_hand(folder: Path) -> None:
    found = held(folder, "bad", "good", level=0.9, metrics=CHEAP)
    gap = correct(*GOOD) - correct(*BAD)

    def accuracy(items: list[int]) -> float:
        return float(gap[items].sum() / (len(items) * SIDE**2))

    def of_classes(items: list[int]) -> float:
        weights = np.bincount(items, minlength=N)
        return miou(*GOOD, weights) - miou(*BAD, weights)

    for field, score in (("pixel_accuracy", accuracy), ("miou", of_classes)):
        value, *ends = difference(row(found, f"segmentation.{field}").cells[1])
        assert value == pytest.approx(score(list(range(N))), abs=1e-12)
        assert ends == pytest.approx(naive.jackknife_t(range(N), score, 0.9, False), abs=1e-9)


def test_swapping_the_models_item_by_item(folder: Path) -> None:
    """The p-value against a loop over swaps, with other random numbers."""
    found = held(folder, "bad", "good", "seed2", level=0.9, metrics=CHEAP)
    rng = np.random.default_rng(0)
    for field in ("pixel_accuracy", "miou"):
        own = row(found, f"segmentation.{field}").cells[1].difference
        assert own is not None and own.p is not None and own.p_least is not None
        ones, hits, made = np.ones(N), 0, 2000
        observed = abs(mixed(field, ones))
        for _ in range(made):
            hits += abs(mixed(field, rng.integers(0, 2, N))) >= observed * (1 - 1e-12)
        expected = (1 + hits) / (1 + made)
        assert own.p == pytest.approx(expected, abs=4 * (expected / 300) ** 0.5 + 0.01)
    adjusted = [c.difference for r in found.rows for c in r.cells if c.difference]
    known = [own.p for own in adjusted if own.p is not None]
    assert found.tests == len(known) and found.tests_of_parts == 0
    assert [own.p_adjusted for own in adjusted] == pytest.approx(naive.holm(known))


def test_p_values_do_not_depend_on_how_many_swaps_are_scored_at_a_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swaps, "MOST", 3000)
    found = []
    for blocks in (1, 8):
        monkeypatch.setattr(swaps, "_MOST_BLOCKS", blocks)
        compared = held(folder, "seed2", "seed3", "good", level=0.9, metrics=CHEAP)
        found.append([c.difference.p for r in compared.rows for c in r.cells if c.difference])
    assert found[0] == found[1] and len(set(found[0])) > 2


def mixed(field: str, keeps: np.ndarray) -> float:
    """The difference when each model has its own items where `keeps` is 1, else the other's."""
    both = []
    for mine, theirs in ((GOOD, BAD), (BAD, GOOD)):
        right = np.where(keeps, correct(*mine), correct(*theirs)).sum() / (N * SIDE**2)
        both.append(right if field == "pixel_accuracy" else mixed_miou(mine, theirs, keeps))
    return float(both[0] - both[1])


def mixed_miou(mine: Any, theirs: Any, keeps: np.ndarray) -> float:
    ours, others = (probs(*own).argmax(1) for own in (mine, theirs))
    predicted = np.where(keeps[:, None, None], ours, others)
    ious = []
    for c in range(C):
        here, there = predicted == c, labels() == c
        ious.append((here & there).sum() / (here | there).sum())
    return float(np.mean(ious))


def test_intervals_agree_with_scipy(folder: Path) -> None:
    found = held(folder, "bad", "good", draws=500, metrics=CHEAP)
    _, low, high = difference(row(found, "segmentation.pixel_accuracy").cells[1])
    shares = [correct(*own) / SIDE**2 for own in (GOOD, BAD)]
    theirs = bootstrap(
        shares, lambda x, y, axis: x.mean(axis) - y.mean(axis), paired=True, vectorized=True,
        n_resamples=5000, method="percentile", rng=np.random.default_rng(1),
    ).confidence_interval  # fmt: skip
    width = theirs.high - theirs.low  # of plain percentiles: too narrow
    assert low == pytest.approx(theirs.low, abs=0.15 * width)
    assert high == pytest.approx(theirs.high, abs=0.15 * width)


def test_groups_are_drawn_whole(folder: Path, tmp_path: Path) -> None:
    table = tmp_path / "items.csv"
    groups = np.arange(N) % 4
    lines = [f"item{i:02},{g}" for i, g in enumerate(groups)]
    table.write_text("\n".join(["name,drive", *lines]))
    options = {"slices": table, "group_by": "drive", "ci": 0.95, "metrics": ["segmentation"]}
    save(tmp_path / "bad.json", *BAD, **options)
    save(tmp_path / "good.json", *GOOD, metrics=["segmentation"])  # one that says suffices
    found = held(tmp_path, "bad", "good")
    gap = correct(*GOOD) - correct(*BAD)
    own = difference(row(found, "segmentation.pixel_accuracy").cells[1])
    expected = naive.jackknife_t(
        groups.tolist(), lambda items: float(gap[items].sum() / (len(items) * SIDE**2)), 0.95, False
    )
    assert own[1:] == pytest.approx(expected)
    assert any("intervals come from 4 groups" in text for text in found.warnings)


def test_equal_models_do_not_differ(folder: Path) -> None:
    found = held(folder, "bad", "same/bad", draws=100, every=True, per_class=True)
    assert len(found.rows) > 30
    for own in found.rows:
        first, second = own.cells
        assert first.value == second.value
        assert not first.best
        assert not second.best
        if second.difference is not None:
            assert second.difference.value == 0
            assert second.difference.verdict in ("no difference seen", None)
        if second.rank is not None:
            assert second.rank.place == 1
            assert second.rank.best_share in (1, None)
    assert row(found, "calibration.ece").cells[1].difference.verdict == "no difference seen"  # type: ignore[union-attr]


@settings(max_examples=2)
@given(seed=st.integers(0, 2**32), level=st.floats(0.5, 0.99), first=st.sampled_from(["a", "b"]))
def test_swapping_negates(folder: Path, seed: int, level: float, first: str) -> None:
    names = ("bad", "good") if first == "a" else ("good", "seed2")
    choice = {"draws": 100, "seed": seed, "level": level}
    there, back = held(folder, *names, **choice), held(folder, *names[::-1], **choice)
    for one, other in zip(there.rows, back.rows, strict=True):
        assert one.address == other.address
        if one.cells[1].difference is None or one.cells[1].difference.interval is None:
            continue
        value, low, high = difference(one.cells[1])
        assert difference(other.cells[1]) == pytest.approx((-value, -high, -low), abs=1e-12)
        assert one.cells[0].rank == other.cells[1].rank
        a, b = one.cells[1].difference, other.cells[1].difference
        assert b is not None
        assert a.verdict == b.verdict
        assert (a.better, b.better) in ((True, False), (False, True), (None, None))


def test_marks_and_places(folder: Path) -> None:
    found = held(folder, "bad", "good", "seed2", draws=200, metrics=("calibration.nll", CHEAP[0]))
    ece, accuracy = row(found, "calibration.nll"), row(found, "segmentation.pixel_accuracy")
    assert ece.direction == "lower"
    for own, sign in ((ece, 1), (accuracy, -1)):
        values = [sign * (cell.value or 0) for cell in own.cells]
        assert [cell.best for cell in own.cells] == [v == min(values) for v in values]
        ranks = [cell.rank for cell in own.cells]
        assert [rank.place for rank in ranks if rank] == [
            1 + sum(o < v for o in values) for v in values
        ]
    weights = np.random.default_rng(0).multinomial(N, np.full(N, 1 / N), 200)
    drawn = np.stack([weights @ correct(*own) for own in (BAD, GOOD, (2, 1.3))])
    places = 1 + (drawn[None] > drawn[:, None]).sum(1)
    for m, cell in enumerate(accuracy.cells):
        assert cell.rank is not None
        assert cell.rank.best_share == (places[m] == 1).mean()
        assert cell.rank.kept_share == (places[m] == cell.rank.place).mean()


def test_another_baseline(folder: Path) -> None:
    found = held(folder, "bad", "good", draws=100, baseline="good", metrics=CHEAP)
    own = row(found, "segmentation.miou")
    assert own.cells[1].difference is None
    assert own.cells[0].difference is not None
    assert own.cells[0].difference.better is False
    with pytest.raises(UsageError, match="'best' is not a model; the models are bad, good"):
        held(folder, "bad", "good", baseline="best")


def test_the_smallest_p_of_so_many_units() -> None:
    """Up to 12 units all swaps are made, 2 of 2^12 being as far apart; beyond, random ones."""
    assert [swaps.least_p(units) for units in (5, 12)] == [2 / 2**5, 2 / 2**12]
    assert swaps.least_p(13) == swaps.least_p(1000) == 1 / (swaps.MOST + 1)


def of_arrays(folder: Path, probs: list[np.ndarray], labels: np.ndarray, score: str) -> Row:
    """Return the row of a score of two models with these probabilities."""
    names = [f"n{i}" for i in range(len(labels))]
    for model, own in enumerate(probs):
        store = {"probs": own, "labels": labels.astype(np.uint8), "names": names}
        path = folder / f"m{model}.json"
        family = [score.partition(".")[0]]
        evaluate(store, metrics=family, states=path.with_suffix(".states.zip")).save(path)
    return row(held(folder, "m0", "m1", metrics=(score,)), score)


def test_the_smallest_p_is_of_the_units_with_the_score(tmp_path: Path) -> None:
    labels = np.zeros((12, 2, 2))
    labels[:3, 0] = 1
    first = np.stack([1 - 0.8 * labels, 0.8 * labels], axis=1)
    second = first.copy()
    second[:3, :, 0, 0] = [0.9, 0.1]
    own = of_arrays(tmp_path, [first, second], labels, "segmentation.per_class.1.accuracy")
    change = own.cells[1].difference
    assert change is not None and own.items == 12
    assert change.p_least == change.p_least_adjusted == 2 / 2**3 and change.has_too_few_units
    assert change.swapped is not None
    assert (change.swapped.name, change.swapped.defined) == ("item", 3)
    assert change.p is not None and change.p >= change.p_least


def test_a_p_value_near_the_level_hardly_depends_on_the_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 100 items, 5 are wrong in one model only: p is 2/2⁵, with a standard error of 0.0024."""
    monkeypatch.setattr(swaps, "MOST", 10_000)
    ids = np.zeros(100, np.uint8)
    for name, wrong in (("a", 0), ("b", 5)):
        chosen = np.array(ids)
        chosen[:wrong] = 1
        probs_of_items = np.eye(2, dtype=np.float32)[chosen] * 0.8 + 0.1
        np.savez(tmp_path / f"{name}.npz", probs=probs_of_items, labels=ids)
        evaluate(
            str(tmp_path / f"{name}.npz"), metrics=["segmentation"], workers=1,
            states=tmp_path / f"{name}.states.zip",
        ).save(tmp_path / f"{name}.json")  # fmt: skip
    for seed in range(4):
        found = held(tmp_path, "a", "b", seed=seed, metrics=("segmentation.pixel_accuracy",))
        change = found.rows[0].cells[1].difference
        assert change is not None and change.p == pytest.approx(1 / 16, abs=0.008)


@pytest.mark.parametrize(("size", "is_better"), [(0.94, False), (1.0, True), (1.3, True)])
def test_a_smaller_set_is_better_only_from_one_class_on(
    tmp_path: Path, size: float, is_better: bool
) -> None:
    """Sets of 0.94 classes on average are partly empty."""
    metrics = {"conformal.size": BY_FIELD["size"].record()}
    for name, value in (("a", 1.4), ("b", size)):
        results = {"conformal": {"coverage": 0.93, "size": value}}
        report(results=results, metrics=metrics).save(tmp_path / f"{name}.json")
    two = {name: Report.load(tmp_path / f"{name}.json") for name in ("a", "b")}
    (of_page,) = (r for r in scores(two, "conformal").rows if r.name.startswith("set size"))
    assert [own.best for own in of_page.cells] == [False, is_better]
    found = held(tmp_path, "a", "b", metrics=("conformal.size",), level=None)
    (own,) = found.rows
    assert own.cells[1].best == is_better
    assert own.cells[1].difference.better is (True if is_better else None)  # type: ignore[union-attr]
    assert (
        any("conformal.size: no value counts as better" in w for w in found.warnings) != is_better
    )


def test_conformal_scores_have_no_test(tmp_path: Path) -> None:
    """Their thresholds are fitted on other items."""
    np.savetxt(tmp_path / "fit.txt", [str(i) for i in range(0, N, 2)], fmt="%s")
    for name, own in (("bad", BAD), ("good", GOOD)):
        np.savez(tmp_path / f"{name}.npz", probs=probs(*own), labels=labels())
        evaluate(
            str(tmp_path / f"{name}.npz"), workers=1, states=tmp_path / f"{name}.states.zip",
            metrics={
                "segmentation": {},
                "conformal": {"fit_on": str(tmp_path / "fit.txt"), "alpha": 0.2},
            },
        ).save(tmp_path / f"{name}.json")  # fmt: skip
    found = held(tmp_path, "bad", "good")
    for own in found.rows:
        change = own.cells[1].difference
        assert change is not None
        if str(own.address).startswith("conformal."):
            assert change.p is None and change.verdict is None
            assert "fitted on other items" in str(change.reason)
            rank = own.cells[1].rank
            assert rank is None or rank.best_share is None
        else:
            assert change.p is not None
    assert {str(own.address).split(".")[0] for own in found.rows} == {"segmentation", "conformal"}


def of_uncertainties(
    folder: Path, uncertainties: list[np.ndarray], predictions: list[np.ndarray], family: str,
    **options: object,
) -> Comparison:  # fmt: skip
    """Compare two models of zeros with these predictions and uncertainties."""
    names = [f"n{i}" for i in range(len(predictions[0]))]
    labels = np.zeros(predictions[0].shape, np.uint8)
    for model, (u, own) in enumerate(zip(uncertainties, predictions, strict=True)):
        store = {"predictions": own.astype(np.uint8), "u": u.astype(np.float32)}
        path = folder / f"m{model}.json"
        evaluate(
            store | {"labels": labels, "names": names}, states=path.with_suffix(".states.zip"),
            metrics={family: {"uncertainty": "u"} | options}, classes=2,
        ).save(path)  # fmt: skip
    return held(folder, "m0", "m1")


def wrong_and_uncertain(seed: int, wrong: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return predictions with wrong pixels in some items, and uncertainties, all different."""
    rng = np.random.default_rng(seed)
    predictions = np.zeros((6, 4, 5))
    for item in wrong:
        predictions[item, 0, : rng.integers(1, 4)] = 1
    order = rng.normal(size=predictions.shape) + predictions
    return predictions, 1 + order.argsort(axis=None).argsort().reshape(order.shape)


@pytest.mark.parametrize("wrong", [([0, 1, 2, 5], [0, 3, 4, 5]), ([2], [4])])
@pytest.mark.parametrize("scaled", ["as they are", "4 times", "squared"])
def test_a_ranking_is_tested_by_the_ranks_of_each_model(
    tmp_path: Path, wrong: tuple[list[int], ...], scaled: str
) -> None:
    """The p-value is that of all 64 swaps of ranks, whatever the scale of an uncertainty. Swaps
    without the score do not count: if each model is wrong in one item, in half of them one is
    never wrong."""
    (first, u), (second, v) = (wrong_and_uncertain(i, own) for i, own in enumerate(wrong))
    scale = {"as they are": v, "4 times": 4 * v, "squared": v**2}[scaled]
    found = of_uncertainties(tmp_path, [u, scale], [first, second], "failure")
    change = row(found, "failure.auroc").cells[1].difference
    ranks = [rankdata(own).reshape(own.shape) for own in (u, v)]

    def auroc(own: list[int]) -> float:
        ranked = np.concatenate([ranks[k][i] for i, k in enumerate(own)]).ravel()
        is_wrong = np.concatenate([(first, second)[k][i] for i, k in enumerate(own)]).ravel() > 0
        if is_wrong.all() or not is_wrong.any():
            return math.nan
        pairs = np.sign(ranked[is_wrong][:, None] - ranked[~is_wrong])
        return float((pairs.mean() + 1) / 2)

    swapped = list(itertools.product((0, 1), repeat=6))
    differences = np.abs([auroc(list(own)) - auroc([1 - k for k in own]) for own in swapped])
    defined = differences[np.isfinite(differences)]
    assert len(defined) == (64 if len(wrong[0]) > 1 else 32)
    assert change is not None
    assert change.p == pytest.approx((defined >= differences[0] - 1e-12).mean())


@pytest.mark.parametrize("score", ["aupr_error", "aupr_success", "fpr95"])
@pytest.mark.parametrize("factor", [2, 4])
def test_scores_of_few_ranks_are_tested_by_ranks_and_as_they_are(
    tmp_path: Path, score: str, factor: int
) -> None:
    """One image may move these ranks, so the p-value is the larger one of all swaps of ranks, and
    of the uncertainties as they are."""
    first, u = wrong_and_uncertain(0, [0, 1, 2, 5])
    second, v = wrong_and_uncertain(1, [0, 3, 4, 5])
    u[2] += 200  # the first ranks are of one item
    v = factor * v
    of_uncertainties(tmp_path, [u, v], [first, second], "failure")
    found = held(tmp_path, "m0", "m1", metrics=(f"failure.{score}",), draws=100)
    change = found.rows[0].cells[1].difference

    def scored(values: list[np.ndarray], own: list[int]) -> float:
        order = np.concatenate([values[k][i] for i, k in enumerate(own)]).ravel()
        sought = np.concatenate([(first, second)[k][i] for i, k in enumerate(own)]).ravel() > 0
        if score == "fpr95":
            cut = max(t for t in order[sought] if (order[sought] >= t).mean() >= 0.95)
            return float((order[~sought] >= cut).mean())
        if score == "aupr_success":
            order, sought = -order, ~sought
        at_least = order[None] >= order[sought][:, None]
        return float(((at_least & sought).sum(1) / at_least.sum(1)).mean())

    swapped = list(itertools.product((0, 1), repeat=6))
    p_values = []
    for values in ([rankdata(own).reshape(own.shape) for own in (u, v)], [u, v]):
        pairs = [(list(own), [1 - k for k in own]) for own in swapped]
        differences = np.abs([scored(values, a) - scored(values, b) for a, b in pairs])
        p_values.append((differences >= differences[0] - 1e-12).mean())
    assert p_values[0] != p_values[1]
    assert change is not None
    assert change.p == pytest.approx(max(p_values))


@pytest.mark.parametrize(
    ("family", "score", "options"),
    [
        ("sparsification", "sparsification.ause", {"error": "zero-one"}),
        ("image_failure", "image_failure.aurc", {"confidence": "mean"}),
    ],
)
def test_p_values_of_rankings_do_not_depend_on_the_scale(
    tmp_path: Path, family: str, score: str, options: dict[str, str]
) -> None:
    (first, u), (second, v) = (wrong_and_uncertain(i, [0, 1, 2, 3, 4, 5]) for i in (7, 8))
    found = []
    for factor in (1, 4, 1024):
        (tmp_path / str(factor)).mkdir()
        both = of_uncertainties(
            tmp_path / str(factor), [u, factor * v], [first, second], family, **options
        )
        found.append(row(both, score).cells[1].difference)
    assert found[0] is not None and found[0].p is not None
    assert all(own is not None and own.p == found[0].p for own in found)


@pytest.mark.parametrize("factor", [1.0, 2.7, 100.0])
def test_n_merci_is_tested_with_sigmas_of_the_same_mean(tmp_path: Path, factor: float) -> None:
    """The p-value is that of all 64 swaps of σ divided by its mean, whatever the scale of σ."""
    rng = np.random.default_rng(5)
    target = rng.normal(size=(6, 5, 8))
    errors = [np.abs(rng.normal(size=target.shape)) + 0.1 for _ in range(2)]
    sigmas = [
        error * rng.lognormal(0, s, error.shape)
        for error, s in zip(errors, (0.2, 1.2), strict=True)
    ]
    for k, (error, sigma) in enumerate(zip(errors, sigmas, strict=True)):
        own = {"mean": target + error, "std": sigma * factor**k, "target": target}
        path = tmp_path / f"m{k}.json"
        evaluate(own, metrics="nmerci", states=path.with_suffix(".states.zip")).save(path)
    change = row(held(tmp_path, "m0", "m1"), "nmerci.nmerci").cells[1].difference

    def nmerci(own: list[int]) -> float:
        e, s = (
            np.concatenate([values[k][i] for i, k in enumerate(own)])
            for values in (errors, [sigma / sigma.mean() for sigma in sigmas])
        )
        ratio, most = np.percentile(e / s, 95), np.percentile(e, 95)
        return float((ratio * s.mean() - e.mean()) / (most - e.mean()))

    swapped = list(itertools.product((0, 1), repeat=6))
    differences = np.abs([nmerci(list(own)) - nmerci([1 - k for k in own]) for own in swapped])
    expected = (differences >= differences[0] - 1e-12).mean()
    assert 0 < expected < 0.9
    assert change is not None and change.p == pytest.approx(expected)


def test_the_factor_of_sigma_has_no_swaps(tmp_path: Path) -> None:
    """λ changes with the scale of σ, the only score of n-MeRCI that does."""
    rng = np.random.default_rng(5)
    target = rng.normal(size=(72, 2, 2))  # an interval of a 95 % quantile needs 72 items
    for k in (1, 10):
        std = k * rng.lognormal(size=target.shape)
        own = {"mean": target + rng.normal(size=target.shape), "std": std, "target": target}
        path = tmp_path / f"m{k}.json"
        evaluate(own, metrics="nmerci", states=path.with_suffix(".states.zip")).save(path)
    metrics = ("nmerci.lambda", "nmerci.merci")
    found = held(tmp_path, "m1", "m10", metrics=metrics)
    scale, merci = (own.cells[1].difference for own in found.rows)
    assert scale is not None and scale.interval is not None and scale.p is None
    assert scale.reason is not None and scale.reason.startswith("the score changes with the scale")
    (record, *_), note = json.loads(to_json(found))["scores"], differences(found).note
    assert record["models"]["m10"]["p_reason"] == scale.reason
    assert list(csv.DictReader(to_csv(found).splitlines()))[1]["reason"] == scale.reason
    assert f"No p-value of nmerci.lambda: {scale.reason}." in note and "No interval" not in note
    assert merci is not None and merci.p is not None


def test_images_of_a_set_are_ranked_among_those_of_their_score(tmp_path: Path) -> None:
    """The images of another OUT set do not change the p-value of a set."""
    rng, p = np.random.default_rng(1), []
    counts, shifts = (7, 7, 20), ((0, 2.0, -40), (0, 0.6, 60))
    models = [
        [
            300 + shift + rng.normal(size=(count, 1, 1)) + rng.normal(size=(count, 3, 5)) * 0.01
            for count, shift in zip(counts, own, strict=True)
        ]
        for own in shifts
    ]
    for sets, score in ((2, "ood.images.auroc"), (3, "ood.per_set.out.images.auroc")):
        for k, own in enumerate(models):
            stores = [
                {"predictions": np.zeros(u.shape, np.uint8), "u": u.astype(np.float32),
                 "names": [f"{name}{i}" for i in range(len(u))]}
                for name, u in zip(("in", "out", "far"), own[:sets], strict=False)
            ]  # fmt: skip
            path = tmp_path / f"m{k}.json"
            uqeval.evaluate(
                stores[0], metrics={"ood": {"uncertainty": "u"}}, out=stores[1:], classes=2,
                states=path.with_suffix(".states.zip"),
            ).save(path)  # fmt: skip
        (own_row,) = held(tmp_path, "m0", "m1", metrics=(score,)).rows
        assert own_row.cells[1].difference is not None
        p.append(own_row.cells[1].difference.p)
    assert p[0] == pytest.approx(p[1], abs=0.06) and p[1] < 0.5


def test_a_score_that_states_do_not_give_says_so(tmp_path: Path) -> None:
    """Over common items of reports of other items; without intervals nothing is said of them."""
    names = [f"n{i}" for i in range(N)]
    for name, own, items in (("a", GOOD, slice(0, N - 1)), ("b", BAD, slice(1, N))):
        store = {"probs": probs(*own)[items], "labels": labels()[items], "names": names[items]}
        path = tmp_path / f"{name}.json"
        evaluate(store, metrics="failure", states=path.with_suffix(".states.zip")).save(path)
    scores = ("failure.per_class.0.auroc", "failure.auroc")
    found = held(tmp_path, "a", "b", metrics=scores, level=None)
    of_class, of_all = (row(found, score).cells[0] for score in scores)
    assert of_all.value is not None and of_class.value is None
    assert of_class.reason == "the score cannot be computed from saved states"
    assert not any("intervals come from" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ({"level": 1.0}, "level=1; expected a level from 0.5 to below 1"),
        ({"draws": 99}, "draws=99; expected 100 to 100000"),
        ({"seed": -1}, "seed=-1; expected a whole number, at least 0"),
    ],
)
def test_choices_out_of_range(choice: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Choice(**choice)


def test_models_of_several_trainings_have_the_test_of_welch(folder: Path, tmp_path: Path) -> None:
    """It does not depend on a third model, whose score may be undefined."""
    for seed in (5, 6):
        save(tmp_path / f"other{seed}.json", seed, 1.5)
        save(tmp_path / f"perfect{seed}.json", seed, 50.0)
    groups = [
        [str(where / f"{name}{seed}.json") for seed in seeds]
        for where, name, seeds in (
            (folder, "seed", (2, 3, 4)), (tmp_path, "other", (5, 6)), (tmp_path, "perfect", (5, 6)),
        )
    ]  # fmt: skip
    for address in ("segmentation.miou", "pavpu.p_uncertain_given_inaccurate"):
        found = compare(load_models([], groups), Choice(metrics=(address,), draws=200))
        seeds, others, perfect = (cell.values for cell in row(found, address).cells)
        assert bool(perfect) == (address == "segmentation.miou")
        own = row(found, address).cells[1].difference
        assert own is not None and own.interval is not None
        welch = ttest_ind(others, seeds, equal_var=False)
        expected = welch.confidence_interval(0.95)
        assert (own.interval.low, own.interval.high) == pytest.approx(tuple(expected))
        assert own.interval.units == Units("training", 5, 5)
        assert (own.p, own.p_least) == (pytest.approx(welch.pvalue), None)
        # No interval comes from the 14 items.
        assert not any("intervals come from" in text for text in found.warnings)


def trainings(folder: Path, name: str, **options: Any) -> list[str]:
    """Reports of three trainings whose uncertainties, near 1000, share the bins of states."""
    paths = []
    for seed in range(3):
        rng = np.random.default_rng([seed, *name.encode()])
        wrong = rng.random(labels().shape) < 0.2
        arrays = {
            "predictions": np.where(wrong, (labels() + 1) % C, labels()).astype(np.uint8),
            "energy": (1000 + rng.normal(size=wrong.shape) + wrong).astype("f4"),
            "labels": labels(), "names": NAMES,
        }  # fmt: skip
        items = options.get("items", slice(None))
        path = folder / f"{name}{seed}.json"
        saved: dict[str, Any] = {"states": path.with_suffix(".states.zip"), "classes": C}
        metrics = {"failure": {"uncertainty": "energy", "threshold": 1000}}
        part = {key: values[items] for key, values in arrays.items()}
        evaluate(part, metrics=metrics, slices=options.get("slices"), **saved).save(path)
        paths.append(str(path))
    return paths


def of_welch(found: Comparison, address: str) -> tuple[bool, bool]:
    """Whether the interval and p-value of a difference are Welch's of the values shown, and whether
    it is marked as approximate."""
    first, second = row(found, address).cells
    change = second.difference
    assert change is not None and change.interval is not None and change.p is not None
    welch = ttest_ind(second.values, first.values, equal_var=False)
    ends = tuple(welch.confidence_interval(0.95))
    is_same = (change.interval.low, change.interval.high, change.p) == pytest.approx(
        (*ends, welch.pvalue), rel=1e-9
    )
    return is_same, change.interval.approximate


def test_the_test_of_welch_is_of_the_values_shown(tmp_path: Path) -> None:
    """Scores by rank of the states are averaged in bins."""
    (tmp_path / "table.csv").write_text(
        "name,half\n" + "".join(f"{name},{'ab'[i % 2]}\n" for i, name in enumerate(NAMES))
    )
    table = {"slices": tmp_path / "table.csv"}
    a, b = trainings(tmp_path, "a", **table), trainings(tmp_path, "b", **table)
    addresses = ("failure.auroc", "failure.aurc", "failure.per_class.0.auroc")
    in_slice = tuple(f"{address}@half=a" for address in addresses[:2])
    for address in (*addresses, *in_slice):
        found = compare(load_models([], [a, b]), Choice(metrics=(address,), draws=100))
        assert of_welch(found, address) == (True, False), address


def merged(path: Path, parts: list[str], **options: Any) -> str:
    uqeval.merge(parts, states=path.with_suffix(".states.zip"), **options).save(path)
    return str(path)


def test_the_test_of_welch_of_scores_from_states_is_approximate(tmp_path: Path) -> None:
    """Of common items, of slices that were added later, and of merged runs."""
    a, b = trainings(tmp_path, "a"), trainings(tmp_path, "b")
    for name in ("fewer", "rest", "joined", "later"):
        (tmp_path / name).mkdir()
    parts = [
        [path for name in ("a", "b") for path in trainings(tmp_path / folder, name, items=items)]
        for folder, items in (("fewer", slice(0, N - 2)), ("rest", slice(N - 2, N)))
    ]
    fewer = parts[0][3:]
    joined = [
        merged(tmp_path / "joined" / Path(first).name, [first, second])
        for first, second in zip(*parts, strict=True)
    ]
    (tmp_path / "table.csv").write_text(
        "name,half\n" + "".join(f"{name},{'ab'[i % 2]}\n" for i, name in enumerate(NAMES))
    )
    later = [
        merged(tmp_path / "later" / Path(path).name, [path], slices=tmp_path / "table.csv")
        for path in (*a, *b)
    ]
    for address, groups, is_approximate in (
        ("failure.auroc", [a, fewer], True),
        ("failure.auroc", [joined[:3], joined[3:]], True),
        ("failure.auroc@half=a", [later[:3], later[3:]], True),
        # A single run that gets slices later keeps its exact scores.
        ("failure.auroc", [later[:3], later[3:]], False),
    ):
        found = compare(load_models([], groups), Choice(metrics=(address,), draws=100))
        assert of_welch(found, address) == (True, is_approximate), (address, groups)


def test_intervals_over_trainings_are_inside_the_range_of_the_score(
    folder: Path, tmp_path: Path
) -> None:
    save(tmp_path / "perfect.json", 5, 50.0)
    groups = [
        [str(folder / "seed2.json"), str(tmp_path / "perfect.json")],
        [str(folder / "seed3.json"), str(folder / "seed4.json")],
    ]
    found = compare(
        load_models([], groups), Choice(metrics=("segmentation.pixel_accuracy",), draws=200)
    )
    assert difference(found.rows[0].cells[1])[1:] == (-1.0, 1.0)
    mean_of = found.rows[0].cells[0].over_trainings
    assert mean_of is not None and (mean_of.low, mean_of.high) == (0.0, 1.0)


def test_words_about_several_trainings_are_adjusted_for_all_scores(
    folder: Path, tmp_path: Path
) -> None:
    for seed in (5, 6):
        save(tmp_path / f"other{seed}.json", seed, 1.5)
    groups = [
        [str(folder / f"seed{seed}.json") for seed in (2, 3, 4)],
        [str(tmp_path / f"other{seed}.json") for seed in (5, 6)],
    ]
    found = compare(load_models([], groups), Choice(every=True, draws=100))
    changes = [own.cells[1].difference for own in found.rows]
    tested = [change for change in changes if change is not None and change.p is not None]
    assert found.tests == len(tested) > 30
    ps = [change.p for change in tested]
    assert [change.p_adjusted for change in tested] == holm(ps)  # type: ignore[arg-type]
    assert min(ps) <= 0.05  # type: ignore[type-var]
    excluding = [c for c in tested if c.interval and not c.interval.low <= 0 <= c.interval.high]
    assert excluding and all(c.verdict == "no difference seen" for c in excluding)
    note = differences(found).note
    assert f"p-value of Welch's t-test over trainings, adjusted for {found.tests} comp" in note
    assert "swapping" not in note


def test_one_training_against_several_has_no_word(folder: Path) -> None:
    seeds = ("seed2", "seed3", "seed4")
    found = held(folder, "bad", replicates=seeds, draws=100, metrics=CHEAP, level=0.5)
    for own in found.rows:
        change = own.cells[1].difference
        assert change is not None and change.interval is not None and change.interval.low > 0
        assert change.p is None and change.verdict is None
    note = differences(found).note
    assert "seed: one training against several has no p-value, so no word" in note
    assert "better" not in note


def test_copies_of_one_training_are_named(folder: Path) -> None:
    found = held(folder, replicates=("bad", "same/bad", "seed2"), metrics=CHEAP)
    (warning,) = [text for text in found.warnings if "copies of one training" in text]
    assert "bad.json and " in warning and "same/bad.json have equal scores" in warning
    assert not held(folder, replicates=("seed2", "seed3"), metrics=CHEAP).warnings


def test_replicates_have_mean_and_sample_std(folder: Path) -> None:
    seeds = ("seed2", "seed3", "seed4")
    values = [
        Report.load(folder / f"{name}.json").results["segmentation"]["miou"] for name in seeds
    ]
    alone = held(folder, replicates=seeds, metrics=CHEAP)
    assert alone.names == ["seed"]
    (cell,) = row(alone, "segmentation.miou").cells
    assert cell.value == pytest.approx(statistics.fmean(values), abs=1e-15)
    assert cell.std == pytest.approx(statistics.stdev(values), abs=1e-15)
    assert cell.values == tuple(values)
    t = 0.95 * math.sqrt(2 / (4 * 0.975 * 0.025))  # Student's with 2 degrees, in closed form
    reach = t * statistics.stdev(values) / math.sqrt(3)
    mean_of = cell.over_trainings
    assert mean_of is not None and mean_of.units == Units("training", 3, 3)
    assert (mean_of.low, mean_of.high) == pytest.approx(
        (cell.value - reach, cell.value + reach), abs=1e-12
    )
    assert cell.rank is None
    found = held(folder, "bad", replicates=seeds, draws=300, metrics=CHEAP)
    cell = row(found, "segmentation.pixel_accuracy").cells[1]
    gap = np.mean([correct(seed, 1.3) for seed in (2, 3, 4)], axis=0) - correct(*BAD)

    def mean(items: list[int]) -> float:
        return float(gap[items].sum() / (len(items) * SIDE**2))

    own = difference(cell)
    assert own[0] == pytest.approx(mean(list(range(N))), abs=1e-12)
    assert own[1:] == pytest.approx(naive.jackknife_t(range(N), mean, 0.95, False), abs=1e-9)
    assert cell.difference is not None and cell.difference.p is None


def test_a_mean_of_scores_from_bins_is_marked(folder: Path, tmp_path: Path) -> None:
    """Scores of the common items come from states, which have bins."""
    save(tmp_path / "few.json", *BAD, items=slice(2, N))
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    seeds, addresses = ("seed2", "seed3"), ("calibration.adaptive_ece", "calibration.ece")
    for name, marked in (("few", [True, False]), ("bad", [False, False])):
        found = held(tmp_path, name, replicates=seeds, metrics=addresses)
        means = [row(found, text).cells[1].over_trainings for text in addresses]
        assert [mean is not None and mean.approximate for mean in means] == marked
        lines = to_markdown(found).splitlines()
        of_scores = [own for own in lines if "±" in own and own.startswith("| calibration")]
        assert ["≈ " in own for own in of_scores] == marked
        records = json.loads(to_json(found))["scores"]
        models = [record["models"]["seed"]["over_trainings"] for record in records]
        assert [own["approximate"] for own in models] == marked


def test_without_states_there_is_a_table_and_a_warning(folder: Path, tmp_path: Path) -> None:
    save(tmp_path / "a.json", *BAD, states=None)
    save(tmp_path / "b.json", *GOOD)
    found = held(tmp_path, "a", "b")
    assert row(found, "segmentation.miou").cells[1].difference.verdict is None  # type: ignore[union-attr]
    assert "a.json has no saved states" in found.warnings[0]
    assert "-o FILE" in found.warnings[0]
    (tmp_path / "b.states.zip").unlink()
    assert any("b.states.zip does not exist" in w for w in held(tmp_path, "b", "a").warnings)
    assert not held(tmp_path, "a", "b", level=None).warnings


def test_states_of_another_run_are_refused(folder: Path, tmp_path: Path) -> None:
    save(tmp_path / "a.json", *BAD)
    save(tmp_path / "b.json", *GOOD, items=slice(0, 9))
    (tmp_path / "b.states.zip").replace(tmp_path / "a.states.zip")
    save(tmp_path / "b.json", *GOOD)
    with pytest.raises(StoreError, match="are not the states of"):
        held(tmp_path, "b", "a")


def test_other_items_are_left_out(folder: Path, tmp_path: Path) -> None:
    save(tmp_path / "a.json", *BAD, items=slice(0, 11))
    save(tmp_path / "b.json", *GOOD, items=slice(2, 14))
    found = held(tmp_path, "a", "b", draws=100, metrics=CHEAP)
    own = row(found, "segmentation.pixel_accuracy")
    assert own.items == 9
    assert [cell.value for cell in own.cells] == pytest.approx(
        [correct(*m)[2:11].sum() / (9 * SIDE**2) for m in (BAD, GOOD)]
    )
    assert any("over the 9 items that all models have, of 11 and 12" in w for w in found.warnings)
    save(tmp_path / "c.json", *GOOD, items=slice(11, 14))
    with pytest.raises(UsageError, match=r"no common items: their items are called .* and "):
        held(tmp_path, "a", "c")
    save(tmp_path / "b.json", *GOOD, items=slice(2, 14), states=None)
    with pytest.raises(
        UsageError, match=r"share 9 items of 11 and 12.*b\.json has no saved states"
    ):
        held(tmp_path, "a", "b")


def test_out_sets_that_share_no_item_are_named(tmp_path: Path) -> None:
    """Items of a store without names are called after its file."""
    rng = np.random.default_rng(1)
    maps = {"predictions": np.zeros((4, 6, 6), "u1"), "novelty": rng.random((4, 6, 6), "f4")}
    np.savez(tmp_path / "in.npz", **maps)
    for model in ("first", "second"):
        np.savez(tmp_path / f"{model}.npz", **maps)
        report = uqeval.evaluate(
            tmp_path / "in.npz", None, {"ood": {"uncertainty": "novelty"}}, classes=2,
            out=[tmp_path / f"{model}.npz"], states=tmp_path / f"report_{model}.states.zip",
        )  # fmt: skip
        report.save(tmp_path / f"report_{model}.json")
    says = "no common item out of distribution; their OUT sets are first, second"
    with pytest.raises(UsageError, match=says):
        held(tmp_path, "report_first", "report_second")


def test_the_order_of_items_does_not_matter(folder: Path, tmp_path: Path) -> None:
    save(tmp_path / "good.json", *GOOD, items=slice(None, None, -1))
    paths = [str(folder / "bad.json"), str(tmp_path / "good.json")]
    one = held(folder, "bad", "good", metrics=CHEAP)
    other = compare(load_models(paths), Choice(CHEAP))
    a, b = row(one, "segmentation.miou"), row(other, "segmentation.miou")
    assert difference(a.cells[1]) == pytest.approx(difference(b.cells[1]), abs=1e-12)
    assert any("the same labels is unknown" in w for w in other.warnings)
    assert not any("other labels" in w for w in other.warnings)


def test_other_settings_of_a_metric_leave_it_out(folder: Path, tmp_path: Path) -> None:
    save(tmp_path / "b.json", *GOOD, metrics={"pavpu": {"window": 2}, "calibration": {}})
    paths = [str(folder / "bad.json"), str(tmp_path / "b.json")]
    found = compare(load_models(paths), Choice(level=None))
    assert {own.address.metric for own in found.rows} == {"segmentation", "calibration"}
    (warning,) = found.warnings
    assert warning.startswith("pavpu: left out: stride is 4 in")
    with pytest.raises(UsageError, match=r"--metric pavpu\.pavpu: pavpu: left out: stride is 4"):
        compare(load_models(paths), Choice(("pavpu.pavpu",), level=None))
    change(tmp_path / "b.json", inputs={"ignore_index": 3, "classes": C})
    with pytest.raises(UsageError, match=r"no score to compare: segmentation.*ignore_index is 255"):
        compare(load_models(paths), Choice(level=None))


def test_results_of_one_model_are_named(folder: Path, tmp_path: Path) -> None:
    """Who compares two reports must see which metrics only one of them has."""
    save(tmp_path / "b.json", *GOOD, metrics={"calibration": {}, "failure": {}})
    paths = [str(folder / "bad.json"), str(tmp_path / "b.json")]
    found = compare(load_models(paths), Choice(level=None))
    assert {own.address.metric for own in found.rows} == {"segmentation", "calibration"}
    assert found.warnings == (
        "pavpu: left out: only 'bad' has it", "failure: left out: only 'b' has it",
    )  # fmt: skip
    assert not compare(load_models(paths), Choice(CHEAP, level=None)).warnings


def test_a_key_with_a_comma_and_a_colon_has_its_reason(folder: Path, tmp_path: Path) -> None:
    key, paths = "pavpu@map:a, b: c:1", [tmp_path / "a.json", tmp_path / "b.json"]
    save(paths[0], *BAD)
    save(paths[1], *GOOD, metrics={"pavpu": {"window": 2}, "calibration": {}})
    for path in paths:
        own = Report.load(path)
        of_key = {"results": own.results | {key: own.results["pavpu"]}}
        change(path, **of_key, settings=own.settings | {key: own.settings["pavpu"]})
    with pytest.raises(UsageError, match=rf"pavpu, {key}: left out: stride is 4 in"):
        compare(
            load_models(list(map(str, paths))), Choice(('pavpu@"map:a, b: c:1".pavpu',), level=None)
        )


def test_a_threshold_taken_over_is_the_same_rule(folder: Path, tmp_path: Path) -> None:
    said = Report.load(save(tmp_path / "b.json", *GOOD)).settings
    number = Report.load(folder / "bad.json").results["pavpu"]["uncertainty_threshold"]
    taken = {"pavpu": said["pavpu"] | {"threshold": repr(number), "threshold_from": "x.json"}}
    results = Report.load(tmp_path / "b.json").results
    results["pavpu"]["uncertainty_threshold"] = number
    change(tmp_path / "b.json", settings=said | taken, results=results)
    paths = [str(folder / "bad.json"), str(tmp_path / "b.json")]
    assert row(compare(load_models(paths), Choice(level=None)), "pavpu.pavpu")
    results["pavpu"]["uncertainty_threshold"] = number / 2
    change(tmp_path / "b.json", results=results)
    (warning,) = compare(load_models(paths), Choice(level=None)).warnings
    assert warning.startswith("pavpu: left out: threshold is")


def test_labels_that_one_report_lacks_are_named(folder: Path, tmp_path: Path) -> None:
    inputs = Report.load(save(tmp_path / "b.json", *GOOD)).inputs
    change(tmp_path / "b.json", inputs=inputs | {"labels": None})
    paths = [str(folder / "bad.json"), str(tmp_path / "b.json")]
    (warning,) = compare(load_models(paths), Choice(level=None)).warnings
    assert warning.startswith(f"{paths[0]} was evaluated with labels")
    assert f", and {paths[1]} without, so" in warning and "fingerprint" not in warning


def test_other_input_options_are_warned_about(folder: Path, tmp_path: Path) -> None:
    inputs = Report.load(save(tmp_path / "b.json", *GOOD)).inputs
    options = {"options": inputs["options"] | {"missing_chunks": "fill"}}
    change(tmp_path / "b.json", inputs=inputs | options)
    paths = [str(folder / "bad.json"), str(tmp_path / "b.json")]
    (warning,) = compare(load_models(paths), Choice(CHEAP, level=None)).warnings
    assert warning.startswith("--missing-chunks is 'error' in") and "and 'fill' in" in warning


def test_what_a_model_is_called_is_no_setting(folder: Path, tmp_path: Path) -> None:
    said = Report.load(save(tmp_path / "b.json", *GOOD)).settings
    change(tmp_path / "b.json", settings=said | {"pavpu": said["pavpu"] | {"model": "mine"}})
    paths = [str(folder / "bad.json"), str(tmp_path / "b.json")]
    assert row(compare(load_models(paths), Choice(level=None)), "pavpu.pavpu")


def test_other_labels_and_parts_are_said(folder: Path, tmp_path: Path) -> None:
    save(tmp_path / "b.json", *GOOD, truth=(labels() + 1) % C)
    change(tmp_path / "b.json", partial=True)
    paths = [str(folder / "bad.json"), str(tmp_path / "b.json")]
    found = compare(load_models(paths), Choice(CHEAP, draws=100))
    assert any("the fingerprints of labels (array in memory) differ" in w for w in found.warnings)
    own = found.rows[0].cells[1].difference
    assert own is not None and own.p is None and own.better is None
    assert any("b.json: partial" in w for w in found.warnings)


@pytest.mark.parametrize("region", ["depth:0-50", "map:zones:1"])
def test_a_region_of_another_map_has_no_word(tmp_path: Path, region: str) -> None:
    """The maps in stores of predictions, or given apart, have the same and other content."""
    for name, own, seed in (("a", BAD, 0), ("b", GOOD, 0), ("c", GOOD, 1)):
        maps = np.random.default_rng(seed).integers(0, 2, (N, SIDE, SIDE))
        np.save(tmp_path / f"depth_{name}.npy", maps * np.float32(80))
        inputs: dict[str, Any] = {"probs": probs(*own), "zones": maps.astype("u1")}
        options: dict[str, Any] = {"region": region}
        if region.startswith("depth"):
            options["depth_map"] = tmp_path / f"depth_{name}.npy"
        report = evaluate(
            inputs, labels(), "calibration", names=[f"item{i:02}" for i in range(N)],
            states=tmp_path / f"{name}.states.zip", **options,
        )  # fmt: skip
        report.save(tmp_path / f"{name}.json")
    addresses = (f'calibration@"{region}".brier', "calibration.brier")
    same = held(tmp_path, "a", "b", draws=200, metrics=addresses)
    assert not any("fingerprint" in text for text in same.warnings)
    assert all(own.cells[1].difference.p is not None for own in same.rows)  # type: ignore[union-attr]
    of_region, whole = held(tmp_path, "a", "c", draws=200, metrics=addresses).rows
    assert whole.cells[1].difference.p is not None  # type: ignore[union-attr]
    change = of_region.cells[1].difference
    assert change is not None and change.p is change.interval is change.better is None
    assert not any(cell.best for cell in of_region.cells)
    assert "differ" in str(change.reason) or "other pixels" in str(change.reason)


def test_which_scores(folder: Path) -> None:
    def addresses(**choice: object) -> list[str]:
        found = held(folder, "bad", "good", level=None, **choice)
        return [str(own.address) for own in found.rows]

    assert addresses()[:3] == ["segmentation.miou", "segmentation.pixel_accuracy", "pavpu.surplus"]
    assert "pavpu.n_ac" not in addresses(every=True)
    assert "calibration.adaptive_ece" in addresses(every=True)
    assert not any("per_class" in text for text in addresses(every=True))
    assert "pavpu.per_class.mixed.pavpu" in addresses(per_class=True)
    assert "segmentation.per_class.0.iou" in addresses(per_class=True)
    assert addresses(metrics=("calibration.ece", "pavpu.n_ac")) == ["calibration.ece", "pavpu.n_ac"]
    of_classes = addresses(metrics=("pavpu.surplus", "pavpu.n_ac"), per_class=True)
    assert of_classes[:3] == ["pavpu.surplus", "pavpu.n_ac", "pavpu.per_class.0.surplus"]
    assert len(of_classes) == 2 + 2 * (C + 1) and of_classes[-1] == "pavpu.per_class.mixed.n_ac"
    with pytest.raises(UsageError, match=r"calibration\.ecee: no two.*nearest is calibration\.ece"):
        addresses(metrics=("calibration.ecee",))
    with pytest.raises(UsageError, match="is not an address"):
        addresses(metrics=("ece",))
    with pytest.raises(UsageError, match="so --all has no effect"):
        addresses(metrics=("calibration.ece",), every=True)


def test_slices(tmp_path: Path) -> None:
    table = tmp_path / "items.csv"
    night = np.arange(N) % 2 == 0
    rows = [f"item{i:02},{'night' if n else 'day'}" for i, n in enumerate(night)]
    table.write_text("\n".join(["name,light", *rows]))
    for name, own in (("a", BAD), ("b", GOOD)):
        save(tmp_path / f"{name}.json", *own, metrics=["segmentation"], slices=table)
    address = "segmentation.pixel_accuracy@light=night"
    found = row(held(tmp_path, "a", "b", metrics=(address,), draws=200), address)
    assert found.items == night.sum()
    gap = (correct(*GOOD) - correct(*BAD))[night]
    ends = naive.jackknife_t(
        range(len(gap)), lambda items: float(gap[items].sum() / (len(items) * SIDE**2)), 0.95, False
    )
    assert difference(found.cells[1])[1:] == pytest.approx(ends, abs=1e-9)


def with_slices(path: Path, own: tuple[int, float], night: slice, **options: Any) -> None:
    """Write a report whose slice `night` has these items."""
    table, inside = path.with_suffix(".csv"), range(N)[night]
    rows = [f"item{i:02},{'night' if i in inside else 'day'}" for i in range(N)]
    table.write_text("\n".join(["name,light", *rows]))
    save(path, *own, metrics=["segmentation"], slices=table, **options)


@pytest.mark.parametrize("level", [0.95, None])
def test_slices_are_compared_over_their_common_items(tmp_path: Path, level: float | None) -> None:
    """As whole sets: all of value, difference and best model are of the common items."""
    with_slices(tmp_path / "a.json", BAD, slice(0, 9))
    with_slices(tmp_path / "b.json", GOOD, slice(2, 14))
    address = "segmentation.pixel_accuracy@light=night"
    found = held(tmp_path, "a", "b", metrics=(address, CHEAP[0]), draws=200, level=level)
    of_slice, whole = row(found, address), row(found, CHEAP[0])
    assert (of_slice.items, whole.items) == (7, N)
    expected = [correct(*m)[2:9].sum() / (7 * SIDE**2) for m in (BAD, GOOD)]
    assert [cell.value for cell in of_slice.cells] == pytest.approx(expected)
    change = of_slice.cells[1].difference
    assert change is not None and change.value == pytest.approx(expected[1] - expected[0])
    assert (change.interval is None) == (level is None)
    says = "slice light=night: compared over the 7 items that all models have, of 9 and 12"
    assert says in found.warnings


def test_slices_without_common_scores_have_no_difference(tmp_path: Path) -> None:
    with_slices(tmp_path / "a.json", BAD, slice(0, 5))
    with_slices(tmp_path / "b.json", GOOD, slice(5, 14))
    address = "segmentation.pixel_accuracy@light=night"
    found = held(tmp_path, "a", "b", metrics=(address,), draws=200)
    (apart,) = found.rows
    assert apart.items == 0
    assert [(c.value, c.difference, c.best) for c in apart.cells] == [(None, None, False)] * 2
    assert apart.cells[0].reason == "the models have no common items there"
    assert any(
        "light=night: no item is common to all models, of 5 and 9" in w for w in found.warnings
    )
    with_slices(tmp_path / "b.json", GOOD, slice(2, 14), states=None)
    found = held(tmp_path, "a", "b", metrics=(address,), draws=200)
    (stateless,) = found.rows
    assert [(c.value, c.difference, c.best) for c in stateless.cells] == [(None, None, False)] * 2
    assert "b.json has no saved states" in str(stateless.cells[1].reason)
    says = "of 5 and 12. No score: scores of the common items need states: "
    assert any(says in text for text in found.warnings)


def test_replicates_with_other_items_in_a_slice_have_no_mean(tmp_path: Path) -> None:
    with_slices(tmp_path / "a.json", BAD, slice(0, 5))
    with_slices(tmp_path / "b.json", GOOD, slice(2, 14))
    address = "segmentation.pixel_accuracy@light=night"
    (own,) = held(tmp_path, replicates=("a", "b"), metrics=(address,)).rows
    assert own.cells[0].value is None
    assert str(own.cells[0].reason).endswith("replicates must have the same items")


def test_differences_without_an_interval_say_why(tmp_path: Path) -> None:
    table = tmp_path / "items.csv"
    table.write_text("\n".join(["name,part", *(f"item{i:02},{min(i // 5, 1)}" for i in range(N))]))
    for name, own in (("a", BAD), ("b", GOOD)):
        save(tmp_path / f"{name}.json", *own, metrics=["calibration"], slices=table)
    address = "calibration.ece@part=0"  # 5 items, and its draws need 6
    found = held(tmp_path, "a", "b", metrics=(address,), draws=200)
    own = row(found, address).cells[1].difference
    assert own is not None and own.interval is None
    assert own.reason == "intervals from draws need 6 units"
    record = json.loads(to_json(found))["scores"][0]["models"]["b"]
    assert record["low"] is record["high"] is None
    assert record["interval_reason"] == own.reason
    assert list(csv.DictReader(to_csv(found).splitlines()))[1]["reason"] == own.reason
    said = f"No interval of {found.rows[0].address}: intervals from draws need 6 units."
    assert said in differences(found).note and said in to_markdown(found)


def test_undefined_scores_say_why(folder: Path, tmp_path: Path) -> None:
    record = Report.load(save(tmp_path / "b.json", *GOOD)).results
    record["pavpu"] |= {"surplus": None, "surplus_reason": "all patches are accurate"}
    change(tmp_path / "b.json", results=record)
    paths = [str(folder / "bad.json"), str(tmp_path / "b.json")]
    own = row(compare(load_models(paths), Choice(level=None)), "pavpu.surplus")
    assert own.cells[1] == Cell(None, "all patches are accurate")


def test_folders_are_matched_by_the_names_of_their_reports(tmp_path: Path) -> None:
    for model, own in (("a", BAD), ("b", GOOD)):
        for store in ("city", "drive", "only" + model):
            save(tmp_path / model / f"{store}.json", *own, metrics=["segmentation"])
    models = load_models([str(tmp_path / "a"), str(tmp_path / "b")])
    found = compare(models, Choice(level=None))
    assert found.names == ["a", "b"]
    assert {own.address.store for own in found.rows} == {"city"}  # drive has the same data
    assert any(w.startswith("onlya: left out") for w in found.warnings)
    found = compare(models, Choice(("drive/segmentation.miou",), level=None))
    assert [str(own.address) for own in found.rows] == ["drive/segmentation.miou"]
    with pytest.raises(UsageError, match="no store in common"):
        save(tmp_path / "c" / "x.json", *BAD, metrics=["segmentation"])
        compare(load_models([str(tmp_path / "a"), str(tmp_path / "c")]), Choice())
    assert [model.name for model in load_models([str(tmp_path / "b")])] == [
        "city",
        "drive",
        "onlyb",
    ]


@pytest.mark.parametrize("value", [0.0, None])
def test_equal_scores_of_other_data_are_rows_of_their_own(
    tmp_path: Path, value: float | None
) -> None:
    """No model predicts the last class, so its IoU is 0 in both stores; undefined if no label has
    it either."""
    truth = np.minimum(labels(), 1) if value is None else labels()
    for model, seed in (("a", 0), ("b", 1)):
        (tmp_path / model).mkdir()
        for store, items in (("day", slice(0, 7)), ("night", slice(7, 14))):
            made = np.array(probs(seed, 1.0)[items])
            made[:, 2] = 0
            made /= made.sum(axis=1, keepdims=True)
            report = evaluate(
                made, truth[items], ["segmentation"], names=NAMES[items],
                class_names=["sky", "road", "bike"],
                states=tmp_path / model / f"{store}.states.zip",
            )  # fmt: skip
            for name in (store, f"{store}2"):
                report.save(tmp_path / model / f"{name}.json")
    models = load_models([str(tmp_path / "a"), str(tmp_path / "b")])
    iou = "segmentation.per_class.bike.iou"
    found = compare(models, Choice((iou,), draws=100))
    assert [str(own.address) for own in found.rows] == [f"day/{iou}", f"night/{iou}"]
    assert {cell.value for own in found.rows for cell in own.cells} == {value}
    assert found.tests_of_parts == (0 if value is None else 2)
    named = (f"day/{iou}", f"day2/{iou}")
    found = compare(models, Choice(named, level=None))
    assert [str(own.address) for own in found.rows] == [*named]


def test_sweeps_are_compared_by_address(tmp_path: Path) -> None:
    for name in ("a", "b"):
        of_sweep().save(tmp_path / f"{name}.json")
    with pytest.raises(UsageError) as caught:
        held(tmp_path, "a", "b")
    message = str(caught.value)
    assert "a sweep saves no states" in message and "--no-states" not in message
    address = message.partition("--metric '")[2].partition("'")[0]
    assert address.startswith('sweep."') and address.endswith('".mean.2')
    assert [str(own.address) for own in held(tmp_path, "a", "b", metrics=(address,)).rows] == [
        address
    ]


def test_sweeps_of_other_numbers_of_samples_have_comparable_means(tmp_path: Path) -> None:
    """Subsets are of a model's own samples; the spread over them depends on how many it has."""
    truth = np.random.default_rng(0).integers(0, 3, (2, 8, 8)).astype("u1")
    ms = {"a": (6, [1, 2, 4]), "b": (4, [1, 2, 4]), "c": (4, [1, 2, 3]), "d": (6, [1, 2, 4])}
    for k, (name, (samples, own)) in enumerate(ms.items()):
        given = np.random.default_rng(k).dirichlet([1.0] * 3, (2, samples, 8, 8))
        uqeval.sweep(
            np.moveaxis(given, -1, 2).astype("f4"), truth, samples=own, repeats=3,
            seed=int(name == "d"),
        ).save(tmp_path / f"{name}.json")  # fmt: skip
    reports = {name: Report.load(tmp_path / f"{name}.json") for name in ms}
    drawn = [report.settings["sweep"] for report in reports.values()]
    assert drawn[0]["subsets"] != drawn[1]["subsets"] and drawn[1]["repeats"] == [3, 3, 1]
    mean, std = (f'sweep."segmentation.miou".{name}.2' for name in ("mean", "std"))
    (own,) = held(tmp_path, "a", "b", metrics=(mean,), level=None).rows
    values = [
        report.results["sweep"]["segmentation.miou"]["mean"][2] for report in reports.values()
    ]
    assert [cell.value for cell in own.cells] == values[:2]
    says = ("the number of samples to draw from is 6 in", "and 4 in", "compare the means")
    refused(lambda: held(tmp_path, "a", "b", metrics=(std,), level=None), *says)
    for other, setting in (("c", "samples is [1, 2, 4]"), ("d", "seed is 0")):
        refused(
            lambda other=other: held(tmp_path, "a", other, metrics=(mean,), level=None), setting
        )


def test_names(folder: Path) -> None:
    def names(*paths: str, **more: object) -> list[str]:
        own = [str(folder / path) for path in paths]
        return [model.name for model in load_models(own, **more)]  # type: ignore[arg-type]

    assert names("bad.json", "good.json") == ["bad", "good"]
    assert names("bad.json", "same/bad.json") == [folder.name, "same"]
    seeds = [str(folder / f"seed{n}.json") for n in (2, 3)]
    pairs = [[str(folder / "bad.json"), seeds[0]], [str(folder / "good.json"), seeds[1]]]
    assert names(replicates=pairs) == ["replicates", "replicates (2)"]
    assert names("bad.json", replicates=[seeds]) == ["bad", "seed"]
    assert names("bad.json", replicates=[seeds], names=["MC", "ours"]) == ["MC", "ours"]
    for paths, more, says in (
        (("bad.json",), {}, "nothing to compare"),
        (("bad.json", "bad.json"), {}, "is given twice"),
        (("bad.json", "same/../bad.json"), {}, "is given twice"),
        (("bad.json", "good.json"), {"names": ["a"]}, "gives 1 name for 2 models"),
        (("bad.json", "good.json"), {"names": ["a", "a"]}, "is empty or given twice"),
        (("bad.json",), {"replicates": [seeds[:1]]}, "one training has no standard deviation"),
    ):
        with pytest.raises(UsageError, match=says):
            names(*paths, **more)  # type: ignore[arg-type]


def test_classes_without_names_are_matched_by_number(folder: Path, tmp_path: Path) -> None:
    """Scores, intervals and tests are those of two models with names."""
    named = save(tmp_path / "named.json", *GOOD, class_names=["sky", "road", "car"])
    both = save(tmp_path / "both.json", *BAD, class_names=["sky", "road", "car"])
    expected = compare(load_models([str(both), str(named)]), Choice(per_class=True, draws=200))
    classes = [own for own in expected.rows if own.address.fields[0] == "per_class"]
    assert len(classes) > 6
    for before, after in (("bad.json", named), (both, folder / "good.json")):
        models = load_models([str(folder / before), str(after)], names=expected.names)
        found = compare(models, Choice(per_class=True, draws=200))
        assert [(own.address, own.cells) for own in found.rows] == [
            (own.address, own.cells) for own in expected.rows
        ]
        for text in ("calibration.per_class.road.ece", "calibration.per_class.1.ece"):
            (own,) = compare(models, Choice(metrics=(text,), draws=200)).rows
            assert difference(own.cells[1]) == difference(
                row(expected, "calibration.per_class.road.ece").cells[1]
            )


def test_a_class_of_one_model_only_has_no_difference(folder: Path, tmp_path: Path) -> None:
    """Such a class has a row in one report alone; other names are no match."""
    other = save(tmp_path / "other.json", *GOOD, class_names=["sky", "street", "car"])
    named = save(tmp_path / "named.json", *BAD, class_names=["sky", "road", "car"])
    found = compare(load_models([str(named), str(other)]), Choice(per_class=True, draws=200))
    classes = {own.address.fields[1] for own in found.rows if own.address.fields[0] == "per_class"}
    assert classes == {"sky", "car", "mixed"}


def test_models_on_other_pixels_have_no_word(tmp_path: Path) -> None:
    """The second run masks the pixels with large errors."""
    rng = np.random.default_rng(3)
    target = rng.normal(size=(9, 4, 4))
    mean = target + rng.normal(size=target.shape) * 0.5
    valid = np.broadcast_to(np.abs(mean - target)[:] < 0.6, target.shape)
    names = [f"item{i}" for i in range(9)]
    for name, mask in (("a", np.ones_like(valid)), ("b", valid)):
        report = uqeval.evaluate(
            {"mean": mean, "std": np.ones_like(mean)}, {"target": target, "valid": mask},
            "regression", names=names, states=tmp_path / f"{name}.states.zip",
        )  # fmt: skip
        report.save(tmp_path / f"{name}.json")
    paths = [str(tmp_path / f"{name}.json") for name in "ab"]
    found = compare(load_models(paths), Choice(metrics=("regression.rmse",), draws=200))
    (own,) = found.rows
    assert all(not cell.best and cell.rank is None for cell in own.cells)
    change = own.cells[1].difference
    assert change is not None and change.value == own.cells[1].value - own.cells[0].value  # type: ignore[operator]
    assert (change.better, change.verdict, change.p, change.interval) == (None, None, None, None)
    counts = f"144 in {paths[0]} and {valid.sum()} in {paths[1]}"
    assert change.reason == f"scored on other pixels in 9 of 9 items: {counts}"
    assert any(counts in text for text in found.warnings)
    assert "regression" in found.incomparable and found.tests == 0


def test_models_without_a_common_result_are_left_out(folder: Path, tmp_path: Path) -> None:
    """Such a report has no influence on the items, the tests and the ranks of the others."""
    names = ("bad", "good", "seed2")
    expected = held(folder, *names, metrics=CHEAP)
    items = slice(2, None)
    only = save(tmp_path / "only.json", *GOOD, items, "failure", classes=C)
    record = Report.load(only).results
    change(only, results={"failure": record["failure"]})
    paths = [str(only), *(str(folder / f"{name}.json") for name in names)]
    found = compare(load_models(paths), Choice(metrics=CHEAP, draws=200))
    assert found.names == expected.names and found.tests == expected.tests
    assert [own.cells for own in found.rows] == [own.cells for own in expected.rows]
    assert found.warnings[0].startswith("only: left out: it has no result of the same settings")
    with pytest.raises(UsageError, match=r"--against 'only' has no result .* bad, good, seed2"):
        compare(load_models(paths), Choice(baseline="only"))
    with pytest.raises(UsageError, match="no two models have a result") as error:
        compare(load_models(paths[:2]), Choice())
    assert error.value.__notes__ == [
        "only has failure.", "bad has segmentation, pavpu, calibration.",
    ]  # fmt: skip


def test_models_that_are_left_out_may_be_comparable_with_each_other(
    folder: Path, tmp_path: Path
) -> None:
    """A folder may have pairs of models of two tasks."""
    paths = [str(folder / "bad.json"), str(folder / "good.json")]
    for name in ("only3", "only2", "only 1"):
        only = save(tmp_path / f"{name}.json", *GOOD, slice(None), "failure", classes=C)
        change(only, results={"failure": Report.load(only).results["failure"]})
        paths.append(str(only))
    (warning,) = compare(load_models(paths), Choice(metrics=CHEAP, level=None)).warnings
    command = f"uqeval compare {paths[2]} {paths[3]} '{paths[4]}'"
    assert warning.startswith(
        f"only3, only2, only 1: left out: comparable with each other ({command}), but they have"
    )
    models = load_models(paths[:3], [paths[3:]])
    (warning,) = compare(models, Choice(metrics=CHEAP, level=None)).warnings
    command = f"uqeval compare {paths[2]} --replicates {paths[3]} '{paths[4]}'"
    assert f"({command})" in warning


def test_a_difference_by_rounding_is_none(folder: Path, tmp_path: Path) -> None:
    record = json.loads((folder / "bad.json").read_text())["results"]
    record["calibration"]["nll"] = math.nextafter(record["calibration"]["nll"], 9)
    other = tmp_path / "other.json"
    other.write_bytes((folder / "bad.json").read_bytes())
    change(other, results=record, states=None, states_digest=None)
    found = compare(load_models([str(folder / "bad.json"), str(other)]), Choice())
    own = row(found, "calibration.nll").cells
    assert own[1].difference is not None and own[0].value != own[1].value
    assert (own[1].difference.value, own[1].difference.better) == (0.0, None)
    assert [cell.best for cell in own] == [False, False]
    assert [cell.rank.place for cell in own if cell.rank] == [1, 1]


def test_a_small_p_of_one_image_is_no_difference(tmp_path: Path) -> None:
    """One model has three times as many wrong pixels, so swaps give smaller differences than it has
    by one certain wrong pixel in one image."""
    labels = np.zeros((20, 8, 8), np.uint8)
    for name, wrong in (("a", 3), ("b", 1)):
        probs = np.full((20, 2, 8, 8), 0.01, np.float32)
        probs[:, 1, 0, :wrong] = 0.55
        if name == "b":
            probs[0, 1, 7, 7] = 0.99
        probs[:, 0] = 1 - probs[:, 1]
        states = tmp_path / f"{name}.states.zip"
        settings = {"pavpu": {"window": 1, "threshold": 0.3}}
        uqeval.evaluate(probs, labels, settings, states=states).save(tmp_path / f"{name}.json")
    address = "pavpu.p_uncertain_given_inaccurate"
    models = load_models([str(tmp_path / f"{name}.json") for name in "ab"])
    change = compare(models, Choice(metrics=(address,), draws=200)).rows[0].cells[1].difference
    assert change is not None and change.interval is not None and change.p_adjusted is not None
    assert change.p_adjusted < 0.05 and change.interval.low < 0 < change.interval.high
    assert change.verdict == "no difference seen"
    assert replace(change, interval=None).verdict is None
    without_0 = replace(change.interval, high=-1e-9)
    assert replace(change, interval=without_0).verdict == "differs"
