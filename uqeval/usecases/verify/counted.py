"""Counts of items from which scores of any set of items follow by plain sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from uqeval.keys import family_of
from uqeval.usecases.verify import class_scores as cs
from uqeval.usecases.verify.arrays import Array
from uqeval.usecases.verify.families import Pixels
from uqeval.usecases.verify.numbers import Numbers, quantile_factor
from uqeval.usecases.verify.resampled import Counted


def of_classes(
    key: str, parts: Sequence[Pixels], settings: Mapping[str, Any], results: Mapping[str, Any]
) -> dict[str, Counted]:
    """Return the scores of a key whose intervals follow from counts, by field."""
    family = family_of(key)
    if family == "segmentation":
        return _segmentation(parts)
    if family == "pavpu" and results.get("uncertainty_threshold") is not None:
        return _patches(key, parts, settings, results["uncertainty_threshold"])
    return _calibration(parts, settings) if family == "calibration" else {}


def of_numbers(
    key: str, parts: Sequence[Numbers], settings: Mapping[str, Any]
) -> dict[str, Counted]:
    """Return RMSE, MAE and AUCE of predicted numbers."""
    if family_of(key) != "regression":
        return {}
    levels = settings["levels"]
    p = np.arange(1, levels + 1) / (levels + 1)
    factors = [quantile_factor(q, settings["distribution"]) for q in p]
    rows = []
    for own in parts:
        sigma = own.sigma_of(settings["uncertainty"])
        if sigma is None:
            return {}
        e = own.error
        inside = [np.count_nonzero(e <= factor * sigma) for factor in factors]
        rows.append([e.size, float((e**2).sum()), float(e.sum()), *inside])
    counts = np.array(rows, np.float64)

    def gaps(s: Array) -> tuple[Array, Array]:
        steps = np.full(levels, 1 / (levels + 1))
        steps[[0, -1]] /= 2  # the trapezoid's ends
        return s[:, 3:] - p * s[:, :1], steps / np.maximum(s[:, :1], 1)

    def auce(s: Array) -> Array:
        return np.asarray(np.trapezoid(np.abs(p - s[:, 3:] / s[:, :1]), p, axis=1))

    return {
        "rmse": Counted(counts, lambda s: np.sqrt(s[:, 1] / s[:, 0])),
        "mae": Counted(counts, lambda s: s[:, 2] / s[:, 0]),
        "auce": Counted(counts, auce, gaps=gaps),
    }


def _segmentation(parts: Sequence[Pixels]) -> dict[str, Counted]:
    classes = parts[0].classes
    matrices = [cs.confusion(own.label, own.prediction, classes) for own in parts]
    right = np.array([np.diag(m) for m in matrices], np.float64)
    label, predicted = (np.array([m.sum(axis=a) for m in matrices], np.float64) for a in (1, 0))
    counts = np.concatenate([right, label, predicted], axis=1)

    def split(s: Array) -> list[Array]:
        return np.split(s, 3, axis=1)

    def iou(s: Array) -> Array:
        r, n, m = split(s)
        return _mean_ratio(r, n + m - r)

    return {
        "pixel_accuracy": Counted(
            counts, lambda s: split(s)[0].sum(1) / split(s)[1].sum(1), lambda s: split(s)[1].sum(1)
        ),
        "mean_accuracy": Counted(counts, lambda s: _mean_ratio(*split(s)[:2])),
        "miou": Counted(counts, iou),
    }


def _mean_ratio(a: Array, b: Array) -> Array:
    """Return the mean of a/b over the classes with b > 0; NaN without any."""
    known = b > 0
    ratios = np.where(known, a / np.where(known, b, 1), 0.0).sum(axis=1)
    found: Array = np.where(known.any(axis=1), ratios / np.maximum(known.sum(axis=1), 1), np.nan)
    return found


def _patches(
    key: str, parts: Sequence[Pixels], settings: Mapping[str, Any], threshold: float
) -> dict[str, Counted]:
    rows = [cs.patch_counts(own.patches[key], settings, threshold) for own in parts]
    if any(row["near"] for row in rows):
        return {}  # a patch within a rounding error of the threshold may count either way
    counts = np.array([[r["n_ac"], r["n_au"], r["n_ic"], r["n_iu"]] for r in rows], np.float64)
    shares = {
        "p_accurate": ((0, 1), (0, 1, 2, 3)), "p_certain": ((0, 2), (0, 1, 2, 3)),
        "pavpu": ((0, 3), (0, 1, 2, 3)), "p_accurate_given_certain": ((0,), (0, 2)),
        "p_uncertain_given_inaccurate": ((3,), (2, 3)),
    }  # fmt: skip
    found = {name: _share(counts, *columns) for name, columns in shares.items()}
    for name in ("pavpu_chance", "phi", "surplus", "half_surplus"):
        found[name] = Counted(counts, lambda s, name=name: _of_counts(s, name))  # type: ignore[misc]
    return found


def _share(counts: Array, events: tuple[int, ...], trials: tuple[int, ...]) -> Counted:
    def of(s: Array) -> Array:
        found: Array = s[:, trials].sum(axis=1)
        return found

    return Counted(counts, lambda s: s[:, events].sum(axis=1) / of(s), of)


def _of_counts(sums: Array, name: str) -> Array:
    """Return a score of four counts of each set."""
    fields = ("n_ac", "n_au", "n_ic", "n_iu")
    each = sums.astype(np.int64).tolist()
    rows = [cs.patch_scores(dict(zip(fields, row, strict=True)))[name] for row in each]
    return np.array([np.nan if value is None else value for value in rows])


def _calibration(parts: Sequence[Pixels], settings: Mapping[str, Any]) -> dict[str, Counted]:
    bins, found = settings["bins"], {}
    n = max(sum(own.label.size for own in parts), 1)
    if all("confidence" in own.maps for own in parts):
        each = [cs.equal_width(own.maps["confidence"], ~own.wrong, bins) for own in parts]
        rows, near = np.array([own[0] for own in each]), sum(own[1] for own in each)
        found["ece"] = _gaps(rows[:, None], slack=2 * near / n)
        if not near:
            found["mce"] = _gaps(rows[:, None], largest=True)
    if all(own.by_class is not None for own in parts):
        near = sum(own.near_edges for own in parts)
        rows = np.array([own.by_class for own in parts])
        found["classwise_ece"] = _gaps(rows, slack=2 * near / n)
    for name, field in (("brier", "brier"), ("nll", "label_probability")):
        if all(field in own.maps for own in parts):
            values = [own.maps[field].astype(np.float64) for own in parts]
            if name == "nll":
                values = [-np.log(np.maximum(own, settings["clip"])) for own in values]
            counts = np.array([[own.sum(), own.size] for own in values])
            found[name] = Counted(counts, lambda s: s[:, 0] / s[:, 1])
    return found


def _gaps(rows: Array, *, largest: bool = False, slack: float = 0.0) -> Counted:
    """Return the ECE, or the MCE, of rows [item, class, bin, (pixels, right, Σ confidence)]."""
    shape = rows.shape[1:]
    counts = rows.reshape(len(rows), -1)

    def gaps(s: Array) -> tuple[Array, Array]:
        pixels, right, sums = np.moveaxis(s.reshape(len(s), *shape), -1, 0)
        if largest:
            weights = np.where(pixels > 0, 1 / np.maximum(pixels, 1), 0.0)
        else:
            weights = np.ones_like(pixels) / np.maximum(pixels.sum(-1, keepdims=True), 1) / shape[0]
        return (right - sums).reshape(len(s), -1), weights.reshape(len(s), -1)

    def score(s: Array) -> Array:
        signed, weights = gaps(s)
        apart = np.abs(signed) * weights
        return np.asarray(apart.max(axis=1) if largest else apart.sum(axis=1))

    return Counted(counts, score, gaps=gaps, largest=largest, slack=slack)
