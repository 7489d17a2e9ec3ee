"""Scores under names that experiment trackers take: fakes that hold them to their rules."""

from __future__ import annotations

import posixpath
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uqeval import Report, UsageError
from uqeval.metrics import METRICS
from uqeval.records import scalars

METRIC = {"unit": "fraction", "direction": "higher", "range": [0, 1], "reference": ""}


def log_metrics(metrics: dict[str, float]) -> None:
    """As `mlflow.log_metrics` checks names and values."""
    for name, value in metrics.items():
        assert re.fullmatch(r"[/\w.\- :]+", name, re.ASCII), name
        assert posixpath.normpath(name) == name
        assert not name.startswith(("/", ".."))
        assert len(name) <= 250
        assert type(value) is float


def log(metrics: dict[str, float], prefix: str = "") -> None:
    """As W&B wants names of metrics that can be sorted and filtered."""
    for name in metrics:
        assert re.fullmatch(r"[_a-zA-Z][_a-zA-Z0-9]*", name.removeprefix(prefix)), name


def report(results: dict[str, Any], *metrics: str) -> Report:
    return Report(
        uqeval_version="0.1.0", inputs={}, settings={}, results=results, items=[],
        metrics=dict.fromkeys(metrics, METRIC),
    )  # fmt: skip


def test_names_and_values() -> None:
    record = {
        "window": 7, "pavpu": 0.5, "surplus": None, "surplus_reason": "no patch", "n_ac": 3,
        "ties": 0, "surplus_peak": {"t": 0.1, "value": 0.25},
        "per_class": [{"class": 0, "name": "traffic light", "pavpu": 1}],
        "curve": {"t": [0.0, 1.0], "pavpu": [0.1, 0.2]},
    }  # fmt: skip
    made = report(
        {
            "pavpu": record,
            "pavpu[mutual_information,window=7]": {"pavpu": 0.75},
            "failure": {"risk_at_coverage": {"80": 0.125, "99.5": 0.0}},
        },
        "pavpu.pavpu", "pavpu.surplus", "pavpu.surplus_peak.value", "failure.risk_at_coverage",
    )  # fmt: skip
    found = made.scalars()
    assert found == {
        "pavpu_pavpu": 0.5, "pavpu_surplus_peak_value": 0.25,
        "pavpu_mutual_information_window_7_pavpu": 0.75,
        "failure_risk_at_coverage_80": 0.125, "failure_risk_at_coverage_99_5": 0.0,
    }  # fmt: skip
    classes = made.scalars(per_class=True)
    assert classes.keys() - found.keys() == {"pavpu_per_class_traffic_light_pavpu"}
    assert classes["pavpu_per_class_traffic_light_pavpu"] == 1.0
    assert made.scalars("val/")["val/pavpu_pavpu"] == 0.5
    for own in (found, classes):
        log_metrics(own)
        log(own)
    log_metrics(made.scalars("val/city: day/"))
    log(made.scalars("val/"), "val/")


@pytest.mark.parametrize("prefix", ["../", "/a", "a//b", "a[b]", "ä/", "a/./", "\n"])
def test_bad_prefix(prefix: str) -> None:
    with pytest.raises(UsageError, match="prefix"):
        report({"pavpu": {"pavpu": 0.5}}, "pavpu.pavpu").scalars(prefix)


@given(names=st.lists(st.text(max_size=300), max_size=6, unique=True))
def test_any_names_of_classes(names: list[str]) -> None:
    rows = [{"class": i, "name": name, "pavpu": float(i)} for i, name in enumerate(names)]
    found = report({"pavpu": {"per_class": rows}}, "pavpu.pavpu").scalars(per_class=True)
    assert sorted(found.values()) == list(map(float, range(len(names))))
    log_metrics(found)
    log(found)


def test_means_over_classes_are_those_that_metrics_declare() -> None:
    declared = {
        (metric.of_class, metric.field) for metric in METRICS
        if metric.of_class not in ("", metric.field)
    }  # fmt: skip
    assert set(scalars._MEANS_OF.items()) <= declared
    assert scalars._MEANS_OF.keys() == {field for field, _ in declared}
