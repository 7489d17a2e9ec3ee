"""A map stored as float16 warns where rounding decides on which side of a threshold patches lie."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import uqeval
from uqeval.tallies._values import half_step

FIGURE2 = json.loads((Path(__file__).parents[1] / "golden" / "figure2.json").read_text())


def warned(path: Path, **settings: Any) -> list[str]:
    report = uqeval.evaluate(path, None, {"pavpu": settings | {"deciles": False}}, classes=11)
    return [text for text in report.warnings if "float16" in text]


def save(path: Path, dtype: str, values: Any, labels: Any, predictions: Any) -> Path:
    np.savez(
        path, entropy=np.array(values, dtype), labels=np.array(labels, "u1"),
        predictions=np.array(predictions, "u1"),
    )  # fmt: skip
    return path


@pytest.mark.parametrize(("dtype", "count"), [("f2", 1), ("f4", 0)])
def test_figure_2(tmp_path: Path, dtype: str, count: int) -> None:
    """Means of patches: 0.425, 0.3, 0.35 and 0.4; the last is on the threshold but for rounding."""
    arrays = ([FIGURE2["uncertainty"]], [FIGURE2["labels"]], [FIGURE2["predictions"]])
    path = save(tmp_path / "m.npz", dtype, *arrays)
    found = warned(path, window=2, threshold="0.4")
    assert len(found) == count
    if count:
        assert "1 of 4 patches" in found[0] and "half a float16 step of 0.4" in found[0]
    assert not warned(path, window=2, threshold="0.375")


@pytest.mark.parametrize("threshold", ["median", "mean", "0.30005", "range:0.5"])
def test_fitted_thresholds_on_crowded_values(tmp_path: Path, threshold: str) -> None:
    values = np.full((1, 8, 8), 0.3)
    values[0, :4, :4], values[0, 4:, 4:] = 0.1, 0.5
    labels = np.arange(64).reshape(1, 8, 8) % 3
    path = save(tmp_path / "m.npz", "f2", values, labels, labels)
    found = warned(path, threshold=threshold)
    assert len(found) == 1 and "2 of 4 patches" in found[0]


def test_few_patches_are_not_worth_it(tmp_path: Path) -> None:
    values = np.linspace(0.1, 0.9, 40 * 40).reshape(1, 40, 40)
    values[0, 0, :3] = 0.55
    labels = np.arange(1600).reshape(1, 40, 40) % 3
    path = save(tmp_path / "m.npz", "f2", values, labels, labels)
    assert not warned(path, window=1, threshold="0.9")
    assert warned(path, window=1, threshold="0.55")  # at least 3 of 1,600


@pytest.mark.parametrize("rule", ["median", "0.3", "mean"])
@pytest.mark.parametrize("operator", [">", ">="])
def test_thresholds_of_each_item(tmp_path: Path, rule: str, operator: str) -> None:
    """Of four patches of the first item two lie at 0.3; of the second, at a number, none."""
    values = np.full((2, 8, 8), 0.3)
    values[:, :4, :4], values[:, 4:, 4:] = 0.1, 0.5
    values[1] *= 2
    labels = np.arange(128).reshape(2, 8, 8) % 3
    predictions = labels.copy()
    predictions[:, 4:] = 0
    settings = {"threshold": rule, "threshold_scope": "item", "uncertainty_op": operator}
    for dtype, count in (("f2", 1), ("f4", 0)):
        found = warned(save(tmp_path / "m.npz", dtype, values, labels, predictions), **settings)
        assert len(found) == count
        if count:
            assert "the threshold of their item" in found[0]
            assert f"{2 if rule == '0.3' else 4} of 8 patches have" in found[0]


@pytest.mark.parametrize("threshold", ["0.3", "0.30005", "mean"])
def test_errors_at_the_threshold_of_failure(tmp_path: Path, threshold: str) -> None:
    values = np.full((1, 8, 8), 0.3)
    values[0, :4, :4], values[0, 4:, 4:] = 0.1, 0.5
    labels = np.arange(64).reshape(1, 8, 8) % 3
    predictions = np.where(np.arange(64).reshape(1, 8, 8) % 2, labels, (labels + 1) % 3)
    for dtype, count in (("f2", 1), ("f4", 0)):
        path = save(tmp_path / "m.npz", dtype, values, labels, predictions)
        for at, near in ((threshold, count), ("0.4", 0)):
            report = uqeval.evaluate(path, None, {"failure": {"threshold": at}}, classes=3)
            found = [text for text in report.warnings if "float16" in text]
            assert len(found) == near
            assert not near or "16 of 32 wrong pixels have" in found[0]


def test_states_hold_which_maps_are_float16(tmp_path: Path) -> None:
    labels = np.arange(64).reshape(1, 8, 8) % 3
    path = save(tmp_path / "m.npz", "f2", labels / 3, labels, labels)
    uqeval.evaluate(path, None, "pavpu", classes=3, states=tmp_path / "r.states.zip")
    assert uqeval.merge([tmp_path / "r.states.zip"]).results["pavpu"]["n_ac"] >= 0


@pytest.mark.parametrize("value", [0.3, 0.4, 1.0, 1.5, 3e-8, 0.0, 1e-5])
def test_half_a_step(value: float) -> None:
    step = float(np.spacing(np.float16(value)))
    assert half_step(value) == step / 2
