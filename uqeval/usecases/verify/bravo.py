"""Scores of the BRAVO challenge: of the classes of valid pixels, and of invalid ones as OUT."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.usecases.verify import class_scores as cs
from uqeval.usecases.verify import ranks
from uqeval.usecases.verify.comparing import Recomputed
from uqeval.usecases.verify.rank_bounds import limits

_BINS = 15
#: Scores that are better lower enter the harmonic means as 1 minus them.
_LOWER = ("ece", "fpr95", "ood_fpr95")
_SEMANTIC = ("miou", "ece", "auroc", "aupr_success", "aupr_error", "fpr95")
_OOD = ("ood_auroc", "ood_aupr", "ood_fpr95")


@dataclass(frozen=True)
class InPixels:
    """Flat arrays of pixels in distribution: label, prediction, confidence, uncertainty and its
    rounding [pixel, draw]."""

    label: Array
    prediction: Array
    confidence: Array
    uncertainty: Array
    rounding: Array


def bravo(
    pixels: InPixels, classes: int, of_sets: Mapping[str, Any], reported: Mapping[str, Any]
) -> Recomputed:
    """Return all scores; `of_sets`: those of IN and OUT pixels.

    The harmonic means follow from the report's own scores.
    """
    wrong = pixels.label != pixels.prediction
    bins, near = cs.equal_width(pixels.confidence, ~wrong, _BINS, with_lower=True)
    matrix = cs.confusion(pixels.label, pixels.prediction, classes)
    record: dict[str, Any] = {
        "miou": cs.segmentation(matrix)["miou"],
        "ece": cs.gaps(bins)[0],
        **_ranked(*ranks.grouped(pixels.uncertainty, wrong)),
        "ood_auroc": of_sets["auroc"], "ood_aupr": of_sets["aupr_out"],
        "ood_fpr95": of_sets["fpr95"],
    }  # fmt: skip
    good = {name: _good(name, reported.get(name)) for name in (*_SEMANTIC, *_OOD)}
    record["semantic"] = _harmonic_mean([good[name] for name in _SEMANTIC])
    record["ood"] = _harmonic_mean([good[name] for name in _OOD])
    record["bravo_index"] = _harmonic_mean([reported.get("semantic"), reported.get("ood")])
    # A run ranks pixels in bins.
    logarithms = np.log(np.maximum(pixels.uncertainty.astype(np.float64), 1e-30))
    by_order = ranks.slack_of_order(_ranked, pixels.uncertainty, wrong, pixels.rounding)
    in_bins = ranks.slack_of_order(_ranked, logarithms, wrong, pixels.rounding, ranks.BIN_WIDTH)
    in_bins |= limits(pixels.uncertainty, wrong)
    slack = {name: value + in_bins[name] for name, value in by_order.items()}
    slack["ece"] = 2 * near / max(wrong.size, 1)
    return Recomputed(record, slack)


def _good(name: str, value: float | None) -> float | None:
    return 1 - value if value is not None and name in _LOWER else value


def _harmonic_mean(values: list[float | None]) -> float | None:
    """Return n/Σ 1/x: 0 if one is 0, None if one is undefined."""
    defined = [value for value in values if value is not None]
    if len(defined) < len(values):
        return None
    return 0.0 if min(defined) <= 0 else len(defined) / sum(1 / value for value in defined)


def _ranked(number: Array, errors: Array) -> dict[str, Any]:
    """Return the areas, and the share of wrong pixels at least as certain as the threshold that
    keeps 95 % of the right ones."""
    scores = ranks.failure_of_groups(number, errors)
    record = {name: scores[name] for name in ("auroc", "aupr_success", "aupr_error")}
    right, missed = np.cumsum(number - errors), np.cumsum(errors)
    record["fpr95"] = None
    if 0 < errors.sum() < number.sum():
        first = np.flatnonzero(20 * right >= 19 * right[-1])[0]
        record["fpr95"] = float(missed[first] / missed[-1])
    return record
