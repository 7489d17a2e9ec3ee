"""Intervals of all scores of a run against slow ones that leave out and draw items one by one."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import naive_statistics as naive
import numpy as np
import pytest
from saved_runs import run, scoring, weights_of

import uqeval
from uqeval.errors import UsageError
from uqeval.metrics import METRICS
from uqeval.records.addresses import Address
from uqeval.statistics import jackknife
from uqeval.statistics.differences import difference
from uqeval.statistics.draws import Resampling
from uqeval.statistics.flips import least_shares
from uqeval.statistics.intervals import check_level, debiased, intervals, metric_at
from uqeval.statistics.methods import Bounds, NoBounds
from uqeval.statistics.options import CutOptions
from uqeval.statistics.samples import Samples
from uqeval.statistics.scoring import Scoring
from uqeval.statistics.weighting import Weighting
from uqeval.stores.states.saved import SavedStates

N = 14
GROUPS = tuple("aabbccddeeffgg")
NAMES = tuple(f"item_{i}" for i in range(N))
UNITS = [Resampling(NAMES, 300, 1), Resampling(GROUPS, 300, 2, "group")]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Scoring:
    _, path = run(tmp_path_factory.mktemp("run"), N, ["pavpu", "calibration", "failure"])
    return scoring(path)


def found_in(scoring: Scoring, resampling: Resampling, **options: Any) -> dict[str, dict[str, Any]]:
    return intervals(Samples.of_run(scoring, resampling), 0.95, **options)


@pytest.mark.parametrize("resampling", UNITS)
def test_shares_and_bounded_scores(own: Scoring, resampling: Resampling) -> None:
    found, units = found_in(own, resampling), resampling.unit_of

    def at(key: str, field: str) -> Any:
        return lambda items: own.whole(items)[key][field]

    whole = own.whole()["pavpu"]
    patches = sum(whole[name] for name in ("n_ac", "n_au", "n_ic", "n_iu"))
    record = found["pavpu.pavpu"]
    expected = naive.korn_graubard(units, at("pavpu", "pavpu"), patches, 0.95, False)
    assert (record["low"], record["high"]) == pytest.approx(expected, rel=1e-9)
    assert record["method"] == "korn-graubard"
    assert record["units"] == {
        "name": resampling.unit, "drawn": resampling.units, "defined": resampling.units,
    }  # fmt: skip
    for key, field, logit in (
        ("segmentation", "miou", True), ("failure", "auroc", True), ("pavpu", "pavpu_chance", True),
    ):  # fmt: skip
        record = found[f"{key}.{field}"]
        expected = naive.jackknife_t(units, at(key, field), 0.95, logit)
        assert (record["low"], record["high"]) == pytest.approx(expected, rel=1e-8), field
        assert record["method"] == "jackknife-t"
        assert record["approximate"] == (key == "failure")
    found = found_in(own, resampling, method="jackknife-t")
    for field in ("nll", "brier"):
        record = found[f"calibration.{field}"]
        expected = naive.jackknife_log(units, at("calibration", field), 0.95)
        assert (record["low"], record["high"]) == pytest.approx(expected, rel=1e-8), field
        assert record["method"] == "jackknife-t" and record["low"] > 0


@pytest.mark.parametrize(
    ("without", "reason"),
    [([0.0, 2.0, 2.0], "is not above 0 when one"), ([1.0, np.nan, 2.0], "undefined when one")],
)
def test_positive_scores_without_a_logarithm(without: list[float], reason: str) -> None:
    scores = jackknife.LeftOut(1.0, np.array(without), [np.arange(3)], 3, 3)
    found = jackknife.jackknife_log(scores, 0.95)
    assert isinstance(found, NoBounds) and reason in found.reason


@pytest.mark.parametrize("last", [np.inf, np.nan])
def test_a_score_that_is_infinite_without_a_unit_has_no_jackknife(last: float) -> None:
    """A relative change is, if only this unit has errors in the baseline. There is no warning."""
    scores = jackknife.LeftOut(1.0, np.array([1.0, 2.0, last]), [np.arange(3)], 3, 3)
    for found in (
        jackknife.jackknife_t(scores, 0.9, logit=False), jackknife.batch_means(scores, 0.9)
    ):  # fmt: skip
        assert found == NoBounds(jackknife.LEFT_OUT)


def test_the_interval_of_two_very_different_units_is_finite() -> None:
    scores = jackknife.LeftOut(1.0, np.array([1e-200, 2.0]), [np.arange(2)], 2, 2)
    found = jackknife.jackknife_log(scores, 0.999)
    assert isinstance(found, Bounds) and 0 <= found.low < 1 < found.high < math.inf


@pytest.mark.parametrize("resampling", UNITS)
def test_scores_from_draws(own: Scoring, resampling: Resampling) -> None:
    samples = Samples.of_run(own, resampling)
    found = intervals(samples, 0.95)
    each = [own.whole([i]) for i in range(N)]
    pixels = np.array([item["segmentation"]["pixels"] for item in each])
    nll = np.array([item["calibration"]["nll"] for item in each]) * pixels
    weights = weights_of(resampling)
    drawn = (weights @ nll) / (weights @ pixels)
    record = found["calibration.nll"]
    low, high = naive.expanded(drawn, resampling.units, 0.95)
    units = resampling.unit_of
    of_logarithm = naive.jackknife_log(units, lambda i: own.whole(i)["calibration"]["nll"], 0.95)
    expected = low, max(high, of_logarithm[1])
    assert (record["low"], record["high"]) == pytest.approx(expected, rel=1e-9)
    assert record["method"] == "expanded" and record["high"] > high
    for name in ("brier_decomposition.reliability", "brier_decomposition.resolution"):
        drawn, value = (
            samples.scores("drawn", f"calibration.{name}")[0],
            samples.value(f"calibration.{name}"),
        )
        plain = naive.expanded(drawn, resampling.units, 0.95)
        ends = naive.beyond_bias(plain, drawn, value, resampling.units)
        record = found[f"calibration.{name}"]
        assert record["low"] == pytest.approx(max(ends[0], 0.0), rel=1e-9)
        assert record["high"] == pytest.approx(min(ends[1], 1.0), rel=1e-9)
        assert record["low"] <= value <= record["high"]
        assert record["low"] < plain[0] or record["high"] > plain[1]
    ece = samples.scores("drawn", "calibration.ece")[0]
    whole = own.whole()["calibration"]["ece"]
    assert debiased(samples, "calibration.ece") == max(0.0, 2 * whole - ece.mean())


def test_the_low_end_of_a_calibration_error_is_beyond_its_bias(own: Scoring) -> None:
    """It is the lower of two: percentiles less twice the bias, and the least share of the error
    that random signs do not reject."""
    samples = Samples.of_run(own, UNITS[0])
    found = intervals(samples, 0.95)
    wider = 0
    for name in ("ece", "ace", "adaptive_ece", "classwise_ece", "per_class.0.ece"):
        text = f"calibration.{name}"
        drawn, value, record = samples.scores("drawn", text)[0], samples.value(text), found[text]
        plain = naive.expanded(drawn, N, 0.95)
        low, high = naive.beyond_bias(plain, drawn, value, N)
        (share,) = least_shares(samples, text, (0.95,))
        expected = min(low, share * value) if share else 0.0
        assert record["low"] == pytest.approx(max(expected, 0.0), abs=1e-12), text
        assert record["high"] == pytest.approx(high)
        assert record["low"] <= value <= record["high"]
        wider += record["low"] < plain[0] or record["high"] > plain[1]
    assert wider == 5


def test_the_worst_item_has_no_interval(own: Scoring, tmp_path: Path) -> None:
    """Draws of the items have no larger value than these; a quantile needs some on each side."""
    found, worst_of = found_in(own, UNITS[0]), "calibration.per_image.worst"
    worst = found[worst_of]
    assert worst["low"] is None and worst["reason"].startswith(
        "the score is the largest value of these items"
    )
    assert found["calibration.per_image.p90"]["reason"] == (
        "14 items have this score; an interval of a 90 % quantile needs 36: evaluate at "
        "least 22 more of these items"
    )
    assert found["calibration.per_image.median"]["low"] is not None
    other = scoring(run(tmp_path, N, ["calibration"], data=1)[1])
    change = difference(Samples([other, own], [range(N)] * 2, UNITS[0]), worst_of, 0.95)
    assert isinstance(change, NoBounds) and "largest" in change.reason
    same = difference(Samples([own, own], [range(N)] * 2, UNITS[0]), worst_of, 0.95)
    assert isinstance(same, Bounds) and (same.low, same.high) == (0, 0)


def test_gaps_add_up_to_the_calibration_errors(own: Scoring) -> None:
    """Σ w·|Σ g| of the units' signed gaps is the score itself."""
    samples = Samples.of_run(own, UNITS[0])
    checked = set()
    for text in own.addresses:
        metric = metric_at(text)
        if metric is None or metric.interval != "gaps":
            continue
        found = own.gaps(text)
        assert found is not None, text
        key, gaps = found
        items = Weighting(np.concatenate([np.ones((1, N), np.int64), np.eye(N, dtype=np.int64)]))
        states = {t: own.stacked(t).sets(items) for t in own.evaluations[key].tallies()}
        signed, weights = gaps.signed(states), gaps.weights(states)[0]
        np.testing.assert_allclose(signed[0], signed[1:].sum(0), atol=1e-9)
        value = float(gaps.score(signed[:1], weights)[0])
        assert value == pytest.approx(samples.value(text), rel=1e-3), text
        checked.add(text)
    assert {"calibration.mce", "calibration.ace", "calibration.temperature.ece",
            "calibration.adaptive_ece", "calibration.classwise_ece",
            "calibration.per_class.0.ece"} <= checked  # fmt: skip


def test_gaps_of_numbers_add_up(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    data = {name: rng.uniform(1, 2, (N, 6, 6)).astype("f4") for name in ("mean", "std", "target")}
    path = tmp_path / "report.states.zip"
    uqeval.evaluate(data, metrics={"regression": {"ence": True}}, states=path)
    numbers = Scoring(SavedStates(path))
    items = Weighting(np.ones((1, N), np.int64))
    for name in ("auce", "auce_over", "auce_under", "ence", "uce"):
        found = numbers.gaps(f"regression.{name}")
        assert found is not None, name
        key, gaps = found
        states = {t: numbers.stacked(t).sets(items) for t in numbers.evaluations[key].tallies()}
        value = gaps.score(gaps.signed(states), gaps.weights(states)[0])[0]
        assert value == pytest.approx(numbers.exact(f"regression.{name}"), rel=1e-9), name


def test_scores_that_are_constant_up_to_rounding_have_no_interval() -> None:
    probs = np.full((20, 2, 3, 3), 0.1, np.float32)
    probs[:, 0] = 0.9
    labels = np.zeros((20, 3, 3), np.uint8)
    found = uqeval.evaluate(probs, labels, metrics=["calibration"], ci=0.95).intervals
    assert found["calibration.nll"]["reason"] == "the score is the same in all draws"
    by_jackknife = {"ci": 0.95, "interval_method": "jackknife-t"}
    found = uqeval.evaluate(probs, labels, metrics=["calibration"], **by_jackknife).intervals
    assert "stays the same when any unit is left out" in found["calibration.nll"]["reason"]


def test_korn_graubard_is_for_shares_only(own: Scoring) -> None:
    found = found_in(own, UNITS[0], method="korn-graubard")
    by_kind = found_in(own, UNITS[0])
    assert found == by_kind
    assert found["segmentation.miou"]["method"] == "jackknife-t"


def test_what_has_an_interval(own: Scoring) -> None:
    found = found_in(own, Resampling(NAMES, 200))
    assert {"segmentation.miou", "segmentation.per_class.0.iou"} <= found.keys()
    assert {"pavpu.pavpu", "pavpu.per_class.1.pavpu", "calibration.ece"} <= found.keys()
    assert not [a for a in found if a.split(".")[-1] in ("n_ac", "pixels", "window", "t")]
    assert found["calibration.temperature.value"]["reason"] == "the score is the same in all draws"
    for text, record in found.items():
        metric = metric_at(text)
        assert metric is not None
        if record["low"] is None:
            assert record["reason"] and record["method"] is None
            continue
        assert record["low"] < record["high"], text
        least, most = metric.range
        assert (least is None or least <= record["low"]) and (
            most is None or record["high"] <= most
        )


def test_every_metric_names_its_kind() -> None:
    kinds = {metric.interval for metric in METRICS}
    assert kinds == {"share", "logit", "linear", "gaps", "biased", "positive", "draws"}
    for metric in METRICS:
        assert not metric.counted or metric.interval == "share", metric.id
        if metric.interval in ("share", "logit"):
            low, high = metric.range
            assert low == 0 and high is not None and high <= 1, metric.id
        may_be_negative = metric.unit == "risk"  # a field that is negated
        assert metric.interval != "positive" or metric.range[0] == 0 or may_be_negative, metric.id
    # A mean of errors from 0 on is positive; these are fitted, or cut at a rank.
    drawn = (m for m in METRICS if m.interval == "draws" and m.quantile is None)
    assert {m.id for m in drawn if m.range[0] == 0} == {
        "calibration.temperature.value", "failure.coverage_at_risk", "failure.risk_at_coverage",
        "nmerci.mae_trimmed", "sparsification.ause",
    }  # fmt: skip
    of_units = {m.id for m in METRICS if m.interval == "share" and not m.counted}
    assert of_units == {"conformal.items_above"}


@pytest.mark.parametrize("method", ["jackknife-t", "expanded", "percentile"])
def test_other_methods(own: Scoring, method: Any) -> None:
    found = found_in(own, UNITS[0], method=method)
    used = {own["method"] for own in found.values() if own["method"]}
    assert used - {"korn-graubard"} == {method}  # a score of 0 or 1 has no logit


def test_few_units(own: Scoring) -> None:
    one = intervals(Samples.of_run(own, UNITS[0], [3]), 0.95)["pavpu.pavpu"]
    assert one["low"] is None and one["reason"] == "1 item has this score; 2 are needed"
    group = found_in(own, Resampling(("x",) * N, unit="group"))["pavpu.pavpu"]
    assert group["reason"] == "1 group has this score; 2 are needed"
    five = intervals(Samples.of_run(own, UNITS[0], range(5)), 0.95)
    assert five["calibration.ece"]["reason"].endswith("intervals from draws need 6")
    assert five["pavpu.pavpu"]["low"] is not None
    assert debiased(Samples.of_run(own, UNITS[0], range(5)), "calibration.ece") is None


def test_a_rate_without_events_counts_the_items_that_have_it(tmp_path: Path) -> None:
    """A class in 4 of 30 items, never right: its bound is that of 4 items, not of 30."""
    p, y = np.full((30, 1, 3, 8, 8), 0.05, "f4"), np.zeros((30, 8, 8), "u1")
    rng = np.random.default_rng(0)
    wrong = rng.random((30, 8, 8)) < 0.2
    p[:, 0, 0] = np.where(wrong, 0.05, 0.9)
    p[:, 0, 1] = np.where(wrong, 0.9, 0.05)
    y[:4, :4, :4] = 2
    uqeval.evaluate(p, y, "segmentation", states=tmp_path / "report.states.zip")
    saved = scoring(tmp_path / "report.json")
    record = found_in(saved, Resampling(saved.names, 500))["segmentation.per_class.2.iou"]
    assert record["units"] == {"name": "item", "drawn": 30, "defined": 4}
    assert (record["low"], record["high"]) == pytest.approx(naive.clopper_pearson(0, 4, 0.95))
    groups = tuple("aabb" + "c" * 26)
    record = found_in(saved, Resampling(groups, 500, unit="group"))["segmentation.per_class.2.iou"]
    assert record["high"] == pytest.approx(naive.clopper_pearson(0, 2, 0.95)[1])


@pytest.mark.parametrize("level", [0.0, 0.49, 1.0, 95.0, float("nan")])
def test_levels(level: float) -> None:
    with pytest.raises(UsageError, match="confidence"):
        check_level(level)


def test_methods_that_do_not_exist() -> None:
    with pytest.raises(UsageError, match="--interval-method 'bca'; expected one of auto"):
        CutOptions(ci=0.95, interval_method="bca")  # type: ignore[arg-type]


def test_bins_that_change_a_score_leave_it_without_an_interval(tmp_path: Path) -> None:
    """Uncertainties within 2^-10 of each other are ties in states."""
    rng = np.random.default_rng(0)
    z = 0.05 * (rng.normal(size=(60, 4, 11, 15, 20)) + rng.normal(size=(60, 1, 11, 1, 1)))
    probs = np.exp(z) / np.exp(z).sum(axis=2, keepdims=True)
    labels = rng.integers(0, 11, (60, 15, 20)).astype(np.uint8)
    states = [tmp_path / f"{k}.states.zip" for k in range(2)]
    for path, own in zip(states, (probs, probs[:, :3]), strict=True):
        report = uqeval.evaluate(
            own.astype(np.float32), labels, "failure", ci=0.9, draws=100, states=path
        )
    found = report.intervals["failure.fpr95"]
    assert found["low"] is None and "the bins of the saved states give" in found["reason"]
    assert report.intervals["failure.undetected_error_rate"]["low"] is not None
    runs = [Scoring(SavedStates(path)) for path in states]
    samples = Samples(runs, [range(60)] * 2, Resampling(runs[0].names, draws=100))
    change = difference(samples, "failure.fpr95", 0.9)
    assert isinstance(change, NoBounds) and "too coarse for an interval" in change.reason


def test_an_undefined_score_beside_others_gives_no_warning_of_numpy() -> None:
    """σ = 0 in a whole bin: ENCE is undefined, and UCE beside it has an interval."""
    rng = np.random.default_rng(0)
    std = rng.gamma(2, 1, (8, 6, 6))
    std[:, :3] = 0
    target = rng.normal(size=std.shape)
    data = {"mean": target + std + 0.1, "std": std, "target": target}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = uqeval.evaluate(data, metrics={"regression": {"ence": True}}, ci=0.9)
    assert report.results["regression"]["ence"] is None
    assert "regression.ence" not in report.intervals
    assert report.intervals["regression.uce"]["low"] is not None


def test_scores_that_are_computed_together_are_found_once(
    own: Scoring, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Found for each score, they took the square of the number of classes.
    groups: list[tuple[Any, ...]] = []
    find = Samples._together

    def noted(samples: Samples, *group: Any) -> Iterator[str]:
        groups.append(group)
        return find(samples, *group)

    monkeypatch.setattr(Samples, "_together", noted)
    found = found_in(own, UNITS[0])
    keys = {Address.parse(text).key for text in found}
    assert len(found) > 20 and len(groups) == len(set(groups)) <= 4 * len(keys)
