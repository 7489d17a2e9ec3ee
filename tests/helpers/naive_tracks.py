"""A slow, plain tracker of points: the whole video in memory, every track kept to its end.

The rules are those of the tracker of Sundaram et al. 2010, by number, with their distance transform
of the whole frame. It imports nothing of uqeval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

BINS = [(2, 2), (3, 3), (4, 4), (5, 8), (9, 16), (17, 32), (33, 64), (65, 128), (129, 256),
        (257, 512), (513, 1024), (1025, 10**9)]  # fmt: skip


@dataclass
class Track:
    """Positions (x, y) of one track, the first in frame `start`; `dead` once it has stopped."""

    start: int
    points: list[tuple[float, float]]
    dead: bool = False


@dataclass
class Tracked:
    """All tracks of a video; unreliable pixels and seeds of each pair."""

    tracks: list[Track] = field(default_factory=list)
    unreliable: list[int] = field(default_factory=list)
    seeds: list[int] = field(default_factory=list)


def nearest(position: float) -> int:
    return math.floor(position + 0.5)


def gaussian(image: Any, sigma: float) -> Any:
    """Rows, then columns, out to 4 deviations; the image is mirrored, its border pixel doubled."""
    radius = (round(8 * sigma + 1) | 1) // 2
    weights = [math.exp(-i * i / (2 * sigma * sigma)) for i in range(-radius, radius + 1)]
    weights = [w / sum(weights) for w in weights]
    for axis in (0, 1):
        pad = [(0, 0)] * image.ndim
        pad[axis] = (radius, radius)
        wide = np.pad(image, pad, mode="symmetric")
        n = image.shape[axis]
        image = sum(w * np.take(wide, range(i, i + n), axis) for i, w in enumerate(weights))
    return image


def derivative(image: Any, axis: int) -> Any:
    """Central differences; the image is mirrored."""
    pad = [(0, 0)] * image.ndim
    pad[axis] = (1, 1)
    wide = np.pad(image, pad, mode="symmetric")
    n = image.shape[axis]
    return 0.5 * (np.take(wide, range(2, n + 2), axis) - np.take(wide, range(n), axis))


def least_eigenvalues(rgb: Any) -> Any:
    """The smaller eigenvalue of the structure tensor of every pixel (rules 1 and 3)."""
    image = gaussian(rgb.astype(float), 0.8)
    ix, iy = derivative(image, 1), derivative(image, 0)
    xx, xy, yy = (gaussian((a * b).sum(2), 3.0) for a, b in ((ix, ix), (ix, iy), (iy, iy)))
    found = np.zeros(xx.shape)
    for y, x in np.ndindex(*found.shape):
        found[y, x] = np.linalg.eigvalsh([[xx[y, x], xy[y, x]], [xy[y, x], yy[y, x]]])[0]
    return found


def distance_transform(pixels: list[tuple[int, int]], shape: tuple[int, int]) -> Any:
    """The squared distance of every pixel to the nearest of `pixels` (x, y) (rule 2)."""
    found = np.full(shape, math.inf)
    y, x = np.indices(shape)
    for px, py in pixels:
        found = np.minimum(found, (x - px) ** 2 + (y - py) ** 2)
    return found


def unknown(w: Any) -> bool:
    return any(math.isnan(v) or abs(v) > 1e9 for v in w)


def is_unreliable(p: tuple[int, int], forward: Any, backward: Any, limits: Any) -> bool:
    """Rule 5 at the pixel p = (x, y)."""
    height, width = forward.shape[:2]
    x, y = p
    u, v = (float(c) for c in forward[y, x])
    if unknown((u, v)):
        return True
    left, top = math.floor(x + u), math.floor(y + v)
    if left < 0 or left + 1 >= width or top < 0 or top + 1 >= height:
        return True
    a, b = x + u - left, y + v - top
    corners = backward[top : top + 2, left : left + 2].astype(float)
    if any(unknown(w) for w in corners.reshape(4, 2)):
        return True
    weights = ((1 - b) * (1 - a), (1 - b) * a, b * (1 - a), b * a)
    bu, bv = (sum(w * c for w, c in zip(weights, corners[..., k].ravel(), strict=True))
              for k in (0, 1))  # fmt: skip
    apart = (u + bu) ** 2 + (v + bv) ** 2
    if apart >= limits[0] * (u * u + v * v + bu * bu + bv * bv) + limits[1]:
        return True
    steep = 0.0
    for c in (0, 1):
        for x0, x1, y0, y1 in ((x - 1, x + 1, y, y), (x, x, y - 1, y + 1)):
            low = float(forward[max(y0, 0), max(x0, 0), c])
            high = float(forward[min(y1, height - 1), min(x1, width - 1), c])
            if unknown((low, high)):
                return True
            steep += (0.5 * (high - low)) ** 2
    return steep > limits[2] * (u * u + v * v) + limits[3]


def track(
    images: Any, forward: Any, backward: Any, step: int = 8, structure: bool = True,
    limits: tuple[float, float, float, float] = (0.01, 0.5, 0.01, 0.002),
) -> Tracked:  # fmt: skip
    """All tracks through frames [t, y, x, channel] by flows [t, y, x, (u, v)] of their pairs."""
    found = Tracked()
    height, width = forward.shape[1:3]
    for t in range(len(forward)):
        live = [k for k in found.tracks if not k.dead]
        at = [(max(math.floor(k.points[-1][0]), 0), max(math.floor(k.points[-1][1]), 0))
              for k in live]  # fmt: skip
        squared = distance_transform(at, (height, width))
        if structure:
            least = least_eigenvalues(images[t])
        seeds = []
        for ay in range(4, height - 4, step):
            for ax in range(4, width - 4, step):
                if squared[ay, ax] < step * step:
                    continue
                if structure:
                    d = math.exp(-0.1 * min(ax, ay, width - ax, height - ay))
                    if least[ay, ax] < least.mean() * (0.1 + d) or least[ay, ax] < 1.0 * (1 + d):
                        continue
                seeds.append(Track(t, [(float(ax), float(ay))]))
        lost = np.zeros((height, width), bool)
        for y, x in np.ndindex(height, width):
            lost[y, x] = is_unreliable((x, y), forward[t], backward[t], limits)
        for k in live + seeds:
            x, y = (nearest(v) for v in k.points[-1])
            if lost[y, x]:
                k.dead = True
                continue
            new = tuple(p + float(w) for p, w in zip(k.points[-1], forward[t, y, x], strict=True))
            if not (0 <= nearest(new[0]) < width and 0 <= nearest(new[1]) < height):
                k.dead = True
                continue
            k.points.append(new)  # type: ignore[arg-type]
        found.tracks += [k for k in seeds if len(k.points) > 1]
        found.unreliable.append(int(lost.sum()))
        found.seeds.append(len(seeds))
    return found


def counts(
    tracked: Tracked, ids: Any, classes: int, void: int, min_length: int = 2
) -> list[dict[str, Any]]:
    """Of each pair, what one model's ids [t, y, x] add; tracks count where they end."""
    pairs = len(ids) - 1
    found: list[dict[str, Any]] = [
        {
            "tracks": [0] * classes, "consistent": [0] * classes, "points": [0],
            "lengths": [0] * len(BINS), "dropped": [0], "alive": [0], "changed": [0],
            "unreliable": [tracked.unreliable[t]], "pixels": [ids[t].size],
            "seeds": [tracked.seeds[t]],
        }
        for t in range(pairs)
    ]  # fmt: skip
    for k in tracked.tracks:
        label = [int(ids[k.start + i, nearest(y), nearest(x)])
                 for i, (x, y) in enumerate(k.points)]  # fmt: skip
        for i in range(1, len(label)):
            if void not in label[: i + 1]:
                found[k.start + i - 1]["alive"][0] += 1
                found[k.start + i - 1]["changed"][0] += label[i] != label[i - 1]
        row = found[min(k.start + len(label) - 1, pairs - 1)]
        if len(label) < min_length:
            continue
        if void in label:
            row["dropped"][0] += 1
            continue
        row["tracks"][label[0]] += 1
        row["consistent"][label[0]] += len(set(label)) == 1
        row["points"][0] += len(label)
        row["lengths"][[a <= len(label) <= b for a, b in BINS].index(True)] += 1
    return found
