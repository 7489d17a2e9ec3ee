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
from uqeval.metrics._fitted_apart import FittedModel, curve, on_items, threshold
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
SURPLUS = ("pavpu.surplus", "pavpu.half_surplus")
WITHOUT_THRESHOLD = ("pavpu.p_accurate", "failure.auroc")
OF_CURVES = ("pavpu.surplus_auc", "pavpu.surplus_peak.value", "pavpu.pavpu_peak.value")
OF_IMAGES = tuple(
    f"image_failure.{name}" for name in ("aurc", "e_aurc", "augrc", "auroc", "spearman", "kendall")
)
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
    found = changes(sources, *OF_THRESHOLD, *SURPLUS, *WITHOUT_THRESHOLD)
    for address in (*OF_THRESHOLD, *SURPLUS):
        reason = str(found[address].reason)
        assert "items of another report (--threshold-from)" in reason, address
        assert "evaluate all models at one --threshold NUMBER" in reason
    for address in WITHOUT_THRESHOLD:
        assert found[address].p is not None and found[address].interval is not None, address
    text = differences(compared(sources, "pavpu.pavpu", "pavpu.surplus")).note
    assert "No interval of pavpu.pavpu, pavpu.surplus: the threshold of each model is " in text


@pytest.mark.parametrize("given", [{"threshold_from": "fit-a.json"}, {"threshold": 0.5}])
def test_a_shared_threshold_is_tested(sources: Path, given: dict[str, Any]) -> None:
    own = {k: str(sources / v) if isinstance(v, str) else v for k, v in given.items()}
    evaluated(sources, pavpu=own | PATCHES, failure=own)
    for address, change in changes(sources, *OF_THRESHOLD, *SURPLUS).items():
        assert change.p is not None and change.interval is not None, address


@pytest.mark.parametrize("rule", ["mean", "median", "p90", "range:0.5", "max-surplus"])
def test_thresholds_that_follow_the_evaluated_items(tmp_path: Path, rule: str) -> None:
    own = {"threshold": rule}
    evaluated(tmp_path, pavpu=own | PATCHES, failure=own)
    found = changes(tmp_path, *OF_THRESHOLD, *SURPLUS, *WITHOUT_THRESHOLD)
    for address in (*OF_THRESHOLD, *SURPLUS):
        assert f"evaluated items (--threshold {rule})" in str(found[address].reason), address
        assert found[address].p is None
    for address in WITHOUT_THRESHOLD:
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


def test_rules_in_other_letters() -> None:
    assert Rule.parse(" Max-Surplus ").kind == "max-surplus"
    assert threshold([FittedModel({"threshold": " Max-Surplus "}, {})])


def test_thresholds_of_each_item_go_with_it() -> None:
    own = FittedModel({"threshold": "max-surplus", "threshold_scope": "item"}, {})
    assert threshold([own, own]) == ""


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


def test_recalibration_on_the_evaluated_items(tmp_path: Path) -> None:
    """An image that is hard for one model only changes the temperature of this model, and with it
    the scores of all images."""
    evaluated(tmp_path, calibration={"isotonic": True, "vector": True})
    found = changes(tmp_path, *RECALIBRATED, "calibration.ece")
    for address in RECALIBRATED:
        assert "fitted on the evaluated items" in str(found[address].reason), address
        assert found[address].p is None
    assert found["calibration.ece"].p is not None


def test_bins_and_factor_of_sigma(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    target = rng.uniform(1, 9, (N, 6, 6)).astype(np.float32)
    for name in MODELS:
        std = rng.uniform(0.1, 1, target.shape)
        arrays = {"mean": target + std * rng.standard_normal(target.shape), "std": std}
        uqeval.evaluate(
            {key: value.astype(np.float32) for key, value in arrays.items()}, target,
            {"regression": {"ence": True, "sigma_scale": True}},
            states=tmp_path / f"{name}.states.zip", workers=1,
        ).save(tmp_path / f"{name}.json")  # fmt: skip
    bins, tested = ("ence", "uce"), ("rmse", "sigma_scale.nll_before")
    names = (*bins, *tested, "sigma_scale.nll")
    found = changes(tmp_path, *(f"regression.{name}" for name in names))
    for name in bins:
        assert "bins of each model have edges" in str(found[f"regression.{name}"].reason)
    for name in tested:
        assert found[f"regression.{name}"].p is not None
    reason = str(found["regression.sigma_scale.nll"].reason)
    assert reason.startswith("the factor of σ of each model is fitted on the evaluated items")


def test_curves_over_the_uncertainties_of_each_model(tmp_path: Path) -> None:
    for options, is_tested in (
        ({}, False), ({"curve_range": "0:1.2"}, True), ({"threshold_scope": "item"}, True)
    ):  # fmt: skip
        evaluated(tmp_path, pavpu={**options, **PATCHES})
        for address, change in changes(tmp_path, *OF_CURVES).items():
            assert (change.p is not None) == (change.interval is not None) == is_tested, address
            if not is_tested:
                assert "give all models the same --curve-range LOW:HIGH" in str(change.reason)


@pytest.mark.parametrize(
    ("options", "is_tested"),
    [
        ({"confidence": "share"}, False),
        ({"confidence": "mean-above"}, False),
        ({"confidence": "share", "threshold": 0.5}, True),
        ({"confidence": "mean"}, True),
    ],
)
def test_confidences_of_images_at_a_threshold(
    tmp_path: Path, options: dict[str, Any], is_tested: bool
) -> None:
    """The threshold changes the confidences of all images, but not their risks."""
    evaluated(tmp_path, image_failure=options)
    found = changes(tmp_path, *OF_IMAGES, "image_failure.mean_risk")
    for address in OF_IMAGES:
        assert (found[address].p is not None) == is_tested, address
    assert found["image_failure.mean_risk"].p is not None


@pytest.mark.parametrize("of_patches", [None, PATCHES, {**PATCHES, "threshold": 0.7}])
@pytest.mark.parametrize("field", ["pavpu", "n_iu"])
def test_risks_of_images_at_a_threshold(
    tmp_path: Path, of_patches: dict[str, Any] | None, field: str
) -> None:
    """Also if the run evaluates the patches for the risks alone, and of a count of patches."""
    others = {} if of_patches is None else {"pavpu": of_patches}
    evaluated(tmp_path, image_failure={"risk": f"pavpu.{field}"}, **others)
    is_tested = "threshold" in (of_patches or {})
    for address, change in changes(tmp_path, *OF_IMAGES, "image_failure.mean_risk").items():
        assert (change.p is not None) == is_tested, address
        if not is_tested:
            assert str(change.reason).startswith(f"pavpu.{field} of the items: the threshold of")
            assert str(change.reason).endswith(" (as options of pavpu in uqeval.yaml)")


def test_a_class_may_be_called_like_the_items_of_a_fit(sources: Path) -> None:
    own = {"threshold_from": str(sources / "fit-MODEL.json")}
    evaluated(sources, ["held_out", "after", "car"], pavpu=own | PATCHES)
    for address, change in changes(
        sources, *(f"pavpu.per_class.{name}.surplus" for name in ("held_out", "after", "car"))
    ).items():
        assert "threshold of each model" in str(change.reason), address


def test_the_noun_of_the_fit_is_named() -> None:
    reason = on_items("vector scaling")([FittedModel({"fit_on": "x"}, {})])
    assert reason.startswith("the vector scaling of each model is fitted on other items")
    reason = on_items("temperature")([FittedModel({"fit_on": None}, {})])
    assert reason.startswith("the temperature of each model is fitted on the evaluated items")


def test_curves_with_the_same_ends_are_tested() -> None:
    at = [FittedModel({}, {"curve": {"threshold": [0.0, 0.5, most]}}) for most in (1.0, 1.0, 1.3)]
    assert curve(at[:2]) == ""
    assert curve(at)
    unknown = FittedModel({}, {"curve": {"threshold": None}})
    assert curve([unknown, unknown])
    assert curve([FittedModel({"threshold_scope": "item"}, {})] * 2) == ""


def test_a_gate_against_a_baseline_is_inconclusive(sources: Path) -> None:
    own = {"threshold_from": str(sources / "fit-MODEL.json")}
    evaluated(sources, pavpu=own | PATCHES)
    now, before = (
        Named(name, sources / f"{name}.json", uqeval.Report.load(sources / f"{name}.json"))
        for name in ("a", "b")
    )
    limits = "{max_drop: 0.9, confidence: 0.9}"
    text = f"pavpu.pavpu: {limits}\npavpu.p_accurate: {limits}"
    found, plain_share = judge([now], rules(sources, text), [before], resampler()).verdicts
    assert (found.status, found.counts_as) == ("inconclusive", "fail")
    assert "the change has no interval: the threshold of each model is fitted" in str(found.reason)
    assert plain_share.status == "pass" and plain_share.interval is not None
    (plain,) = judge([now], rules(sources, "pavpu.pavpu: {max_drop: 0.9}"), [before]).verdicts
    assert plain.status == "pass"
    limit = "pavpu.pavpu: {min: 0.01, confidence: 0.9}"
    (single,) = judge([now], rules(sources, limit), resampler=resampler()).verdicts
    assert single.status == "pass" and single.interval is not None
