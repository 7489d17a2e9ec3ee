"""Sums of items from which scores of predicted numbers follow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.usecases.verify.numbers import Numbers, likelihood, quantile_factor
from uqeval.usecases.verify.resampled import Counted, CountedScores


def regression(
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
        return np.where(spread > 0, s[:, 1] / spread, np.nan)

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
