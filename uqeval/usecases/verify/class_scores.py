"""Scores of predicted classes, written from their definitions: counts, patches, calibration."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from uqeval.arrays import Array

_NODES = 1 << 14
#: Nodes at which a run counts gaps.
_RUN_NODES = 1 << 12
#: A narrower kernel than so many nodes is not resolved.
_NARROW = 6
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
    right, rows = np.diag(matrix), segmentation_rows(matrix)
    ious, accuracies = (
        [row[name] for row in rows if row[name] is not None] for name in ("iou", "accuracy")
    )
    return {
        "pixel_accuracy": ratio(right.sum(), matrix.sum()),
        "mean_accuracy": float(np.mean(accuracies)) if accuracies else None,
        "miou": float(np.mean(ious)) if ious else None,
        "pixels": int(matrix.sum()),
    }


def segmentation_rows(matrix: Array) -> list[dict[str, Any]]:
    """Return IoU, accuracy and pixels of each class from pixels [label, prediction]."""
    right, of_label = np.diag(matrix), matrix.sum(axis=1)
    union = of_label + matrix.sum(axis=0) - right
    return [
        {"iou": ratio(r, u), "accuracy": ratio(r, n), "pixels": int(n)}
        for r, u, n in zip(right, union, of_label, strict=True)
    ]


@dataclass
class Patches:
    """Patches of an item: right and valid pixels, the mean uncertainty in float32, and the class
    that all valid pixels share, or -1."""

    right: Array
    valid: Array
    mean: Array
    shared: Array

    def of(self, shared: int) -> Patches:
        """Return the patches of one class, or the mixed ones (-1)."""
        chosen = self.shared == shared
        return Patches(*(getattr(self, own.name)[chosen] for own in fields(self)))


def joined(parts: Sequence[Any]) -> Any:
    """Return the pixels or patches of several items as one; they are of a class of arrays."""
    kind = type(parts[0])
    names = [own.name for own in fields(kind)]
    return kind(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))


def patches(
    label: Array, right: Array, uncertainty: Array, void: Array, settings: Mapping[str, Any],
    void_of_image: Array | None,
) -> Patches:  # fmt: skip
    """Return the patches of maps [y, x], row by row; incomplete ones and void ones are dropped.

    `void_of_image`: a patch is dropped if less than the `region_share` of its pixels that are valid
    in the image are valid in the region.
    """
    window, stride = settings["window"], settings["stride"]
    all_patches: list[tuple[int, int, np.float32, int]] = []
    height, width = right.shape
    values = uncertainty.astype(np.float64)
    for y in range(0, height - window + 1, stride):
        for x in range(0, width - window + 1, stride):
            box = (slice(y, y + window), slice(x, x + window))
            is_valid = ~void[box]
            of_image = 0 if void_of_image is None else int((~void_of_image[box]).sum())
            is_inside = not of_image or is_valid.sum() >= settings["region_share"] * of_image
            if is_valid.any() and is_inside:
                evaluated = values[box][is_valid]
                mean = np.float32(math.fsum(evaluated) / evaluated.size)
                ids = set(label[box][is_valid].tolist())
                shared = ids.pop() if len(ids) == 1 else -1
                n_right = int(right[box][is_valid].sum())
                all_patches.append((n_right, int(evaluated.size), mean, shared))
    columns = list(zip(*all_patches, strict=True)) or [(), (), (), ()]
    return Patches(
        np.array(columns[0], np.int64), np.array(columns[1], np.int64),
        np.array(columns[2], np.float32), np.array(columns[3], np.int64),
    )  # fmt: skip


def is_accurate(patches: Patches, settings: Mapping[str, Any], least: float) -> Array:
    """Return whether the share of right pixels of each patch is above a threshold."""
    share = patches.right / np.maximum(patches.valid, 1)
    return np.asarray(share > least if settings["accuracy_op"] == ">" else share >= least)


def is_uncertain(
    patches: Patches, settings: Mapping[str, Any], threshold: float, shift: float = 0.0
) -> Array:
    """Return whether the mean uncertainty of each patch, moved by `shift`, is above a threshold."""
    mean, limit = patches.mean.astype(np.float64) + shift, np.float64(np.float32(threshold))
    return np.asarray(mean > limit if settings["uncertainty_op"] == ">" else mean >= limit)


def four_counts(accurate: Array, uncertain: Array, of_inaccurate: Array) -> dict[str, int]:
    """Return n_ac … n_iu; whether inaccurate patches are uncertain is in `of_inaccurate`."""
    return {
        "n_ac": int((accurate & ~uncertain).sum()), "n_au": int((accurate & uncertain).sum()),
        "n_ic": int((~accurate & ~of_inaccurate).sum()),
        "n_iu": int((~accurate & of_inaccurate).sum()),
    }  # fmt: skip


def patch_counts(patches: Patches, settings: Mapping[str, Any], threshold: float) -> dict[str, int]:
    """Return n_ac … n_iu at the thresholds, and `near`: patches too close to call in float32."""
    accurate = is_accurate(patches, settings, settings["accuracy_threshold"])
    uncertain = is_uncertain(patches, settings, threshold)
    near = int((np.abs(patches.mean.astype(np.float64) - threshold) <= NEAR).sum())
    return four_counts(accurate, uncertain, uncertain) | {"near": near}


def ties(patches: Patches, settings: Mapping[str, Any], threshold: float) -> dict[str, int]:
    """Return how many patches are on the accuracy threshold, and on the uncertainty threshold."""
    share = patches.right / np.maximum(patches.valid, 1)
    return {
        "accuracy": int((share == settings["accuracy_threshold"]).sum()),
        "uncertainty": int((patches.mean == np.float32(threshold)).sum()),
    }


def without_threshold(accurate: Array) -> dict[str, float | None]:
    """Return the counts and scores of patches without an uncertainty threshold."""
    undefined: dict[str, float | None] = dict.fromkeys(("n_ac", "n_au", "n_ic", "n_iu"))
    undefined |= dict.fromkeys(patch_scores(dict.fromkeys(undefined, 0)))
    return undefined | {"p_accurate": ratio(int(accurate.sum()), accurate.size)}


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


def equal_width(
    value: Array, hit: Array, bins: int, *, with_lower: bool = False
) -> tuple[Array, int]:
    """Return [bin, (pixels, right ones, Σ value)] of bins (lo, hi], and pixels near their edges.

    `with_lower`: bins [lo, hi), the last one with its upper end.
    """
    wide = value.astype(np.float64)
    place = np.floor(bins * wide) if with_lower else np.ceil(bins * wide) - 1
    place = np.clip(place, 0, bins - 1).astype(np.int64)
    rows = [np.bincount(place, weights=w, minlength=bins) for w in (None, hit, wide)]
    distance = np.abs(bins * wide - np.round(bins * wide))
    inner = (np.round(bins * wide) > 0) & (np.round(bins * wide) < bins)
    return np.stack(rows, axis=1), int(((distance <= bins * NEAR / 10) & inner).sum())


def gaps(bins: Array) -> tuple[float | None, float | None, float | None]:
    """Return the ECE, MCE and ACE of [bin, (pixels, right ones, Σ confidence)]."""
    filled = bins[bins[:, 0] > 0]
    if not len(filled):
        return None, None, None
    differences = np.abs(filled[:, 1] - filled[:, 2])
    means = differences / filled[:, 0]
    ece = float(differences.sum() / filled[:, 0].sum())
    return ece, float(means.max()), float(means.mean())


def reliability(bins: Array) -> dict[str, list[Any]]:
    """Return the diagram of [bin, (pixels, right ones, Σ confidence)]."""
    edges = np.arange(len(bins) + 1) / len(bins)
    return {
        "lower": edges[:-1].tolist(), "upper": edges[1:].tolist(),
        "count": [int(n) for n in bins[:, 0]],
        "confidence": [ratio(total, n) for n, _, total in bins],
        "accuracy": [ratio(right, n) for n, right, _ in bins],
    }  # fmt: skip


def brier_decomposition(bins: Array, brier: float | None) -> dict[str, float | None]:
    """Return Murphy's terms, added over classes, of [class, bin, (pixels, right ones, Σ p)], and
    what remains of the Brier score."""
    total = {"reliability": 0.0, "resolution": 0.0, "uncertainty": 0.0}
    pixels = bins[0, :, 0].sum()
    if brier is None:
        return dict.fromkeys((*total, "remainder"))
    for rows in bins:
        n, right, sums = rows[rows[:, 0] > 0].T
        rate = right.sum() / pixels
        total["reliability"] += float(((sums - right) ** 2 / n).sum() / pixels)
        total["resolution"] += float((n * (right / n - rate) ** 2).sum() / pixels)
        total["uncertainty"] += float(rate * (1 - rate))
    explained = total["reliability"] - total["resolution"] + total["uncertainty"]
    return {**total, "remainder": brier - explained}


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


def estimates(
    confidence: Array, right: Array, settings: Mapping[str, Any], results: Mapping[str, Any]
) -> dict[str, float | None]:
    """Return the scores of the settings' `estimator`, none without one.

    The number of bins of the sweep is taken from the report.
    """
    name, n = settings.get("estimator", "plug-in"), confidence.size
    if name == "plug-in" or not n:
        return {}
    ordered = np.sort(confidence)
    if name == "roelofs-sweep":
        bins = int(results.get("sweep_bins") or 1)
        last = [math.ceil(k * n / bins) - 1 for k in range(1, bins)]
    else:  # as numpy.array_split cuts the sorted confidences
        sizes = [len(block) for block in np.array_split(np.arange(n), min(settings["bins"], n))]
        last = (np.cumsum(sizes)[:-1] - 1).tolist()
    place = np.searchsorted(ordered[last], confidence, side="left")  # equal ones share a bin
    count, hits, sums = (
        np.bincount(place, weights=numbers, minlength=len(last) + 1)
        for numbers in (None, right, confidence.astype(np.float64))
    )
    filled = count > 0
    count, hits, sums = count[filled], hits[filled], sums[filled]
    gap, share, accuracy = np.abs(hits - sums) / count, count / n, hits / count
    if name == "roelofs-sweep":
        return {
            "sweep_l1": float(share @ gap), "sweep_l2": math.sqrt(float(share @ gap**2)),
        }  # fmt: skip
    if name == "kumar-l2":
        has_several = count > 1
        noise = accuracy[has_several] * (1 - accuracy[has_several]) / (count[has_several] - 1)
        total = float(share[has_several] @ (gap[has_several] ** 2 - noise))
        return {"kumar_l2": math.sqrt(max(total, 0.0))}
    if (count == 1).any():
        return {"kumar_l1": None}
    spread = np.sqrt(accuracy * (1 - accuracy) / count)
    expected = [_folded_normal(g, s) for g, s in zip(gap, spread, strict=True)]
    return {"kumar_l1": float(share @ (2 * gap - np.array(expected)))}


def _folded_normal(mean: float, std: float) -> float:
    """Return E|X| of X ~ N(mean, std²), with the distribution function of the normal."""
    if not std:
        return abs(mean)
    z = mean / std
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return 2 * std * density + mean * (1 - 2 * (0.5 * math.erfc(z / math.sqrt(2))))


def smooth_ece(confidence: Array, right: Array) -> tuple[float, float] | None:
    """Return the smooth ECE, and the allowed difference of a run's value.

    Both share a gap between two nodes, which moves the score by at most 0.121·mean|gap|·(w/σ)² at a
    distance w of nodes.

    None without pixels, and where the bandwidth is too narrow for the nodes.
    """
    if not confidence.size:
        return None
    at = confidence.astype(np.float64) * _NODES
    node = np.clip(np.floor(at), 0, _NODES - 1).astype(np.int64)
    gap, upper = right - confidence.astype(np.float64), at - node
    counted = np.bincount(node, gap * (1 - upper), _NODES + 1)
    counted += np.bincount(node + 1, gap * upper, _NODES + 1)
    # Mirrored at 0 and at 1, the gaps have the period 2.
    around = np.zeros(2 * _NODES)
    around[: _NODES + 1] += counted
    around[-np.arange(_NODES + 1)] += counted
    spectrum = np.fft.rfft(around / confidence.size)
    low, high = _NARROW / _NODES, 1.0
    above, below = (_error(spectrum, end) - end for end in (low, high))
    if above <= 0:
        return None
    # False position (the Illinois rule) computes the error a third as often as bisection.
    bandwidth, excess = low, above
    while abs(excess) > 1e-9:  # the bandwidth is then as near
        before, bandwidth = excess, high - below * (high - low) / (below - above)
        excess = _error(spectrum, bandwidth) - bandwidth
        is_repeated = (excess > 0) == (before > 0)
        if excess > 0:
            low, above, below = bandwidth, excess, below / 2 if is_repeated else below
        else:
            high, below, above = bandwidth, excess, above / 2 if is_repeated else above
    absolute = float(np.abs(gap).mean())
    shared = sum(0.121 * absolute / (nodes * bandwidth) ** 2 for nodes in (_NODES, _RUN_NODES))
    return bandwidth, min(shared, absolute) + 1e-6


def _error(spectrum: Array, sigma: float) -> float:
    """Return ∫|f| over [0, 1] of the gaps under a Gaussian of this bandwidth."""
    distances = np.arange(2 * _NODES) / _NODES
    kernel = np.zeros(2 * _NODES)
    for turn in range(-4, 4):
        if max(2 * turn, -2 * turn - 2) < 39 * sigma:  # farther, it is 0 in float64
            kernel += np.exp(-(((distances + 2 * turn) / sigma) ** 2) / 2)
    kernel /= sigma * math.sqrt(2 * math.pi)
    f = np.fft.irfft(spectrum * np.fft.rfft(kernel), 2 * _NODES)[: _NODES + 1]
    return float(np.trapezoid(np.abs(f))) / _NODES
