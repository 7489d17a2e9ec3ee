"""Exact ranks out of core: n-MeRCI and AUSE against what a script would run, in one run.

    python benchmarks/ranks.py [--pixels 1e6 1e7 1e8]

Means, deviations and targets of N pixels in one `.npz`. Every way is a process of its own, reads
the same file, and reports its own peak memory.
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
from common import measure, row

ITEM = (2048, 2048)


def numpy_nmerci(folder: str) -> None:
    """n-MeRCI as its formula reads: two percentiles of whole arrays in memory."""
    data = np.load(f"{folder}/depth.npz")
    error = np.abs(data["mean"].astype(np.float64) - data["target"]).ravel()
    sigma = data["std"].astype(np.float64).ravel()
    factor, most = np.percentile(error / sigma, 95), np.percentile(error, 95)
    (factor * sigma.mean() - error.mean()) / (most - error.mean())


def argsort_ause(folder: str) -> None:
    """AUSE as the reference code of Gustafsson et al. does it: argsort, and 100 slices of it."""
    data = np.load(f"{folder}/depth.npz")
    error = np.square(data["mean"].astype(np.float64) - data["target"]).ravel()
    sigma = data["std"].astype(np.float64).ravel()
    curves = []
    for key in (sigma, error):
        ordered = error[np.argsort(key)]
        kept = [ordered[: int((1 - f) * ordered.size)].mean() for f in np.arange(0, 1, 0.01)]
        curve = np.sqrt(kept)
        curves.append(curve / curve[0])
    np.trapezoid(curves[0] - curves[1], np.arange(0, 1, 0.01))


def toolbox_auce(folder: str) -> None:
    """Miscalibration area of uncertainty-toolbox, 100 levels."""
    import uncertainty_toolbox as uct

    data = np.load(f"{folder}/depth.npz")
    mean, std, target = (data[k].astype(np.float64).ravel() for k in ("mean", "std", "target"))
    uct.metrics_calibration.miscalibration_area(mean, std, target, num_bins=100)


def ours(folder: str, family: str, workers: int) -> None:
    """uqeval, from the files."""
    import uqeval

    uqeval.evaluate(f"{folder}/depth.npz", None, {family: {}}, workers=workers)


def make(folder: Path, pixels: int) -> None:
    """mean, std, target [item, y, x]: heavy-tailed errors that the deviation half knows of."""
    if (folder / "depth.npz").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    size = min(ITEM[0] * ITEM[1], pixels)
    shape = (max(pixels // size, 1), size // 1000, 1000)
    std = rng.gamma(2.0, 0.5, shape).astype(np.float32) + np.float32(0.01)
    target = rng.uniform(2, 80, shape).astype(np.float32)
    noise = rng.standard_t(4, shape).astype(np.float32)
    np.savez(folder / "depth.npz", mean=target + noise * np.sqrt(std), std=std, target=target)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pixels", type=float, nargs="+", default=[1e6, 1e7, 1e8])
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    options = parser.parse_args()
    for pixels in map(int, options.pixels):
        folder = options.folder / f"ranks-{pixels}"
        make(folder, pixels)
        repeats = 3 if pixels < 10**8 else 1
        rivals: list[tuple[str, Any, str]] = [
            ("nmerci", numpy_nmerci, "numpy.percentile"),
            ("sparsification", argsort_ause, "argsort, as the reference code"),
        ]
        if importlib.util.find_spec("uncertainty_toolbox") and pixels <= 10**7:
            rivals.append(("regression", toolbox_auce, "uncertainty-toolbox"))
        for family, rival, name in rivals:
            print(f"\n{family}, {pixels:.0e} pixels")
            base, peak = measure(rival, str(folder), repeats=repeats)
            row(name, base, peak, base, 12 * pixels)
            for workers in (1, 2):
                seconds, peak = measure(ours, str(folder), family, workers, repeats=repeats)
                row(f"uqeval, {workers} threads", seconds, peak, base, 12 * pixels)


if __name__ == "__main__":
    main()
