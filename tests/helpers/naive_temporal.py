"""A plain, slow oracle of temporal consistency, written from definitions.md alone.

Nothing of uqeval is imported. Loops over pixels, float64; IoU by scikit-learn.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.metrics import jaccard_score

UNKNOWN, OUT, VOID, COUNTED = "unknown", "out", "void", "counted"


def known(w: Any) -> bool:
    """Whether a flow vector is finite and not longer than 1e9."""
    u, v = float(w[0]), float(w[1])
    return math.isfinite(u) and math.isfinite(v) and math.hypot(u, v) <= 1e9


def bilinear(image: Any, x: float, y: float) -> Any:
    """`image` [y, x, …] at a place that is moved into the frame; no tap of weight 0 is read."""
    height, width = image.shape[:2]
    x, y = min(max(x, 0.0), width - 1.0), min(max(y, 0.0), height - 1.0)
    found = np.zeros(image.shape[2:])
    for j in {math.floor(y), math.ceil(y)}:
        for i in {math.floor(x), math.ceil(x)}:
            found = found + (1 - abs(x - i)) * (1 - abs(y - j)) * image[j, i].astype(np.float64)
    return found


def warp(before: Any, flow: Any, clamp: bool = False) -> tuple[Any, Any]:
    """ŷ(p) = before[floor(p + w + ½)], and which pixels are unknown or come from outside."""
    height, width = before.shape
    warped = np.zeros(before.shape, int)
    state = np.full(before.shape, COUNTED, object)
    for y in range(height):
        for x in range(width):
            if not known(flow[y, x]):
                state[y, x] = UNKNOWN
                continue
            i = math.floor(x + float(flow[y, x, 0]) + 0.5)
            j = math.floor(y + float(flow[y, x, 1]) + 0.5)
            if not (0 <= i < width and 0 <= j < height):
                state[y, x] = OUT
            warped[y, x] = before[min(max(j, 0), height - 1), min(max(i, 0), width - 1)]
    return warped, state


def occluded(flow: Any, back: Any, x: int, y: int) -> bool:
    """|w + ŵ|² > 0.01(|w|² + |ŵ|²) + 0.5, or ŵ is unknown."""
    w = flow[y, x].astype(np.float64)
    other = bilinear(back, x + w[0], y + w[1])
    apart = float(((w + other) ** 2).sum())
    limit = 0.01 * (float((w**2).sum()) + float((other**2).sum())) + 0.5
    return not known(other) or apart > limit


def tallied(a: Any, b: Any, classes: int) -> Any:
    """Pixels [a = c, b = c, both][class] of two lists of ids."""
    a, b = np.asarray(a, int), np.asarray(b, int)
    return np.array([[(m == c).sum() for c in range(classes)] for m in (a, b)]
                    + [[((a == c) & (b == c)).sum() for c in range(classes)]])  # fmt: skip


def pair(
    now: Any, before: Any, grey: Any, grey_before: Any, flow: Any, back: Any,
    classes: int, void: int, clamp: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """All counts of a pair; `back` None: no pixel is occluded."""
    warped, state = warp(before, flow)
    out = int((state == OUT).sum())
    usable = state == COUNTED
    if clamp:
        usable |= state == OUT
    filled = (now != void) & (warped != void)
    counted = usable & filled
    hidden = np.zeros(now.shape, bool)
    squares: tuple[list[float], list[float]] = ([], [])
    for y, x in np.argwhere(counted):
        if back is not None:
            hidden[y, x] = occluded(flow, back, x, y)
        here = grey[y, x] / 255
        u, v = (float(n) for n in flow[y, x])
        squares[0].append((here - bilinear(grey_before, x + u, y + v) / 255) ** 2)
        squares[1].append((here - grey_before[y, x] / 255) ** 2)
    still = (now != void) & (before != void)
    lengths = np.array([math.hypot(*map(float, w)) for w in flow.reshape(-1, 2) if known(w)])
    rounded = lengths.astype(np.float32).astype(np.float64)
    seen = counted & ~hidden
    return {
        "counts": np.array([tallied(now[m], warped[m], classes) for m in (seen, hidden)]),
        "still": tallied(now[still], before[still], classes),
        "pixels": [now.size, counted.sum(), out, (state == UNKNOWN).sum(),
                   (usable & ~filled).sum(), hidden.sum()],
        "squares": [math.fsum(map(float, part)) for part in squares],
        "flow_length": [math.fsum(lengths)],
        "flow_median": [np.median(rounded) if len(rounded) else -np.inf],
        "flow_p99": [np.percentile(rounded, 99) if len(rounded) else -np.inf],
        "flow_max": [max(lengths, default=-np.inf)],
    }  # fmt: skip


def consistency(now: Any, before: Any, flow: Any, void: int = 255) -> float:
    """TC: mean IoU over the classes that are in y_t or ŷ_t, among the counted pixels."""
    warped, state = warp(before, flow)
    use = (state == COUNTED) & (now != void) & (warped != void)
    a, b = now[use].astype(int), warped[use].astype(int)
    return float(jaccard_score(a, b, labels=sorted({*a, *b}), average="macro"))


def frame(prediction: Any, label: Any, classes: int, void: int) -> Any:
    """Pixels with a label [prediction, label, both][class]; a void prediction is a miss."""
    use = label != void
    return tallied(prediction[use], label[use], classes)
