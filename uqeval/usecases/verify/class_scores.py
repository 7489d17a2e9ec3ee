"""Scores of predicted classes, written from their definitions: counts, patches, calibration."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqeval.arrays import Array

#: A value this close to a threshold or to the edge of a bin may count on either side: maps are
#: float32, and the last bit of a logarithm differs between libraries.
NEAR = 1e-6


def ratio(a: float, b: float) -> float | None:
    """Return a/b, None where b is 0."""
    return float(a) / float(b) if b else None


def confusion(label: Array, prediction: Array, classes: int) -> Array:
    """Return pixels [label, prediction] of flat ids."""
    pair_counts = np.bincount(label * classes + prediction, minlength=classes * classes)
    return pair_counts.reshape(classes, classes)


def segmentation(matrix: Array) -> dict[str, Any]:
    """Return accuracy, mean accuracy and mIoU of pixels [label, prediction]."""
    right, of_label = np.diag(matrix), matrix.sum(axis=1)
    union = of_label + matrix.sum(axis=0) - right
    ious = [float(r / u) for r, u in zip(right, union, strict=True) if u]
    accuracies = [float(r / n) for r, n in zip(right, of_label, strict=True) if n]
    return {
        "pixel_accuracy": ratio(right.sum(), matrix.sum()),
        "mean_accuracy": float(np.mean(accuracies)) if accuracies else None,
        "miou": float(np.mean(ious)) if ious else None,
        "pixels": int(matrix.sum()),
    }


@dataclass
class Patches:
    """Patches of an item: right and valid pixels, and the mean uncertainty in float32."""

    right: Array
    valid: Array
    mean: Array


def patches(
    right: Array, uncertainty: Array, void: Array, settings: Mapping[str, Any],
    void_of_image: Array | None,
) -> Patches:  # fmt: skip
    """Return the patches of maps [y, x], row by row; incomplete ones and void ones are dropped.

    `void_of_image`: a patch is dropped if less than the `region_share` of its pixels that are valid
    in the image are valid in the region.
    """
    window, stride = settings["window"], settings["stride"]
    all_patches: list[tuple[int, int, np.float32]] = []
    height, width = right.shape
    values = uncertainty.astype(np.float64)
    for y in range(0, height - window + 1, stride):
        for x in range(0, width - window + 1, stride):
            box = (slice(y, y + window), slice(x, x + window))
            is_valid = ~void[box]
            of_image = 0 if void_of_image is None else int((~void_of_image[box]).sum())
            is_inside = is_valid.sum() >= settings.get("region_share", 0.0) * of_image
            if is_valid.any() and is_inside:
                evaluated = values[box][is_valid]
                mean = np.float32(math.fsum(evaluated) / evaluated.size)
                all_patches.append((int(right[box][is_valid].sum()), int(evaluated.size), mean))
    columns = list(zip(*all_patches, strict=True)) or [(), (), ()]
    return Patches(
        np.array(columns[0], np.int64), np.array(columns[1], np.int64),
        np.array(columns[2], np.float32),
    )  # fmt: skip


def patch_counts(patches: Patches, settings: Mapping[str, Any], threshold: float) -> dict[str, int]:
    """Return n_ac … n_iu at the thresholds, and `near`: patches too close to call in float32."""
    limit = np.float32(threshold)
    share = patches.right / np.maximum(patches.valid, 1)
    least = settings["accuracy_threshold"]
    accurate = share > least if settings["accuracy_op"] == ">" else share >= least
    uncertain = patches.mean > limit if settings["uncertainty_op"] == ">" else patches.mean >= limit
    return {
        "n_ac": int((accurate & ~uncertain).sum()), "n_au": int((accurate & uncertain).sum()),
        "n_ic": int((~accurate & ~uncertain).sum()), "n_iu": int((~accurate & uncertain).sum()),
        "near": int((np.abs(patches.mean.astype(np.float64) - threshold) <= NEAR).sum()),
    }  # fmt: skip


def patch_scores(n: Mapping[str, int]) -> dict[str, float | None]:
    """Return the patch scores of the four counts; phi and Surplus as covariances of 0 and 1."""
    n_ac, n_au, n_ic, n_iu = (n[k] for k in ("n_ac", "n_au", "n_ic", "n_iu"))
    total = n_ac + n_au + n_ic + n_iu
    a, c = ratio(n_ac + n_au, total), ratio(n_ac + n_ic, total)
    scores: dict[str, float | None] = {
        "p_accurate": a, "p_certain": c, "pavpu": ratio(n_ac + n_iu, total),
        "p_accurate_given_certain": ratio(n_ac, n_ac + n_ic),
        "p_uncertain_given_inaccurate": ratio(n_iu, n_ic + n_iu),
        "pavpu_chance": None, "phi": None, "surplus": None, "half_surplus": None,
    }  # fmt: skip
    if a is None or c is None:
        return scores
    scores["pavpu_chance"] = a * c + (1 - a) * (1 - c)
    covariance = (n_ac * n_iu - n_au * n_ic) / total**2
    if 0 < a < 1:
        scores["half_surplus"] = covariance / math.sqrt(a * (1 - a))
        scores["surplus"] = 2 * covariance / math.sqrt(a * (1 - a))
        if 0 < c < 1:
            scores["phi"] = covariance / math.sqrt(a * (1 - a) * c * (1 - c))
    return scores


def equal_width(value: Array, hit: Array, bins: int) -> tuple[Array, int]:
    """Return [bin, (pixels, right ones, Σ value)] of bins (lo, hi], and pixels near their edges."""
    wide = value.astype(np.float64)
    place = np.clip(np.ceil(bins * wide), 1, bins).astype(np.int64) - 1
    rows = [np.bincount(place, weights=w, minlength=bins) for w in (None, hit, wide)]
    distance = np.abs(bins * wide - np.round(bins * wide))
    inner = (np.round(bins * wide) > 0) & (np.round(bins * wide) < bins)
    return np.stack(rows, axis=1), int(((distance <= bins * NEAR / 10) & inner).sum())


def gaps(bins: Array) -> tuple[float | None, float | None]:
    """Return the ECE and MCE of [bin, (pixels, right ones, Σ confidence)]."""
    filled = bins[bins[:, 0] > 0]
    if not len(filled):
        return None, None
    differences = np.abs(filled[:, 1] - filled[:, 2])
    return float(differences.sum() / filled[:, 0].sum()), float((differences / filled[:, 0]).max())


def adaptive_ece(confidence: Array, hit: Array, bins: int) -> float | None:
    """Return the ECE with bins ⌊B·#{smaller}/N⌋ of equal mass; equal confidences share one."""
    if not confidence.size:
        return None
    below = np.searchsorted(np.sort(confidence), confidence, side="left")
    place = bins * below.astype(np.int64) // confidence.size
    weights = (None, hit, confidence.astype(np.float64))
    rows = [np.bincount(place, weights=w, minlength=bins) for w in weights]
    return gaps(np.stack(rows, axis=1))[0]


def nll(p: Array, clip: float) -> float | None:
    """Return the mean of -ln p, p at least `clip`."""
    return float(-np.log(np.maximum(p.astype(np.float64), clip)).mean()) if p.size else None
