"""Estimates of the calibration error with less bias, against uncertainty-calibration and oracles.

The data have ties, confidences of exactly 1, and void pixels.
"""

from __future__ import annotations

from typing import Any

import naive_calibration as naive
import numpy as np
import pytest
from calibration import lower_bound_scaling_top_ce
from calibration.utils import get_equal_bins

import uqeval
from uqeval.metrics import calibration_estimators as estimators
from uqeval.metrics.calibration_scores import Binned

NAMES = list(estimators.PUBLISHED)


def data(classes: int, ties: bool, n: int = 640) -> tuple[Any, Any, Any, Any]:
    """Return probabilities [2, class, y, x] and labels with void; of other pixels p and y."""
    rng = np.random.default_rng(classes)
    p = rng.dirichlet(np.full(classes, 0.4), n)
    if ties:
        p = np.array([rng.multinomial(16, row) for row in p]) / 16
    p = p.astype("f4")
    y = np.array([rng.choice(classes, p=row) for row in 0.8 * p.astype(float) / p.sum(
        axis=1, keepdims=True, dtype=float) + 0.2 / classes])  # fmt: skip
    label = y.astype("u1")
    label[::7] = 255
    probs = p.reshape(2, 16, -1, classes).transpose(0, 3, 1, 2)
    known = label != 255
    return probs, label.reshape(2, 16, -1), p[known].astype(float), y[known]


def evaluated(probs: Any, label: Any, **options: Any) -> dict[str, Any]:
    options = {"temperature": False, "definition": ["paper", *NAMES]} | options
    return uqeval.evaluate(probs, label, {"calibration": options}).results


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("ties", [False, True])
def test_presets_against_the_package_and_the_sweep(classes: int, ties: bool) -> None:
    probs, label, p, y = data(classes, ties)
    conf, hit = p.max(axis=1), p.argmax(axis=1) == y
    if ties:
        assert (conf == 1).sum() > 10
    found = evaluated(probs, label)

    l2 = found["calibration[kumar-l2]"]["kumar_l2"]
    assert l2 == pytest.approx(lower_bound_scaling_top_ce(p, y, p=2), rel=1e-9)
    l1 = found["calibration[kumar-l1]"]["kumar_l1"]
    edges = get_equal_bins(conf.tolist(), num_bins=15)
    assert l1 == pytest.approx(naive.kumar_l1(conf, hit, edges), rel=1e-5)
    if not ties:  # with ties the package refuses its own empty bins
        assert l1 == pytest.approx(lower_bound_scaling_top_ce(p, y, p=1), abs=2e-3)

    swept = found["calibration[roelofs-sweep]"]
    expected = naive.sweep(conf.astype("f4"), hit)
    assert (swept["sweep_l1"], swept["sweep_l2"]) == pytest.approx(expected[:2], rel=1e-9)
    assert swept["sweep_bins"] == expected[2]

    plain = found["calibration"]
    assert not {"kumar_l2", "kumar_l1", "sweep_l1"} & plain.keys()
    for name in NAMES:
        beside = found[f"calibration[{name}]"]
        assert {k: beside[k] for k in plain} == plain


def test_other_bins_and_no_adaptive() -> None:
    probs, label, p, y = data(5, False)
    found = evaluated(
        probs, label, definition="paper", estimator="kumar-l2", bins=8, adaptive=False
    )
    expected = lower_bound_scaling_top_ce(p, y, p=2, num_bins=8)
    assert found["calibration"]["kumar_l2"] == pytest.approx(expected, rel=1e-9)
    assert found["calibration"]["adaptive_ece"] is None


def test_undefined() -> None:
    counts = np.array([[1, 4], [0, 0], [2, 4]]), np.array([[1, 2], [0, 0], [1, 2]])
    sets = Binned(*counts, np.array([[0.5, 2.0], [0.0, 0.0], [1.0, 2.0]]))
    undefined = {"kumar_l1": [True, True, False]}
    for metric in estimators.METRICS:
        expected = undefined.get(metric.field, [False, True, False])
        assert np.isnan(metric.formula(sets)).tolist() == expected, metric.field
    assert estimators.kumar_l2(sets)[[0, 2]].tolist() == [0.0, 0.0]


def test_sweep_stops_at_its_most_bins_and_at_one() -> None:
    """Without errors accuracy never falls; where the uncertain half is right it falls at once."""
    state = {"pixels": np.ones((1, 4096), "i8"), "errors": np.zeros((1, 4096), "i8")}
    assert estimators.sweep(state) == estimators.MOST_SWEPT
    state["errors"][0, :2048] = 1  # the least uncertain ones
    assert estimators.sweep(state) == 1


@pytest.mark.parametrize("apart", [True, False])
def test_the_report_says_where_the_bins_of_the_sweep_are_not_exact(apart: bool) -> None:
    """Confidences that are closer than a bin of the histogram stay together in it."""
    rng = np.random.default_rng(5)
    unsure = np.geomspace(0.02, 0.4, 900) if apart else 0.3 - 2.5e-7 * np.arange(900)
    conf = (1 - rng.permutation(unsure)).astype("f4")
    hit = rng.random(900) < 0.7
    probs = np.stack([conf, 1 - conf]).reshape(1, 1, 2, 30, 30)
    options = {"temperature": False, "estimator": "roelofs-sweep"}
    report = uqeval.evaluate(
        probs, (~hit).astype("u1").reshape(1, 30, 30), {"calibration": options}
    )
    together = report.numerics["calibration"]["together_in_sweep"]
    swept = report.results["calibration"]["sweep_bins"]
    assert (together == 0, swept == naive.sweep(conf, hit)[2]) == (apart, apart)


def test_intervals() -> None:
    probs, label, _, _ = data(2, False)
    probs, label = (np.concatenate([a] * 4) for a in (probs, label))
    metrics = {"calibration": {"temperature": False, "definition": NAMES}}
    whole = uqeval.evaluate(probs, label, metrics, ci=0.95, draws=200)
    for field in ("calibration.kumar_l2", "calibration[roelofs-sweep].sweep_l1"):
        own = whole.intervals[field]
        assert own["method"] == "expanded" and own["low"] <= own["high"]
    assert "calibration.kumar_l2" in whole.metrics
