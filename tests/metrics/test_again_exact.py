"""Families without ranks: scores read off states again have the bits of the run's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scenes
from number_stores import numbers, save
from read_again import Reread, without

N, T, C, H, W = 4, 3, 4, 14, 18


@pytest.fixture(scope="module")
def classes() -> tuple[Any, Any]:
    """Samples that know something of the errors, and labels with void, one item of it alone."""
    truth = scenes.labels(0, N, H, W, classes=C)
    rng = np.random.default_rng(0)
    z = rng.normal(size=(N, T, C, H, W)) + 2 * (truth[:, None, None] == np.arange(C)[:, None, None])
    truth[3] = 255
    p = np.exp(z)
    return (p / p.sum(2, keepdims=True)).astype("f2"), truth


CALIBRATION: list[dict[str, Any]] = [
    {},
    {"definition": "gustafsson-code"},
    {"definition": "torchmetrics", "bins": 1},
    {"temperature": False},
    {"temperature_of": "samples"},
]


#: What the part `smooth_ece` adds to the results of calibration.
SMOOTH = ("smooth_ece", "smooth_ece_bandwidth", "smooth_ece_bound")
#: Fields of parts, and those that are computed from items.
OTHERS = ("temperature", "brier_decomposition", "per_image", *SMOOTH)


@pytest.mark.parametrize("options", CALIBRATION)
def test_calibration(tmp_path: Path, classes: Any, options: dict[str, Any]) -> None:
    run = Reread(tmp_path, *classes, metrics={"calibration": options})
    temperature = "calibration/temperature"
    assert (temperature in run.evaluations) == options.get("temperature", True)
    assert run.scores("calibration") == without(run.results("calibration"), *OTHERS)
    brier = "brier_decomposition"
    assert run.scores(f"calibration/{brier}") == run.results(f"calibration/{brier}")
    smooth, whole = run.scores("calibration/smooth_ece"), run.results("calibration")
    assert smooth == {name: whole[name] for name in SMOOTH}
    if temperature in run.evaluations:
        assert run.scores(temperature) == run.results(temperature)


@pytest.mark.parametrize("items", [[1, 2], [0, 0, 2], [3], [3, 1, 1, 1]])
def test_calibration_of_other_items(tmp_path: Path, classes: Any, items: list[int]) -> None:
    run = Reread(tmp_path, *classes, metrics="calibration")
    found = run.scores("calibration", items)
    if items == [3]:  # void alone, which no run evaluates
        assert found["ece"] is None
        assert found["ece_reason"]
        assert run.scores("calibration/temperature", items)["nll"] is None
        return
    chosen = [values[items] for values in classes]
    (tmp_path / "b").mkdir()
    own = Reread(tmp_path / "b", *chosen, metrics={"calibration": {"temperature": False}})
    expected = without(own.results("calibration"), "adaptive_ece", *OTHERS)
    assert without(found, "adaptive_ece") == expected


def test_the_temperature_is_held_fixed(tmp_path: Path, classes: Any) -> None:
    run = Reread(tmp_path, *classes, metrics="calibration")
    items = [1, 1, 2]
    found = run.scores("calibration/temperature", items)
    value = run.results("calibration/temperature")["value"]
    assert found["value"] == value
    p, truth = (values[items] for values in classes)
    p = np.moveaxis(p.astype("f8").mean(axis=1).astype("f4").astype("f8"), 1, -1) ** (1 / value)
    p /= p.sum(axis=-1, keepdims=True)
    known = truth < 255
    nll = -np.log(p[known][np.arange(known.sum()), truth[known]]).mean()
    assert found["nll"] == pytest.approx(nll, rel=1e-6)


def test_what_was_fitted_may_be_unknown(tmp_path: Path, classes: Any) -> None:
    """Runs that were joined fit each their own numbers: the rest is read all the same."""
    from uqeval.statistics.variants import evaluations_of

    run = Reread(tmp_path, *classes, metrics="calibration")
    run.evaluations = evaluations_of({**run.saved.index, "fitted": {}}, run.saved.path)
    del run.evaluations["segmentation"]
    assert set(run.evaluations) == {"calibration", "calibration/brier_decomposition"}
    whole = without(run.results("calibration"), "adaptive_ece", *OTHERS)
    assert run.scores("calibration") == whole


def test_held_out_items_alone_are_left_out(tmp_path: Path, classes: Any) -> None:
    names = [f"n{i}" for i in range(N)]
    (tmp_path / "fit.txt").write_text("n0\nn1\n")
    run = Reread(tmp_path, *classes, names=names,
                 metrics={"calibration": {"fit_on": tmp_path / "fit.txt"}})  # fmt: skip
    key = "calibration/temperature"
    assert run.scores(key) == without(run.results(key), "held_out")


def test_no_temperature_fits(tmp_path: Path, classes: Any) -> None:
    p = np.zeros((N, C, H, W), "f4")
    p[:, 0] = 1
    run = Reread(tmp_path, p, np.zeros((N, H, W), "u1"), metrics="calibration")
    key = "calibration/temperature"
    assert run.results(key)["value"] is None
    assert run.scores(key) == run.results(key)
    assert run.evaluations[key].tallies() == ()


REGRESSION: list[dict[str, Any]] = [
    {},
    {"definition": "uncertainty-toolbox", "distribution": "laplace"},
    {"definition": "torch-uncertainty-0.13", "proportion": "quantile"},
]


@pytest.mark.parametrize("options", REGRESSION)
def test_regression(tmp_path: Path, options: dict[str, Any]) -> None:
    arrays = numbers(1)
    run = Reread(tmp_path, save(tmp_path / "a.npz", arrays), metrics={"regression": options})
    expected = run.results("regression")
    found = run.scores("regression")
    assert found == expected | {"nmse": found["nmse"]}
    assert found["nmse"] == pytest.approx(expected["nmse"], rel=1e-12)


@pytest.mark.parametrize("items", [[2], [1, 2], [0, 0, 2, 0]])
def test_regression_of_other_items(tmp_path: Path, items: list[int]) -> None:
    arrays = numbers(2)
    arrays["target"] += 1000 * np.arange(3, dtype="f4")[:, None, None]
    run = Reread(tmp_path, save(tmp_path / "a.npz", arrays), metrics="regression")
    (tmp_path / "b").mkdir()
    path = save(tmp_path / "b.npz", {name: values[items] for name, values in arrays.items()})
    expected = Reread(tmp_path / "b", path, metrics="regression").results("regression")
    found = run.scores("regression", items)
    assert found == expected | {"nmse": found["nmse"]}
    assert found["nmse"] == pytest.approx(expected["nmse"], rel=1e-9)


def test_regression_of_nothing(tmp_path: Path) -> None:
    run = Reread(tmp_path, save(tmp_path / "a.npz", numbers(3)), metrics="regression")
    found = run.scores("regression", [])
    assert found["rmse"] is None
    assert found["nmse"] is None
    assert found["auce_reason"]


@pytest.mark.parametrize("clip", [0.0, 1e-3])
def test_divergence(tmp_path: Path, clip: float) -> None:
    p, q = (scenes.softmax(seed, N, 2, C, H, W) for seed in (0, 1))
    q[1, :, 0] = 0
    q[1] /= q[1].sum(axis=1, keepdims=True)
    options = {"metrics": {"divergence": {"clip": clip}}}
    run = Reread(tmp_path, p, None, reference=q, **options)
    assert run.scores("divergence") == run.results("divergence")
    for i, items in enumerate(([1, 2], [3, 3, 1])):
        (tmp_path / str(i)).mkdir()
        own = Reread(tmp_path / str(i), p[items], None, reference=q[items], **options)
        assert run.scores("divergence", items) == own.results("divergence")
