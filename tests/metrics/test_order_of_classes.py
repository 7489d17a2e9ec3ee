"""Predictions whose classes are in another order than those of the labels are told apart."""

from __future__ import annotations

import numpy as np
import pytest

import uqeval

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 5, (4, 16, 16)).astype(np.uint8)


def probs(prediction: np.ndarray, classes: int) -> np.ndarray:
    """Return confident probabilities [item, class, y, x] of predicted ids [item, y, x]."""
    is_class = prediction[:, None] == np.arange(classes)[:, None, None]
    return np.where(is_class, 0.9, 0.1 / (classes - 1)).astype(np.float32)


@pytest.mark.parametrize(("prediction", "labels", "classes", "is_told"), [
    ((LABELS + 1) % 5, LABELS, 5, True),
    (LABELS, LABELS, 5, False),
    (RNG.permuted(LABELS), LABELS, 5, False),  # an untrained network guesses
    (LABELS % 2, 1 - LABELS % 2, 2, True),  # foreground and background are exchanged
    (np.ones_like(LABELS), np.zeros_like(LABELS), 2, False),  # one class says nothing of an order
])  # fmt: skip
def test_a_warning_names_the_order(
    prediction: np.ndarray, labels: np.ndarray, classes: int, is_told: bool
) -> None:
    report = uqeval.evaluate(probs(prediction, classes), labels.astype(np.uint8), ["pavpu"])
    told = [text for text in report.warnings if "in another order" in text]
    assert len(told) == is_told
    assert all(text.startswith("segmentation: the pixel accuracy is 0.0000") for text in told)
