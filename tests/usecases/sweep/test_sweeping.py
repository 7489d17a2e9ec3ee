"""The sweep: every subset gives what evaluating that subset alone gives."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import statistics
from collections.abc import Iterator
from functools import partialmethod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import uqeval
from uqeval.engine.scratch import Scratch
from uqeval.errors import DataError, UsageError
from uqeval.metrics import FAMILIES, Family
from uqeval.settings import default_of, options_of
from uqeval.usecases.sweep.plan import default_samples, draw
from uqeval.usecases.sweep.sweeping import sweep

T = 5


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(3, 1, 4, 24, 20)) * 2 + rng.normal(size=(3, T, 4, 24, 20))
    p = np.exp(logits)
    probs = (p / p.sum(axis=2, keepdims=True)).astype(np.float16)
    labels = probs.astype(np.float64).mean(axis=1).argmax(axis=1).astype(np.uint8)
    wrong = rng.random(labels.shape) < 0.2
    labels[wrong] = rng.integers(0, 4, int(wrong.sum()))
    labels[rng.random(labels.shape) < 0.05] = 255
    return {"probs": probs, "labels": labels}


@pytest.fixture(scope="module")
def report(data: dict[str, Any]) -> uqeval.Report:
    return sweep(data["probs"], data["labels"], samples=[1, 2, 4, 5], repeats=[5, 3, 2, 7], seed=1)


def test_every_draw_is_the_evaluation_of_its_samples_alone(
    data: dict[str, Any], report: uqeval.Report
) -> None:
    found = report.results["sweep"]
    for i, group in enumerate(report.settings["sweep"]["subsets"]):
        for j, subset in enumerate(group):
            alone = uqeval.evaluate(data["probs"][:, subset], data["labels"]).results
            for family, fields in {
                "segmentation": ("miou", "pixel_accuracy"),
                "pavpu": ("pavpu", "surplus", "n_ac", "n_iu", "uncertainty_threshold"),
            }.items():
                for field in fields:
                    assert found[f"{family}.{field}"]["values"][i][j] == alone[family][field]
            curve = found["pavpu.curve.pavpu"]["values"][i][j]
            assert curve == alone["pavpu"]["curve"]["pavpu"]


def test_maps_that_subsets_share_are_kept_in_files_too(
    data: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The label is one map of all subsets, and adaptive bins take a second pass."""
    monkeypatch.setattr(Scratch, "__init__", partialmethod(_without_memory, Scratch.__init__))
    found = sweep(data["probs"], data["labels"], "calibration", samples=[2], repeats=2)
    ((first, second),) = found.settings["sweep"]["subsets"]
    for j, subset in enumerate((first, second)):
        options = {"calibration": {"temperature": False}}
        alone = uqeval.evaluate(data["probs"][:, subset], data["labels"], options).results
        for field in ("ece", "adaptive_ece", "smooth_ece"):
            values = found.results["sweep"][f"calibration.{field}"]["values"]
            assert values[0][j] == alone["calibration"][field]


def _without_memory(self: Scratch, make: Any, memory: int, *arguments: Any) -> None:
    make(self, 0, *arguments)
    self._enabled = True


def test_mean_and_population_deviation(report: uqeval.Report) -> None:
    found = report.results["sweep"]["pavpu.pavpu"]
    assert found["m"] == [1, 2, 4, 5]
    assert found["repeats"] == [5, 3, 2, 1]  # there is one subset of all samples
    for values, mean, std in zip(found["values"], found["mean"], found["std"], strict=True):
        assert mean == pytest.approx(statistics.fmean(values), rel=1e-12)
        assert std == pytest.approx(statistics.pstdev(values), abs=1e-15)
    assert found["std"][-1] == 0


def test_numerics_of_every_draw(data: dict[str, Any], report: uqeval.Report) -> None:
    found = report.numerics["pavpu"]["ties_accuracy"]
    assert [len(group) for group in found] == [5, 3, 2, 1]
    (every,) = report.settings["sweep"]["subsets"][-1]
    alone = uqeval.evaluate(data["probs"][:, every], data["labels"])
    assert found[-1] == [alone.numerics["pavpu"]["ties_accuracy"]]
    assert report.numerics["segmentation"]["void"] == [
        [alone.numerics["segmentation"]["void"]] * len(group) for group in found
    ]


def test_every_family_can_be_swept(data: dict[str, Any]) -> None:
    """A risk-coverage curve has points of its own in each subset: it has no mean."""
    own = {"probs": data["probs"][:, :3], "labels": data["labels"]}
    families = [
        family.name for family in FAMILIES.values()
        if "classes" in family.kinds and not family.on_request and not family.needs_reference
        and not family.needs_annotators
    ]  # fmt: skip
    found = sweep(own, None, metrics=families, samples=[1, 2], repeats=2).results["sweep"]
    assert {name.partition(".")[0] for name in found} >= {*families, "failure"}
    assert not [name for name in found if name.startswith("failure.curve")]
    assert len(found["failure.auroc"]["values"][1]) == 2


@functools.cache
def of_unlike_samples(kind: str) -> tuple[Any, Any]:
    """Predictions whose last two samples have few different values, and labels."""
    rng, shape = np.random.default_rng(0), (12, 3, 10, 10)
    values = rng.uniform(1, 9, shape)
    values[:, 1:] = 1 + (np.arange(10) > 4)
    if kind == "regression":
        target = values.mean(axis=1) + rng.normal(size=(12, 10, 10))
        return {"mean": values, "std": np.ones(shape), "target": target}, None
    probs = np.stack([values, 10 - values, np.full(shape, 2.0)], axis=2)
    labels = rng.integers(0, 3, (12, 10, 10)).astype(np.uint8)
    return probs / probs.sum(axis=2, keepdims=True), labels


def each_choice(family: Family) -> Iterator[dict[str, Any]]:
    """Yield no options, and each other value of an option with few values."""
    yield {}
    for name, option in options_of(family.settings_type).items():
        default = default_of(family.settings_type, name)
        values = option.choices or ((True, False) if isinstance(default, bool) else ())
        yield from ({name: value} for value in values if value != default)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (family.name, kind) for family in FAMILIES.values() for kind in ("classes", "regression")
        if kind in family.kinds and not family.needs_reference and not family.needs_annotators
    ],
)  # fmt: skip
def test_curves_of_all_draws_have_as_many_points(name: str, kind: str, tmp_path: Path) -> None:
    """Else a mean over the draws ends in a traceback: such curves are `own_points`."""
    fit_on = {"fit_on": str(tmp_path / "fit.txt")} if name == "conformal" else {}
    (tmp_path / "fit.txt").write_text("\n".join(map(str, range(10))), "utf-8")
    swept = 0
    for options in each_choice(FAMILIES[name]):
        metrics = {name: fit_on | options}
        try:
            found = sweep(*of_unlike_samples(kind), metrics, samples=[2], repeats=3)
        except UsageError:  # of other data, or with another option
            continue
        swept += 1
        for text, record in found.results["sweep"].items():
            lengths = {len(v) for v in record["values"][0] if isinstance(v, list)}
            assert len(lengths) < 2, (text, options)
    assert swept


def test_a_requested_part_is_evaluated_or_refused(data: dict[str, Any]) -> None:
    """A sweep has no record of a requested part, so no option may request one with a record of its
    own."""
    left_out = {
        (family.name, part.requested_by)
        for family in FAMILIES.values() for part in family.parts
        if {"classes", "regression"} & {*family.kinds} and part.requested_by
        and part.flat is not True  # a class without it has the property of its instances
    }  # fmt: skip
    assert left_out >= {("pavpu", "deciles"), ("calibration", "isotonic")}
    for name, option in left_out:
        assert FAMILIES[name].on_subsets.fixed.get(option) is False, (name, option)
    given = data["probs"], data["labels"]
    assert sweep(*given, "pavpu", samples=[T]).settings["pavpu"]["deciles"] is False
    with pytest.raises(UsageError, match="cannot evaluate deciles of pavpu; leave it out"):
        sweep(*given, {"pavpu": {"deciles": True}}, samples=[T])


def test_a_part_is_fitted_on_each_subset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bins of σ of equal mass, whose edges are found in two passes."""
    family = FAMILIES["regression"]
    on_subsets = dataclasses.replace(family.on_subsets, fixed={})
    monkeypatch.setitem(FAMILIES, "regression", dataclasses.replace(family, on_subsets=on_subsets))
    values = np.random.default_rng(0).normal(5, 1, (5, 4, 8, 9)).astype(np.float32)
    samples, target = np.moveaxis(values[:4], 0, 1), values[4]
    metrics = {"regression": {"ence": True, "ence_bins": 4}}
    found = sweep({"samples": samples, "target": target}, None, metrics, samples=[3], repeats=2)
    ((first, second),) = found.settings["sweep"]["subsets"]
    for j, subset in enumerate((first, second)):
        own = {"samples": samples[:, subset], "target": target}
        alone = uqeval.evaluate(own, metrics=metrics).results["regression"]
        for field in ("ence", "uce", "cv", "rmse"):
            of_draws = found.results["sweep"][f"regression.{field}"]["values"][0]
            assert of_draws[j] == alone[field]


def test_images_of_equal_confidence_in_some_draws() -> None:
    p = np.full((3, 2, 2, 4, 4), 0.9, np.float32)
    p[:, 1, 0] -= np.array([0, 0.1, 0.2], np.float32)[:, None, None]
    p[:, :, 1] = 1 - p[:, :, 0]
    y = np.zeros((3, 4, 4), np.uint8)
    y[1, 0] = y[2] = 1
    found = sweep(p, y, "image_failure", samples=[1], repeats=2).results["sweep"]
    assert sorted(found["image_failure.auroc"]["values"][0]) == [0.5, 1.0]
    assert not [name for name in found if ".curve" in name]


def test_the_decomposed_brier_score_is_that_of_the_samples_alone(data: dict[str, Any]) -> None:
    found = sweep(data["probs"], data["labels"], "calibration", samples=[2], repeats=1)
    ((subset,),) = found.settings["sweep"]["subsets"]
    options = {"calibration": {"temperature": False}}
    alone = uqeval.evaluate(data["probs"][:, subset], data["labels"], options).results
    parts = alone["calibration"]["brier_decomposition"]
    assert {"reliability", "resolution", "uncertainty", "remainder"} == parts.keys()
    for name, value in parts.items():
        swept = found.results["sweep"][f"calibration.brier_decomposition.{name}"]
        assert swept["values"] == [[value]]


def test_no_temperature_is_fitted(data: dict[str, Any]) -> None:
    given = data["probs"], data["labels"]
    assert not sweep(*given, "calibration", samples=[5]).settings["calibration"]["temperature"]
    with pytest.raises(
        UsageError, match="cannot evaluate temperature of calibration; leave it out"
    ):
        sweep(*given, {"calibration": {"temperature": True}}, samples=[5])


def test_undefined_for_one_sample(data: dict[str, Any]) -> None:
    report = sweep(
        data["probs"], data["labels"], {"pavpu": {"uncertainty": "mutual_information"}},
        samples=[1, 2],
    )  # fmt: skip
    found = report.results["sweep"]["pavpu.pavpu"]
    assert found["mean"][0] is None
    assert found["mean"][1] is not None
    assert "one sample" in found["mean_reason"]
    report.to_json()


@pytest.mark.parametrize("scope", ["set", "item"])
def test_a_curve_that_is_undefined_in_one_draw(scope: str) -> None:
    labels = np.zeros((1, 4, 4), np.uint8)
    probs = np.full((1, 2, 2, 4, 4), 0.2, np.float32)
    probs[:, :, 0] = 0.8
    probs[0, 1, :, 0, 0] = [0.4, 0.6]
    metrics = {"sparsification": {"error": "zero-one", "end": "zero", "scope": scope}}
    found = sweep(probs, labels, metrics, samples=[1]).results["sweep"]
    alone = uqeval.evaluate(probs[:, 1:], labels, metrics=metrics).results["sparsification"]
    for name in ("ause", "curve", "oracle"):
        record = found[f"sparsification.{name}"]
        assert record["values"] == [[None, alone[name]]] and record["mean"] == [None]
        assert record["mean_reason"].startswith("M = 1: the error of all pixels is 0")
    assert found["sparsification.fractions"]["mean"] == [pytest.approx(alone["fractions"])]


def test_a_record_that_is_undefined_in_one_draw() -> None:
    """Its fields are null there, for the reason of the record; the record itself is no score."""
    labels = np.zeros((1, 8, 8), np.uint8)
    labels[..., 4:] = 1
    right = np.where(labels == 0, 0.95, 0.05).astype(np.float32)
    wrong = right.copy()
    wrong[:, :4, :4] = 0.4
    probs = np.stack([np.stack([p, 1 - p], 1) for p in (right, wrong)], 1)
    reason = "all patches are accurate, or none is"
    found = sweep(probs, labels, "pavpu", samples=[1, 2]).results["sweep"]
    alone = uqeval.evaluate(probs[:, 1:], labels, metrics="pavpu").results["pavpu"]
    for field in ("t", "threshold", "value"):
        score = found[f"pavpu.surplus_peak.{field}"]
        assert score["values"] == [[None, alone["surplus_peak"][field]], [None]]
        assert score["mean_reason"] == f"M = 1: {reason}; M = 2: {reason}"
    found = sweep(probs[:, :1], labels, "pavpu", samples=[1]).results["sweep"]
    assert found["pavpu.surplus_peak.value"]["mean_reason"] == f"M = 1: {reason}"
    assert "pavpu.surplus_peak" not in found


def test_rows_for_plotting(report: uqeval.Report) -> None:
    rows = [row for row in report.to_frame() if row["name"] == "pavpu.pavpu"]
    assert [row["m"] for row in rows] == [1] * 5 + [2] * 3 + [4] * 2 + [5]
    points = [r for r in report.to_frame() if r["name"] == "pavpu.curve.t" and r["m"] == 5]
    assert [row["index"] for row in points] == list(range(101))


@pytest.mark.parametrize(
    ("total", "m", "repeats"), [(8, 2, 8), (8, 2, 28), (8, 2, 99), (20, 8, 16)]
)
def test_no_subset_twice(total: int, m: int, repeats: int) -> None:
    (subsets,) = draw(total, [m], [repeats], 0)
    assert len(set(subsets)) == len(subsets) == min(repeats, math.comb(total, m))
    assert set(subsets) <= set(itertools.combinations(range(total), m))
    assert draw(total, [m], [repeats], 0) == [subsets]
    if len(subsets) < math.comb(total, m):
        assert draw(total, [m], [repeats], 1) != [subsets]


def test_default_samples() -> None:
    assert default_samples(1) == [1]
    assert default_samples(8) == [1, 2, 4, 8]
    assert default_samples(20) == [1, 2, 4, 8, 16, 20]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"samples": [6]}, "holds 5 samples"),
        ({"samples": [0]}, "from 1 on"),
        ({"samples": [2, 2]}, "different numbers"),
        ({"samples": [1, 2], "repeats": [1, 2, 3]}, "one for each of the 2"),
        ({"repeats": 0}, "from 1 on"),
        ({"metrics": ["nothing"]}, "expected some of"),
        ({"metrics": ["calibratoin"]}, "did you mean 'calibration'?"),
        ({"metrics": ["ece"]}, "'ece' is a score of calibration"),
        ({"metrics": {"pavpu": {"window": [2, 4]}}}, "one variant"),
    ],
)
def test_what_cannot_be(data: dict[str, Any], options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        sweep(data["probs"], data["labels"], **options)


def test_labels_that_are_void_everywhere(data: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="all labels of 3 items are ignore_index 255"):
        sweep(data["probs"], np.full_like(data["labels"], 255), ["pavpu"], samples=[1])


def test_an_option_that_is_given_twice_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="window of pavpu is given in metrics and in settings"):
        sweep(
            data["probs"], data["labels"], {"pavpu": {"window": 4}},
            settings={"pavpu": {"window": 8}},
        )  # fmt: skip
