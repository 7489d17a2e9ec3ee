"""One number for the uncertainties of an item's pixels, from its definition."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from uqeval.arrays import Array


def aggregated(
    name: str, values: Array, void: Array, settings: Mapping[str, Any]
) -> float | str | None:
    """Return mean, sum, max, pNN or patch-max of the non-void pixels of float32 [y, x].

    `settings`: those with the side of a `patch`.

    None without pixels; for another aggregation, the reason why it is not recomputed.
    """
    evaluated = values[~void].astype(np.float64)
    if name == "patch-max":
        return _patch_maximum(values.astype(np.float64), ~void, settings["patch"])
    if name in ("share", "mean-above"):
        return f"--confidence {name} is not supported by uqeval verify"
    if not evaluated.size:
        return None
    if name in ("mean", "sum"):
        total = math.fsum(evaluated)
        return total / evaluated.size if name == "mean" else total
    percentile = 100.0 if name == "max" else float(name[1:])
    return float(np.percentile(evaluated, percentile))


def _patch_maximum(values: Array, is_valid: Array, side: int) -> float | None:
    """Return the largest mean of the valid pixels of a whole square patch, at every offset."""
    windows = [
        np.lib.stride_tricks.sliding_window_view(plane, (side, side)).sum(axis=(2, 3))
        for plane in (np.where(is_valid, values, 0.0), is_valid.astype(np.float64))
    ]
    total, count = windows
    means = total[count > 0] / count[count > 0]
    return float(means.max()) if means.size else None
