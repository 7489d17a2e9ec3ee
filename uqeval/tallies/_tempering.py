"""Functions that the tallies of tempered probabilities share."""

from __future__ import annotations

from uqeval.arrays import Array, Maps, np


def tempered(probs: Array, label: Array, void: int, beta: float) -> tuple[Array, Array]:
    """Return the confidences (float32) and the labels' probabilities (float64) at one β, [i]."""
    from uqeval.kernels.tempering import BLOCK, temper

    confidence = np.empty(label.shape, np.float32)
    probability = np.empty(label.shape, np.float64)
    temper(
        probs, label, void, beta, np.empty((len(probs), BLOCK)), np.empty((3, BLOCK)),
        confidence, probability,
    )  # fmt: skip
    return confidence, probability


def flat(maps: Maps) -> Array:
    """Return p̄ as float32 [class, pixel]."""
    probs = maps["mean_probs"]
    return probs.reshape(len(probs), -1)
