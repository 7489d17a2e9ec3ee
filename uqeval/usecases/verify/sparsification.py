"""Sparsification: the mean error of the pixels of the lowest uncertainty, and areas of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.usecases.verify.comparing import numbers_of
from uqeval.usecases.verify.ranks import grouped


def curves(n: Array, sums: Array, steps: int, rooted: bool) -> Array:
    """Return the mean error of the N - ⌊kN/steps⌋ pixels of the lowest scores, [set, k = 0, 1 …].

    `n` and `sums` [set, group]: pixels and Σ error of equal scores, scores ascending. Inside a
    group, the sum is interpolated.
    """
    up_n, up_sums = map(_from_zero, (n, sums))
    totals = up_n[:, -1:].astype(np.int64)
    retained = totals - np.arange(steps) * totals // steps
    # The sets one after another are one ascending row.
    begins = np.concatenate([[[0]], np.cumsum(totals + 1, axis=0)[:-1]])
    places = np.searchsorted((up_n + begins).ravel(), retained + begins, "right") - 1
    above = np.minimum(places + 1, up_n.size - 1)
    x, y = up_n.ravel(), up_sums.ravel()
    within = retained - x[places]
    slopes = np.where(within > 0, (y[above] - y[places]) / np.maximum(x[above] - x[places], 1), 0.0)
    means: Array = (slopes * within + y[places]) / np.maximum(retained, 1)
    return np.sqrt(means) if rooted else means


def _from_zero(counts: Array) -> Array:
    """Return the sums of the counts before each group, and of all [set, group + 1]."""
    sums = np.zeros((counts.shape[0], counts.shape[1] + 1), counts.dtype)
    np.cumsum(counts, axis=1, out=sums[:, 1:])
    return sums


def areas(model: Array, oracle: Array) -> tuple[Array, Array]:
    """Return AUSE and AURG [set] of curves [set, step] and those of the best order; NaN without an
    error."""
    x, first = np.arange(model.shape[1]) / model.shape[1], model[:, :1]
    defined = np.where(np.isfinite(first) & (first != 0), first, np.nan)
    area, best = (np.trapezoid(values / defined, x, axis=1) for values in (model, oracle))
    return area - best, x[-1] - area


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


def of_groups(
    error: Array, steps: int, rooted: bool, best: Array | None = None
) -> Callable[[Array, Array], dict[str, Any]]:
    """Return the function from pixels and Σ error of the groups of a ranking to AUSE, AURG and the
    curves of a mean error, which is squared if a root is taken.

    `best`: what ranks the best order (None: the error). Its curve is computed once, for all
    rankings.
    """
    fractions = [k / steps for k in range(steps)]
    names = ("ause", "aurg", "curve", "oracle", "error_curve", "normalisation")
    undefined: dict[str, Any] = {"fractions": fractions} | dict.fromkeys(names)
    if not error.size:
        return lambda _n, _sums: undefined.copy()

    def curve(n: Array, sums: Array) -> Array:
        return curves(n[None], sums[None], steps, rooted)

    oracle = curve(*grouped(error if best is None else best, error))

    def scores(n: Array, sums: Array) -> dict[str, Any]:
        model = curve(n, sums)
        (ause,), (aurg,) = areas(model, oracle)
        if not np.isfinite(ause):
            return undefined.copy()
        relative, of_best = model[0] / model[0, 0], oracle[0] / model[0, 0]
        return undefined | {
            "ause": float(ause), "aurg": float(aurg),
            "curve": relative.tolist(), "oracle": of_best.tolist(),
            "error_curve": (relative - of_best).tolist(), "normalisation": float(model[0, 0]),
        }  # fmt: skip

    return scores
