"""Presets of sparsification on ties, for two classes and for more, against the codes' own rules.

The data have ties and confidences of exactly 1. Two of the codes break ties by the order of rows;
their expectation over all orders is the code's value with the mean error of each tie.
"""

from __future__ import annotations

from typing import Any

import naive_ranked as naive
import numpy as np
import pytest

import uqeval

NAMES = ["gustafsson-code", "mono-uncertainty", "torch-uncertainty-0.13"]


def data(classes: int) -> tuple[Any, Any]:
    """Return probabilities [1, class, 24, 25] in sixteenths, some exactly 1, and labels."""
    rng = np.random.default_rng(classes)
    p = np.array([rng.multinomial(16, row) for row in rng.dirichlet(np.full(classes, 0.4), 600)])
    y = np.array([rng.choice(classes, p=row) for row in 0.7 * p / 16 + 0.3 / classes])
    assert (p.max(axis=1) == 16).sum() > 20
    return (p / 16).astype("f4").T.reshape(1, classes, 24, 25), y.reshape(1, 24, 25).astype("u1")


def scores_and_errors(probs: Any, label: Any, error: str) -> tuple[Any, Any]:
    p = np.sort(probs[0].reshape(probs.shape[1], -1).T.astype(float), axis=1)
    entropy = -(p * np.log(np.where(p > 0, p, 1))).sum(axis=1)
    raw, y = probs[0].reshape(probs.shape[1], -1).T.astype(float), label.reshape(-1)
    if error == "zero-one":
        return entropy.astype("f4"), (raw.argmax(axis=1) != y).astype(float)
    return entropy.astype("f4"), ((raw - np.eye(probs.shape[1])[y]) ** 2).sum(axis=1)


def levelled(score: Any, error: Any) -> Any:
    """Return the errors with the mean of their tie in place of each."""
    _, tie, counts = np.unique(score, return_inverse=True, return_counts=True)
    assert counts.max() > 20
    return (np.bincount(tie, weights=error) / counts)[tie]


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("error", ["brier", "zero-one"])
def test_classes(classes: int, error: str) -> None:
    probs, label = data(classes)
    score, errors = scores_and_errors(probs, label, error)
    mean = levelled(score, errors)
    metrics = {"sparsification": {"definition": NAMES, "error": error}}
    found = uqeval.evaluate(probs, label, metrics).results
    by_code, by_mono, by_tu = (
        found["sparsification" + ("" if name == NAMES[0] else f"[definition={name}]")]
        for name in NAMES
    )
    curve, _, _ = naive.gustafsson_code(score, mean, False)
    _, oracle, _ = naive.gustafsson_code(score, errors, False)
    assert by_code["curve"] == pytest.approx(curve, rel=1e-6)
    assert by_code["oracle"] == pytest.approx(oracle, rel=1e-6)
    area = np.trapezoid(np.subtract(curve, oracle), np.arange(0, 1, 0.01))
    assert by_code["ause"] == pytest.approx(area, rel=1e-6)
    ause, aurg = naive.mono_uncertainty(score, errors, False)
    assert (by_mono["ause"], by_mono["aurg"]) == pytest.approx((ause, aurg), rel=1e-6)
    # Of levelled errors the model's own order is an oracle's, so that the areas are one difference.
    expected = naive.torch_uncertainty_0_13(score, mean) + oracle_gain(mean, errors)
    assert abs(by_tu["ause"] - expected) <= by_tu["ause_bound"] + 1e-6
    assert by_tu["ause_bound"] < 1e-3


def oracle_gain(mean: Any, errors: Any) -> float:
    """Return how much the oracle of the errors adds to the AUSE over that of their means."""
    areas = []
    for values in (mean, errors):
        ordered = np.sort(values)
        retained = (np.cumsum(ordered) / np.arange(1, len(values) + 1))[::-1] / values.mean()
        areas.append(np.trapezoid(retained, x=np.arange(len(values)) / len(values)))
    return float(areas[0] - areas[1])


@pytest.mark.parametrize("name", ["gustafsson-code", "torch-uncertainty-0.13"])
def test_ties_are_the_mean_over_orders_of_rows(name: str) -> None:
    probs, label = data(2)
    score, errors = scores_and_errors(probs, label, "brier")
    code = {
        "gustafsson-code": lambda s, e: naive.gustafsson_code(s, e, False)[2],
        "torch-uncertainty-0.13": naive.torch_uncertainty_0_13,
    }[name]
    rng = np.random.default_rng(0)
    orders = [rng.permutation(len(score)) for _ in range(60)]
    values = [code(score[order], errors[order]) for order in orders]
    metrics = {"sparsification": {"definition": name, "error": "brier"}}
    ause = uqeval.evaluate(probs, label, metrics).results["sparsification"]["ause"]
    assert np.ptp(values) > 1e-3
    assert abs(ause - np.mean(values)) < 4 * np.std(values) / np.sqrt(len(values))
