"""A coverage at a risk that rests on a few wrong pixels has no interval, and no difference has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import uqeval
from uqeval.records.addresses import Address
from uqeval.records.report import Report
from uqeval.records.resampling import NoInterval
from uqeval.statistics.from_states import FromStates

ITEMS, SIDE, CLASSES = 12, 16, 3


def evaluated(folder: Path, name: str, errors: float) -> Report:
    """A report of items whose pixels are wrong with a probability of errors · (1 - confidence)²."""
    rng = np.random.default_rng(len(name))
    probs = rng.dirichlet((6, 1, 1), (ITEMS, 1, SIDE, SIDE)).transpose(0, 1, 4, 2, 3)
    labels = probs[:, 0].argmax(1)
    wrong = rng.random(labels.shape) < errors * (1 - probs[:, 0].max(1)) ** 2
    labels = np.where(wrong, (labels + 1) % CLASSES, labels).astype(np.uint8)
    report = uqeval.evaluate(
        probs.astype(np.float32), labels, {"failure": {}}, ci=0.95,
        states=folder / f"{name}.states.zip",
    )  # fmt: skip
    report.save(folder / f"{name}.json")
    return report


@pytest.mark.parametrize("errors", [0.5, 1.5, 10.0])
def test_intervals(tmp_path: Path, errors: float) -> None:
    report = evaluated(tmp_path, "a", errors)
    results: Any = report.results["failure"]
    for risk in ("1", "5"):
        wrong = results["coverage_at_risk"][risk] * ITEMS * SIDE**2 * int(risk) / 100
        record = report.intervals[f"failure.coverage_at_risk.{risk}"]
        if wrong < 5:
            assert record["low"] is None
            assert f"rests on {wrong:.2g} wrong pixels" in record["reason"]
        else:
            assert record["low"] is not None or "same in all draws" in record["reason"]


def test_both_cases_occur(tmp_path: Path) -> None:
    few = evaluated(tmp_path, "a", 10.0).intervals["failure.coverage_at_risk.1"]
    many = evaluated(tmp_path, "b", 0.5).intervals["failure.coverage_at_risk.1"]
    assert few["low"] is None and many["low"] < many["high"]


@pytest.mark.parametrize(("errors", "has_interval"), [(10.0, False), (0.6, True)])
def test_differences(tmp_path: Path, errors: float, has_interval: bool) -> None:
    evaluated(tmp_path, "first", 0.5)
    evaluated(tmp_path, "second", errors)
    paths = [tmp_path / "first.json", tmp_path / "second.json"]
    address = Address.parse("failure.coverage_at_risk.1")
    if has_interval:
        change = FromStates().change(*paths, address, 0.95, False)
        assert change.low < change.high
    else:
        with pytest.raises(NoInterval, match=r"rests on .* wrong pixels; below 5"):
            FromStates().change(*paths, address, 0.95, False)
