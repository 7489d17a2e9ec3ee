"""`uqeval verify` of what a report says of metrics, inputs and settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from changed_reports import assert_found, differences, parent_of, read
from command import refused
from saved_runs import stack

import uqeval
from uqeval.errors import StoreError
from uqeval.usecases.verify.verifying import verify


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store and a report that has intervals."""
    folder = tmp_path_factory.mktemp("records")
    probs, labels = stack(9)
    np.savez(folder / "classes.npz", probs=probs, labels=labels)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        metrics: dict[str, Any] = {"pavpu": {}, "calibration": {}, "failure": {},
                                   "sparsification": {}}  # fmt: skip
        report = uqeval.evaluate(
            "classes.npz", metrics=metrics, workers=1, ci=0.9, draws=100,
        )  # fmt: skip
        report.save("report.json")
    return folder


#: By the place of a change in the report: the place and the field of the difference.
CHANGES: dict[tuple[str, ...], tuple[str, str]] = {
    **{("metrics", "pavpu.surplus", name): ("metrics", f"pavpu.surplus.{name}")
       for name in ("direction", "label", "unit", "meaning", "advice", "reference")},
    ("results", "pavpu", "window"): ("the set", "pavpu.window"),
    ("results", "pavpu", "stride"): ("the set", "pavpu.stride"),
    ("results", "pavpu", "uncertainty"): ("the set", "pavpu.uncertainty"),
    ("results", "pavpu", "accuracy_threshold"): ("the set", "pavpu.accuracy_threshold"),
    ("results", "failure", "uncertainty"): ("the set", "failure.uncertainty"),
    ("results", "sparsification", "error"): ("the set", "sparsification.error"),
    ("results", "calibration", "bins"): ("the set", "calibration.bins"),
    ("settings", "intervals", "generator"): ("settings of intervals", "generator"),
    ("settings", "intervals", "units"): ("settings of intervals", "units"),
    ("inputs", "samples"): ("inputs", "samples"),
    ("inputs", "ignore_index"): ("inputs", "ignore_index"),
}  # fmt: skip

#: Words of which a report has only some.
OTHER = {"higher": "lower"}


def test_changed_records_are_found(folder: Path) -> None:
    record = read("report.json")
    for place in CHANGES:
        own, last = parent_of(record, place)
        is_number = isinstance(own[last], int | float)
        own[last] = own[last] + 1 if is_number else OTHER.get(own[last], "changed")
    assert_found(differences(record), CHANGES.values())


def test_records_of_metrics_that_are_missing_are_found(folder: Path) -> None:
    record = read("report.json")
    del record["metrics"]["pavpu.surplus"], record["metrics"]["pavpu.phi"]["direction"]
    record["metrics"]["pavpu.own"] = {"label": "own"}
    assert {str(one).partition(",")[0] for one in differences(record)} >= {
        "metrics: pavpu.surplus is missing", "metrics: pavpu.phi.direction is missing",
        "metrics: pavpu.own is {'label': 'own'}",
    }  # fmt: skip


def test_what_nothing_compares_is_named(folder: Path) -> None:
    (parts, settings) = verify("report.json", everything=True).not_verified[-3:-1]
    for name in ("warnings", "numerics", "timing", "texts of reasons", "inputs.options",
                 "settings.intervals.held_fixed"):  # fmt: skip
        assert name in parts
    assert "metrics" not in parts and "results" not in parts
    assert "segmentation: definition" in settings and "window" not in settings


def test_settings_of_draws_are_named_without_draws(folder: Path) -> None:
    """Debiased values of a calibration are recomputed from draws."""
    for metrics, is_used in ((["segmentation"], False), (["calibration"], True)):
        report = uqeval.evaluate("classes.npz", metrics=metrics, workers=1, ci=0.9, draws=100)
        report.save("one.json")
        left = " ".join(verify("one.json", everything=True).not_verified)
        for name in ("draws", "seed"):
            assert (f"settings.intervals.{name}" in left) != is_used
        for name in ("level", "method", "unit", "units", "generator"):
            assert f"settings.intervals.{name}," not in left


def test_invalid_settings_are_refused(folder: Path) -> None:
    record = read("report.json")
    record["settings"]["pavpu"]["uncertainty_op"] = "<"
    refused(lambda: differences(record), "changed.json: settings.pavpu: uncertainty_op='<'",
            "expected one of >, >=", "evaluate again", error=StoreError)  # fmt: skip
