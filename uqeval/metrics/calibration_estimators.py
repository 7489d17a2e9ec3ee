"""Published estimates of the calibration error of the top label that have less bias than the ECE.

Kumar et al. 2019 correct the errors of bins of equal mass for their noise; Roelofs et al. 2022
choose how many bins there are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from uqeval.metrics._contract import TEMPERATURE, Metric, set_value
from uqeval.metrics.calibration_edges import upper_ranks
from uqeval.metrics.calibration_scores import Binned

if TYPE_CHECKING:
    from uqeval.tallies import RankedErrors
    from uqeval.tallies._fields import State

#: Names of the estimators, which are definitions, too.
PUBLISHED = ("kumar-l2", "kumar-l1", "roelofs-sweep")
#: The number of bins at which the sweep stops: an edge costs 64 kB of counts.
MOST_SWEPT = 1000


def kumar_l2(binned: Binned) -> float | None:
    """Return √max(0, Σ_b n_b/N·(gap_b² - accuracy_b(1 - accuracy_b)/(n_b - 1))).

    Bins of one pixel count as 0. Undefined without pixels. Kumar et al. 2019, Definition 5.1;
    `unbiased_l2_ce` of the package uncertainty-calibration.
    """
    total = sum(binned.count)
    if not total:
        return None
    parts = []
    for n, right, confidence in zip(binned.count, binned.correct, binned.confidence, strict=True):
        if n > 1:
            accuracy = right / n
            noise = accuracy * (1 - accuracy) / (n - 1)
            parts.append(n / total * (((confidence - right) / n) ** 2 - noise))
    return math.sqrt(max(math.fsum(parts), 0.0))


def kumar_l1(binned: Binned) -> float | None:
    """Return 2·ECE - Σ_b n_b/N·E|a_b - confidence_b|, a_b ~ N(accuracy_b, its standard error).

    The mean has a closed form (folded normal); the package uncertainty-calibration averages 1,000
    random draws. May be below 0. Undefined without pixels, and where a bin holds one pixel.
    """
    total = sum(binned.count)
    parts = []
    for n, right, confidence in zip(binned.count, binned.correct, binned.confidence, strict=True):
        if n == 1:
            return None
        if n:
            gap, accuracy = (right - confidence) / n, right / n
            spread = math.sqrt(accuracy * (1 - accuracy) / n)
            parts.append(n / total * (2 * abs(gap) - _mean_distance(gap, spread)))
    return math.fsum(parts) if parts else None


def _mean_distance(mean: float, std: float) -> float:
    """Return E|X| of X ~ N(mean, std²)."""
    if std == 0:
        return abs(mean)
    z = mean / std
    return std * math.sqrt(2 / math.pi) * math.exp(-z * z / 2) + mean * math.erf(z / math.sqrt(2))


def sweep_l1(binned: Binned) -> float | None:
    """Return Σ_b n_b/N·gap_b, the ECE of the bins; undefined without pixels."""
    total = sum(binned.count)
    return math.fsum(binned.gaps()) / total if total else None


def sweep_l2(binned: Binned) -> float | None:
    """Return √(Σ_b n_b/N·gap_b²); undefined without pixels."""
    total = sum(binned.count)
    squares = [g * g / n for g, n in zip(binned.gaps(), binned.count, strict=True) if n]
    return math.sqrt(math.fsum(squares) / total) if total else None


_VOID = "no labelled pixel: all are void"
_KUMAR, _ROELOFS = "Kumar et al. 2019, §5", "Roelofs et al. 2022, Algorithm 1"

METRICS = (
    Metric("calibration", "kumar_l2", "fraction", "lower", (0.0, 1.0), _KUMAR, _VOID, kumar_l2,
           label="Kumar l2",
           meaning="Root of the mean squared gap, corrected for the noise of the bins.",
           advice=TEMPERATURE, interval="draws"),
    Metric("calibration", "kumar_l1", "fraction", "lower", (-1.0, 1.0), _KUMAR,
           f"{_VOID}, or a bin of equal mass holds a single pixel", kumar_l1,
           label="Kumar l1",
           meaning="Mean gap, corrected for the noise of the bins.",
           advice=TEMPERATURE, interval="draws"),
    Metric("calibration", "sweep_l1", "fraction", "lower", (0.0, 1.0), _ROELOFS, _VOID, sweep_l1,
           label="sweep l1",
           meaning="Mean gap, in as many bins as keep the accuracy rising.",
           advice=TEMPERATURE, interval="draws"),
    Metric("calibration", "sweep_l2", "fraction", "lower", (0.0, 1.0), _ROELOFS, _VOID, sweep_l2,
           label="sweep l2",
           meaning="Root of the mean squared gap, in as many bins as keep the accuracy rising.",
           advice=TEMPERATURE, interval="draws"),
)  # fmt: skip

#: The scores of each estimator.
_SCORES = {
    "kumar-l2": METRICS[:1],
    "kumar-l1": METRICS[1:2],
    "roelofs-sweep": METRICS[2:],
}


def fields_of(estimator: str) -> set[str]:
    """Return the fields of an estimator's scores."""
    return {metric.field for metric in _SCORES[estimator]}


def scores_of(estimator: str, binned: Binned) -> dict[str, Any]:
    """Return the scores of an estimator from its bins, and how many bins the sweep chose."""
    record: dict[str, Any] = {}
    for metric in _SCORES[estimator]:
        set_value(record, metric.field, metric.formula(binned), metric.undefined)
    if estimator == "roelofs-sweep":
        record["sweep_bins"] = len(binned.count)
    return record


def sweep_tally(classes: int) -> RankedErrors:
    """Return the tally on which the sweep chooses how many bins there are.

    Pixels and wrong ones by 1 - confidence, in bins of relative width 2⁻¹⁰.
    """
    from uqeval.tallies import Error, RankedErrors, Uncertainty

    return RankedErrors(Uncertainty("confidence"), Error("zero-one"), classes)


def edge_ranks(bins: int, pixels: int, swept: State | None) -> list[int]:
    """Return the ranks of the confidences, from 0 on, at the inner edges of the bins.

    `swept`: the state of `sweep_tally`, for the sweep.
    """
    if swept is not None:
        return upper_ranks(pixels, sweep(swept))
    # As numpy.array_split cuts the sorted confidences: the first bins are larger by one.
    bins = min(bins, pixels)
    return [k * (pixels // bins) + min(k, pixels % bins) - 1 for k in range(1, bins)]


def sweep(state: Mapping[str, Any]) -> int:
    """Return the largest B such that accuracy does not fall in 2, 3 … B bins of equal mass.

    1 where it falls in two bins. Pixels that share a bin of the state stay together.
    """
    import numpy as np

    pixels, wrong = (state[name][0][::-1] for name in ("pixels", "errors"))
    nonempty = np.flatnonzero(pixels)
    pixels, right = pixels[nonempty], (pixels - wrong)[nonempty]
    total = int(pixels.sum())
    below = np.cumsum(pixels) - pixels
    for bins in range(2, min(total - 1, MOST_SWEPT) + 1):
        starts = np.flatnonzero(np.diff(below * bins // total, prepend=-1))
        counts, hits = np.add.reduceat(pixels, starts), np.add.reduceat(right, starts)
        if (np.diff(hits / counts) < 0).any():
            return bins - 1
    return max(min(total - 1, MOST_SWEPT), 1)
