"""The risk-coverage curve of a report, at each of its coverages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.usecases.verify.comparing import Recomputed
from uqeval.usecases.verify.ranks import BIN_WIDTH, noise


def risk_curve(score: Array, wrong: Array, reported: Mapping[str, Any]) -> Recomputed:
    """Return the share of wrong pixels among the most certain ones, at the report's coverages.

    All arrays are flat. The number of points before thinning is the report's own.
    """
    if not score.size:
        return Recomputed({"curve": None})
    order = np.argsort(score, kind="stable")
    ordered, up = score[order].astype(np.float64), np.cumsum(wrong[order])
    own = reported["curve"]
    k = np.clip(np.rint(np.array(own["coverage"]) * score.size), 1, score.size).astype(np.int64)
    risk = up[k - 1] / k
    # Pixels on both sides of a cut that float32 cannot tell apart may change places.
    last, step = ordered[k - 1], noise(ordered)
    before = k - np.searchsorted(ordered, last - step, side="left")
    behind = np.searchsorted(ordered, last + step, side="right") - k
    slack = {f"curve.risk.{i}": float(n) for i, n in enumerate(np.minimum(before, behind) / k)}
    curve = {
        "coverage": (k / score.size).tolist(), "risk": risk.tolist(),
        "points": own["points"],
    }  # fmt: skip
    number = np.arange(1, score.size + 1)
    line = np.interp(number / score.size, k / score.size, risk)
    distance = np.abs(up / number - line)
    # A run does not cut inside its bins, whose width is known and whose edges are not.
    following = np.r_[ordered[1:], np.inf]
    is_surely_cut = following > ordered * (1 + BIN_WIDTH) + step
    most, least = (
        float(distance[is_cut].max(initial=0.0)) for is_cut in (following != ordered, is_surely_cut)
    )
    curve["bound"] = most
    slack["curve.bound"] = most - least + max(slack.values())  # the line moves with its points
    return Recomputed({"curve": curve}, slack)
