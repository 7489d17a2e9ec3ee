"""Counts of items from which scores of any set of items follow by plain sums."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.keys import family_of
from uqeval.usecases.verify import class_scores as cs
from uqeval.usecases.verify.families import Pixels, error_of
from uqeval.usecases.verify.numbers import Numbers, likelihood, quantile_factor
from uqeval.usecases.verify.rank_counts import failure, sparsification
from uqeval.usecases.verify.resampled import Counted, CountedScores


def of_classes(
    key: str, parts: Sequence[Pixels], settings: Mapping[str, Any], results: Mapping[str, Any]
) -> CountedScores:
    """Return the scores of a key whose intervals follow from counts."""
    family = family_of(key)
    if family == "segmentation":
        return _segmentation(parts, _names_of_rows(results))
    if family == "pavpu" and results.get("uncertainty_threshold") is not None:
        return _patches(key, parts, settings, results)
    if family == "calibration":
        return _calibration(parts, settings, _names_of_rows(results))
    if family == "failure" and all(key in item.maps for item in parts):
        return failure(key, parts, results, _names_of_rows(results))
    if family == "sparsification" and all(key in item.maps for item in parts):
        errors = [error for item in parts if (error := error_of(item, settings)) is not None]
        if len(errors) == len(parts):
            scores = [item.maps[key] for item in parts]
            roundings = [item.rounding[key] for item in parts]
            return sparsification(scores, errors, errors, settings["steps"], False, roundings)
    return {}


def _names_of_rows(results: Mapping[str, Any]) -> list[str]:
    """Return the names of the rows of classes in addresses: the id of a class whose name several
    classes have."""
    rows = results.get("per_class", ())
    names = [str(row["name"]) for row in rows]
    return [
        str(row["class"]) if names.count(name) > 1 else name
        for row, name in zip(rows, names, strict=True)
    ]


def of_numbers(key: str, parts: Sequence[Numbers], settings: Mapping[str, Any]) -> CountedScores:
    """Return the scores of a key of predicted numbers whose intervals follow from counts."""
    sigmas = [
        sigma for item in parts if (sigma := item.sigma_of(settings["uncertainty"])) is not None
    ]
    if len(sigmas) < len(parts):
        return {}
    if family_of(key) == "sparsification":
        kind, rankings = settings["error"], [item.error for item in parts]
        scores = [sigma.astype(np.float32) for sigma in sigmas]
        errors = rankings if kind == "mae" else [error**2 for error in rankings]
        return sparsification(scores, rankings, errors, settings["steps"], kind == "rmse")
    return _regression(parts, sigmas, settings) if family_of(key) == "regression" else {}


def _segmentation(parts: Sequence[Pixels], names: Sequence[str]) -> CountedScores:
    classes = parts[0].classes
    matrices = [cs.confusion(item.label, item.prediction, classes) for item in parts]
    right = np.array([np.diag(m) for m in matrices], np.float64)
    label, predicted = (np.array([m.sum(axis=a) for m in matrices], np.float64) for a in (1, 0))
    counts = np.concatenate([right, label, predicted], axis=1)

    def columns(s: Array) -> list[Array]:
        return np.split(s, 3, axis=1)

    def iou(s: Array) -> Array:
        r, n, m = columns(s)
        return _mean_ratio(r, n + m - r)

    scores: CountedScores = {
        ("pixel_accuracy",): Counted(
            counts,
            lambda s: columns(s)[0].sum(1) / columns(s)[1].sum(1),
            lambda s: columns(s)[1].sum(1),
        ),
        ("mean_accuracy",): Counted(counts, lambda s: _mean_ratio(*columns(s)[:2])),
        ("miou",): Counted(counts, iou),
    }
    for c, name in enumerate(names):
        of_class = counts[:, [c, classes + c, 2 * classes + c]]
        scores["per_class", name, "accuracy"] = Counted(of_class, lambda s: s[:, 0] / s[:, 1])
        scores["per_class", name, "iou"] = Counted(
            of_class, lambda s: s[:, 0] / (s[:, 1] + s[:, 2] - s[:, 0])
        )
    return scores


def _mean_ratio(a: Array, b: Array) -> Array:
    """Return the mean of a/b over the classes with b > 0; NaN without any."""
    nonempty = b > 0
    ratios = np.where(nonempty, a / np.where(nonempty, b, 1), 0.0).sum(axis=1)
    return np.where(nonempty.any(axis=1), ratios / np.maximum(nonempty.sum(axis=1), 1), np.nan)


def _patches(
    key: str, parts: Sequence[Pixels], settings: Mapping[str, Any], results: Mapping[str, Any]
) -> CountedScores:
    """Return the scores of all patches, of those of each class, and of the mixed ones."""
    names, threshold = _names_of_rows(results), results["uncertainty_threshold"]
    scores = _of_patches([item.patches[key] for item in parts], settings, threshold)
    for c, name in enumerate(names):
        shared = c if c < parts[0].classes else -1
        of_class = [item.patches[key].of(shared) for item in parts]
        for field, counted in _of_patches(of_class, settings, threshold).items():
            scores["per_class", name, *field] = counted
    return scores


def _of_patches(
    parts: Sequence[cs.Patches], settings: Mapping[str, Any], threshold: float
) -> CountedScores:
    rows = [cs.patch_counts(patches, settings, threshold) for patches in parts]
    if any(row["near"] for row in rows):
        return {}  # a patch within a rounding error of the threshold may count either way
    counts = np.array([[r["n_ac"], r["n_au"], r["n_ic"], r["n_iu"]] for r in rows], np.float64)
    shares = {
        "p_accurate": ((0, 1), (0, 1, 2, 3)), "p_certain": ((0, 2), (0, 1, 2, 3)),
        "pavpu": ((0, 3), (0, 1, 2, 3)), "p_accurate_given_certain": ((0,), (0, 2)),
        "p_uncertain_given_inaccurate": ((3,), (2, 3)),
    }  # fmt: skip
    scores: CountedScores = {(name,): _share(counts, *columns) for name, columns in shares.items()}
    by_accuracy, by_certainty = ((0, 1), (2, 3)), ((0, 2), (1, 3))
    kinds_of = {
        "pavpu_chance": (), "phi": by_accuracy + by_certainty, "surplus": by_accuracy,
        "half_surplus": by_accuracy,
    }  # fmt: skip
    for name, kinds in kinds_of.items():
        scores[name,] = Counted(
            counts,
            lambda s, name=name: _of_counts(s, name),  # type: ignore[misc]
            kinds=kinds,
        )
    return scores


def _share(counts: Array, events: tuple[int, ...], trials: tuple[int, ...]) -> Counted:
    def of(s: Array) -> Array:
        return s[:, trials].sum(axis=1)

    @np.errstate(invalid="ignore")  # of no trials
    def share(s: Array) -> Array:
        return s[:, events].sum(axis=1) / of(s)

    return Counted(counts, share, of)


def _of_counts(sums: Array, name: str) -> Array:
    """Return a score of four counts of each set."""
    fields = ("n_ac", "n_au", "n_ic", "n_iu")
    count_rows = sums.astype(np.int64).tolist()
    rows = [cs.patch_scores(dict(zip(fields, row, strict=True)))[name] for row in count_rows]
    return np.array([np.nan if value is None else value for value in rows])


def _calibration(
    parts: Sequence[Pixels], settings: Mapping[str, Any], names: Sequence[str]
) -> CountedScores:
    bins = settings["bins"]
    scores: CountedScores = {}
    n = max(sum(item.label.size for item in parts), 1)
    if all("confidence" in item.maps for item in parts):
        item_bins = [cs.equal_width(item.maps["confidence"], ~item.wrong, bins) for item in parts]
        rows, uncertain = (
            np.array([pair[0] for pair in item_bins]),
            sum(pair[1] for pair in item_bins),
        )
        scores["ece",] = _gaps(rows[:, None], slack=2 * uncertain / n)
        if not uncertain:
            scores["mce",] = _gaps(rows[:, None], largest=True)
    if all(bins in item.by_class for item in parts):
        uncertain = sum(item.by_class[bins][1] for item in parts)
        rows = np.array([item.by_class[bins][0] for item in parts])
        slack = 2 * uncertain / n
        scores["classwise_ece",] = _gaps(rows, slack=slack)
        for c, name in enumerate(names):
            scores["per_class", name, "ece"] = _gaps(rows[:, c : c + 1], slack=slack)
    for name, field in (("brier", "brier"), ("nll", "label_probability")):
        if all(field in item.maps for item in parts):
            values = [item.maps[field].astype(np.float64) for item in parts]
            if name == "nll":
                values = [
                    -np.log(np.maximum(item_values, settings["clip"])) for item_values in values
                ]
            counts = np.array([[item_values.sum(), item_values.size] for item_values in values])
            scores[name,] = Counted(counts, lambda s: s[:, 0] / s[:, 1])
    return scores


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
        weighted = np.abs(signed) * weights
        pixels = s.reshape(len(s), -1, 3)[..., 0].sum(axis=1)
        return np.where(
            pixels > 0, weighted.max(axis=1) if largest else weighted.sum(axis=1), np.nan
        )

    return Counted(counts, score, gaps=gaps, largest=largest, slack=slack)


def _regression(
    parts: Sequence[Numbers], sigmas: Sequence[Array], settings: Mapping[str, Any]
) -> CountedScores:
    """Return the scores of predicted numbers, without those that are parts of the AUCE."""
    levels, law = settings["levels"], settings["distribution"]
    p = np.arange(1, levels + 1) / (levels + 1)
    factors = [quantile_factor(q, law) for q in p]
    every = np.concatenate([item.target for item in parts])
    centre = float(every.mean()) if every.size else 0.0
    rows, level_rows = [], []
    for item, sigma in zip(parts, sigmas, strict=True):
        e, y, n = item.error, item.target - centre, item.error.size
        nll, crps = likelihood(e, sigma, law) if n else (0.0, 0.0)
        sums = [(e**2).sum(), e.sum(), y.sum(), (y**2).sum(), (sigma**2).sum(), n * crps]
        rows.append([n, *sums, n * (math.nan if nll is None else nll)])
        level_rows.append([n, *(np.count_nonzero(e <= factor * sigma) for factor in factors)])
    counts, inside = np.array(rows, np.float64), np.array(level_rows, np.float64)

    def nmse(s: Array) -> Array:
        spread = s[:, 4] - s[:, 3] ** 2 / s[:, 0]
        # Draws may repeat an item of one pixel, whose spread is 0 or the rounding of its squares.
        return np.where(spread > 1e-15 * s[:, 4], s[:, 1] / spread, np.nan)

    def gaps(s: Array) -> tuple[Array, Array]:
        steps = np.full(levels, 1 / (levels + 1))
        steps[[0, -1]] /= 2  # the trapezoid's ends
        return s[:, 1:] - p * s[:, :1], steps / np.maximum(s[:, :1], 1)

    def auce(s: Array) -> Array:
        with np.errstate(invalid="ignore"):  # a set without pixels
            return np.asarray(np.trapezoid(np.abs(p - s[:, 1:] / s[:, :1]), p, axis=1))

    with_nll = np.where(np.isnan(counts[:, 7]), 0.0, counts[:, 7])
    undefined = np.isnan(counts[:, 7]).astype(np.float64)
    of_nll = np.stack([counts[:, 0], with_nll, undefined], axis=1)
    return {
        ("rmse",): Counted(counts[:, :2], lambda s: np.sqrt(s[:, 1] / s[:, 0])),
        ("mae",): Counted(counts[:, :3], lambda s: s[:, 2] / s[:, 0]),
        ("nmse",): Counted(counts[:, :5], nmse, kinds=((0,),)),
        ("sharpness",): Counted(counts[:, :6], lambda s: np.sqrt(s[:, 5] / s[:, 0])),
        ("crps",): Counted(counts[:, :7], lambda s: s[:, 6] / s[:, 0]),
        # A set with σ = 0 has no NLL.
        ("nll",): Counted(of_nll, lambda s: np.where(s[:, 2] > 0, np.nan, s[:, 1] / s[:, 0])),
        ("auce",): Counted(inside, auce, gaps=gaps),
    }
