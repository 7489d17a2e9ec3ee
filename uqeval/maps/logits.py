"""Probabilities of logits, and of one foreground class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def softmax(logits: NDArray[Any]) -> NDArray[Any]:
    """Return probabilities [sample, class, y, x] of logits, float32 (of float64 float64)."""
    p: NDArray[Any] = logits.astype(np.float64 if logits.dtype == np.float64 else np.float32)
    p -= p.max(axis=1, keepdims=True)
    np.exp(p, out=p)
    p /= p.sum(axis=1, keepdims=True)
    return p


def sigmoid(logits: NDArray[Any]) -> NDArray[Any]:
    """Return foreground probabilities in float32 (float64 for float64) of logits of one class."""
    wide: NDArray[Any] = logits.astype(np.float64 if logits.dtype == np.float64 else np.float32)
    with np.errstate(over="ignore"):  # exp(-x) may be infinite, which gives 0
        p: NDArray[Any] = 1.0 / (1.0 + np.exp(-wide))
    return p


def foreground(p: NDArray[Any]) -> NDArray[Any]:
    """Return two classes [sample, 2, y, x], background first, of one foreground probability."""
    wide: NDArray[Any] = p.astype(np.float64 if p.dtype == np.float64 else np.float32)
    return np.concatenate([1.0 - wide, wide], axis=1, dtype=wide.dtype)
