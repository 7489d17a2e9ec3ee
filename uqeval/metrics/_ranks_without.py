"""Scores by rank of whole items without each of them, of all items at once.

A jackknife needs these scores; by weights of all items, its time is the square of the number of
items. But without an item, the sums up to ties below it are as before, and those up to its own tie
and ties above it change by this item. So a score is a sum (or minimum) of terms of the ties below,
of its own tie and of those above, and sums up to each tie from both ends give it for all items.

All functions take `target` and `score` [item] as in `_ranked_items`, here without NaN and of at
least one item, and return the score without each item [item]. Counts give the same bits as weights;
other sums differ by the order of their additions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import uqeval.metrics.failure_columns as failure_columns
from uqeval.arrays import Array, Floats, np
from uqeval.metrics._columns import at_least_0, difference, over
from uqeval.metrics._ranked_items import (
    ItemScore,
    centred_ranks,
    correlation,
    signed_pairs,
    ties_of,
)
from uqeval.metrics.failure_columns import RankSums

if TYPE_CHECKING:
    Numbers = Floats

#: Targets and scores to a score without each item.
Without: TypeAlias = "Callable[[Numbers, Numbers], Numbers]"


def without_each(score: ItemScore, without: Without) -> ItemScore:
    """Return the score without each item as a function of items that are counted.

    It takes `is_counted` [item] and targets and scores, which may be NaN. Without an item that is
    not counted, the score is that of all.
    """

    def of_items(is_counted: Array, target: Numbers, value: Numbers) -> Numbers:
        scores: Numbers = np.repeat(score(is_counted[None], target, value), is_counted.size)
        kept = np.flatnonzero(is_counted & np.isfinite(target) & np.isfinite(value))
        if kept.size:
            scores[kept] = without(target[kept], value[kept])
        return scores

    return of_items


class _Bins(NamedTuple):
    """Ties of one set, as `RankSums` has them: [1, tie] and [1]."""

    pixels: Array
    errors: Array
    upto: Array
    errors_upto: Array
    total: Array
    wrong: Array

    def without(self, target: float, of_tie: bool, upto_tie: bool) -> _Bins:
        """Return the numbers of ties where the set lacks an item with this target; `of_tie`: it is
        one of the tie, and `upto_tie`: one of the tie or below it."""
        return _Bins(
            self.pixels - of_tie, self.errors - of_tie * target,
            self.upto - upto_tie, self.errors_upto - upto_tie * target,
            self.total - 1, self.wrong - target,
        )  # fmt: skip


def _ties(target: Numbers, score: Numbers) -> tuple[_Bins, Array]:
    """Return the ties of all items, and the tie of each item."""
    ranked = ties_of(np.ones((1, target.size), np.int64), target, score)
    bins = _Bins(*(getattr(ranked, name) for name in _Bins._fields))
    return bins, np.unique(score, return_inverse=True)[1].reshape(-1)


def of_two_kinds(
    terms: Callable[[RankSums], Array], best: np.ufunc, finish: Callable[[Array, _Bins], Array],
    target: Numbers, score: Numbers,
) -> Numbers:  # fmt: skip
    """Return a score that is `finish` of `best`, a sum or minimum, of terms of ties; targets are 0
    and 1."""
    bins, tie = _ties(target, score)
    scores = np.empty(target.size)
    for kind in (0.0, 1.0):
        below, own, above = (
            terms(bins.without(kind, *places))[0]
            for places in ((False, False), (True, True), (False, True))
        )
        folded = own.copy()
        folded[1:] = best(_running(best, below[:-1]), folded[1:])
        folded[:-1] = best(folded[:-1], _running(best, above[:0:-1])[::-1])
        of_tie = finish(folded, bins.without(kind, True, True))
        is_kind = target == kind
        scores[is_kind] = of_tie[tie[is_kind]]
    return scores


def _running(best: np.ufunc, values: Array) -> Array:
    """Return `best` of the values up to each. A jackknife multiplies rounding errors by the number
    of items, so sums are of about √n additions in a row, not n."""
    step = max(math.isqrt(values.size), 1)
    rows = np.append(values, np.zeros(-values.size % step)).reshape(-1, step)
    rows = best.accumulate(rows, axis=1)
    rows[1:] = best(best.accumulate(rows[:-1, -1])[:, None], rows[1:])
    return rows.reshape(-1)[: values.size]


def _pairs(bins: RankSums) -> Array:
    """Return the pairs of an error of each bin and a right pixel below it; ties count half."""
    right_upto, right = bins.upto - bins.errors_upto, bins.pixels - bins.errors
    return bins.errors * (right_upto - right / 2)


auroc = partial(
    of_two_kinds,
    _pairs,
    np.add,
    lambda pairs, own: over(pairs, own.wrong * (own.total - own.wrong)),
)
aupr_error = partial(
    of_two_kinds, failure_columns.precisions_of_errors, np.add,
    lambda sums, own: over(sums, own.wrong),
)  # fmt: skip
aupr_success = partial(
    of_two_kinds, failure_columns.precisions_of_right, np.add,
    lambda sums, own: over(sums, own.total - own.wrong),
)  # fmt: skip


def fpr95(target: Numbers, score: Numbers) -> Numbers:
    """Return FPR95 of targets 0 and 1; NaN if the others are of one kind."""
    bins, tie = _ties(target, score)
    errors_upto, pixels_upto = bins.errors_upto[0], bins.upto[0]
    limit = (bins.wrong - target) // 20
    at = np.searchsorted(errors_upto, limit, "right")
    # From its own tie on, an error that is left out is missing in the sums.
    is_after = at >= tie
    at[is_after] = np.searchsorted(errors_upto, (limit + target)[is_after], "right")
    at = np.minimum(at, errors_upto.size - 1)
    right = bins.total - bins.wrong - (1 - target)
    right_below = (pixels_upto - bins.pixels[0] - errors_upto + bins.errors[0])[at]
    right_below -= (1 - target) * (tie < at)
    return np.where(bins.wrong > target, over(right - right_below, right), np.nan)


def _area(
    risk: Numbers, score: Numbers, share: Callable[[Numbers], Numbers], of_own: float
) -> Numbers:
    """Return Σ n·share(N↑)·(R_b + of_own·r) over ties without each item.

    A tie has n items and the sum of risks r, of N↑ items and R↑ up to it, and R_b below it. No sum
    is made by subtraction, so that a large risk costs the others no digits.
    """
    order = np.lexsort((np.abs(risk), score))
    r, s = risk[order], score[order]
    first = np.flatnonzero(np.append(True, s[1:] != s[:-1]))
    last = np.append(first[1:], s.size) - 1
    tie = np.repeat(np.arange(first.size), last - first + 1)
    items, upto = (last - first + 1).astype(np.float64), last + 1.0
    risks, sums = np.add.reduceat(r, first), _running(np.add, r)
    risk_below = np.append(0.0, sums[last[:-1]])
    plateaus = items * share(upto) * (risk_below + of_own * risks)
    below = np.append(0.0, _running(np.add, plateaus[:-1]))

    share_without = share(np.maximum(upto - 1, 1))
    later = _after(items * share_without)
    of_risks = later + of_own * items * share_without
    above = _after(risks * of_risks)

    # Risks ascend inside a tie, so that none is subtracted from a larger one.
    others = np.append(0.0, sums[:-1]) + (sums[last[tie]] - sums)
    own_tie = (1 - of_own) * risk_below[tie] + of_own * others
    areas = np.empty(r.size)
    areas[order] = (
        below[tie] + ((items - 1) * share_without)[tie] * own_tie
        + others * later[tie] + above[tie]
    )  # fmt: skip
    return areas


def _after(values: Numbers) -> Numbers:
    """Return the sums of the values after each."""
    return np.append(_running(np.add, values[:0:-1])[::-1], 0.0)


def aurc(risk: Numbers, uncertainty: Numbers) -> Numbers:
    """Return AURC of risks of any value."""
    area = _area(risk, uncertainty, lambda upto: 1 / upto, 1.0)
    return over(area, np.full(risk.size, risk.size - 1))


def e_aurc(risk: Numbers, uncertainty: Numbers) -> Numbers:
    """Return AURC minus that of the best order, in which each item is a tie of its own."""
    best = np.empty(risk.size)
    best[np.argsort(risk, kind="stable")] = np.arange(risk.size)
    return at_least_0(difference(aurc(risk, uncertainty), aurc(risk, best)))


def augrc(risk: Numbers, uncertainty: Numbers) -> Numbers:
    """Return AUGRC of risks of any value."""
    area = _area(risk, uncertainty, np.ones_like, 0.5)
    others = np.full(risk.size, risk.size - 1)
    return over(over(area, others), others)


def spearman(risk: Numbers, uncertainty: Numbers) -> Numbers:
    """Return Spearman's ρ. Without item i, item j has the centred rank c_j + sign(x_i − x_j)/2."""
    x, y = (centred_ranks(np.ones((1, v.size)), v)[0] for v in (risk, uncertainty))

    def products(a: Numbers, b: Numbers) -> Numbers:
        """Return Σ_j a_j·b_j over all j except i."""
        changed = (_signed_sums(a, b) + _signed_sums(b, a)) / 2 + signed_pairs(a, b) / 4
        return (a * b).sum() - a * b + changed

    return correlation(products(x, y), products(x, x), products(y, y))


def _signed_sums(order: Numbers, values: Numbers) -> Numbers:
    """Return Σ_j sign(order_i − order_j)·values_j of each item i."""
    tie = np.unique(order, return_inverse=True)[1].reshape(-1)
    sums = np.bincount(tie, values)
    upto = sums.cumsum()
    signed: Numbers = (upto - sums - (upto[-1] - upto))[tie]
    return signed


def kendall(risk: Numbers, uncertainty: Numbers) -> Numbers:
    """Return Kendall's τ-b."""

    def pairs(a: Numbers, b: Numbers) -> Numbers:
        """Return the sum of signs of pairs of items without item i."""
        own = signed_pairs(a, b)
        return own.sum() / 2 - own

    # Those of an order with itself are its pairs that are not tied.
    return correlation(pairs(risk, uncertainty), pairs(risk, risk), pairs(uncertainty, uncertainty))


#: The score without each item, by the name of the score in `_ranked_items` or in failure detection.
WITHOUT: Mapping[str, Without] = {
    "auroc": auroc, "aupr_error": aupr_error, "aupr_success": aupr_success, "fpr95": fpr95,
    "aurc": aurc, "e_aurc": e_aurc, "augrc": augrc,
    "spearman": spearman, "kendall": kendall,
}  # fmt: skip
