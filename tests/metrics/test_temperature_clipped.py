"""The temperature minimises the NLL that is reported, which is clipped: against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import uqeval


def scene(seed: int, wrong: float) -> tuple[Any, Any]:
    """Samples [1, 3, 3, 40, 50], sure of themselves, and labels; some labels are very unlikely."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 3, (1, 40, 50))
    shown = np.where(rng.random(label.shape) < wrong, (label + 1) % 3, label)
    z = rng.normal(size=(1, 3, 3, 40, 50)) + 6 * (
        shown[:, None, None] == np.arange(3)[:, None, None]
    )
    z *= rng.choice([0.3, 1, 4], (1, 1, 1, 40, 50), p=[0.5, 0.45, 0.05])
    p = np.exp(z - z.max(axis=2, keepdims=True))
    return (p / p.sum(axis=2, keepdims=True)).astype("f4"), label.astype("u1")


def nll(log_t: float, probs: Any, label: Any, of: str, clip: float) -> float:
    p = probs[0].astype(np.float64)
    if of == "mean":
        p = p.mean(axis=0, keepdims=True).astype("f4").astype(float)
    with np.errstate(divide="ignore"):
        q = np.exp(np.log(p) / np.exp(log_t))
    q = (q / q.sum(axis=1, keepdims=True)).mean(axis=0)
    mine = np.take_along_axis(q, label.astype(int), axis=0)
    return float(-np.log(np.maximum(mine, clip)).mean())


@pytest.mark.parametrize("of", ["mean", "samples"])
@pytest.mark.parametrize(("clip", "wrong"), [(2.0**-24, 0.05), (1e-3, 0.05), (1e-4, 0.02)])
def test_the_reported_nll_is_least(of: str, clip: float, wrong: float) -> None:
    probs, label = scene(3, wrong)
    options = {"clip": clip, "temperature_of": of}
    found = uqeval.evaluate(probs, label, {"calibration": options}).results["calibration"]
    after = found["temperature"]
    args = (probs, label, of, clip)
    grid = np.linspace(np.log(1 / 31), np.log(31), 200)
    values = [nll(x, *args) for x in grid]
    best = int(np.argmin(values))
    near = minimize_scalar(
        nll, bounds=(grid[max(best - 1, 0)], grid[min(best + 1, 199)]), args=args,
        method="bounded", options={"xatol": 1e-10},
    )  # fmt: skip
    assert after["nll"] == pytest.approx(nll(np.log(after["value"]), *args), abs=1e-6)
    assert after["nll"] <= min(near.fun, min(values)) + 1e-6


@pytest.mark.parametrize("clip", [2.0**-24, 1e-3])
def test_a_region_of_all_pixels_is_scored_at_the_same_temperature(clip: float) -> None:
    """At the larger clip the first β is tried in vain: some pixels are clipped there."""
    probs, label = scene(3, 0.05)
    options = {"calibration": {"clip": clip}}
    plain = uqeval.evaluate(probs, label, options)
    report = uqeval.evaluate(probs, label, options, region=["box:0:1,0:1"])
    keys = ("calibration", "calibration@box:0:1,0:1")
    whole, region = (report.results[key]["temperature"] for key in keys)
    assert whole == region == plain.results["calibration"]["temperature"]
    # The region is counted at the temperature in the same pass as the whole image.
    assert report.timing["passes"] == plain.timing["passes"]


@pytest.mark.parametrize(
    ("clip", "wrong", "seed"), [(1e-3, 0.05, 0), (1e-3, 0.1, 4), (1e-2, 0.2, 4), (1e-2, 0.2, 5)]
)
def test_a_power_of_two_near_the_unclipped_minimum(clip: float, wrong: float, seed: int) -> None:
    """A few very wrong pixels raise the T of the unclipped NLL, where none of them is clipped. At a
    power of two below they are, and the clipped NLL is lower."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([0.3] * 3, size=(1, 6, 8)).astype("f4")
    label = (p.cumsum(-1) < rng.random((1, 6, 8, 1))).sum(-1).clip(0, 2).astype("u1")
    is_wrong = rng.random(label.shape) < wrong
    label[is_wrong] = rng.integers(0, 3, is_wrong.sum())
    probs = np.ascontiguousarray(np.moveaxis(p, 3, 1))
    found = uqeval.evaluate(probs, label, {"calibration": {"clip": clip}}).results["calibration"]
    after, args = found["temperature"], (probs[:, None], label, "mean", clip)
    assert after["nll"] == pytest.approx(nll(np.log(after["value"]), *args), abs=1e-6)
    assert after["nll"] <= min(nll(k * np.log(2), *args) for k in range(-5, 6)) + 1e-6
