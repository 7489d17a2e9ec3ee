"""Ranks of errors and deviations out of core, beside NumPy and uncertainty-toolbox."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.common import Case, Setup, evaluate, of, read_anew

_ITEM = 2048 * 2048


def _make(folder: Path, pixels: int) -> None:
    """mean, std, target [item, y, x]: heavy-tailed errors that the deviation half explains."""
    rng = np.random.default_rng(0)
    size = min(_ITEM, pixels)
    shape = (max(pixels // size, 1), max(size // 1000, 1), min(size, 1000))
    std = rng.gamma(2.0, 0.5, shape).astype(np.float32) + np.float32(0.01)
    target = rng.uniform(2, 80, shape).astype(np.float32)
    noise = rng.standard_t(4, shape).astype(np.float32)
    np.savez(folder / "depth.npz", mean=target + noise * np.sqrt(std), std=std, target=target)
    read_anew(folder / "depth.npz")


def _loaded(path: str) -> list[np.ndarray]:
    data = np.load(path)
    return [data[name].astype(np.float64).ravel() for name in ("mean", "std", "target")]


def _percentiles(path: str) -> None:
    """n-MeRCI as its formula reads: two percentiles of whole arrays in memory."""
    mean, sigma, target = _loaded(path)
    error = np.abs(mean - target)
    factor, most = np.percentile(error / sigma, 95), np.percentile(error, 95)
    (factor * sigma.mean() - error.mean()) / (most - error.mean())


def _evaluating_bdl(path: str) -> None:
    """AUSE as the code of Gustafsson et al. (evaluating_bdl): argsort, and 100 slices of it."""
    mean, sigma, target = _loaded(path)
    error = np.square(mean - target)
    curves = []
    for key in (sigma, error):
        ordered = error[np.argsort(key)]
        kept = [ordered[: int((1 - f) * ordered.size)].mean() for f in np.arange(0, 1, 0.01)]
        curve = np.sqrt(kept)
        curves.append(curve / curve[0])
    np.trapezoid(curves[0] - curves[1], np.arange(0, 1, 0.01))


def _toolbox(path: str) -> None:
    """Miscalibration area of uncertainty-toolbox, 100 levels."""
    import uncertainty_toolbox as uct

    uct.metrics_calibration.miscalibration_area(*_loaded(path), num_bins=100)


def ranks(setup: Setup) -> Iterator[Case]:
    """10⁷ numbers with σ in a .npz; uqeval also has curves and the scores of each item."""
    pixels = setup.size(10_000_000, 2000)
    path = str(setup.make("depth", _make, pixels) / "depth.npz")
    rivals = (
        ("nmerci", "NumPy, two percentiles", _percentiles, ""),
        ("sparsification", "evaluating_bdl's method, AUSE", _evaluating_bdl, ""),
        ("regression", "uncertainty-toolbox, AUCE", _toolbox, "uncertainty_toolbox"),
    )
    for family, title, rival, library in rivals:
        yield Case(f"{family}: {title}", rival, (path,), yardstick=True, needs=library)
        for workers in sorted({1, setup.workers}):
            title = f"{family}: uqeval, {of(workers, 'worker')}"
            yield Case(title, evaluate, (path, None, (family,), workers))
