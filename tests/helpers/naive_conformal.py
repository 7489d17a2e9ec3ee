"""Plain, slow oracles for conformal prediction, from definitions alone. Nothing of uqeval is
imported. A score is larger for a class that conforms less; a set has the scores up to a threshold.
Scores of classes are less 1, to have all their digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

Score = Callable[[Sequence[Any], int], list[float]]


def uniform(p: Sequence[Any], place: int) -> float:
    """A number in [0, 1) made from the bits of a pixel's probabilities, and its place in the
    item."""
    hashed = 1 + place
    for bits in np.array(p, np.float32).view(np.int32).tolist():
        hashed = (hashed * 48271 + bits) % 2147483647
    for _ in range(3):
        hashed = (hashed ^ hashed // 2**15) * 48271 % 2147483647
    return hashed / 2147483647


def lac(p: Sequence[Any], place: int) -> list[float]:
    """1 - p of each class, less 1."""
    return [-float(own) for own in p]


def aps(p: Sequence[Any], place: int) -> list[float]:
    """The mass of all likelier classes, less 1."""
    total = added(p)
    return [-float(np.float32(rest / total)) for rest in rests(tuple(p))]


def aps_randomised(p: Sequence[Any], place: int) -> list[float]:
    """The mass of all likelier classes and a share of that of the class, less 1."""
    u, total = uniform(p, place), added(p)
    shares = [u * float(own) for own in p]
    return [
        -float(np.float32((rest - share) / total))
        for rest, share in zip(rests(tuple(p)), shares, strict=True)
    ]


@cache
def rests(p: tuple[Any, ...]) -> list[float]:
    """Of each class: the sum of the probabilities of all classes that are not likelier; slow for
    many classes, and the same for several settings."""
    return [added([q for q in p if q <= own]) for own in p]


def added(p: Sequence[Any]) -> float:
    """A sum of floats in their order; `sum` compensates its errors in later Pythons."""
    total = 0.0
    for own in p:
        total += float(own)
    return total


SCORES: dict[str, Score] = {
    "lac": lac, "aps": aps, "aps-randomised": aps_randomised,
}  # fmt: skip


def threshold(items: Sequence[Sequence[float]], alpha: str) -> float:
    """The smallest score q with (Σ_i share of the scores of item i above q + 1)/(n + 1) ≤ α."""
    items = [own for own in items if len(own)]
    for q in sorted({score for own in items for score in own}):
        losses = [Fraction(sum(score > q for score in own), len(own)) for own in items]
        if (sum(losses) + 1) / (len(items) + 1) <= Fraction(alpha):
            return q
    raise AssertionError("too few items")


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """The distribution of the coverage of images."""
    return {
        "mean": float(np.mean(values)), "std": float(np.std(values)), "least": min(values),
        "most": max(values),
        **{name: float(np.percentile(values, p)) for name, p in
           (("p05", 5), ("p25", 25), ("median", 50), ("p75", 75), ("p95", 95))},
    }  # fmt: skip


def losses_of(hits: Sequence[Sequence[bool]], alpha: str) -> dict[str, Any]:
    """Scores of the images' losses."""
    losses = [Fraction(len(own) - sum(own), len(own)) for own in hits if len(own)]
    above = [loss > Fraction(alpha) for loss in losses]
    return {
        "mean_loss": float(sum(losses) / len(losses)),
        "items_above": sum(above) / len(above),
        "items": percentiles([float(1 - loss) for loss in losses]),
    }


def sets(
    probs: Any, labels: Any, calibrate: Sequence[int], alpha: str, method: str = "lac",
    of_class: int | None = None, void: int = 255,
) -> dict[str, Any]:  # fmt: skip
    """Sets of float32 probabilities [item, class, y, x], evaluated on the items that are not in
    `calibrate`."""
    pixels = [
        [
            (p[:, y, x].tolist(), int(y * label.shape[1] + x), int(label[y, x]))
            for y, x in np.argwhere(label != void)
        ]
        for p, label in zip(probs, labels, strict=True)
    ]
    scores = [[(SCORES[method](p, place), y) for p, place, y in own] for own in pixels]
    of_labels = [[s[y] for s, y in own if of_class in (None, y)] for own in scores]
    q = threshold([of_labels[i] for i in calibrate], alpha)
    rest = [own for i, own in enumerate(scores) if i not in calibrate]
    found = [[(sum(v <= q for v in s), s[y] <= q, y) for s, y in own] for own in rest]
    every = [pixel for own in found for pixel in own]
    rows = []
    for c in range(probs.shape[1]):
        mine = [(size, hit) for size, hit, y in every if y == c]
        rows.append({
            "coverage": sum(hit for _, hit in mine) / len(mine) if mine else None,
            "size": sum(size for size, _ in mine) / len(mine) if mine else None,
            "pixels": len(mine),
        })  # fmt: skip
    hits = [[hit for _, hit, y in own if of_class in (None, y)] for own in found]
    return losses_of(hits, alpha) | {
        "threshold": 1 + q,
        "one_minus_threshold": -q,
        "coverage": sum(hit for _, hit, _ in every) / len(every),
        "size": sum(size for size, _, _ in every) / len(every),
        "singletons": sum(size == 1 for size, _, _ in every) / len(every),
        "empty": sum(size == 0 for size, _, _ in every) / len(every),
        "per_class": rows,
    }


def intervals(
    mean: Any, std: Any, target: Any, calibrate: Sequence[int], alpha: str
) -> dict[str, Any]:
    """Intervals μ ± q·σ of float32 [item, y, x]; targets that are NaN do not count."""
    pixels = []
    for mu, sigma, y in zip(mean, std, target, strict=True):
        known = np.isfinite(y)
        error = np.abs(mu[known].astype("f8") - y[known].astype("f8"))
        own = sigma[known].astype("f8")
        with np.errstate(all="ignore"):
            ratio = np.where(own > 0, error / own, np.where(error > 0, np.inf, 0.0))
        pixels.append(list(zip(ratio.astype("f4").tolist(), own.tolist(), strict=True)))
    q = threshold([[ratio for ratio, _ in pixels[i]] for i in calibrate], alpha)
    rest = [own for i, own in enumerate(pixels) if i not in calibrate]
    every = [pixel for own in rest for pixel in own]
    hits = [[ratio <= q for ratio, _ in own] for own in rest]
    return losses_of(hits, alpha) | {
        "threshold": q,
        "coverage": sum(ratio <= q for ratio, _ in every) / len(every),
        "width": math.fsum(2 * q * sigma for _, sigma in every) / len(every),
    }
