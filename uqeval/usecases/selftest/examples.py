"""Worked examples and identities of the papers, through the whole evaluation."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

import uqeval
from uqeval.usecases.selftest import synthetic_data
from uqeval.usecases.selftest.record import Checks

#: Mukhoti & Gal 2018, Figure 2: 4×4 pixels, patches of 2×2, thresholds 0.5 and 0.4.
_LABELS = [[1, 2, 5, 7], [6, 4, 3, 3], [10, 9, 5, 0], [8, 6, 4, 4]]
_PREDICTED = [[1, 2, 4, 7], [5, 6, 3, 3], [10, 9, 4, 0], [8, 7, 3, 4]]
_UNCERTAINTY = [
    [0.1, 0.3, 0.6, 0.3], [0.7, 0.6, 0.2, 0.1], [0.2, 0.4, 0.5, 0.3], [0.1, 0.7, 0.6, 0.2],
]  # fmt: skip


def run(checks: Checks, folder: Path) -> None:
    """Add the checks of this group."""
    checks.run("Figure 2", lambda: _figure_2(checks))
    checks.run("PAvPU", lambda: _pavpu_identities(checks))
    checks.run("sparsification", lambda: _sparsification(checks))
    checks.run("n-MeRCI", lambda: _nmerci(checks))
    checks.run("AUCE", lambda: _auce(checks))


def _figure_2(checks: Checks) -> None:
    for dtype in ("float32", "float64"):
        store = {
            "predictions": np.array([_PREDICTED], np.uint8),
            "labels": np.array([_LABELS], np.uint8),
            "unsure": np.array([_UNCERTAINTY], dtype),
        }
        families = {"pavpu": {"uncertainty": "unsure", "window": 2, "threshold": 0.4}}
        results = uqeval.evaluate(store, metrics=families, classes=11, workers=1).results["pavpu"]
        name = f"Mukhoti & Gal 2018, Figure 2, {dtype}"
        counts = [results[key] for key in ("n_ac", "n_au", "n_ic", "n_iu")]
        checks.same(f"{name}: counts", counts, [2, 0, 1, 1])
        fields = ("pavpu", "p_accurate_given_certain", "p_uncertain_given_inaccurate")
        checks.same(f"{name}: scores", [results[f] for f in fields], [0.75, 2 / 3, 0.5], 1e-15)
        ties = [results["ties"]["accuracy"], results["ties"]["uncertainty"]]
        checks.same(f"{name}: ties", ties, [2, 1])


def _pavpu_identities(checks: Checks) -> None:
    store = synthetic_data.classes("identities")
    results = uqeval.evaluate(store, metrics=["pavpu"], workers=1).results["pavpu"]
    curve = results["curve"]
    a = results["p_accurate"]
    checks.same(
        "Mukhoti & Gal 2018, eq. 7: PAvPU(0) = share of inaccurate patches, PAvPU(1) = "
        "share of accurate ones",
        [curve["pavpu"][0], curve["pavpu"][-1]],
        [1 - a, a],
        1e-12,
    )
    c = results["p_certain"]
    surplus = (results["pavpu"] - 1 + a + c - 2 * a * c) / math.sqrt(a * (1 - a))
    checks.same("Ma et al. 2024, eq. 17: Surplus from PAvPU", results["surplus"], surplus, 1e-12)
    checks.same(
        "Ma et al. 2024: Surplus = 2·std·phi",
        results["surplus"],
        2 * math.sqrt(c * (1 - c)) * results["phi"],
        1e-12,
    )


def _numbers(mean: Any, std: Any, target: Any) -> dict[str, Any]:
    shape = (1, 1, -1)
    maps = {"mean": mean, "std": std, "target": target}
    return {name: np.asarray(values, np.float64).reshape(shape) for name, values in maps.items()}


def _sparsification(checks: Checks) -> None:
    error = synthetic_data.uniform("errors", (1000,)) + 0.01
    zero = np.zeros(1000)
    perfect = uqeval.evaluate(_numbers(error, error, zero), metrics=["sparsification"], workers=1)
    results = perfect.results["sparsification"]
    checks.same("Ilg et al. 2018: AUSE of the oracle is 0", results["ause"], 0.0, 1e-12)
    flat = uqeval.evaluate(_numbers(error, zero + 1, zero), metrics=["sparsification"], workers=1)
    results = flat.results["sparsification"]
    checks.same(
        "one uncertainty everywhere: the curve is flat, ties averaged",
        results["curve"],
        [1.0] * 100,
        1e-12,
    )
    checks.same("one uncertainty everywhere: AURG is 0", results["aurg"], 0.0, 1e-12)
    oracle = np.array(results["oracle"])
    checks.same(
        "one uncertainty everywhere: AUSE is the area over the oracle",
        results["ause"],
        float(np.trapezoid(1 - oracle, dx=0.01)),
        1e-12,
    )


def _nmerci(checks: Checks) -> None:
    error = synthetic_data.uniform("merci", (2000,)) + 0.01
    zero = np.zeros(2000)
    for sigma, expected, description in (
        (zero + 3, 1.0, "a constant σ"),
        (error, 0.0, "σ = |error|"),
    ):
        report = uqeval.evaluate(_numbers(error, sigma, zero), metrics=["nmerci"], workers=1)
        value = report.results["nmerci"]["nmerci"]
        checks.same(f"Moukari et al. 2019: n-MeRCI of {description}", value, expected, 1e-6)


def _auce(checks: Checks) -> None:
    from statistics import NormalDist

    normal = NormalDist()
    # One target in the middle of each of 19,800 equally likely intervals of N(0, 1).
    target = np.array([normal.inv_cdf((i + 0.5) / 19800) for i in range(19800)])
    for sigma, expected, description in (
        (1.0, 0.0, "a calibrated N(0, 1)"), (1e6, 0.49, "σ → ∞"), (1e-9, 0.49, "σ → 0"),
    ):  # fmt: skip
        store = _numbers(np.zeros(19800), np.full(19800, sigma), target)
        report = uqeval.evaluate(store, metrics=["regression"], workers=1)
        value = report.results["regression"]["auce"]
        checks.same(f"Gustafsson et al. 2020: AUCE of {description}", value, expected, 2e-4)
