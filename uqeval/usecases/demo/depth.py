"""Distances along pretended streets, and what a pretend network predicts for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from uqeval.usecases.demo.streets import CLASSES, smooth, street

_FARTHEST = 80.0


def save_depth(path: Path, items: int, size: tuple[int, int], seed: int) -> None:
    """`mean`, `std`, `target` (metres; NaN in the sky) and `names` of some streets, as an .npz."""
    height, width = size
    y = np.broadcast_to(np.linspace(0, 1, height)[:, None], size)
    mean, std, target = (np.empty((items, *size), np.float32) for _ in range(3))
    for i in range(items):
        rng = np.random.default_rng((seed, 1, i))
        scene = street(rng, *size)
        metres = np.minimum(2.4 / np.maximum(y - 0.42, 0.02), _FARTHEST)
        for kind in map(CLASSES.index, ("building", "tree", "car", "person", "sign")):
            is_kind = scene == kind  # what stands upright is as far away as its foot
            if is_kind.any():
                metres[is_kind] = np.minimum(2.4 / max(y[is_kind].max() - 0.42, 0.03), _FARTHEST)
        spread = 0.02 * metres * np.exp(0.8 * smooth(rng, height, width, 12))
        mean[i] = np.maximum(metres + spread * rng.standard_t(4, size), 0.5)
        std[i] = 0.8 * spread * np.exp(0.3 * smooth(rng, height, width, 8))  # a bit over-confident
        target[i] = np.where(scene == CLASSES.index("sky"), np.nan, metres)
    names = np.array([f"street_{i:03d}" for i in range(items)])
    np.savez(path, mean=mean, std=std, target=target, names=names)
