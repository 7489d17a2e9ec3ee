"""Divergences between predictions and those of a reference, recomputed."""

from __future__ import annotations

import numpy as np

from uqeval.arrays import Array
from uqeval.usecases.verify.comparing import Recomputed


def of_classes(p: Array, q: Array, clip: float) -> tuple[Array, Array]:
    """Return KL(p ‖ q) of flat probabilities [class, i], and where it is infinite."""
    a, b = p.astype(np.float64), q.astype(np.float64)
    if clip > 0:
        a, b = (np.maximum(v, clip) for v in (a, b))
        a, b = (v / v.sum(axis=0) for v in (a, b))
    infinite = ((a > 0) & (b <= 0)).any(axis=0)
    is_positive = (a > 0) & (b > 0)
    logs = np.log(np.where(is_positive, a, 1)) - np.log(np.where(is_positive, b, 1))
    return (a * logs).sum(axis=0), np.asarray(infinite)


def of_numbers(
    p: tuple[Array, Array], q: tuple[Array, Array]
) -> tuple[Array, Array]:  # fmt: skip
    """Return KL of Gaussians (mean, σ) of flat pixels, and where it is infinite."""
    (m, s), (n, t) = p, q
    is_defined = (s > 0) & (t > 0)
    are_equal = (s == t) & (m == n)
    with np.errstate(all="ignore"):
        value = np.log(t) - np.log(s) + ((s / t) ** 2 + ((m - n) / t) ** 2) / 2 - 0.5
    # Nor can float64 hold the sum of values near its largest one.
    infinite: Array = np.where(is_defined, ~(value <= 2.0**960), ~are_equal)
    return np.where(is_defined, value, 0.0), infinite


def pooled(value: Array, infinite: Array) -> Recomputed:
    """Return the mean of the finite divergences, the pixels and the share of infinite ones."""
    finite = value[~infinite]
    return Recomputed({
        "kl": float(finite.mean()) if finite.size else None, "pixels": int(value.size),
        "infinite": float(infinite.mean()) if value.size else None,
    })  # fmt: skip
