"""Scores of a ranking of the pixels of a slice.

A run computes them from bins of the high 19 bits of a float32, whose pixels count as ties.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.usecases.verify import ranks
from uqeval.usecases.verify.comparing import Recomputed, numbers_of
from uqeval.usecases.verify.rank_bounds import limits
from uqeval.usecases.verify.sparsification import sparsification

#: Relative errors of the float32 numbers that rank the best order.
_ROUNDED = (0.0, -(2.0**-22), 2.0**-22)


def failure(score: Array, wrong: Array, rounding: Array) -> Recomputed:
    """Return the scores of failure detection of flat pixels, with their bounds."""

    def scores(ranking: Array) -> dict[str, Any]:
        in_bins = ranks.failure(ranks.bins_of(ranking, ranks.INTERVAL_BITS), wrong)
        bounds = limits(ranking, wrong, ranks.INTERVAL_BITS)
        return in_bins | {f"{name}_bound": bound for name, bound in bounds.items()}

    return _over_draws(scores, score, ranks.draws_of(score, rounding))


def sparsified(
    score: Array, ranking: Array, error: Array, rounding: Array | None, steps: int, rooted: bool
) -> Recomputed:
    """Return AUSE, AURG and the curves; `ranking`: the errors that rank the best order."""
    best = [ranks.bins_of(ranking * (1 + own), ranks.INTERVAL_BITS) for own in _ROUNDED]

    def scores(drawn: Array, of_best: Array = best[0]) -> dict[str, Any]:
        in_bins = ranks.bins_of(drawn, ranks.INTERVAL_BITS)
        return sparsification(in_bins, error, steps, rooted, of_best)

    draws = () if rounding is None else ranks.draws_of(score, rounding)
    recomputed = _over_draws(scores, score, draws)
    for name, own in _range([scores(score, of_best) for of_best in best]).items():
        recomputed.slack[name] = recomputed.slack.get(name, 0.0) + own
    return recomputed


def _over_draws(
    scores: Callable[[Array], dict[str, Any]], score: Array, draws: Iterable[Array]
) -> Recomputed:
    """Return the scores, which may differ by what random rounding errors of the pixels change."""
    record = scores(score)
    return Recomputed(record, _range([record, *map(scores, draws)]))


def _range(records: list[dict[str, Any]]) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for record in records:
        for name, value in numbers_of(record):
            values.setdefault(name, []).append(value)
    return {name: ranks.RANGES * float(np.ptp(own)) for name, own in values.items()}
