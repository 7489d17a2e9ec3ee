"""Which settings of a report and its baseline make their scores incomparable."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_stores import NAMES, labels, probs, save

import uqeval
from uqeval import Report
from uqeval.gate.other_settings import (
    OtherSetting,
    first_other_setting,
    other_input_option,
    other_threshold,
)
from uqeval.gate.same_data import (
    other_data,
    other_fingerprints,
    other_maps,
    other_pixels,
    truth_of_one,
)
from uqeval.glossary import fields_changed
from uqeval.inputs import InputOptions, open_inputs
from uqeval.records.inputs import VALUE_OPTIONS
from uqeval.usecases.reduce import reduce


def other_setting(*given: Any) -> tuple[str, Any, Any] | None:
    """Return the name and both values of the first setting that differs."""
    difference = first_other_setting(*given)
    return None if difference is None else difference[:3]


def report(key: str, settings: dict[str, Any], **results: Any) -> Report:
    return Report(
        uqeval_version="1", inputs={}, settings={key: settings}, results={key: results}, items=[]
    )


def with_threshold(rule: str, value: float, source: str | None = None) -> Report:
    settings = {"window": 4, "threshold": rule, "threshold_from": source}
    return report("pavpu", settings, uncertainty_threshold=value)


def test_thresholds_of_other_reports() -> None:
    """The same threshold is the same setting; another one is not, unless both are from reports."""
    mean, other_mean = with_threshold("mean", 0.3), with_threshold("mean", 0.4)
    number, large = with_threshold("0.3", 0.3), with_threshold("1.0", 1.0)
    taken = with_threshold("0.3", 0.3, "base.json")
    of_third = with_threshold("1.0", 1.0, "val.json")
    for same in (mean, number, taken):
        assert other_setting(taken, same, "pavpu") is other_setting(same, taken, "pavpu") is None
        assert other_threshold(taken, same, "pavpu") is None
    assert other_setting(mean, other_mean, "pavpu") is None
    assert other_setting(taken, large, "pavpu") == (
        "threshold", "0.3 (from base.json)", "1 (rule 1)",
    )  # fmt: skip
    assert other_setting(other_mean, taken, "pavpu") == (
        "threshold", "0.4 (rule mean)", "0.3 (from base.json)",
    )  # fmt: skip
    assert other_setting(taken, of_third, "pavpu") is None
    assert other_threshold(taken, of_third, "pavpu") == ("0.3", "1")
    taken, large = (
        report("failure", {"threshold": "0.3", "threshold_from": source}, uncertainty_threshold=t)
        for source, t in (("base.json", 0.3), (None, 1.0))
    )
    assert other_setting(taken, large, "failure", ("per_class", "car", "auroc")) is None
    assert other_setting(taken, large, "failure", ("per_class", "car", "undetected_error_rate"))
    # `image_failure` does not record the threshold that a rule gave.
    taken = with_threshold("0.3", 0.3, "base.json")
    unknown = report("pavpu", {"window": 4, "threshold": "mean", "threshold_from": None})
    assert other_setting(taken, unknown, "pavpu") is None
    assert other_threshold(taken, unknown, "pavpu") == ("0.3", "not recorded")


def test_other_kinds_of_data_and_other_classes_have_advice_that_helps() -> None:
    eight, two, numbers = (report("sparsification", {}) for _ in range(3))
    eight.inputs["classes"], two.inputs["classes"] = 8, 2
    of_kind = first_other_setting(eight, numbers, "sparsification")
    assert of_kind is not None
    assert of_kind[:3] == ("the kind of data", "class predictions", "predicted numbers")
    assert of_kind.advice == "Compare reports of one kind of data"
    of_classes = first_other_setting(eight, two, "sparsification")
    assert of_classes is not None and of_classes[:3] == ("classes", 8, 2)
    assert of_classes.advice == "Compare models of the same classes"


def test_files_of_fitted_items_are_compared_by_what_they_name() -> None:
    def fitted(family: str, path: str, **results: object) -> Report:
        return report(family, {"fit_on": path}, **results)

    one, other = {"fitted_on_digest": "a" * 64}, {"fitted_on_digest": "b" * 64}
    first = fitted("conformal", "q.txt", **one)
    assert other_setting(first, fitted("conformal", "./q.txt", **one), "conformal") is None
    assert other_setting(first, fitted("conformal", "q.txt", **other), "conformal") == (
        "fit_on", "q.txt (digest aaaaaaaa)", "q.txt (digest bbbbbbbb)",
    )  # fmt: skip
    scaled = fitted("calibration", "q.txt", ece=0.1, temperature=one)
    assert other_setting(scaled, fitted("calibration", "x", temperature=one), "calibration") is None
    regressed = fitted("calibration", "q.txt", isotonic=other)
    assert other_setting(scaled, regressed, "calibration", ("isotonic", "ece"))
    assert other_setting(scaled, regressed, "calibration", ("ece",)) is None
    # Reports of an earlier version do not tell.
    assert other_setting(first, fitted("conformal", "q.txt"), "conformal") is None
    assert other_setting(first, fitted("conformal", "x"), "conformal") == ("fit_on", "q.txt", "x")


def test_units_that_stores_declare() -> None:
    """Numbers of other units are not compared; a store need not declare its unit."""
    metres, centimetres, unknown = (report("regression", {}) for _ in range(3))
    metres.inputs["units"], centimetres.inputs["units"] = "m", "cm"
    assert other_setting(metres, centimetres, "regression") == ("units", "m", "cm")
    spelled = report("regression", {})
    spelled.inputs["units"] = "meters"
    assert other_setting(metres, spelled, "regression") is None
    assert other_setting(spelled, centimetres, "regression") == ("units", "meters", "cm")
    for own in (metres, unknown):
        assert other_setting(own, unknown, "regression") is None
        assert other_setting(unknown, own, "regression") is None


def test_a_number_in_another_spelling_is_the_same_setting() -> None:
    """Earlier versions recorded numbers as the user wrote them."""
    now = report("pavpu", {"threshold": "1", "curve_range": "0:2"})
    before = report("pavpu", {"threshold": "1.0", "curve_range": "0:2.0"})
    assert other_setting(now, before, "pavpu") is None
    differs = other_setting(report("pavpu", {"threshold": "1.5"}), before, "pavpu")
    assert differs == ("curve_range", None, "0:2")


@pytest.mark.parametrize(
    ("key", "settings", "without_effect"),
    [
        ("failure", {"uncertainty": "confidence"}, {"log_base": 2.0}),
        ("ood", {"aggregation": "max"}, {"patch": 8}),
        ("image_failure", {"confidence": "mean"}, {"patch": 8, "threshold": "p90"}),
        ("pavpu", {"window": 1}, {"border": "pad", "region_share": 0.7}),
        ("pavpu", {"window": 4}, {"threshold_scope": "region"}),
        ("calibration", {"bins": 20}, {"definition": "values"}),
    ],
)
def test_options_without_effect_are_no_settings(
    key: str, settings: dict[str, Any], without_effect: dict[str, Any]
) -> None:
    """A run records all options with each variant."""
    plain = report(key, settings)
    assert other_setting(report(key, settings | without_effect), plain, key) is None
    assert other_setting(plain, report(key, settings | without_effect), key) is None


@pytest.mark.parametrize(
    ("key", "settings"),
    [
        ("failure", {"uncertainty": "entropy", "log_base": 2.0}),
        ("ood", {"aggregation": "patch-max", "patch": 8}),
        ("ood", {"uncertainty": "confidence", "definition": "bravo"}),
        ("image_failure", {"confidence": "share", "threshold": "p90"}),
        ("pavpu", {"window": 2, "border": "pad"}),
        ("pavpu@boundary:8", {"region_share": 0.7}),
        ("pavpu@boundary:8", {"threshold_scope": "region"}),
        ("pavpu", {"threshold_scope": "class"}),
    ],
)
def test_options_with_an_effect_are_settings(key: str, settings: dict[str, Any]) -> None:
    (*shared, (name, value)) = settings.items()
    other = report(key, dict(shared))
    difference = other_setting(report(key, settings), other, key, fields_changed(key, name))
    assert difference is not None
    assert difference[:2] == (name, value)


@pytest.mark.parametrize("name", ["pavpu.pavpu", "-pavpu.pavpu"])
@pytest.mark.parametrize("option", ["risk", "confidence"])
def test_settings_of_results_whose_items_are_read_are_settings(option: str, name: str) -> None:
    """The risks and confidences of items are fields of other results."""

    def of(**settings: object) -> Report:
        own = report("image_failure", {option: name})
        own.settings |= {"pavpu": settings} if settings else {}
        return own

    four, eight = of(window=4), of(window=8)
    assert other_setting(four, eight, "image_failure") == ("window of pavpu", 4, 8)
    assert other_setting(four, of(window=4), "image_failure") is None
    # A report that has no such result has read it at the defaults.
    assert other_setting(four, of(), "image_failure") is None
    assert other_setting(eight, of(), "image_failure") == ("window of pavpu", 8, None)
    # Options that add other scores do not change the field that is read.
    assert other_setting(four, of(window=4, deciles=False), "image_failure") is None


def test_a_nested_field_that_is_read_has_its_own_settings() -> None:
    one, other = (
        dataclasses.replace(
            report("image_failure", {"risk": "calibration.temperature.nll"}),
            settings={
                "image_failure": {"risk": "calibration.temperature.nll"},
                "calibration": {"temperature_of": of, "adaptive": of == "mean"},
            },
        )
        for of in ("mean", "samples")
    )
    expected = ("temperature_of of calibration", "mean", "samples")
    assert other_setting(one, other, "image_failure") == expected


@pytest.mark.parametrize("rows", ["per_class", "per_set"])
def test_names_of_classes_and_sets_are_no_fields(rows: str) -> None:
    """A class may be called like a field that an option adds."""
    one, other = (report("calibration", {"temperature": own}) for own in (True, False))
    for name in ("temperature", "temperature_2", rows):
        assert other_setting(one, other, "calibration", (rows, name, "ece")) is None
    changed = (("temperature", "nll"), ("temperature", rows, "temperature", "ece"))
    for fields in changed:
        assert other_setting(one, other, "calibration", fields) == ("temperature", True, False)
    own = OtherSetting("tracks", True, False, ("tracks",))
    assert own.changes(("tracks", rows, "car", "consistency"))
    assert not own.changes((rows, "tracks", "iou"))


def test_maps_of_regions_of_results_whose_items_are_read() -> None:
    def of(fingerprint: str) -> Report:
        own = report("image_failure", {"risk": "segmentation@map:wet.miou"})
        own.inputs["regions"] = [{"region": "map:wet", "fingerprint": fingerprint}]
        return own

    assert other_maps(of("a"), of("b"), "image_failure") == "map:wet"
    assert other_maps(of("a"), of("a"), "image_failure") == ""


def test_tables_of_items_are_no_settings() -> None:
    """They are data of a model, such as its confidences, as predictions are."""

    def of(table: str, column: str) -> Report:
        return report("image_failure", {"confidence": f"column:{column}", "item_table": table})

    assert other_setting(of("a.csv", "x"), of("b.csv", "x"), "image_failure") is None
    differs = other_setting(of("a.csv", "x"), of("a.csv", "y"), "image_failure")
    assert differs == ("confidence", "column:x", "column:y")


def test_input_options_that_change_numbers() -> None:
    now, before = report("regression", {}), report("regression", {})
    assert other_input_option(now, before) is None
    # Paths, choices of items and defaults that only one report records are no difference.
    unimportant = {
        "limit": 3,
        "part": None,
        "depth_map": "x",
        "kind": "probs",
        "disparity": "predictions",
    }
    before.inputs["options"] = unimportant
    assert other_input_option(now, before) is other_input_option(before, now) is None
    for name, value in (
        ("median_scaling", True), ("baseline_focal", 20.0), ("disparity", "both"),
        ("invalid", [0.0]), ("label_map", "cityscapes"), ("missing_chunks", "fill"),
        ("nan_samples", "skip"), ("resize", "nearest"), ("annotator_folders", True),
    ):  # fmt: skip
        before.inputs["options"] = {name: value}
        flag = "--" + name.replace("_", "-")
        assert other_input_option(before, now) == (flag, value, VALUE_OPTIONS[name])


@pytest.mark.parametrize("key", ["regression", "regression[window=7]@box:0.5:1,0:1"])
def test_a_setting_that_an_earlier_version_does_not_have(key: str) -> None:
    """At its default the scores are the same; another value makes those that it changes
    incomparable."""
    earlier = report(key, {"distribution": "gaussian"})
    now = report(key, {"distribution": "gaussian", "depth": False, "ence_bins": 15})
    other = report(key, {"distribution": "gaussian", "depth": True, "ence_bins": 9})
    assert other_setting(now, earlier, key) is None
    assert other_setting(earlier, now, key) is None
    assert other_setting(other, earlier, key, ["a1"]) == ("depth", True, None)
    assert other_setting(now, other, key, ["a1"]) == ("depth", False, True)
    assert other_setting(now, other, key, ["uce"]) == ("ence_bins", 15, 9)
    for fields in ((), ["rmse"], ["auce"]):
        assert other_setting(now, other, key, fields) is None
    laplace = report(key, {"distribution": "laplace"})
    differs = ("distribution", "laplace", "gaussian")
    assert other_setting(laplace, earlier, key, ["nll"]) == differs
    assert other_setting(laplace, earlier, key, ["rmse"]) is None
    unknown = report(key, {"distribution": "gaussian", "of_a_later_version": 1})
    assert other_setting(unknown, earlier, key) == ("of_a_later_version", 1, None)


def test_what_predictions_were_evaluated_against() -> None:
    """Labels also if only one report has them; other stores if both have them; saved flow if a
    score is of it."""

    def with_data(method: str = "file", **fingerprints: str) -> Report:
        own = report("temporal", {"flow": method})
        stores = {name: {"fingerprint": text} for name, text in fingerprints.items()}
        forward = stores.pop("forward", None)
        flows = [{"direction": "flow", **stores.pop("flow", {})}]
        flows += [{"direction": "flow_forward", **forward}] if forward else []
        own.inputs.update(stores, flow=flows)
        return own

    now = with_data(labels="a", frames="b", flow="c")
    assert other_data(now, with_data(labels="a", frames="b", flow="c", forward="d")) == ""
    assert other_data(now, with_data(labels="x", frames="b", flow="c")) == "labels"
    assert other_data(now, with_data(frames="x", flow="x")) == "labels, frames, saved flow"
    assert truth_of_one(now, with_data(labels="x")) == truth_of_one(with_data(), with_data()) == ""
    for pair, called in (((now, with_data()), "this report"), ((with_data(), now), "the baseline")):
        assert truth_of_one(*pair).startswith(f"{called} was evaluated with labels, and t")
    assert other_fingerprints(now, with_data(frames="b", flow="c")) == ""
    assert "of frames differ" in other_fingerprints(now, with_data(frames="x", flow="c"))
    assert other_data(now, with_data("dis", labels="a", frames="b", flow="x")) == ""
    assert other_data(with_data(reference="a"), with_data(reference="b")) == "reference"
    forward = with_data(forward="a"), with_data(forward="b")
    assert other_data(*forward) == "saved forward flow"
    now.inputs["labels"]["path"], then = "gt.npz", with_data(labels="x", flow="c")
    then.inputs["labels"]["path"] = "gt.h5"
    assert other_fingerprints(now, then).startswith(
        "the fingerprints of labels (gt.npz and gt.h5) differ. Either the data differ, or they are "
        "the same in another format, or in a file that was copied or renamed;"
    )


def test_a_baseline_with_sets_of_an_earlier_version() -> None:
    """Earlier versions recorded the number of sets as that of classes."""

    def of(classes: int, **inputs: Any) -> Report:
        own = report("ood", {"aggregation": "mean"})
        own.inputs |= {"ignore_index": 255, "classes": classes, **inputs}
        return own

    sets = [{"name": name, "items": 2} for name in ("in", "fog", "rain")]
    assert other_setting(of(19, sets=sets), of(3, sets=sets), "ood") is None
    assert other_setting(of(19, ood_mask=2), of(2, ood_mask=2), "ood") is None
    fewer = of(19, sets=sets[:2])
    assert other_setting(of(19, sets=sets), fewer, "ood") == ("sets", 3, 2)
    assert other_setting(of(19), of(11), "ood") == ("classes", 19, 11)


def test_labels_with_another_void_id_but_the_same_void_pixels(tmp_path: Path) -> None:
    ids = np.where(labels() == 255, 3, labels())
    store = save(tmp_path / "s", {"probs": probs(), "labels": ids}, {"names": NAMES})
    direct, other = (uqeval.evaluate(store, None, "failure", ignore_index=i) for i in (3, 2))
    reduce(open_inputs(store, None, InputOptions(ignore_index=3)), tmp_path / "maps")
    with uqeval.Evaluator("failure", ignore_index=3) as evaluator:
        evaluator.update(probs(), ids, NAMES)
        by_evaluator = evaluator.report()
    for same in (uqeval.evaluate(tmp_path / "maps", None, "failure"), by_evaluator):
        assert same.inputs["ignore_index"] != 3
        assert other_setting(direct, same, "failure") is None
        assert other_pixels(direct, same, "failure", NAMES) is None
        assert other_setting(other, same, "failure") is None
        assert other_pixels(other, same, "failure", NAMES) is not None
    assert other_setting(direct, other, "failure") == ("ignore_index", 3, 2)
    plain = save(tmp_path / "plain", {"probs": probs(), "labels": ids % 3}, {"names": NAMES})
    unused = [uqeval.evaluate(plain, None, "failure", ignore_index=i) for i in (200, 255)]
    assert other_setting(*unused, "failure") is None
    # Without common items, no numbers of pixels show it.
    unused[1].items = [item | {"name": f"other {item['name']}"} for item in unused[1].items]
    assert other_setting(*unused, "failure") == ("ignore_index", 200, 255)


def test_the_void_id_is_a_setting_where_no_pixels_are_counted() -> None:
    def of(void: int) -> Report:
        own = report("temporal", {})
        own.inputs |= {"ignore_index": void, "labels": {"fingerprint": str(void)}}
        return own

    assert other_setting(of(7), of(255), "temporal") == ("ignore_index", 7, 255)


def test_the_void_id_is_no_setting_of_probabilities_without_labels() -> None:
    def of(void: int) -> Report:
        own = report("divergence", {})
        own.inputs |= {"ignore_index": void, "labels": None}
        return own

    assert other_setting(of(7), of(255), "divergence") is None
