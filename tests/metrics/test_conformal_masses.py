"""Masses of likelier classes: of certain networks, of sums that are not 1, of equal pixels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import naive
import naive_conformal
import numpy as np
import pytest
from changed_reports import add, differences, read

import uqeval
from uqeval.inputs.opening import open_inputs
from uqeval.inputs.options import InputOptions
from uqeval.usecases.reduce import reduce
from uqeval.usecases.verify.verifying import verify

ITEMS = 40
NAMES = [f"{i:02}" for i in range(ITEMS)]
CALIBRATE = range(20)
SCORES = ("coverage", "size", "singletons", "empty", "mean_loss", "items_above")


@pytest.fixture
def fit_on(tmp_path: Path) -> str:
    path = tmp_path / "some.txt"
    path.write_text("\n".join(NAMES[i] for i in CALIBRATE))
    return str(path)


def data(deviation: float) -> tuple[Any, Any]:
    """Probabilities of logits with a standard deviation, and labels of which 30 % are random."""
    rng = np.random.default_rng(4)
    z = rng.normal(size=(ITEMS, 8, 6, 7)) * deviation
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p = (p / p.sum(axis=1, keepdims=True)).astype("f4")
    y = np.where(rng.random((ITEMS, 6, 7)) < 0.3, rng.integers(0, 8, (ITEMS, 6, 7)), p.argmax(1))
    return p, y.astype("u1")


def evaluate(p: Any, y: Any, fit_on: str, **options: Any) -> Any:
    conformal = {"conformal": {"fit_on": fit_on, **options}}
    return uqeval.evaluate(p, y, conformal, names=NAMES, workers=1)


@pytest.mark.parametrize("deviation", [12, 20])
@pytest.mark.parametrize("method", ["lac", "aps", "aps-randomised"])
def test_sets_of_certain_networks(fit_on: str, deviation: float, method: str) -> None:
    """Masses that float32 rounds to 1 have an order: not all classes are in all sets."""
    p, y = data(deviation)
    found = evaluate(p, y, fit_on, method=method).results["conformal"]
    expected = naive_conformal.sets(p, y, CALIBRATE, "0.1", method)
    assert found["threshold"] == expected["threshold"] > 1 - 1e-9
    assert found["one_minus_threshold"] == expected["one_minus_threshold"] > 0
    for name in SCORES:
        assert found[name] == pytest.approx(expected[name], abs=1e-14), name
    assert found["size"] < 7 and found["mean_loss"] > 0.03


@pytest.mark.parametrize("method", ["aps", "aps-randomised"])
def test_masses_are_shares_of_the_sum_of_a_pixel(fit_on: str, method: str) -> None:
    """Sums of float16 are not quite 1; the likeliest class has a mass of 0 all the same."""
    p, y = data(2)
    halves = p.astype("f2")
    maps = [naive.maps(own[None], label, 255) for own, label in zip(halves, y, strict=True)]
    mean = np.stack([own["mean_probs"] for own in maps]).astype("f4")
    assert abs(mean.sum(axis=1) - 1).max() > 1e-4
    for alpha in ("0.1", "0.4"):
        found = evaluate(halves, y, fit_on, alpha=float(alpha), method=method).results["conformal"]
        expected = naive_conformal.sets(mean, y, CALIBRATE, alpha, method)
        assert found["one_minus_threshold"] == expected["one_minus_threshold"]
        assert found["size"] == pytest.approx(expected["size"], abs=1e-14)
        assert method != "aps" or found["empty"] == 0


def test_pixels_with_equal_probabilities_have_random_numbers_of_their_own(fit_on: str) -> None:
    """One-hot predictions: a class does not enter or leave the sets at all pixels at once."""
    rng = np.random.default_rng(0)
    predicted = rng.integers(0, 3, (ITEMS, 12, 14))
    y = np.where(rng.random(predicted.shape) < 0.05, (predicted + 1) % 3, predicted).astype("u1")
    p = np.eye(3, dtype="f4")[predicted].transpose(0, 3, 1, 2)
    found = evaluate(p, y, fit_on, alpha=0.3, method="aps-randomised").results["conformal"]
    for row in found["per_class"]:
        assert 0.6 < row["coverage"] < 0.8, row
    expected = naive_conformal.sets(p, y, CALIBRATE, "0.3", "aps-randomised")
    assert found["mean_loss"] == pytest.approx(expected["mean_loss"], abs=1e-14)


def test_maps_of_reduce_have_the_same_sets(fit_on: str, tmp_path: Path) -> None:
    p, y = data(12)
    np.savez(tmp_path / "p.npz", probs=p, labels=y, names=NAMES)
    reduce(open_inputs(tmp_path / "p.npz", None, InputOptions()), tmp_path / "maps.zarr")
    options = {"conformal": {"fit_on": fit_on, "method": ["aps", "aps-randomised"]}}
    reports = [
        uqeval.evaluate(tmp_path / name, None, options, workers=1)
        for name in ("p.npz", "maps.zarr")
    ]
    assert reports[0].results == reports[1].results and reports[0].items == reports[1].items


@pytest.mark.parametrize("method", ["lac", "aps"])
def test_scores_of_certain_networks_are_verified(
    method: str, fit_on: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nearly all scores are within 1e-6 of the threshold, but float32 resolves them from it."""
    monkeypatch.chdir(tmp_path)
    p, y = data(12)
    np.savez("p.npz", probs=p, labels=y, names=NAMES)
    options = {"conformal": {"fit_on": fit_on, "method": method}}
    uqeval.evaluate("p.npz", None, options, workers=1).save("r.json")
    found = verify("r.json", everything=True)
    assert found.passed, found.problems()
    for name in ("mean_loss", "size", "coverage", "one_minus_threshold"):
        record = read("r.json")
        add(record["results"], [("conformal", name)])
        assert f"conformal.{name}" in [own.field for own in differences(record)], name
