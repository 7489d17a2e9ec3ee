"""Exact ranks out of core: n-MeRCI and AUSE against what a script would run, in one run.

    python benchmarks/ranks.py [--pixels 1e6 1e7 1e8]

Means, deviations and targets of N pixels in one `.npz`, in items of 4 million. Every way is a
process of its own, reads the same file, and reports its own peak memory. Measured is a call within
that process, the file opened anew: the first call, which imports, compiles and fills the page
cache, is not counted.

Two rivals: what a script needs for the one number, and NumPy with all that a report says, which
beside it are the curve over α and each item's own numbers. `reading` is uqeval's reader alone,
whose every number is added up, on one thread: what a single pass cannot be faster than. CPU seconds
are the least of all runs; on a machine that does other work, compare these.
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
from common import apart, measure_cpu, read_anew

ITEM = (2048, 2048)


def numpy_nmerci(folder: str) -> None:
    """n-MeRCI as its formula reads: two percentiles of whole arrays in memory."""
    data = np.load(f"{folder}/depth.npz")
    error = np.abs(data["mean"].astype(np.float64) - data["target"]).ravel()
    sigma = data["std"].astype(np.float64).ravel()
    factor, most = np.percentile(error / sigma, 95), np.percentile(error, 95)
    (factor * sigma.mean() - error.mean()) / (most - error.mean())


def numpy_report(folder: str) -> None:
    """All that a report of n-MeRCI says: α = 1 … 100, the trimmed MAE, and each item's own."""
    data = np.load(f"{folder}/depth.npz")
    error = np.abs(data["mean"].astype(np.float64) - data["target"])
    sigma = data["std"].astype(np.float64)
    for e, s in [(error, sigma), *zip(error, sigma, strict=True)]:
        alphas = np.arange(1, 101) if e is error else [95]
        factors, most = np.percentile(e / s, alphas), np.percentile(e, alphas)
        mae = e.mean()
        (factors * s.mean() - mae) / (most - mae)
        e[e <= most[-6 if e is error else 0]].mean()


def argsort_ause(folder: str) -> None:
    """AUSE as the reference code of Gustafsson et al. does it: argsort, and 100 slices of it."""
    data = np.load(f"{folder}/depth.npz")
    error = np.square(data["mean"].astype(np.float64) - data["target"]).ravel()
    _ause(error, data["std"].astype(np.float64).ravel())


def argsort_report(folder: str) -> None:
    """All that a report of AUSE says: that of the set, and each item's own."""
    argsort_ause(folder)
    data = np.load(f"{folder}/depth.npz")
    for mean, std, target in zip(data["mean"], data["std"], data["target"], strict=True):
        error = np.square(mean.astype(np.float64) - target).ravel()
        _ause(error, std.astype(np.float64).ravel())


def _ause(error: np.ndarray, sigma: np.ndarray) -> None:
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


def reading(folder: str) -> None:
    """Every number of the file, by uqeval's own reader."""
    from uqeval.stores.numpy_array import open_npz

    arrays = open_npz(f"{folder}/depth.npz").values()
    for array in arrays:
        array.anywhere = True
        for item in range(array.shape[0]):
            for y in range(0, array.shape[1], array.chunks[1]):
                rows = slice(y, y + array.chunks[1])
                array.read((slice(item, item + 1), rows, slice(0, array.shape[2]))).sum()


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
        apart(make, folder, pixels)
        read_anew(folder / "depth.npz")
        repeats = 5 if pixels < 10**8 else 1
        rivals: list[tuple[str, list[tuple[str, Any]]]] = [
            ("nmerci", [("numpy.percentile, twice", numpy_nmerci)]),
            ("sparsification", [("argsort, as the reference code", argsort_ause)]),
            ("regression", []),
        ]
        if pixels <= 10**7:
            rivals[0][1].append(("NumPy, all that the report says", numpy_report))
            rivals[1][1].append(("argsort, all that the report says", argsort_report))
            if importlib.util.find_spec("uncertainty_toolbox"):
                rivals[2][1].append(("uncertainty-toolbox, AUCE alone", toolbox_auce))
        print(f"\n{pixels:.0e} pixels")
        read = told("reading", measure_cpu(reading, str(folder), repeats=repeats))
        for family, ways in rivals:
            print(family)
            costs = [
                told(name, measure_cpu(way, str(folder), repeats=repeats)) for name, way in ways
            ]
            for workers in (1, 2):
                cost = measure_cpu(ours, str(folder), family, workers, repeats=repeats)
                told(f"uqeval, {workers} threads", cost, read, *costs)


Cost = tuple[float, float, float]


def told(name: str, cost: Cost, read: Cost | None = None, *rivals: Cost) -> Cost:
    """Print a cost, how many readings it is, and how many times faster than each rival."""
    seconds, peak, cpu = cost
    line = f"  {name:<36} {seconds:8.3f} s {cpu:8.3f} s CPU {peak:6.0f} MB peak"
    if read:
        line += f"   {cpu / read[2]:5.1f} readings"
    for rival in rivals:
        line += f" {rival[0] / seconds:6.1f}x ({rival[2] / cpu:.1f}x CPU)"
    print(line, flush=True)
    return cost


if __name__ == "__main__":
    main()
