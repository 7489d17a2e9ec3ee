"""Synthetic street images, and the predictions of a synthetic network.

Sky, buildings, road, pavement, trees, cars, people, signs. The network sees them blurred and
confuses similar classes, as real networks do. Its samples differ most where it is wrong.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from uqeval.arrays import Array

CLASSES = ("sky", "building", "road", "pavement", "tree", "car", "person", "sign")
VOID = 255
_SKY, _BUILDING, _ROAD, _PAVEMENT, _TREE, _CAR, _PERSON, _SIGN = range(len(CLASSES))
#: Pairs of classes that the synthetic network confuses.
_CONFUSED = ((_ROAD, _PAVEMENT), (_PERSON, _TREE), (_SIGN, _BUILDING), (_CAR, _ROAD))


def street(rng: np.random.Generator, height: int, width: int) -> NDArray[np.uint8]:
    """Return the class ids [y, x] of a street."""
    y, x = np.mgrid[0:height, 0:width] / height
    horizon = 0.45 + 0.05 * rng.random()
    scene = np.full((height, width), _SKY, np.uint8)
    skyline = 0.12 + 0.25 * np.repeat(rng.random(12), -(-width // 12))[:width]
    scene[(y > skyline) & (y <= horizon + 0.1)] = _BUILDING
    middle, spread = width / height / 2, 0.12 + 1.6 * (y - horizon)
    ground = y > horizon
    scene[ground] = _PAVEMENT
    scene[ground & (np.abs(x - middle) < spread)] = _ROAD

    def blob(kind: int, cy: float, cx: float, ry: float, rx: float, square: bool = False) -> None:
        u, v = np.abs(y - cy) / ry, np.abs(x - cx) / rx
        scene[(np.maximum(u, v) < 1) if square else (u * u + v * v < 1)] = kind

    for _ in range(rng.integers(2, 5)):
        side = rng.random() * middle * 0.7
        cx = side if rng.random() < 0.5 else 2 * middle - side
        blob(_BUILDING, horizon + 0.02, cx, 0.12, 0.015, square=True)  # trunk in front of a wall
        blob(_TREE, horizon - 0.1, cx, 0.1 + 0.08 * rng.random(), 0.1 + 0.05 * rng.random())
    for _ in range(rng.integers(1, 4)):
        depth = rng.random()
        cy, size = horizon + 0.06 + 0.3 * depth, 0.03 + 0.09 * depth
        blob(_CAR, cy, middle + (rng.random() - 0.5) * (0.2 + depth), size, 1.6 * size)
    for _ in range(rng.integers(1, 6)):
        depth = rng.random()
        cx = middle + (0.3 + 0.8 * depth) * (1 if rng.random() < 0.5 else -1)
        blob(_PERSON, horizon + 0.05 + 0.2 * depth, cx, 0.03 + 0.07 * depth, 0.01 + 0.025 * depth)
    for _ in range(rng.integers(1, 4)):
        cx = rng.random() * 2 * middle
        blob(_SIGN, horizon - 0.12, cx, 0.025, 0.025)
        blob(_SIGN, horizon - 0.02, cx, 0.1, 0.004, square=True)
    return scene


def annotate(rng: np.random.Generator, scene: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return labels: the scene, with the bonnet and some borders void, as annotators leave them."""
    label = scene.copy()
    label[-scene.shape[0] // 20 :, scene.shape[1] // 4 : -scene.shape[1] // 4] = VOID
    border = np.zeros(scene.shape, bool)
    border[1:] |= scene[1:] != scene[:-1]
    border[:, 1:] |= scene[:, 1:] != scene[:, :-1]
    label[border & (rng.random(scene.shape) < 0.5)] = VOID
    return label


def predict(
    rng: np.random.Generator, scene: NDArray[np.uint8], samples: int
) -> NDArray[np.float16]:
    """Return float16 probabilities [sample, class, y, x] of a network that sees a blurred scene."""
    height, width = scene.shape
    evidence = np.stack([_blur((scene == c).astype(np.float32), 5) for c in range(len(CLASSES))])
    for a, b in _CONFUSED:
        doubt = np.clip(smooth(rng, height, width, 24) + 0.1, 0, None) * 0.65
        mixed = evidence[a] * doubt
        evidence[b] += mixed
        evidence[a] -= mixed
    logits = 9.0 * evidence + 0.8 * np.stack([smooth(rng, height, width, 16) for _ in CLASSES])
    top = np.sort(logits, axis=0)
    unsure = np.exp(-0.6 * (top[-1] - top[-2]))
    stack = np.empty((samples, len(CLASSES), height, width), np.float16)
    for t in range(samples):
        shake = np.stack([smooth(rng, height, width, 12) for _ in CLASSES])
        p = logits + (0.4 + 2.5 * unsure) * shake
        p -= p.max(axis=0)
        np.exp(p, out=p)
        stack[t] = p / p.sum(axis=0)
    return stack


def smooth(rng: np.random.Generator, height: int, width: int, step: int) -> Array:
    """Return noise of about unit variance that varies over `step` pixels."""
    grid = rng.normal(size=(height // step + 2, width // step + 2)).astype(np.float32)
    y, x = np.arange(height) / step, np.arange(width) / step
    i, j = y.astype(int), x.astype(int)
    v, u = (y - i).astype(np.float32)[:, None], (x - j).astype(np.float32)
    rows = grid[i] * (1 - v) + grid[i + 1] * v
    return rows[:, j] * (1 - u) + rows[:, j + 1] * u


def _blur(image: Array, window: int) -> Array:
    """Return the box mean over `window`×`window` pixels, with repeated edges."""
    for axis in (0, 1):
        pad = [(0, 0), (0, 0)]
        pad[axis] = (window // 2, window // 2)
        padded = np.pad(image, pad, mode="edge")
        image = np.lib.stride_tricks.sliding_window_view(padded, window, axis).mean(-1)
    return image


#: Metres.
_FARTHEST = 80.0


def save_depth(path: Path, items: int, size: tuple[int, int], seed: int) -> None:
    """Write `mean`, `std`, `target` (metres; NaN in the sky) and `names` of some streets as an
    .npz.
    """
    height, width = size
    y = np.broadcast_to(np.linspace(0, 1, height)[:, None], size)
    mean, std, target = (np.empty((items, *size), np.float32) for _ in range(3))
    for i in range(items):
        rng = np.random.default_rng((seed, 1, i))
        scene = street(rng, *size)
        metres = np.minimum(2.4 / np.maximum(y - 0.42, 0.02), _FARTHEST)
        for kind in map(CLASSES.index, ("building", "tree", "car", "person", "sign")):
            is_kind = scene == kind  # upright things are as far away as their lowest pixel
            if is_kind.any():
                metres[is_kind] = np.minimum(2.4 / max(y[is_kind].max() - 0.42, 0.03), _FARTHEST)
        spread = 0.02 * metres * np.exp(0.8 * smooth(rng, height, width, 12))
        mean[i] = np.maximum(metres + spread * rng.standard_t(4, size), 0.5)
        std[i] = 0.8 * spread * np.exp(0.3 * smooth(rng, height, width, 8))  # a bit over-confident
        target[i] = np.where(scene == CLASSES.index("sky"), np.nan, metres)
    names = np.array([f"street_{i:03d}" for i in range(items)])
    np.savez(path, mean=mean, std=std, target=target, names=names)


#: Pixels that the camera moves from frame to frame.
_STEP = 3
_COLOURS = np.array(
    [(120, 170, 220), (150, 120, 100), (90, 90, 95), (170, 160, 160), (60, 120, 60), (60, 60, 160),
     (190, 60, 70), (220, 200, 60)], np.float32,
)  # fmt: skip


def save_film(folder: Path, frames: int, size: tuple[int, int], seed: int) -> None:
    """Write `frames/`, `predictions/` and `labels/` of a camera that moves sideways."""
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
