"""Each preset of calibration against its peer, for two classes and for more.

The data have ties, confidences on edges of bins and confidences of exactly 1. scikit-learn, MAPIE
and uncertainty-calibration are test packages. netcal pulls torch, gpytorch and pyro: its formula is
written out here, and held against the package where that is installed. torchmetrics and
torch-uncertainty need torch: `naive_calibration` has their formulas, from their sources.
"""

from __future__ import annotations

from typing import Any

import naive_calibration as naive
import numpy as np
import pytest
from calibration import get_ece
from mapie.metrics.calibration import expected_calibration_error
from sklearn.calibration import calibration_curve

import uqeval
from uqeval.errors import UsageError
from uqeval.metrics.calibration_settings import DEFINITIONS


def data(classes: int) -> tuple[Any, Any, Any, Any]:
    """Return probabilities [1, 1, class, 20, 25] with ties and ones, labels; the same flat."""
    rng = np.random.default_rng(classes)
    p = rng.multinomial(16, rng.dirichlet(np.full(classes, 0.4), 500)[:, :]) / 16  # 16ths: exact
    y = np.array([rng.choice(classes, p=row) for row in 0.7 * p + 0.3 / classes])
    assert (p.max(axis=1) == 1).sum() > 20 and (p.max(axis=1) == 0.5).sum() > 5
    probs = p.T.reshape(1, 1, classes, 20, 25).astype("f4")
    return probs, y.reshape(1, 20, 25).astype("u1"), p, y


def netcal(p: Any, y: Any, bins: int = 10) -> tuple[float, float]:
    """Return ECE and MCE of netcal 1.4: bins [lo, hi), the last closed; of two classes class 1."""
    positive = p.shape[1] == 2
    score = p[:, 1] if positive else p.max(axis=1)
    right = y == 1 if positive else p.argmax(axis=1) == y
    score = np.clip(score, np.finfo(float).eps, 1 - np.finfo(float).eps)
    place = np.minimum(np.searchsorted(np.linspace(0, 1, bins + 1), score, "right") - 1, bins - 1)
    inside = [place == b for b in range(bins)]
    gaps = [abs(score[i].mean() - right[i].mean()) if i.any() else 0.0 for i in inside]
    return float(np.dot(gaps, [i.mean() for i in inside])), max(gaps)


def scikit_learn(p: Any, y: Any) -> float:
    """Return the ECE over the bins of `calibration_curve`; of two classes those of class 1."""
    score = p[:, 1] if p.shape[1] == 2 else p.max(axis=1)
    right = y if p.shape[1] == 2 else p.argmax(axis=1) == y
    accuracy, mean = calibration_curve(right, score, n_bins=5)
    place = np.searchsorted(np.linspace(0, 1, 6)[1:-1], score)
    counts = np.bincount(place, minlength=5)
    return float((counts[counts > 0] * abs(accuracy - mean)).sum() / len(y))


@pytest.mark.parametrize("classes", [2, 4])
def test_presets(classes: int) -> None:
    probs, label, p, y = data(classes)
    conf, hit = p.max(axis=1), p.argmax(axis=1) == y
    found = uqeval.evaluate(
        probs, label, {"calibration": {"definition": list(DEFINITIONS), "temperature": False}}
    ).results
    expected = {
        "calibration": get_ece(p, y, num_bins=15),
        "calibration[gustafsson-code]": naive.gustafsson_ece(conf, hit),
        "calibration[torchmetrics]": naive.torchmetrics_ece(conf, hit)[0],
        "calibration[torch-uncertainty-0.13]": naive.torchmetrics_ece(conf, hit, 10)[0],
        "calibration[scikit-learn]": scikit_learn(p, y),
        "calibration[mapie]": expected_calibration_error(
            hit.astype(int), p, split_strategy="uniform"
        ),
        "calibration[netcal]": netcal(p, y)[0],
    }
    assert {k: v["ece"] for k, v in found.items() if k in expected} == {
        k: pytest.approx(v, rel=1e-6) for k, v in expected.items()
    }
    assert found["calibration[netcal]"]["mce"] == pytest.approx(netcal(p, y)[1], rel=1e-9)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.filterwarnings("ignore")
def test_the_formula_of_netcal_is_that_of_the_package(classes: int) -> None:
    metrics = pytest.importorskip(
        "netcal.metrics",
        reason="netcal is the peer; no extra installs it: it pulls torch, gpytorch and pyro",
    )
    _, _, p, y = data(classes)
    found = metrics.ECE(10).measure(p, y), metrics.MCE(10).measure(p, y)
    assert netcal(p, y) == pytest.approx(found, rel=1e-9)


def test_two_classes_after_scaling() -> None:
    """At T = 1 the scores after scaling are those before, of class 1 too."""
    probs, label, p, y = data(2)
    label[0, 0, :3] = 255
    options = {"definition": "netcal", "temperature_of": ["mean", "samples"]}
    results = uqeval.evaluate(probs, label, {"calibration": options}).results
    for key in ("calibration", "calibration[temperature_of=samples]"):
        after = results[key]["temperature"]
        scaled = p ** (1 / after["value"])
        scaled /= scaled.sum(axis=1, keepdims=True)
        known = label.reshape(-1) != 255
        assert after["ece"] == pytest.approx(netcal(scaled[known], y[known])[0], abs=1e-5)


def test_positive_is_for_two_classes() -> None:
    probs, label, _, _ = data(4)
    with pytest.raises(UsageError, match="binary positive is for two classes"):
        uqeval.evaluate(probs, label, {"calibration": {"binary": "positive"}})
