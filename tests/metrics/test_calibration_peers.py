"""Calibration of a run against published packages, where their rule is one of ours."""

from __future__ import annotations

from typing import Any

import naive_calibration as naive
import pytest
import scenes
from calibration import get_ece
from mapie.metrics.calibration import expected_calibration_error

import uqeval

CLASSES, BINS = 4, 10


@pytest.fixture(scope="module")
def pixels() -> tuple[Any, Any, Any, Any]:
    """One sample and labels of a run; of its counted pixels float64 p [i, class] and labels."""
    probs, label = scenes.softmax(3, 3, CLASSES, 21, 22), scenes.labels(3, 3, 21, 22, classes=4)
    p, y = naive.flatten(probs, label)
    return probs[:, None], label, p.T.astype(float), y


def evaluated(pixels: tuple[Any, Any, Any, Any], **options: Any) -> dict[str, Any]:
    report = uqeval.evaluate(*pixels[:2], {"calibration": {"temperature": False} | options})
    return report.results["calibration"]  # type: ignore[no-any-return]


def test_mapie(pixels: Any) -> None:
    _, _, p, y = pixels
    hit = (p.argmax(axis=1) == y).astype(int)
    found = evaluated(pixels, bins=BINS)
    # Its bins are the edges.
    ece = expected_calibration_error(
        hit, p.max(axis=1), num_bins=BINS + 1, split_strategy="uniform"
    )
    assert found["ece"] == pytest.approx(ece, rel=1e-12)
    default = expected_calibration_error(hit, p.max(axis=1), split_strategy="uniform")
    assert evaluated(pixels, definition="mapie")["ece"] == pytest.approx(default, rel=1e-12)


def test_relplot(pixels: Any) -> None:
    metrics = pytest.importorskip(
        "relplot.metrics",
        reason="relplot is the peer; no extra installs it: it brings pandas and seaborn",
    )
    _, _, p, y = pixels
    hit = (p.argmax(axis=1) == y).astype(float)
    # [lo, hi); without a confidence of 1 its extra bin is empty.
    assert p.max() < 1
    found = evaluated(pixels, bins=8, edge="upper")
    assert found["ece"] == pytest.approx(metrics.binnedECE(p.max(axis=1), hit, nbins=8), rel=1e-12)


def test_uncertainty_calibration(pixels: Any) -> None:
    _, _, p, y = pixels
    for bins in (15, BINS):
        # Bins (lo, hi], the top label; its error is the plug-in one to the power 1.
        ece = get_ece(p, y, num_bins=bins)
        assert evaluated(pixels, bins=bins)["ece"] == pytest.approx(ece, rel=1e-9)
