"""Patch counts from maps: NumPy, PyTorch CPU where it is installed, and uqeval, in one run.

    python benchmarks/patches.py [--quick]

One item of 1024×2048 pixels and 19 classes. Each way counts n_ac, n_au, n_ic, n_iu; uqeval's row
also has categories, ties, 101 thresholds of uncertainty and 101 of accuracy in the same pass.
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
from common import cached, measure, row

_LOADED: dict[str, Any] = {}


def _maps(folder: str) -> dict[str, np.ndarray]:
    if not _LOADED:
        for name in ("label", "prediction", "entropy"):
            _LOADED[name] = np.load(f"{folder}/{name}.npy")
    return _LOADED


def with_numpy(folder: str, window: int, stride: int, thresholds: int) -> None:
    """Sliding views and means, float64; one more pass over the patches for each threshold."""
    maps = _maps(folder)
    known = maps["label"] != 255
    right = (maps["prediction"] == maps["label"]) & known
    uncertainty = np.where(known, maps["entropy"], 0).astype(np.float64)

    def sums(values: np.ndarray) -> np.ndarray:
        views = np.lib.stride_tricks.sliding_window_view(values, (window, window))
        return views[::stride, ::stride].sum(axis=(2, 3), dtype=np.float64)

    valid = sums(known)
    with np.errstate(invalid="ignore", divide="ignore"):
        accurate = sums(right) / valid > 0.5
        mean = (sums(uncertainty) / valid).astype(np.float32)
    kept = valid > 0
    for t in np.linspace(0, 2, thresholds):
        uncertain = mean > np.float32(t)
        for a in (accurate, ~accurate):
            for u in (uncertain, ~uncertain):
                (a & u & kept).sum()


def with_torch(folder: str, window: int, stride: int, thresholds: int) -> None:
    """Average pooling in float32, all cores; one more pass over the patches for each threshold."""
    import torch

    maps = _maps(folder)
    known = torch.from_numpy(maps["label"] != 255).float()[None, None]
    right = torch.from_numpy(maps["prediction"] == maps["label"]).float()[None, None] * known
    uncertainty = torch.from_numpy(maps["entropy"])[None, None] * known
    pool = torch.nn.AvgPool2d(window, stride)
    valid = pool(known)
    accurate = pool(right) / valid > 0.5
    mean = pool(uncertainty) / valid
    kept = valid > 0
    for t in np.linspace(0, 2, thresholds):
        uncertain = mean > float(t)
        for a in (accurate, ~accurate):
            for u in (uncertain, ~uncertain):
                (a & u & kept).sum()


def with_uqeval(folder: str, window: int, stride: int) -> None:
    """Everything that `uqeval pavpu` counts of patches, one thread."""
    from uqeval.tallies import PatchCounts, Patches, Uncertainty

    patches = Patches(Uncertainty("entropy"), 19, window, stride)
    PatchCounts(patches, (0.5,), ((0.0, 2.0),)).state_of(_maps(folder))


def make(folder: Path, height: int, width: int) -> None:
    """Maps with structure: smooth uncertainty, errors where it is high."""
    rng = np.random.default_rng(0)
    coarse = rng.random((height // 16, width // 16)).astype(np.float32)
    smooth = np.kron(coarse, np.ones((16, 16), np.float32)) ** 3 * 2
    entropy = smooth * rng.random((height, width), np.float32)
    prediction = np.kron(rng.integers(0, 19, coarse.shape), np.ones((16, 16))).astype(np.uint8)
    wrong = rng.random((height, width)) < entropy / 4
    label = np.where(wrong, rng.integers(0, 19, entropy.shape), prediction).astype(np.uint8)
    label[rng.random(label.shape) < 0.05] = 255
    maps = {"label": label, "prediction": prediction, "entropy": entropy}
    for name, values in maps.items():
        cached(folder, name, lambda values=values: values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    parser.add_argument("--quick", action="store_true", help="a sixteenth of the pixels")
    options = parser.parse_args()
    height, width = (256, 512) if options.quick else (1024, 2048)
    folder = options.folder / f"patches-{height}x{width}"
    make(folder, height, width)
    nbytes = height * width * 6
    for window, stride in ((4, 4), (8, 8), (32, 32), (4, 1), (8, 1), (16, 1), (32, 1)):
        print(f"\nwindow {window}, stride {stride}")
        base = None
        if window * window // (stride * stride) <= 64:
            for thresholds in (1, 101) if stride > 1 else (1,):
                seconds, peak = measure(with_numpy, str(folder), window, stride, thresholds)
                base = base or seconds
                row(f"NumPy, {thresholds} thresholds", seconds, peak, base, nbytes)
                if importlib.util.find_spec("torch"):
                    seconds, peak = measure(with_torch, str(folder), window, stride, thresholds)
                    row(f"PyTorch, {thresholds} thresholds", seconds, peak, base, nbytes)
        seconds, peak = measure(with_uqeval, str(folder), window, stride)
        row("uqeval, 101 + 101 thresholds, one thread", seconds, peak, base or seconds, nbytes)


if __name__ == "__main__":
    main()
