"""Sparsification: the mean error of the pixels of the lowest uncertainty, and areas of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.usecases.verify.comparing import numbers_of
from uqeval.usecases.verify.ranks import grouped


def curve(n: Array, sums: Array, steps: int, rooted: bool) -> Array:
    """Return the mean error of the N - ⌊kN/steps⌋ pixels of the lowest scores, k = 0, 1 …

    `n` and `sums` [group]: pixels and Σ error of equal scores, scores ascending.
    """
    total = int(n.sum())
    retained = np.array([total - k * total // steps for k in range(steps)])
    interpolated = np.interp(retained, np.r_[0, np.cumsum(n)], np.r_[0.0, np.cumsum(sums)])
    means: Array = interpolated / np.maximum(retained, 1)
    return np.sqrt(means) if rooted else means


def areas(model: Array, oracle: Array) -> dict[str, float] | None:
    """Return AUSE and AURG of the curve and that of the best order; None without an error."""
    if not model[0] or not np.isfinite(model[0]):
        return None
    x = np.arange(len(model)) / len(model)
    area, best = (float(np.trapezoid(values / model[0], x)) for values in (model, oracle))
    return {"ause": area - best, "aurg": float(x[-1]) - area}


def slack_of_errors(record: Mapping[str, Any], classes: int) -> dict[str, float]:
    """Return how far the rounding errors of Brier scores move the scores that are shares of their
    mean.

    A run computes Σp² - 2p + 1, whose rounding errors are those of numbers near 1.
    """
    mean = record["normalisation"]
    if not mean:
        return {}
    slack = 2 * (classes + 3) * float(np.finfo(np.float64).eps) / mean
    absolute = ("fractions", "normalisation")
    return {name: slack for name, _ in numbers_of(record) if not name.startswith(absolute)}


def sparsification(
    score: Array, error: Array, steps: int, rooted: bool, best: Array | None = None
) -> dict[str, Any]:  # fmt: skip
    """Return AUSE, AURG and the curves of a mean error, which is squared if a root is taken.

    `best`: what ranks the best order (None: the error).
    """
    fractions = [k / steps for k in range(steps)]
    names = ("ause", "aurg", "curve", "oracle", "error_curve", "normalisation")
    undefined: dict[str, Any] = {"fractions": fractions} | dict.fromkeys(names)
    if not score.size:
        return undefined
    model, oracle = (
        curve(*grouped(ranking, error), steps, rooted)
        for ranking in (score, error if best is None else best)
    )
    of_areas = areas(model, oracle)
    if of_areas is None:
        return undefined
    relative, of_best = model / model[0], oracle / model[0]
    return undefined | of_areas | {
        "curve": relative.tolist(), "oracle": of_best.tolist(),
        "error_curve": (relative - of_best).tolist(), "normalisation": float(model[0]),
    }  # fmt: skip
