"""Recalibration's tallies for the table of `laws`: examples and slow oracles."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import naive_calibration as naive
import numpy as np

from uqeval.maps.names import void_of
from uqeval.tallies._contract import Tally
from uqeval.tallies.recalibrated import ConfidenceCounts, Isotonic, LogitSlopes, VectorScaled
from uqeval.tallies.reliability import Bins

State = dict[str, Any]
_CLIP = 2.0**-24
_KNOTS = (3000, 6000, 8000), (0.25, 0.5, 0.875)
_NUMBERS = (0.75, 1.25, 1.0, 2.0), (0.5, -0.25, 0.0, -0.25)

EXAMPLES: tuple[Tally, ...] = (
    ConfidenceCounts(4),
    LogitSlopes(4, *_NUMBERS, _CLIP),
    Isotonic(4, Bins(), _CLIP, *_KNOTS),
    VectorScaled(4, Bins(6), 0.125, *_NUMBERS),
    LogitSlopes(4, *_NUMBERS, _CLIP, (1,)),
    VectorScaled(4, Bins(), _CLIP, *_NUMBERS, (1, 2)),
)


def _pixels(tally: Any, items: Sequence[Any]) -> Iterator[tuple[Any, float, int, int]]:
    """Probabilities [class, 1], confidence, prediction and label of each pixel that counts."""
    for maps in items:
        for y, x in np.argwhere(maps["label"] != void_of(tally.classes)):
            p = maps["mean_probs"][:, y, x].astype(float)[:, None]
            names = ("confidence", "prediction", "label")
            confidence, guess, label = (maps[name][y, x] for name in names)
            yield p, float(confidence), int(guess), int(label)


def _counts(tally: Any, items: Sequence[Any]) -> State:
    state: State = tally.empty()
    for _, confidence, guess, label in _pixels(tally, items):
        place = min(math.floor(confidence * 8192), 8191)
        state["count"][place] += 1
        state["correct"][place] += guess == label
    return state


def _shared(tally: Any, p: Any) -> Any:
    """Scaled probabilities [class] of the classes that are not fixed; 0 of the others."""
    free = [c for c in range(4) if c not in tally.fixed]
    weights, biases = (np.array(own)[free] for own in _NUMBERS)
    q = np.zeros(4)
    q[free] = naive.scaled(p[free], weights, biases, tally.clip)[:, 0]
    return q


def _slopes(tally: Any, items: Sequence[Any]) -> State:
    state: State = tally.empty()
    for p, _, _, label in _pixels(tally, items):
        if label in tally.fixed:
            continue
        z, q = np.log(np.maximum(p[:, 0], tally.clip)), _shared(tally, p)
        z[list(tally.fixed)] = 0
        gap = q - np.eye(4)[label]
        state["nll"] -= math.log(q[label])
        state["slopes"] += [gap * z, gap]
        state["labels"][label] += 1
        second = np.diag(q) - np.outer(q, q)
        state["curvature"] += [second * np.outer(z, z), second * z[:, None], second]
    return state


def _after(tally: Any, found: Sequence[tuple[float, bool, Any, int]]) -> State:
    """The state of new confidences, hits and probabilities of pixels with these labels."""
    state: State = tally.empty()
    edges = tally.bins.edges()
    for top, hit, q, label in found:
        value = float(np.float32(top))
        inside = max(math.ceil(tally.bins.count * value), 1) - 1
        place = tally.bins.count if value >= 1 else inside
        state["count"][place] += 1
        state["correct"][place] += hit
        state["confidence"][place] += value
        state["special"] += [value == 1, 0 < value < 1 and value in edges, 0]
        state["sums"] += [
            -math.log(max(q[label], tally.clip)), float(((q - np.eye(4)[label]) ** 2).sum())
        ]  # fmt: skip
    return state


def _isotonic(tally: Any, items: Sequence[Any]) -> State:
    found = []
    for p, confidence, guess, label in _pixels(tally, items):
        new = float(np.interp(min(math.floor(confidence * 8192), 8191), *_KNOTS))
        others = np.delete(p[:, 0], guess)
        shares = others / others.sum() if others.sum() else np.full(3, 1 / 3)
        q = np.insert((1 - new) * shares, guess, new)
        found.append((new, guess == label, q, label))
    return _after(tally, found)


def _vector(tally: Any, items: Sequence[Any]) -> State:
    found = []
    for p, _, _, label in _pixels(tally, items):
        fixed = list(tally.fixed)
        q = _shared(tally, p) * (1 - p[fixed, 0].sum())
        q[fixed] = p[fixed, 0]
        found.append((q.max(), int(q.argmax()) == label, q, label))
    return _after(tally, found)


ORACLES: dict[type[Tally], Callable[[Any, Sequence[Any]], State]] = {
    ConfidenceCounts: _counts,
    LogitSlopes: _slopes,
    Isotonic: _isotonic,
    VectorScaled: _vector,
}
