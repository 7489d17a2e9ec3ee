"""Make the small synthetic data of the pages about papers: `python docs/papers/make_data.py data`.

Streets (class probabilities of three models, labels, images), depths of three methods and of two
ensembles, and a video of two sequences with two models. `--small` is for a quick try.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import uqeval
from uqeval.usecases.demo.streets import CLASSES, annotate, predict, smooth, street

_COLOURS = np.array(
    [(120, 170, 220), (150, 120, 100), (90, 90, 95), (170, 160, 160), (60, 120, 60), (60, 60, 160),
     (190, 60, 70), (220, 200, 60)], np.float32,
)  # fmt: skip
#: Pixels that the camera moves from frame to frame.
_STEP = 3


def main(home: Path, small: bool = False) -> None:
    """Write everything into a new folder."""
    size, items, samples = ((32, 64), 2, 8) if small else ((144, 288), 6, 8)
    home.mkdir(parents=True)
    streets(home, size, items, samples)
    depths(home, size, items, samples)
    video(home, size, 4 if small else 8)


def image_of(rng: np.random.Generator, scene: Any) -> Any:
    """Return an RGB image [y, x, 3] of the class ids of a street."""
    texture = 14 * np.stack([smooth(rng, *scene.shape, 3) for _ in range(3)], axis=-1)
    return np.clip(_COLOURS[scene] + texture, 0, 255).astype(np.uint8)


def streets(home: Path, size: tuple[int, int], items: int, samples: int) -> None:
    """Write `mc.zarr`, `ensemble.zarr`, `deterministic.zarr`, `labels/` and `images/`."""
    names = [f"street_{i:03d}" for i in range(items)]
    for folder in ("labels", "images"):
        (home / folder).mkdir()
    counts = {"mc": samples, "ensemble": samples, "deterministic": 1}
    writers = {
        model: uqeval.PredictionWriter(
            home / f"{model}.zarr", names=names, samples=count, classes=len(CLASSES), size=size,
            class_names=CLASSES,
        )
        for model, count in counts.items()
    }  # fmt: skip
    for i, name in enumerate(names):
        rng = np.random.default_rng((7, i))
        scene = street(rng, *size)
        Image.fromarray(annotate(rng, scene)).save(home / "labels" / f"{name}.png")
        Image.fromarray(image_of(rng, scene)).save(home / "images" / f"{name}.png")
        mc = predict(np.random.default_rng((8, i)), scene, samples)
        ensemble = predict(np.random.default_rng((9, i)), scene, samples).astype(np.float32)
        sharper = ensemble**1.4
        stacks = {"mc": mc, "ensemble": sharper / sharper.sum(axis=1, keepdims=True)}
        stacks["deterministic"] = mc[:1]
        for model, stack in stacks.items():
            writers[model].add(name, stack.astype(np.float16))
    for writer in writers.values():
        writer.close()


def depths(home: Path, size: tuple[int, int], items: int, members: int) -> None:
    """Write `multi_epochs.npz`, `bagging.npz`, `learned_error.npz` (mean and σ), and the members
    `depth_ensemble.npz` and `depth_dropout.npz`."""
    rng = np.random.default_rng(11)
    y = np.linspace(0, 1, size[0])[:, None]
    ground = np.minimum(2.4 / np.maximum(y - 0.42, 0.02), 80.0)
    shape = (items, members, *size)
    target, spread = np.empty((items, *size)), np.empty((items, *size))
    for i in range(items):
        scene = street(np.random.default_rng((7, i)), *size)
        metres = np.broadcast_to(ground, size).copy()
        for kind in map(CLASSES.index, ("building", "tree", "car", "person", "sign")):
            own = scene == kind
            if own.any():
                foot = np.broadcast_to(y, size)[own].max()
                metres[own] = np.minimum(2.4 / max(foot - 0.42, 0.03), 80.0)
        target[i] = np.where(scene == CLASSES.index("sky"), np.nan, metres)
        spread[i] = 0.03 * metres * np.exp(0.9 * smooth(rng, *size, 24))
    common = spread * rng.standard_t(4, (items, *size))
    noise = {name: rng.normal(size=shape) for name in ("ensemble", "dropout")}
    # Members of an ensemble differ; passes of one dropout network share most of their error.
    for name, shared in (("ensemble", 0.45), ("dropout", 0.9)):
        errors = shared * common[:, None] + (1 - shared**2) ** 0.5 * spread[:, None] * noise[name]
        mean = target[:, None] + np.where(np.isnan(target[:, None]), 0, errors)
        std = 0.5 * spread[:, None] * np.exp(0.3 * rng.normal(size=shape))
        _save(home / f"depth_{name}.npz", np.nan_to_num(mean, nan=1.0), std, target)
    mean = np.nan_to_num(target + common, nan=1.0)
    errors = np.abs(common)
    sigmas = {
        "multi_epochs": 0.5 * errors + 0.3 * spread,
        "bagging": spread * np.exp(0.4 * rng.normal(size=spread.shape)),
        "learned_error": 0.02 * np.nan_to_num(target, nan=1.0) ** 0.2
        * np.exp(1.5 * np.stack([smooth(rng, *size, 8) for _ in range(items)])),
    }  # fmt: skip
    for name, sigma in sigmas.items():
        _save(home / f"{name}.npz", mean, sigma, target)


def _save(path: Path, mean: Any, std: Any, target: Any) -> None:
    names = np.array([f"street_{i:03d}" for i in range(len(target))])
    arrays = {"mean": mean, "std": std, "target": target}
    np.savez(path, **{name: own.astype(np.float32) for name, own in arrays.items()}, names=names)


def video(home: Path, size: tuple[int, int], frames: int) -> None:
    """Write `film/frames/`, `film/labels/`, and the predictions `icnet/` and `hrnet/`."""
    height, width = size
    folders = [home / "film" / "frames", home / "film" / "labels", home / "icnet", home / "hrnet"]
    for folder in folders:
        folder.mkdir(parents=True)
    for sequence in (0, 1):
        rng = np.random.default_rng((12, sequence))
        scene = street(rng, height, width + _STEP * frames)
        image = image_of(rng, scene)
        # Errors that stay where they are in the scene, and errors of single frames.
        lasting = {limit: smooth(rng, *scene.shape, 12) > limit for limit in (1.5, 1.8)}
        for t in range(frames):
            view = slice(t * _STEP, t * _STEP + width)
            labels = np.ascontiguousarray(scene[:, view])
            name = f"stuttgart{sequence:02d}_{t:03d}.png"
            Image.fromarray(np.ascontiguousarray(image[:, view])).save(folders[0] / name)
            Image.fromarray(labels).save(folders[1] / name)
            for folder, limits in zip(folders[2:], ((1.5, 1.5), (1.8, 2.4)), strict=True):
                wrong = lasting[limits[0]][:, view] | (smooth(rng, *size, 10) > limits[1])
                ids = np.where(wrong, (labels + 1) % len(CLASSES), labels).astype(np.uint8)
                Image.fromarray(ids).save(folder / name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--small", action="store_true")
    given = parser.parse_args()
    main(given.folder, given.small)
