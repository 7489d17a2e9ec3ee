"""Isotonic regression against scikit-learn, vector scaling against SciPy; what cannot be fitted.

The scores after are those of oracles in `test_metric_law.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import naive_calibration as naive
import numpy as np
import pytest
import scenes

import uqeval
from uqeval.engine.options import RunOptions
from uqeval.errors import UsageError
from uqeval.inputs import InputOptions, open_inputs
from uqeval.metrics.recalibration import pooled
from uqeval.usecases.evaluate import run as run_evaluation

ONLY = {"temperature": False, "adaptive": False}


def drawn(seed: int, items: int = 3, classes: int = 4, size: int = 24) -> Any:
    """Probabilities [item, class, y, x], and labels drawn from others: scaled, with biases."""
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(items, classes, size, size))
    bias = np.linspace(-0.5, 0.5, classes)[:, None, None]
    weight = np.linspace(0.5, 1.5, classes)[:, None, None]

    def softmax(logits: Any) -> Any:
        e = np.exp(logits - logits.max(axis=1, keepdims=True))
        return (e / e.sum(axis=1, keepdims=True)).astype("f4")

    probs = softmax(z)
    u = rng.random((items, 1, size, size))
    truth = softmax(weight * np.log(probs) + bias).astype(float)
    label = np.minimum((truth.cumsum(axis=1) < u).sum(axis=1), classes - 1).astype("u1")
    label[:, :2] = 255
    return probs[:, None], label


def evaluated(probs: Any, label: Any, *parts: str, **options: Any) -> dict[str, Any]:
    chosen = ONLY | dict.fromkeys(parts, True) | options
    report = uqeval.evaluate(probs, label, {"calibration": chosen})
    return report.results["calibration"]  # type: ignore[no-any-return]


def test_isotonic_as_scikit_learn_fits_it() -> None:
    probs, label = drawn(1)
    found = evaluated(probs, label, "isotonic")["isotonic"]
    p, y = naive.flatten(probs[:, 0], label)
    conf, hit = naive.top(p, y)
    function = naive.isotonic(conf, hit)
    curve = found["curve"]
    expected = function(np.array(curve["confidence"]))
    np.testing.assert_allclose(curve["calibrated"], expected, rtol=0, atol=1e-9)
    assert found["pixels"] == y.size and found["steps"] == len(set(curve["calibrated"]))
    # Not rounded to bins, it is nearly the same: a bin is 2^-13 wide.
    from sklearn.isotonic import IsotonicRegression

    plain = IsotonicRegression(out_of_bounds="clip").fit(conf, hit)
    assert abs(plain.predict(conf) - function(conf)).mean() < 0.01
    assert found["ece"] < 1e-6  # of the items that it is fitted on


def test_pooled_violators_by_hand() -> None:
    """Equal shares are one step; empty bins have no knots."""
    knots = pooled([2, 0, 2, 4, 1], [1, 0, 0, 1, 1])
    assert (knots.places, knots.values) == ([0, 3, 4], [0.25, 0.25, 1.0])
    assert pooled([1, 1], [1, 1]).values == [1.0, 1.0] and pooled([1, 1], [1, 1]).steps == 1
    assert pooled([0, 0], [0, 0]).places == []


@pytest.mark.parametrize("classes", [2, 5])
def test_vector_scaling_as_scipy_fits_it(classes: int) -> None:
    probs, label = drawn(2, classes=classes)
    found = evaluated(probs, label, "vector")["vector"]
    p, y = naive.flatten(probs[:, 0], label)
    weights, biases = naive.vector(p, y)
    q = naive.scaled(p, weights, biases)
    assert found["nll"] == pytest.approx(naive.nll(q[y, np.arange(y.size)]), rel=1e-9)
    np.testing.assert_allclose(found["weights"], weights, atol=2e-4)
    np.testing.assert_allclose(found["biases"], biases, atol=2e-4)
    assert sum(found["biases"]) == pytest.approx(0, abs=1e-9)
    own = naive.scaled(p, found["weights"], found["biases"])
    assert naive.nll(own[y, np.arange(y.size)]) <= naive.nll(q[y, np.arange(y.size)]) + 1e-10


def test_known_weights_and_biases() -> None:
    probs, label = drawn(3, items=4, size=96)
    found = evaluated(probs, label, "vector")
    assert found["vector"]["weights"] == pytest.approx(np.linspace(0.5, 1.5, 4).tolist(), abs=0.1)
    assert found["vector"]["biases"] == pytest.approx(np.linspace(-0.5, 0.5, 4).tolist(), abs=0.1)
    assert found["vector"]["nll"] < found["nll"] and found["vector"]["brier"] < found["brier"]


def test_the_curvature_of_some_pixels_is_enough() -> None:
    """Large items: the second derivatives are of a part of the pixels, the minimum is exact."""
    probs, label = drawn(4, items=1, size=144)
    found = evaluated(probs, label, "vector")["vector"]
    small = np.ascontiguousarray(probs.reshape(1, 1, 4, 16, -1)).transpose(3, 1, 2, 0, 4)
    parts = evaluated(small, label.reshape(16, 1, -1), "vector")["vector"]
    assert found["nll"] == pytest.approx(parts["nll"], rel=1e-10)
    np.testing.assert_allclose(found["weights"], parts["weights"], atol=1e-5)


def test_held_out_items(tmp_path: Path) -> None:
    probs, label = drawn(5)
    (tmp_path / "fit.txt").write_text("0\n2\n")
    own = {"fit_on": str(tmp_path / "fit.txt")}
    report = uqeval.evaluate(
        probs, label, {"calibration": ONLY | own | {"isotonic": True, "vector": True}}
    )
    record = report.results["calibration"]
    alone = evaluated(probs[[0, 2]], label[[0, 2]], "isotonic", "vector")
    before = evaluated(probs[1:2], label[1:2])
    for name in ("isotonic", "vector"):
        held = record[name]["held_out"]
        assert held["items"] == 1
        for score in ("ece", "mce", "brier", "nll"):
            assert held["before"][score] == pytest.approx(before[score], rel=1e-12), score
    assert record["isotonic"]["curve"] == alone["isotonic"]["curve"]
    assert record["vector"]["weights"] == alone["vector"]["weights"]
    assert not any("optimistic" in text for text in report.warnings)
    on_itself = uqeval.evaluate(probs, label, {"calibration": ONLY | {"isotonic": True}})
    assert any("isotonic regression is fitted on the evaluated" in t for t in on_itself.warnings)


@pytest.mark.on_disk
def test_the_same_bits_for_chunks_workers_and_merged_parts(tmp_path: Path) -> None:
    import zarr

    probs, label = drawn(6, items=4)
    chosen = {"calibration": ONLY | {"isotonic": True, "vector": True}}
    whole = uqeval.evaluate(probs, label, chosen, workers=1)
    group = zarr.create_group(str(tmp_path / "p.zarr"))
    for name, values, chunks in (
        ("probs", probs, (1, 1, 3, 10, 7)), ("labels", label, (3, 9, 24))
    ):  # fmt: skip
        array = group.create_array(
            name, shape=values.shape, dtype=values.dtype, chunks=chunks,
            config={"write_empty_chunks": True},
        )  # fmt: skip
        array[...] = values
    cut = uqeval.evaluate(tmp_path / "p.zarr", None, chosen, workers=2)
    assert cut.results == whole.results
    (tmp_path / "fit.txt").write_text("0\n2\n")
    chosen["calibration"]["fit_on"] = str(tmp_path / "fit.txt")
    inputs = open_inputs(str(tmp_path / "p.zarr"), None, InputOptions())
    again = RunOptions(states=str(tmp_path / "s.zip"), resume=True)
    first, resumed = (run_evaluation(inputs, chosen, again) for _ in range(2))
    assert resumed.results == first.results
    assert resumed.timing["items_reused"] == 4


def test_slices_regions_and_intervals() -> None:
    """Fitted on the whole image, evaluated inside a region; intervals from states."""
    probs, label = drawn(7, items=8, size=16)
    report = uqeval.evaluate(
        probs, label, {"calibration": ONLY | {"isotonic": True, "vector": True}}, ci=0.9,
        region="class:1",
    )  # fmt: skip
    inside = report.results["calibration@class:1"]
    record = report.results["calibration"]
    for name in ("isotonic", "vector"):
        assert inside[name]["nll"] > record[name]["nll"]
        bounds = report.intervals[f"calibration.{name}.nll"]
        assert bounds["low"] < record[name]["nll"] < bounds["high"]
    assert inside["vector"]["weights"] == record["vector"]["weights"]


def test_what_cannot_be_fitted(tmp_path: Path) -> None:
    """No labelled pixel, a class without labels, and labels that are always predicted."""
    probs, label = drawn(8, items=2, size=12)
    (tmp_path / "fit.txt").write_text("0\n")
    own = {"fit_on": str(tmp_path / "fit.txt")}
    void = label.copy()
    void[0] = 255
    record = evaluated(probs, void, "isotonic", "vector", **own)
    for name in ("isotonic", "vector"):
        assert record[name]["ece"] is None and "no item that it is" in record[name]["ece_reason"]
    absent = np.where(label == 3, 0, label)
    report = uqeval.evaluate(probs, absent, {"calibration": ONLY | {"vector": True}})
    vector = report.results["calibration"]["vector"]
    assert vector["classes_without_labels"] == [3]
    assert vector["weights"][3] is None and vector["biases"][3] is None
    p, y = naive.flatten(probs[:, 0], absent)
    scaled = naive.scaled(p[:3], *naive.vector(p[:3], y)) * (1 - p[3].astype(float))
    assert vector["nll"] == pytest.approx(naive.nll(scaled[y, np.arange(y.size)]), rel=1e-8)
    assert any(
        "does not change the probabilities of 1 of 4 classes (3)" in text
        for text in report.warnings
    )
    certain = np.where(label == 255, 255, probs[:, 0].argmax(axis=1)).astype("u1")
    record = evaluated(probs, certain, "isotonic", "vector")
    assert record["vector"]["weights"] is None
    assert "still falls as the weights grow" in record["vector"]["nll_reason"]
    assert record["isotonic"]["curve"]["calibrated"] == [1.0, 1.0]
    assert record["isotonic"]["nll"] == 0


def test_few_pixels_are_a_warning() -> None:
    probs, label = drawn(9, items=1, size=12)
    report = uqeval.evaluate(probs, label, {"calibration": ONLY | {"isotonic": True}})
    assert any("is fitted on 120 pixels; with fewer than 1,000" in t for t in report.warnings)


def test_options_without_effect() -> None:
    probs, label = drawn(10, items=1, size=8)
    with pytest.raises(UsageError, match="needs the temperature, isotonic or vector"):
        evaluated(probs, label, fit_on="x.txt")
    many = scenes.softmax(1, 1, 65, 4, 4)[:, None]
    with pytest.raises(UsageError, match=r"vector: .* has 65 classes; expected at most 64"):
        evaluated(many, np.zeros((1, 4, 4), "u1"), "vector")
