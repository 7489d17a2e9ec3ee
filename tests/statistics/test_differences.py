"""Intervals of differences of two models against slow ones, and how often they hold the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import naive_statistics as naive
import numpy as np
import pytest
from saved_runs import run, scoring, stack

import uqeval
from uqeval.statistics import flips
from uqeval.statistics.differences import difference
from uqeval.statistics.draws import Resampling
from uqeval.statistics.methods import Bounds, NoBounds
from uqeval.statistics.samples import Samples
from uqeval.statistics.scoring import Scoring
from uqeval.statistics.weighting import Each, Subset
from uqeval.stores.states.saved import SavedStates

N = 14
PLAIN = {"adaptive": False, "temperature": False}
NAMES = tuple(f"item_{i}" for i in range(N))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Scoring]:
    """Three models of the same number of items."""
    folder = tmp_path_factory.mktemp("runs")
    return [scoring(run(folder / str(k), N, "calibration", data=k)[1]) for k in range(3)]


def test_a_difference_of_biased_scores_is_corrected(runs: list[Scoring]) -> None:
    """The draws are off by the difference of two biases."""
    samples = Samples(runs[:2], [range(N)] * 2, Resampling(NAMES, 300, 1))
    text = "calibration.brier_decomposition.reliability"
    drawn, values = samples.scores("drawn", text), [samples.value(text, k) for k in range(2)]
    change = difference(samples, text, 0.95)
    expected = naive.beyond_bias(
        naive.expanded(drawn[0] - drawn[1], N, 0.95), drawn[0] - drawn[1], values[0] - values[1], N
    )
    assert isinstance(change, Bounds)
    assert (change.low, change.high) == pytest.approx(expected, rel=1e-9)


def limits(samples: Samples, text: str, rows: list[int], units: int) -> tuple[float, float, float]:
    """The interval and the estimate of the mean ECE of some runs, by hand."""
    drawn = samples.scores("drawn", text)[rows].mean(axis=0)
    value = samples.scores("whole", text)[rows, 0].mean()
    gaps, weights = [], []
    for row in rows:
        pair = samples.runs[row].gaps(text)
        assert pair is not None
        key, own = pair
        tallies = samples.runs[row].evaluations[key].tallies()
        sets = {t: samples.runs[row].stacked(t).sets(Each(np.arange(N))) for t in tallies}
        whole = {t: samples.runs[row].stacked(t).sets(Subset(np.arange(N), N)) for t in tallies}
        of_items = own.signed(sets)
        codes = samples.resampling.codes
        gaps.append(np.stack([of_items[codes == unit].sum(axis=0) for unit in range(units)]))
        weights.append(np.broadcast_to(own.weights(whole)[0], gaps[-1].shape[1:]) / len(rows))
    signs = np.concatenate(list(flips.signs_of(units, samples.resampling.seed)))
    shares = [
        naive.share_of_signs(
            signs, np.concatenate(gaps, axis=1), np.concatenate(weights), tail
        )
        for tail in (0.025, 0.5)
    ]  # fmt: skip
    low, high = naive.beyond_bias(naive.expanded(drawn, units, 0.95), drawn, value, units)
    low, high = max(min(low, shares[0] * value), 0.0), min(high, 1.0)
    return low, min(max(shares[1] * value, low), high), high


@pytest.mark.parametrize("groups", [NAMES, tuple("aabbccddeeffgg")])
@pytest.mark.parametrize("baseline", [[1], [1, 2]])
def test_a_difference_of_calibration_errors_is_of_both_intervals(
    runs: list[Scoring], groups: tuple[str, ...], baseline: list[int]
) -> None:
    """Two models, and a model against two trainings of another one."""
    text, units = "calibration.ece", len(set(groups))
    samples = Samples(runs, [range(N)] * 3, Resampling(groups, 300, 1), {text})
    models = [limits(samples, text, rows, units) for rows in ([0], baseline)]
    drawn = samples.scores("drawn", text)
    r = np.corrcoef(drawn[0], drawn[baseline].mean(axis=0))[0, 1]
    low, high = naive.paired_mover(*models, max(r, 0.0))
    value = samples.value(text) - np.mean([samples.value(text, k) for k in baseline])
    found = difference(samples, text, 0.95, runs=([0], baseline))
    assert isinstance(found, Bounds) and found.method == "mover"
    assert (found.low, found.high) == pytest.approx((min(low, value), max(high, value)), rel=1e-9)
    fraction = difference(samples, text, 0.95, relative=True, runs=([0], baseline))
    assert (models[1][0] == 0) == isinstance(fraction, NoBounds)
    if isinstance(fraction, NoBounds):
        assert fraction.reason.endswith("whose interval begins at 0")
        return
    # The fraction at each end is where an end of the difference is 0.
    for end, which in ((fraction.low, 0), (fraction.high, 1)):
        low, middle, high = ((1 + end) * limit for limit in models[1])
        found_end = naive.paired_mover(models[0], (low, middle, high), max(r, 0.0))[which]
        assert found_end == pytest.approx(0, abs=1e-9)


def test_a_fraction_of_a_share_that_may_be_0_has_no_interval(tmp_path: Path) -> None:
    """No pixel is right in either model."""
    probs = np.zeros((8, 1, 2, 4, 4), np.float32)
    probs[:, :, 0] = 1
    path = tmp_path / "report.states.zip"
    uqeval.evaluate(probs, np.ones((8, 4, 4), np.uint8), "segmentation", states=path)
    wrong = Scoring(SavedStates(path))
    samples = Samples([wrong] * 2, [range(8)] * 2, Resampling(wrong.names, 100))
    text = "segmentation.pixel_accuracy"
    assert isinstance(difference(samples, text, 0.95), Bounds)
    fraction = difference(samples, text, 0.95, relative=True)
    assert isinstance(fraction, NoBounds) and "begins at 0" in fraction.reason


@pytest.mark.parametrize("wrong", [0, 1])
@pytest.mark.parametrize("relative", [False, True])
def test_models_that_differ_in_no_item_may_differ_in_others(
    tmp_path: Path, wrong: int, relative: bool
) -> None:
    """No item differs, whether the models have errors or not: at most the share of items that an
    exact bound allows. Another file of the same predictions is the same model."""
    label = np.zeros((N, 4, 4), np.uint8)
    label[1, 0, 0] = wrong
    found = []
    for confidence in (0.9, 0.8, 0.9):
        probs = np.full((N, 1, 2, 4, 4), 1 - confidence, np.float32)
        probs[:, :, 0] = confidence
        path = tmp_path / f"{len(found)}.states.zip"
        metrics = ["segmentation", "calibration"]
        uqeval.evaluate(probs, label, metrics, states=path)
        found.append(Scoring(SavedStates(path)))
    reach = naive.clopper_pearson(0, N, 0.95)[1]
    for text in ("segmentation.pixel_accuracy", "segmentation.miou"):
        first, second, same = found
        resampling = Resampling(first.names, 100)
        pair, twice = (
            difference(
                Samples(runs, [range(N)] * 2, resampling), text, 0.95, relative
            ) for runs in ([first, second], [first, same])
        )  # fmt: skip
        scale = first.exact(text) if relative and wrong else 1.0
        assert isinstance(pair, Bounds) and isinstance(twice, Bounds)
        if relative and not wrong and text.endswith("pixel_accuracy"):  # from each model's bounds
            assert (pair.low, pair.high) == pytest.approx((-reach, reach / (1 - reach)))
        else:
            assert (pair.low, pair.high) == pytest.approx((-reach / scale, reach / scale))
        assert (twice.low, twice.high) == (0, 0)
    pair_of_models = Samples(found[:2], [range(N)] * 2, resampling)
    mean = difference(pair_of_models, "calibration.nll", 0.95)
    assert isinstance(mean, Bounds) == bool(wrong)
    assert wrong or "is the same in all draws" in mean.reason  # type: ignore[union-attr]
    error = difference(pair_of_models, "calibration.ece", 0.95)
    assert isinstance(error, NoBounds) and "is the same in" in error.reason


def of_items(folder: Path, right: np.ndarray) -> Samples:
    """Two models [model, item] of items of one pixel, which are right or wrong."""
    n = right.shape[1]
    runs = []
    for number, own in enumerate(right):
        confidence = np.where(own, 0.9 - 0.1 * number, 0.2)
        probs = np.stack([confidence, 1 - confidence], axis=1).astype(np.float32)
        path = folder / f"{number}.states.zip"
        uqeval.evaluate(probs, np.zeros(n, np.uint8), "segmentation", states=path)
        runs.append(Scoring(SavedStates(path)))
    return Samples(runs, [range(n)] * 2, Resampling(runs[0].names))


@pytest.mark.parametrize("relative", [False, True])
def test_no_bound_is_beyond_the_range_of_the_score(tmp_path: Path, relative: bool) -> None:
    samples = of_items(tmp_path, np.array([[True, False, True], [False, True, True]]))
    found = difference(samples, "segmentation.pixel_accuracy", 0.95, relative)
    assert isinstance(found, Bounds) and found.low == -1
    assert found.high > 1 if relative else found.high == 1


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize(("worse", "better"), [(0, 1), (1, 0), (1, 1), (2, 3), (9, 9), (15, 15)])
def test_few_items_that_differ_do_not_show_that_no_more_do(
    tmp_path: Path, worse: int, better: int, relative: bool
) -> None:
    """The share of items that are worse is at its exact upper bound; so is that of better ones."""
    n = 40
    right = np.ones((2, n), bool)  # new, baseline
    right[0, :worse] = right[1, worse : worse + better] = right[:, -2:] = False
    samples = of_items(tmp_path, right)
    found = difference(samples, "segmentation.pixel_accuracy", 0.95, relative)
    assert isinstance(found, Bounds)

    def change(items: list[int]) -> float:
        new, old = right[:, items].mean(axis=1)
        return float((new - old) / (old if relative else 1))

    low, high = naive.jackknife_t(range(n), change, 0.95, False)
    if worse + better <= n / 2:
        scale = right[1].mean() if relative else 1
        down, up = (naive.clopper_pearson(k, n, 0.95)[1] - k / n for k in (worse, better))
        value = change([*range(n)])
        low, high = min(low, value - down / scale), max(high, value + up / scale)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)


@pytest.mark.parametrize(("better", "decides"), [(1, False), (3, False), (12, True)])
@pytest.mark.parametrize("text", ["calibration.nll", "calibration.brier"])
def test_few_better_items_do_not_show_that_none_is_worse(
    tmp_path: Path, text: str, better: int, decides: bool
) -> None:
    """Many draws have none of them, so that an end of their percentiles is exactly 0."""
    n, runs = 30, []
    confidence = np.random.default_rng(0).uniform(0.55, 0.8, n)
    for number in range(2):
        own = confidence + (0.1 if not number else 0.0) * (np.arange(n) < better)
        probs = np.stack([own, 1 - own], axis=1).astype(np.float32)
        path = tmp_path / f"{number}.states.zip"
        uqeval.evaluate(probs, np.zeros(n, np.uint8), "calibration", states=path)
        runs.append(Scoring(SavedStates(path)))
    samples = Samples(runs, [range(n)] * 2, Resampling(runs[0].names))
    found = difference(samples, text, 0.95)
    assert isinstance(found, Bounds) and found.low < 0
    assert (found.high < 0) == decides and found.high != 0
    changes, drawn = (
        new - old for new, old in (samples.scores(sets, text) for sets in ("alone", "drawn"))
    )
    ends = naive.jackknife_t(range(n), lambda items: float(changes[items].mean()), 0.95, False)
    low, high = naive.expanded(drawn, n, 0.95)
    assert (found.low, found.high) == pytest.approx((min(low, ends[0]), max(high, ends[1])))


def test_the_same_model_twice(runs: list[Scoring]) -> None:
    samples = Samples([runs[0]] * 2, [range(N)] * 2, Resampling(NAMES, 300, 1))
    found = difference(samples, "calibration.ece", 0.95)
    assert isinstance(found, Bounds) and (found.low, found.high) == (0, 0)
    # Whatever a sample of these few items could not show.
    for text in ("calibration.per_image.worst", "calibration.per_image.p90"):
        assert difference(samples, text, 0.95) == found


def test_the_same_items_in_another_order_differ_by_rounding(tmp_path: Path) -> None:
    probs, labels = stack(N)
    runs_in_order = []
    for order in (range(N), range(N)[::-1]):
        path = tmp_path / f"{order[0]}.zip"
        names = [NAMES[i] for i in order]
        uqeval.evaluate(probs[order], labels[order], "calibration", names=names, states=path)
        runs_in_order.append(Scoring(SavedStates(path)))
        runs_in_order[-1].index["inputs"]["predictions"] = [{"fingerprint": "of sizes"}]
    places = [range(N), [N - 1 - i for i in range(N)]]
    samples = Samples(runs_in_order, places, Resampling(NAMES, 300, 1))
    for text in ("calibration.nll", "calibration.brier", "calibration.ece"):
        found = difference(samples, text, 0.95)
        assert isinstance(found, Bounds) and (found.low, found.high) == (0, 0), text


def test_the_same_model_with_more_metrics(runs: list[Scoring], tmp_path: Path) -> None:
    """The scores that both runs have show that they are the same."""
    more = scoring(run(tmp_path, N, ["calibration", "pavpu"])[1])
    samples = Samples([runs[0], more], [range(N)] * 2, Resampling(NAMES, 300, 1))
    found = difference(samples, "calibration.ece", 0.95)
    assert isinstance(found, Bounds) and found.method == "identical"
    other = Samples([runs[1], more], [range(N)] * 2, Resampling(NAMES, 300, 1))
    assert difference(other, "calibration.ece", 0.95).method != "identical"  # type: ignore[union-attr]


def test_differences_of_simulated_models_contain_the_truth(tmp_path: Path) -> None:
    """An over-confident model less a calibrated one, on 12 images of 16 pixels: 60 sets.

    Before, 66 % of the intervals of the ECE and 30 % of those of the class-wise ECE contained the
    truth, and all others were below it.
    """
    images, sets, classes = 720, 60, 3
    rng = np.random.default_rng(0)
    z = 1.5 * rng.normal(size=(images, classes, 4, 4)) + rng.normal(size=(images, classes, 1, 1))
    labels = (z - np.log(-np.log(rng.random(z.shape)))).argmax(1).astype(np.uint8)
    models: list[Any] = []
    for factor in (1.6, 1.0):
        probs = np.exp(factor * z)
        probs = (probs / probs.sum(1, keepdims=True))[:, None].astype(np.float32)
        path = tmp_path / f"{factor}.states.zip"
        uqeval.evaluate(probs, labels, {"calibration": PLAIN}, states=path)
        models.append(Scoring(SavedStates(path)))
    texts = ("calibration.ece", "calibration.classwise_ece")
    everything = Samples(models, [range(images)] * 2, Resampling(models[0].names, 100), set(texts))
    true = {text: everything.value(text) - everything.value(text, 1) for text in texts}
    inside, below = dict.fromkeys(texts, 0), dict.fromkeys(texts, 0)
    for k in range(sets):
        places = range(12 * k, 12 * (k + 1))
        names = tuple(models[0].names[i] for i in places)
        own = Samples(models, [places] * 2, Resampling(names, 100, k), set(texts))
        for text in texts:
            found = difference(own, text, 0.95)
            assert isinstance(found, Bounds)
            inside[text] += found.low <= true[text] <= found.high
            below[text] += found.high < true[text]
    for text in texts:
        assert inside[text] >= 55 and below[text] <= 3, text
