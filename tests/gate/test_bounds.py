"""Limits on scores that are not of the whole set, and on counts: they have ranges, too."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import refused

from uqeval.config import load_rules
from uqeval.gate.bounds import bounds_of
from uqeval.gate.senseless import refuse_senseless
from uqeval.glossary import families
from uqeval.records.addresses import Address

SENSELESS = {
    "calibration.ece_debiased: {max: 5}": "are at most 1. For 5 %, write max: 0.05.",
    "calibration.temperature.held_out.after.ece: {max: 5}": "from 0 to 1. For 5 %, write max: 0.05",
    "calibration.temperature.held_out.after.ece: {max_drop: 0.01}": "Write max_rise: 0.01",
    "calibration.isotonic.held_out.before.nll: {min: 0}": "are at least 0",
    "conformal.items.p25: {min: 95}": "For 95 %, write min: 0.95.",
    "conformal.items.median: {max_rise: 0.1}": "Write max_drop: 0.1",
    "regression.by_depth.0.rmse: {max: -1}": "max: -1 cannot hold",
    "regression.ence_debiased: {max_drop: 0.1}": "Write max_rise: 0.1",
    "nmerci.by_depth.0.nmerci: {max_drop: 0.1}": "Write max_rise: 0.1",
    "nmerci.by_depth_mean.nmerci: {max_drop: 0.1}": "Write max_rise: 0.1",
    "segmentation.pixels: {min: -1}": "min: -1 cannot fail",
    "segmentation.per_class.road.pixels: {max: -1}": "max: -1 cannot hold",
    "nmerci.by_depth.0.pixels: {min: 0}": "min: 0 cannot fail",
    "segmentation.per_class.held_out.iou: {max: 5}": "For 5 %, write max: 0.05.",
}
VALID = (
    "calibration.ece_debiased: {max: 0.05}", "calibration.ece_debiased: {min: -0.1, max: 0.1}",
    "calibration.temperature.held_out.after.ece: {max: 0.1, max_rise: 0.01}",
    "calibration.temperature.value: {min: 0.5, max: 2}", "conformal.items.std: {max: 5}",
    "nmerci.by_depth.0.nmerci: {max_rise: 0.1}", "nmerci.by_depth.0.lower: {min: 0}",
    "segmentation.pixels: {min: 1000, max_drop: 10, max_rise: 10}", "pavpu.window: {max: 4}",
    "segmentation.per_class.pixels.iou: {min: 0.5}",
    "segmentation.per_class.by_depth.iou: {min: 1}",
    "failure.auroc_bound: {max: 0.001}", "pavpu.uncertainty_threshold: {min: 0}",
)  # fmt: skip


def _check(folder: Path, rule: str) -> None:
    (folder / "rules.yaml").write_text(rule)
    refuse_senseless(load_rules(folder / "rules.yaml"))


@pytest.mark.parametrize("rule", SENSELESS)
def test_a_senseless_limit_is_refused(rule: str, tmp_path: Path) -> None:
    refused(lambda: _check(tmp_path, rule), SENSELESS[rule])


@pytest.mark.parametrize("rule", VALID)
def test_a_limit_that_some_values_break(rule: str, tmp_path: Path) -> None:
    _check(tmp_path, rule)


def test_a_class_may_be_called_like_a_field() -> None:
    metrics = {metric.id: metric.record() for metric in families()["pavpu"].metrics}
    plain, odd = (
        bounds_of(metrics, Address.parse(f"pavpu.per_class.{name}.surplus"))
        for name in ("road", "by_depth")
    )
    assert plain == odd and plain["range"] == [-1.0, 1.0]
