"""Probabilities of logits, and of one foreground class."""

from __future__ import annotations

import numpy as np

from uqeval.arrays import Array


def softmax(logits: Array) -> Array:
    """Return probabilities [sample, class, y, x] of logits, float32 (float64 for float64).

    The order of the sum is that of the classes. `numpy.sum` chooses another order where the classes
    of a pixel are neighbours in memory: in stores with the classes last, and in items of one pixel.
    """
    p: Array = logits.astype(np.float64 if logits.dtype == np.float64 else np.float32, order="C")
    p -= p.max(axis=1, keepdims=True)
    np.exp(p, out=p)
    total = p[:, :1].copy()
    for c in range(1, p.shape[1]):
        total += p[:, c : c + 1]
    p /= total
    return p


def sigmoid(logits: Array) -> Array:
    """Return foreground probabilities in float32 (float64 for float64) of logits of one class."""
    wide: Array = logits.astype(np.float64 if logits.dtype == np.float64 else np.float32)
    with np.errstate(over="ignore"):  # exp(-x) may be infinite, which gives 0
        p: Array = 1.0 / (1.0 + np.exp(-wide))
    return p


def foreground(p: Array) -> Array:
    """Return probabilities [sample, 2, y, x] of background and foreground from the foreground's."""
    wide: Array = p.astype(np.float64 if p.dtype == np.float64 else np.float32)
    return np.concatenate([1.0 - wide, wide], axis=1, dtype=wide.dtype)
