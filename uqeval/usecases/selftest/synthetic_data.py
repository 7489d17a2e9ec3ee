"""Small data from seeds, the same on every machine: SHAKE-256 and arithmetic that IEEE rounds."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from uqeval.arrays import Array


def integers(seed: str, shape: tuple[int, ...], below: int) -> Array:
    """Return int64 from 0 to below `below` (at most 65536), independent of NumPy's generators."""
    count = int(np.prod(shape))
    numbers = np.frombuffer(hashlib.shake_256(seed.encode()).digest(2 * count), "<u2")
    return (numbers.astype(np.int64) * below >> 16).reshape(shape)


def uniform(seed: str, shape: tuple[int, ...]) -> Array:
    """Return float64 multiples of 2⁻¹⁶ in (0, 1)."""
    return (integers(seed, shape, 65536) + 0.5) / 65536


def classes(seed: str, items: int = 4, samples: int = 3, classes: int = 5, size: int = 24) -> Any:
    """Return a store of class probabilities with labels: float16 [item, sample, class, y, x].

    Labels are blocks, void (255) in places; the likeliest class is mostly the label.
    """
    coarse = integers(f"{seed} label", (items, size // 4, size // 4), classes)
    labels = coarse.repeat(4, axis=1).repeat(4, axis=2)
    weights = uniform(f"{seed} weights", (items, samples, classes, size, size)) ** 2
    wrong = uniform(f"{seed} error", labels.shape) < 0.1
    wrong |= (uniform(f"{seed} blocks", coarse.shape) < 0.2).repeat(4, axis=1).repeat(4, axis=2)
    predicted = np.where(wrong, (labels + 1) % classes, labels)
    is_predicted = np.arange(classes)[None, None, :, None, None] == predicted[:, None, None]
    weights = weights * 0.6 + is_predicted * (
        0.2 + 2 * uniform(f"{seed} trust", (items, 1, 1, size, size))
    )
    probs = (weights / weights.sum(axis=2, keepdims=True)).astype(np.float16)
    void = uniform(f"{seed} void", labels.shape) < 0.05
    names = [f"item_{i:02d}" for i in range(items)]
    labels = np.where(void, 255, labels).astype(np.uint8)
    return {"probs": probs, "labels": labels, "names": np.array(names)}


def numbers(seed: str, items: int = 4, size: int = 24) -> Any:
    """Return a store of predicted numbers, float32 [item, y, x], with a target that has gaps."""
    shape = (items, size, size)
    target = 5 + 40 * uniform(f"{seed} target", shape)
    std = 0.2 + uniform(f"{seed} std", shape) * target / 10
    # The sum of twelve uniform numbers less six is nearly normal.
    noise = sum(uniform(f"{seed} noise {k}", shape) for k in range(12)) - 6
    mean = target + std * noise
    target = np.where(uniform(f"{seed} gap", shape) < 0.1, np.nan, target)
    stored = {"mean": mean, "std": std, "target": target}
    return {name: values.astype(np.float32) for name, values in stored.items()}


def video(seed: str, frames: int = 5, size: int = 32) -> Any:
    """Return a video of a moving texture: frames, predictions and the exact flow."""
    step = 2
    width = size + step * frames
    texture = integers(f"{seed} texture", (size // 4, width // 4 + 1, 3), 256)
    texture = texture.repeat(4, axis=0).repeat(4, axis=1)[:, :width]
    scene = integers(f"{seed} scene", (size // 8, width // 8 + 1), 4)
    scene = scene.repeat(8, axis=0).repeat(8, axis=1)[:, :width]
    views = [slice(t * step, t * step + size) for t in range(frames)]
    ids = np.stack([scene[:, view] for view in views])
    wrong = uniform(f"{seed} wrong", ids.shape) < 0.06
    flow = np.zeros((frames - 1, size, size, 2), np.float32)
    flow[..., 0] = step
    return {
        "frames": np.stack([texture[:, view] for view in views]).astype(np.uint8),
        "predictions": np.where(wrong, (ids + 1) % 4, ids).astype(np.uint8),
        "flow": flow,
    }
