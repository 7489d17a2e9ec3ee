"""Scores at a fitted number of each model have neither interval, p-value nor shares of ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gate_reports import rules
from trained import N, labels, probs

import uqeval
from uqeval.compare import Choice, Comparison, Difference, compare, load_models
from uqeval.gate import judge
from uqeval.metrics._fitted_apart import FittedModel, best_surplus, on_fit_items, threshold
from uqeval.metrics.thresholds import Rule
from uqeval.records.folder import Named
from uqeval.report.tables.comparison import differences
from uqeval.statistics import resampler, swaps

MODELS = {"a": (0, 1.0), "b": (1, 1.6)}
PATCHES = {"window": 1, "deciles": False}
OF_THRESHOLD = (
    "pavpu.pavpu", "pavpu.p_uncertain_given_inaccurate", "pavpu.phi", "pavpu.p_certain",
    "pavpu.per_class.0.surplus", "failure.undetected_error_rate",
)  # fmt: skip
OF_ALL_THRESHOLDS = (
    "pavpu.p_accurate", "pavpu.surplus_auc", "pavpu.surplus_peak.value", "failure.auroc",
)  # fmt: skip
RECALIBRATED = tuple(
    f"calibration.{part}.{field}"
    for part, fields in (("temperature", ("ece", "mce", "nll")),
                         ("isotonic", ("ece", "brier")), ("vector", ("ece", "nll")))
    for field in fields
)  # fmt: skip


@pytest.fixture(autouse=True)
def few_swaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swaps, "MOST", 300)


def compared(folder: Path, *metrics: str) -> Comparison:
    models = load_models([str(folder / f"{name}.json") for name in MODELS])
    return compare(models, Choice(metrics=metrics, draws=200))


def changes(folder: Path, *metrics: str) -> dict[str, Difference]:
    """Return the differences by address; those that are fitted apart have no shares of ranks."""
    found = {}
    for row in compared(folder, *metrics).rows:
        change = row.cells[1].difference
        assert change is not None
        rank = row.cells[1].rank
        if change.reason and "of each model" in change.reason:
            assert change.interval is None and change.p is None and change.verdict is None
            assert rank is None or rank.best_share is None
        found[str(row.address)] = change
    assert found.keys() == set(metrics)
    return found


def evaluated(folder: Path, class_names: list[str] | None = None, **metrics: Any) -> None:
    """Save a report of each model; "MODEL" in a setting is its name."""
    for name, own in MODELS.items():
        settings = {
            family: {
                key: value.replace("MODEL", name) if isinstance(value, str) else value
                for key, value in options.items()
            }
            for family, options in metrics.items()
        }
        uqeval.evaluate(
            probs(*own), labels(), settings, states=folder / f"{name}.states.zip", workers=1,
            class_names=class_names,
        ).save(folder / f"{name}.json")  # fmt: skip


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """The reports `fit-a.json` and `fit-b.json`, of each model on other images."""
    for name, (seed, skill) in MODELS.items():
        report = uqeval.evaluate(probs(seed + 10, skill), labels(), {"pavpu": PATCHES}, workers=1)
        report.save(tmp_path / f"fit-{name}.json")
    return tmp_path


def test_thresholds_of_other_reports(sources: Path) -> None:
    own = {"threshold_from": str(sources / "fit-MODEL.json")}
    evaluated(sources, pavpu=own | PATCHES, failure=own)
    found = changes(sources, *OF_THRESHOLD, "pavpu.surplus", *OF_ALL_THRESHOLDS)
    for address in (*OF_THRESHOLD, "pavpu.surplus"):
        reason = str(found[address].reason)
        assert "items of another report (--threshold-from)" in reason, address
        assert "evaluate all models at one --threshold NUMBER" in reason
    for address in OF_ALL_THRESHOLDS:
        assert found[address].p is not None and found[address].interval is not None, address
    text = differences(compared(sources, "pavpu.pavpu", "pavpu.surplus")).note
    assert "No interval of pavpu.pavpu, pavpu.surplus: the threshold of each model is " in text


@pytest.mark.parametrize("given", [{"threshold_from": "fit-a.json"}, {"threshold": 0.5}])
def test_a_shared_threshold_is_tested(sources: Path, given: dict[str, Any]) -> None:
    own = {k: str(sources / v) if isinstance(v, str) else v for k, v in given.items()}
    evaluated(sources, pavpu=own | PATCHES, failure=own)
    for address, change in changes(sources, *OF_THRESHOLD, "pavpu.surplus").items():
        assert change.p is not None and change.interval is not None, address


def test_the_best_threshold_of_the_evaluated_items(tmp_path: Path) -> None:
    """At its own maximum, the Surplus of the whole set hardly depends on the threshold."""
    own = {"threshold": "max-surplus"}
    evaluated(tmp_path, pavpu=own | PATCHES, failure=own)
    surplus = ("pavpu.surplus", "pavpu.half_surplus")
    found = changes(tmp_path, *OF_THRESHOLD, *surplus, *OF_ALL_THRESHOLDS)
    for address in OF_THRESHOLD:
        assert "(--threshold max-surplus)" in str(found[address].reason), address
    for address in (*surplus, *OF_ALL_THRESHOLDS):
        assert found[address].p is not None and found[address].interval is not None, address


@pytest.mark.parametrize("rule", ["mean", "median", "p90", "range:0.5"])
def test_thresholds_that_follow_the_evaluated_items(tmp_path: Path, rule: str) -> None:
    own = {"threshold": rule}
    evaluated(tmp_path, pavpu=own | PATCHES, failure=own)
    found = changes(tmp_path, *OF_THRESHOLD, "pavpu.surplus", *OF_ALL_THRESHOLDS)
    for address in (*OF_THRESHOLD, "pavpu.surplus"):
        assert f"evaluated items (--threshold {rule})" in str(found[address].reason), address
        assert found[address].p is None
    for address in OF_ALL_THRESHOLDS:
        assert found[address].p is not None and found[address].interval is not None, address


def test_rules_that_give_one_threshold_are_tested() -> None:
    at = [FittedModel({"threshold": "mean"}, {"uncertainty_threshold": t}) for t in (0.3, 0.3, 0.4)]
    assert threshold(at[:2]) == ""
    assert threshold(at)
    of_items = FittedModel({"threshold": "mean", "threshold_scope": "item"}, {})
    assert threshold([of_items, of_items]) == ""
    of_classes = FittedModel({"threshold": "mean", "threshold_scope": "class"}, {})
    assert threshold([of_classes, of_classes])
    number = FittedModel({"threshold": "0.3"}, {"uncertainty_threshold": 0.3})
    assert threshold([number, at[0]]) == "" and threshold([number, at[2]])


def test_the_surplus_of_a_part_is_not_at_its_maximum() -> None:
    best = {"threshold": "max-surplus", "threshold_scope": "set"}
    assert best_surplus([FittedModel(best, {})]) == ""
    assert best_surplus([FittedModel(best, {}, is_whole=False)])
    assert best_surplus([FittedModel({**best, "threshold_scope": "class"}, {})])
    assert Rule.parse(" Max-Surplus ").kind == "max-surplus"
    assert threshold([FittedModel({**best, "threshold": " Max-Surplus "}, {})])


def test_thresholds_of_each_item_go_with_it() -> None:
    own = FittedModel({"threshold": "max-surplus", "threshold_scope": "item"}, {})
    assert threshold([own, own]) == best_surplus([own, own]) == ""


def test_a_rule_that_gives_the_threshold_of_the_other_report_is_shared() -> None:
    rule = FittedModel({"threshold": "mean"}, {"uncertainty_threshold": 0.3})
    taken = FittedModel({"threshold": "0.3", "threshold_from": "x"}, {"uncertainty_threshold": 0.3})
    unknown = FittedModel({"threshold": "mean"}, {"uncertainty_threshold": None})
    assert threshold([rule, taken]) == ""
    assert threshold([unknown, taken]) and threshold([taken, unknown])


def test_recalibration_on_other_items(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "fit.txt", [str(i) for i in range(0, N, 2)], fmt="%s")
    options = {"isotonic": True, "vector": True}
    evaluated(tmp_path, calibration={**options, "fit_on": str(tmp_path / "fit.txt")})
    after = [f"calibration.{part}.held_out.after.ece" for part in ("temperature", "isotonic")]
    before = "calibration.temperature.held_out.before.ece"
    found = changes(tmp_path, *RECALIBRATED, *after, before, "calibration.ece")
    for address in (*RECALIBRATED, *after):
        assert "fitted on other items (--fit-on)" in str(found[address].reason), address
        assert found[address].p is None
    assert "held out of a fit have no interval" in str(found[before].reason)
    assert found["calibration.ece"].p is not None
    evaluated(tmp_path, calibration=options)  # on all items
    for address, change in changes(tmp_path, *RECALIBRATED).items():
        assert change.p is not None and change.reason is None, address


def test_a_class_may_be_called_like_the_items_of_a_fit(sources: Path) -> None:
    own = {"threshold_from": str(sources / "fit-MODEL.json")}
    evaluated(sources, ["held_out", "after", "car"], pavpu=own | PATCHES)
    for address, change in changes(
        sources, *(f"pavpu.per_class.{name}.surplus" for name in ("held_out", "after", "car"))
    ).items():
        assert "threshold of each model" in str(change.reason), address


def test_the_noun_of_the_fit_is_named() -> None:
    reason = on_fit_items("vector scaling")([FittedModel({"fit_on": "x"}, {})])
    assert reason.startswith("the vector scaling of each model is fitted on other items")
    assert on_fit_items("temperature")([FittedModel({"fit_on": None}, {})]) == ""


def test_a_gate_against_a_baseline_is_inconclusive(sources: Path) -> None:
    own = {"threshold_from": str(sources / "fit-MODEL.json")}
    evaluated(sources, pavpu=own | PATCHES)
    now, before = (
        Named(name, sources / f"{name}.json", uqeval.Report.load(sources / f"{name}.json"))
        for name in ("a", "b")
    )
    limits = "{max_drop: 0.9, confidence: 0.9}"
    text = f"pavpu.pavpu: {limits}\npavpu.surplus_auc: {limits}"
    found, of_curve = judge([now], rules(sources, text), [before], resampler()).verdicts
    assert (found.status, found.counts_as) == ("inconclusive", "fail")
    assert "the change has no interval: the threshold of each model is fitted" in str(found.reason)
    assert of_curve.status == "pass" and of_curve.interval is not None
    (plain,) = judge([now], rules(sources, "pavpu.pavpu: {max_drop: 0.9}"), [before]).verdicts
    assert plain.status == "pass"
    limit = "pavpu.pavpu: {min: 0.01, confidence: 0.9}"
    (single,) = judge([now], rules(sources, limit), resampler=resampler()).verdicts
    assert single.status == "pass" and single.interval is not None
