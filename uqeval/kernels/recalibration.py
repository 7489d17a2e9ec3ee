"""Recalibrated probabilities: of the top label by a table (isotonic), and of scaled logits."""

from __future__ import annotations

import numpy as np

from uqeval.kernels._jit import kernel, kernel_part
from uqeval.kernels.exponential import exp_64
from uqeval.kernels.logarithm import log_64


@kernel
def count_confidences(confidence, prediction, label, void, count, correct):
    """Count non-void pixels [i], and those that are right, by bin of confidence [bin]."""
    bins = count.shape[0]
    for i in range(label.shape[0]):
        if label[i] != void:
            b = min(max(int(np.float64(confidence[i]) * bins), 0), bins - 1)
            count[b] += 1
            correct[b] += prediction[i] == label[i]


@kernel
def recalibrate(probs, confidence, prediction, label, void, table, top, of_label, brier):
    """Replace the confidence of each non-void pixel [i] by `table` [bin] at its bin.

    The other classes of `probs` [class, i] share the rest in their proportions, or evenly if all
    are 0. Writes the new confidence to `top` (float32), the probability of the label to `of_label`
    and the Brier score to `brier` (float64).
    """
    classes, bins = probs.shape[0], table.shape[0]
    for i in range(label.shape[0]):
        if label[i] == void:
            continue
        b = min(max(int(np.float64(confidence[i]) * bins), 0), bins - 1)
        new, guess, y = table[b], prediction[i], label[i]
        rest = 0.0
        for c in range(classes):
            if c != guess:
                rest += np.float64(probs[c, i])
        score = 0.0
        for c in range(classes):
            p = new
            if c != guess:
                share = np.float64(probs[c, i]) / rest if rest > 0 else 1.0 / (classes - 1)
                p = (1.0 - new) * share
            gap = p - 1.0 if c == y else p
            score += gap * gap
            if c == y:
                of_label[i] = p
        top[i] = new
        brier[i] = score


@kernel_part
def _scaled(probs, i, weights, biases, free, clip, logs, powers):
    """Write z = ln max(p, clip) and softmax(w·z + b) over the `free` classes of a pixel to `logs`
    and `powers` [class]; other classes get 0. Return the probability that free classes share."""
    classes = probs.shape[0]
    lead, rest = -np.inf, 1.0
    for c in range(classes):
        p = np.float64(probs[c, i])
        if free[c]:
            logs[c] = log_64(max(p, clip))
            powers[c] = weights[c] * logs[c] + biases[c]
            lead = max(lead, powers[c])
        else:
            logs[c] = 0.0
            rest -= p
    total = 0.0
    for c in range(classes):
        powers[c] = exp_64(max(powers[c] - lead, -700.0)) if free[c] else 0.0
        total += powers[c]
    for c in range(classes):
        powers[c] /= total
    return max(rest, 0.0)


@kernel
def scale_logits(
    probs, label, void, weights, biases, free, clip, logs, powers, top, hit, of_label, brier
):
    """Scale the logits of each non-void pixel [i]: softmax(w·ln max(p, clip) + b).

    Classes that are not `free` keep their probability, and the others share the rest. Writes the
    largest probability to `top` (float32), whether it is the label's to `hit` (uint8), the label's
    probability to `of_label`, and the Brier score to `brier` (float64). `logs` and `powers` [class]
    are work arrays.
    """
    for i in range(label.shape[0]):
        if label[i] == void:
            continue
        rest = _scaled(probs, i, weights, biases, free, clip, logs, powers)
        best, score = 0, 0.0
        for c in range(probs.shape[0]):
            powers[c] = rest * powers[c] if free[c] else np.float64(probs[c, i])
            if powers[c] > powers[best]:
                best = c
            gap = powers[c] - 1.0 if c == label[i] else powers[c]
            score += gap * gap
        top[i] = powers[best]
        hit[i] = best == label[i]
        of_label[i] = powers[label[i]]
        brier[i] = score


@kernel
def add_logit_slopes(
    probs, label, void, weights, biases, free, clip, stride, logs, powers, nll, slopes, curvature,
    pixels,
):  # fmt: skip
    """Add the NLL of softmax(w·z + b), z = ln max(p, clip), and its derivatives over the pixels.

    The classes are the `free` ones; pixels of other labels do not count.

    `slopes` [2, class]: by w and by b. `curvature` [3, class, class], of each `stride`-th pixel:
    the second derivatives by w and w, w and b, b and b. `pixels` [1 + class]: the pixels of the
    curvature, then those of each label.
    """
    classes = probs.shape[0]
    for i in range(label.shape[0]):
        y = label[i]
        if y == void or not free[y]:
            continue
        _scaled(probs, i, weights, biases, free, clip, logs, powers)
        pixels[1 + y] += 1
        nll[0] -= log_64(max(powers[y], 1e-300))
        for c in range(classes):
            gap = powers[c] - 1.0 if c == y else powers[c]
            slopes[0, c] += gap * logs[c]
            slopes[1, c] += gap
        if i % stride:
            continue
        pixels[0] += 1
        for c in range(classes):
            for d in range(classes):
                a = -powers[c] * powers[d]
                if c == d:
                    a += powers[c]
                curvature[0, c, d] += a * logs[c] * logs[d]
                curvature[1, c, d] += a * logs[c]
                curvature[2, c, d] += a
