"""Curves of patch scores over thresholds, and accuracy by predicted class and uncertainty."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.usecases.verify.class_scores import (
    NEAR,
    Patches,
    four_counts,
    is_accurate,
    is_uncertain,
    patch_scores,
    ratio,
)
from uqeval.usecases.verify.comparing import Recomputed

#: Thresholds of a curve are at 0, 1/100 … 1.
_STEPS = 100
_OVER_UNCERTAINTY = (
    "pavpu", "p_accurate_given_certain", "p_uncertain_given_inaccurate", "surplus",
)  # fmt: skip
#: Values of a curve that are this close to its best one are equal to it.
_EQUAL = 1e-12


def threshold_curve(
    patches: Patches, settings: Mapping[str, Any], ends: tuple[float, float],
    reported: Mapping[str, Any],
) -> Recomputed:  # fmt: skip
    """Return the scores over the uncertainty threshold, from the least to the largest uncertainty.

    The peaks, the area and the misleading points follow from the report's own curve.
    """
    t = [i / _STEPS for i in range(_STEPS + 1)]
    thresholds = [ends[0] + x * (ends[1] - ends[0]) for x in t]
    accurate = is_accurate(patches, settings, settings["accuracy_threshold"])
    curve, slack = _along((_counts(patches, settings, accurate, at) for at in thresholds), "curve")
    largest = max(1.0, *map(abs, ends))
    slack |= {f"curve.threshold.{i}": 1e-6 * largest for i in range(_STEPS + 1)}
    own = reported["curve"]
    misleading = [value is not None and value < 0 for value in own["surplus"]]
    values: dict[str, Any] = {
        "curve": {"t": t, "threshold": thresholds, "misleading": misleading}
        | {name: curve[name] for name in _OVER_UNCERTAINTY},
        "pavpu_peak": _peak(own, "pavpu"),
        "surplus_peak": _peak(own, "surplus"),
        "surplus_auc": None if None in own["surplus"] else float(np.trapezoid(own["surplus"], t)),
    }
    return Recomputed(values, slack)


def accuracy_curve(patches: Patches, settings: Mapping[str, Any], threshold: float) -> Recomputed:
    """Return the scores over the accuracy threshold, at the fitted uncertainty threshold."""
    levels = [i / _STEPS for i in range(_STEPS + 1)]
    all_counts = (
        _counts(patches, settings, is_accurate(patches, settings, level), threshold)
        for level in levels
    )
    curve, slack = _along(all_counts, "accuracy_curve")
    return Recomputed({"accuracy_curve": {"accuracy_threshold": levels} | curve}, slack)


def _counts(
    patches: Patches, settings: Mapping[str, Any], accurate: Array, threshold: float
) -> list[dict[str, int]]:
    """Return n_ac … n_iu at a threshold; then, if there are patches too close to call, those with
    these on either side of it, accurate and inaccurate ones apart."""
    exact, fewer, more = (
        is_uncertain(patches, settings, threshold, shift) for shift in (0.0, -NEAR, NEAR)
    )
    if np.array_equal(exact, fewer) and np.array_equal(exact, more):
        return [four_counts(accurate, exact, exact)]
    sides = [(exact, exact), *((a, b) for a in (fewer, more) for b in (fewer, more))]
    return [four_counts(accurate, a, b) for a, b in sides]


def _along(
    all_counts: Iterable[list[dict[str, int]]], name: str
) -> tuple[dict[str, list[float | None]], dict[str, float]]:
    """Return each score along a curve, and how far patches that are too close to call move it."""
    curve: dict[str, list[float | None]] = {}
    slack: dict[str, float] = {}
    for i, counts in enumerate(all_counts):
        rows = [patch_scores(row) for row in counts]
        for field, value in rows[0].items():
            curve.setdefault(field, []).append(value)
            slack[f"{name}.{field}.{i}"] = _spread([row[field] for row in rows])
    return curve, slack


def _spread(values: Sequence[float | None]) -> float:
    """Return the distance between the ends of some values: ∞ if only some are defined."""
    defined = [value for value in values if value is not None]
    if not defined:
        return 0.0
    return max(defined) - min(defined) if len(defined) == len(values) else float("inf")


def _peak(curve: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """Return the first of the highest points of a curve."""
    defined = [value for value in curve[name] if value is not None]
    if not defined:
        return None
    at = next(
        i for i, value in enumerate(curve[name])
        if value is not None and value >= max(defined) - _EQUAL
    )  # fmt: skip
    return {"t": curve["t"][at], "threshold": curve["threshold"][at], "value": curve[name][at]}


def accuracy_table(
    of_image: Array, uncertainty: Array, label: Array, prediction: Array, names: Sequence[str]
) -> Recomputed:
    """Return accuracy and pixels of each predicted class between the deciles of uncertainty.

    All arrays are flat. `of_image`: the uncertainties of the whole images, which have the deciles.
    """
    percentiles = [10.0 * k for k in range(1, 10)]
    edges = np.percentile(of_image.astype(np.float64), percentiles)
    place = np.searchsorted(edges.astype(np.float32), uncertainty, side="left")
    shape = len(names), len(edges) + 1
    pixels: Array = np.zeros(shape, np.int64)
    right, near = np.zeros_like(pixels), np.zeros_like(pixels)
    np.add.at(pixels, (prediction, place), 1)
    np.add.at(right, (prediction, place), label == prediction)
    for k, edge in enumerate(edges):
        is_near = np.abs(uncertainty.astype(np.float64) - edge) <= NEAR
        near[:, k : k + 2] += np.bincount(prediction[is_near], minlength=shape[0])[:, None]
    rows = [
        {
            "class": c, "name": name, "pixels": pixels[c].tolist(),
            "accuracy": [ratio(a, b) for a, b in zip(right[c], pixels[c], strict=True)],
        }
        for c, name in enumerate(names)
    ]  # fmt: skip
    table = "accuracy_by_uncertainty"
    slack = {f"{table}.thresholds.{k}": NEAR for k in range(len(edges))}
    for (c, k), count in np.ndenumerate(near):
        if count:
            fewest = pixels[c, k] - count
            slack[f"{table}.rows.{c}.pixels.{k}"] = float(count)
            slack[f"{table}.rows.{c}.accuracy.{k}"] = (
                float(2 * count / fewest) if fewest > 0 else float("inf")
            )
    record = {"percentiles": percentiles, "thresholds": edges.tolist(), "rows": rows}
    return Recomputed({table: record}, slack)
