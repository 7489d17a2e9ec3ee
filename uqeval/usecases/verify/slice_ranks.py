"""Scores of a ranking of the pixels of a slice.

A run computes them from bins of the high 19 bits of a float32, whose pixels count as ties.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

from uqeval.arrays import Array
from uqeval.usecases.verify import ranks
from uqeval.usecases.verify.comparing import Recomputed
from uqeval.usecases.verify.rank_bounds import limits_of_groups
from uqeval.usecases.verify.sparsification import of_groups

#: Relative errors of the float32 numbers that rank the best order.
_ROUNDED = (0.0, -(2.0**-22), 2.0**-22)


def failure(score: Array, wrong: Array, rounding: Array) -> Recomputed:
    """Return the scores of failure detection of flat pixels, with their bounds."""
    score, wrong, rounding = ranks.ascending(score, wrong, rounding)

    def scores(number: Array, errors: Array) -> dict[str, Any]:
        bounds = limits_of_groups(number, errors)
        stated = {f"{name}_bound": bound for name, bound in bounds.items()}
        return ranks.failure_of_groups(number, errors) | stated

    return _over_draws(scores, score, wrong, ranks.draws_of(score, rounding))


def sparsified(
    score: Array, ranking: Array, error: Array, rounding: Array | None, steps: int, rooted: bool
) -> Recomputed:
    """Return AUSE, AURG and the curves; `ranking`: the errors that rank the best order."""
    best = [ranks.bins_of(ranking * (1 + own), ranks.INTERVAL_BITS) for own in _ROUNDED]
    by_best = [of_groups(error, steps, rooted, of_best) for of_best in best]
    draws = () if rounding is None else ranks.draws_of(score, rounding)
    recomputed = _over_draws(by_best[0], score, error, draws)
    groups = ranks.grouped(ranks.bins_of(score, ranks.INTERVAL_BITS), error)
    for name, own in ranks.ranges(scores(*groups) for scores in by_best).items():
        recomputed.slack[name] = recomputed.slack.get(name, 0.0) + own
    return recomputed


def _over_draws(
    scores: Callable[[Array, Array], dict[str, Any]], score: Array, error: Array,
    draws: Iterable[Array],
) -> Recomputed:  # fmt: skip
    """Return the scores of groups, which may differ by what random rounding errors of the pixels
    change."""
    bins = (ranks.bins_of(drawn, ranks.INTERVAL_BITS) for drawn in chain([score], draws))
    records = [scores(*groups) for groups in ranks.distinct(bins, error)]
    return Recomputed(records[0], ranks.ranges(records))
