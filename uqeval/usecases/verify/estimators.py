"""Published estimates of the calibration error, from sorted confidences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from uqeval.arrays import Array


def estimates(
    confidence: Array, right: Array, settings: Mapping[str, Any], results: Mapping[str, Any]
) -> dict[str, float | None]:
    """Return the scores of the settings' `estimator`, none without one.

    The number of bins of the sweep is taken from the report.
    """
    name, n = settings.get("estimator"), confidence.size
    if not name or not n:
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
