"""A short film along a pretended street, and what a pretend network predicts for its frames."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from uqeval.usecases.demo.streets import CLASSES, smooth, street

#: Pixels that the camera moves from frame to frame.
_STEP = 3
_COLOURS = np.array(
    [(120, 170, 220), (150, 120, 100), (90, 90, 95), (170, 160, 160), (60, 120, 60), (60, 60, 160),
     (190, 60, 70), (220, 200, 60)], np.float32,
)  # fmt: skip


def save_film(folder: Path, frames: int, size: tuple[int, int], seed: int) -> None:
    """`frames/`, `predictions/` and `labels/` of a camera that moves sideways."""
    from PIL import Image

    height, width = size
    rng = np.random.default_rng((seed, 2))
    scene_width = width + _STEP * frames
    scene = street(rng, height, scene_width)
    texture = 14 * np.stack([smooth(rng, height, scene_width, 3) for _ in range(3)], axis=-1)
    image = np.clip(_COLOURS[scene] + texture, 0, 255).astype(np.uint8)
    for kind in ("frames", "predictions", "labels"):
        (folder / kind).mkdir(parents=True)
    for t in range(frames):
        view = slice(t * _STEP, t * _STEP + width)
        labels = scene[:, view]
        predicted = labels.copy()
        wrong = smooth(rng, height, width, 10) > 1.3  # in other places in every frame
        predicted[wrong] = (labels[wrong] + 1) % len(CLASSES)
        name = f"street_{t:03d}.png"
        Image.fromarray(np.ascontiguousarray(image[:, view])).save(folder / "frames" / name)
        Image.fromarray(predicted).save(folder / "predictions" / name)
        Image.fromarray(np.ascontiguousarray(labels)).save(folder / "labels" / name)
