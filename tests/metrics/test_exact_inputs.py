"""Differences, variances and intervals of float64 numbers far from 0, against plain float64."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import naive_regression as naive
import numpy as np
import pytest
from number_stores import close

import uqeval
from uqeval.statistics.scoring import Scoring
from uqeval.stores.states.saved import SavedStates

SHAPE = (3, 30, 40)
FIELDS = ("pixels", "rmse", "mae", "nmse", "auce", "auce_over", "auce_under", "nll", "crps",
          "sharpness")  # fmt: skip


def far(kind: str, seed: int = 0, **given: Any) -> dict[str, np.ndarray]:
    """Targets of spread 0.01 about 10⁶, errors of 0.005; each item has a mean of its own.

    float32 numbers are so far apart there (0.06) that the float32 store has another scale.
    """
    rng = np.random.default_rng(seed)
    unit = 0.01 if given.get("dtype", "f8") == "f8" else 10.0
    target = 1e6 + unit * (rng.normal(size=SHAPE) + rng.normal(size=(3, 1, 1)))
    std = unit * rng.uniform(0.2, 0.8, SHAPE)
    mean = target + 0.5 * unit * rng.normal(size=SHAPE)
    members = 0.3 * unit * rng.normal(size=(3, 4, *SHAPE[1:]))
    arrays = {"mean": mean, "std": std}
    if kind == "variance":
        arrays = {"mean": mean, "variance": std**2}
    elif kind == "members":
        arrays = {"mean": mean[:, None] + members, "std": np.repeat(std[:, None], 4, axis=1)}
    elif kind == "samples":
        arrays = {"samples": mean[:, None] + members}
    dtype = given.get("dtype", "f8")
    return {name: values.astype(dtype) for name, values in (arrays | {"target": target}).items()}


def joined(arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """μ - y, σ and y of every pixel. μ - y is taken member by member, which loses no digits."""
    y = arrays["target"].astype(float)
    means = arrays.get("samples", arrays.get("mean")).astype(float)
    means = means if means.ndim == 4 else means[:, None]
    spread = np.zeros((1, 1, 1, 1))
    if "std" in arrays:
        spread = arrays["std"].astype(float) ** 2
    elif "variance" in arrays:
        spread = arrays["variance"].astype(float)
    spread = spread if spread.ndim == 4 else spread[..., None, :, :]
    off = means - y[:, None]
    middle = off.mean(axis=1)
    sigma = np.sqrt((spread + (off - middle[:, None]) ** 2).mean(axis=1))
    return middle, sigma, y


def pixels(arrays: dict[str, np.ndarray]) -> list[tuple[float, ...]]:
    off, sigma, y = joined(arrays)
    return list(zip(*(v.ravel().tolist() for v in (y, abs(off), sigma)), strict=True))


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("kind", ["std", "variance", "members", "samples"])
def test_every_field_is_that_of_float64(tmp_path: Path, kind: str, dtype: str) -> None:
    arrays = far(kind, dtype=dtype)
    np.savez(tmp_path / "r.npz", **arrays)
    unit = 0.01 if dtype == "f8" else 10.0
    states = tmp_path / "r.states.zip"
    report = uqeval.evaluate(
        tmp_path / "r.npz", None, {"regression": {}, "nmerci": {"depth_step": unit / 2}},
        states=states, workers=1,
    )  # fmt: skip
    found = pixels(arrays)
    expected = naive.regression(found)
    results = report.results["regression"]
    for field in FIELDS:
        assert close(results[field], expected[field]), field
    assert results["coverage"] == expected["coverage"]
    assert results["calibration"]["observed"] == expected["calibration"]["observed"]
    for level, value in expected["interval_score"].items():
        assert close(results["interval_score"][level], value), level
    for field, value in naive.nmerci(found).items():
        assert close(report.results["nmerci"][field], value), field
    rows = naive.by_depth(found, unit / 2)
    table = report.results["nmerci"]["by_depth"]
    assert [row["pixels"] for row in table] == [row["pixels"] for _, row in rows]
    for row, (_, own) in zip(table, rows, strict=True):
        assert close(row["mae"], own["mae"]) and close(row["mae_trimmed"], own["mae_trimmed"])
        assert close(row["nmerci"], own["nmerci"])
    # Percentiles are of float32 rank keys; all else is as if λ and ε had been sorted in float64.
    off, sigma, _ = (v.ravel() for v in joined(arrays))
    pure = (np.percentile(abs(off) / sigma, 95), np.percentile(abs(off), 95))
    assert report.results["nmerci"]["lambda"] == pytest.approx(pure[0], rel=1e-7)
    assert report.results["nmerci"]["max_alpha"] == pytest.approx(pure[1], rel=1e-7)
    # Slices and merged parts read the variance of the target off saved states.
    again = Scoring(SavedStates(states))
    for items in ([0, 1, 2], [1, 2]):
        part = {name: values[items] for name, values in arrays.items()}
        nmse = naive.regression(pixels(part))["nmse"]
        assert close(again.whole(items)["regression"]["nmse"], nmse), items


def test_divergence_of_far_gaussians(tmp_path: Path) -> None:
    one, other = far("std"), far("members", 1)
    for name, arrays in (("a", one), ("b", other)):
        np.savez(tmp_path / f"{name}.npz", **arrays)
    report = uqeval.evaluate(
        tmp_path / "a.npz", None, ("divergence",), reference=tmp_path / "b.npz", workers=1
    )
    _, t, _ = joined(other)
    middle = (other["mean"] - one["mean"][:, None]).mean(axis=1)
    kl = np.log(t / one["std"]) + (one["std"] ** 2 + middle**2) / (2 * t**2) - 0.5
    assert close(report.results["divergence"]["kl"], math.fsum(kl.ravel()) / kl.size)


def test_a_sweep_of_far_members(tmp_path: Path) -> None:
    arrays = far("samples", 2)
    np.savez(tmp_path / "r.npz", **arrays)
    report = uqeval.sweep(tmp_path / "r.npz", metrics="regression", samples=[2, 4], repeats=1)
    drawn = report.settings["sweep"]["subsets"]
    for place, ((subset,), field) in enumerate(zip(drawn, ("nmse", "nll"), strict=True)):
        own = {"samples": arrays["samples"][:, subset], "target": arrays["target"]}
        value = report.results["sweep"][f"regression.{field}"]["values"][place][0]
        assert close(value, naive.regression(pixels(own))[field])


def test_targets_on_an_edge_belong_to_the_interval_above(tmp_path: Path) -> None:
    target = (0.1 * np.arange(30))[None, None]  # 0.30000000000000004, 0.6000000000000001 …
    target[0, 0, 7], target[0, 0, 8] = 0.7 - 1e-11, 0.8  # within 1e-9 of a step below the edge
    arrays = {"mean": target + 0.05, "std": np.full(target.shape, 0.1), "target": target}
    np.savez(tmp_path / "r.npz", **arrays)
    options = {"nmerci": {"depth_step": 0.1}}
    rows = uqeval.evaluate(tmp_path / "r.npz", None, options).results["nmerci"]["by_depth"]
    assert [row["pixels"] for row in rows] == [1] * 30
    assert [round(row["lower"] * 10) for row in rows] == list(range(30))
