"""Scores by rank of whole items, of many sets of items at once.

Each item has a `target` (its risk, or whether it is a positive) and a `score`, its uncertainty.
`weights` [set, item] say how often each item is in each set. Items with equal scores are a tie; so
are the copies of an item that a set has several times. Items whose target or score is NaN are left
out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import uqeval.metrics.failure_columns as failure_columns
from uqeval.arrays import Array, Floats, np
from uqeval.metrics._columns import SetStates, over
from uqeval.metrics.failure_columns import SetRankBins
from uqeval.metrics.sparsification_curves import harmonics

if TYPE_CHECKING:
    Numbers = Floats

#: Weights, targets and scores to a score of each set.
ItemScore: TypeAlias = "Callable[[Array, Numbers, Numbers], Numbers]"
#: Entries of the matrix of signs that are made at a time (16 MB as float32).
_SIGNS = 1 << 22


def ties_of(weights: Array, target: Numbers, score: Numbers) -> SetRankBins:
    """Return the ties of each set by ascending score: items as pixels, targets as errors."""
    is_defined = np.isfinite(target) & np.isfinite(score)
    order = np.argsort(score[is_defined], kind="stable")
    target, score = (values[is_defined][order] for values in (target, score))
    items = weights[:, is_defined][:, order].astype(np.float64)
    targets = items * target
    if score.size:
        first = np.flatnonzero(np.append(True, score[1:] != score[:-1]))
        items, targets = (np.add.reduceat(sums, first, axis=1) for sums in (items, targets))
    return SetRankBins(SetStates({"pixels": items[:, None], "errors": targets[:, None]}))


def of_items(score: Callable[[SetRankBins], Array]) -> ItemScore:
    """Return a score by rank of pixels as a score of items."""
    return lambda weights, target, value: score(ties_of(weights, target, value))


#: AURC and AUGRC of risks of any value; AUROC and the others of targets 0 and 1.
aurc = of_items(failure_columns.aurc)
augrc = of_items(failure_columns.augrc)
auroc = of_items(failure_columns.auroc)


def e_aurc(weights: Array, risk: Numbers, uncertainty: Numbers) -> Numbers:
    """Return AURC minus that of the best order, by ascending risk: Geifman et al. 2019, eq. 2.

    An item that is m times in a set adds Σ_j (R + j·r)/(N + j), j = 1 … m, to the best AURC·N.
    """
    area = aurc(weights, risk, uncertainty)
    ranked = ties_of(weights, risk, np.where(np.isfinite(uncertainty), risk, np.nan))
    items, targets = ranked.pixels, ranked.errors
    if not items.shape[1]:
        return area
    r = over(targets, items)
    r[np.isnan(r)] = 0.0
    before = ranked.upto - items
    excess = ranked.errors_upto - targets - r * before
    best = targets + excess * harmonics(before, ranked.upto)
    return area - over(best.sum(axis=1), ranked.total)


def spearman(weights: Array, risk: Numbers, uncertainty: Numbers) -> Numbers:
    """Return Spearman's ρ: Pearson's r of the ranks, ties averaged. Undefined where one of the two
    is constant."""
    is_defined = np.isfinite(risk) & np.isfinite(uncertainty)
    w = weights[:, is_defined].astype(np.float64)
    if not w.shape[1]:
        return np.full(len(w), np.nan)
    a, b = (_centred_ranks(w, values[is_defined]) for values in (risk, uncertainty))
    products = [(w * x * y).sum(axis=1) for x, y in ((a, b), (a, a), (b, b))]
    return np.clip(over(products[0], np.sqrt(products[1] * products[2])), -1.0, 1.0)


def kendall(weights: Array, risk: Numbers, uncertainty: Numbers) -> Numbers:
    """Return Kendall's τ-b: (concordant − discordant pairs)/√(pairs not tied in the one · in the
    other). Undefined where one of the two is constant."""
    is_defined = np.isfinite(risk) & np.isfinite(uncertainty)
    w = weights[:, is_defined].astype(np.float64)
    x, y = risk[is_defined], uncertainty[is_defined]
    total = w.sum(axis=1)
    pairs = [total * (total - 1) / 2 - _tied_pairs(w, values) for values in (x, y)]
    return np.clip(over(_concordance(w, x, y), np.sqrt(pairs[0] * pairs[1])), -1.0, 1.0)


def _centred_ranks(w: Numbers, values: Numbers) -> Numbers:
    """Return the rank of each item in each set, ties averaged, minus the mean rank: [set, item]."""
    distinct, tie_of = np.unique(values, return_inverse=True)
    items = _sums_of_ties(w, tie_of.reshape(-1), distinct.size)
    ranks = items.cumsum(axis=1) - (items - 1) / 2
    return ranks[:, tie_of.reshape(-1)] - (w.sum(axis=1)[:, None] + 1) / 2


def _tied_pairs(w: Numbers, values: Numbers) -> Numbers:
    """Return the pairs of items of equal values in each set."""
    distinct, tie_of = np.unique(values, return_inverse=True)
    items = _sums_of_ties(w, tie_of.reshape(-1), distinct.size)
    return (items * (items - 1) / 2).sum(axis=1)


def _sums_of_ties(w: Numbers, tie_of: Array, ties: int) -> Numbers:
    """Return the sums of weights [set, item] over the items of each tie: [set, tie]."""
    if not ties:
        return np.zeros((len(w), 0))
    order = np.argsort(tie_of, kind="stable")
    first = np.searchsorted(tie_of[order], np.arange(ties))
    return np.add.reduceat(w[:, order], first, axis=1)


def _concordance(w: Numbers, x: Numbers, y: Numbers) -> Numbers:
    """Return concordant minus discordant pairs of each set: ½ wᵀ·K·w, K = sign·sign [item, item].

    Sets that differ from a common one in a single item, as those of a jackknife, take one product
    with K together.
    """
    common = w.max(axis=0, initial=0.0)
    change = w - common
    sums = np.zeros((2, len(w)))
    is_simple = np.count_nonzero(change, axis=1).max(initial=0) <= 1
    step = max(_SIGNS // max(x.size, 1), 1)
    for first in range(0, x.size, step):
        rows = slice(first, first + step)
        signs = np.sign(x[rows, None] - x) * np.sign(y[rows, None] - y)
        if is_simple:
            of_common = signs @ common
            sums[0] += common[rows] @ of_common + 2 * (change[:, rows] @ of_common)
        else:
            sums[1] += ((w @ signs.T) * w[:, rows]).sum(axis=1)
    return sums[0 if is_simple else 1] / 2
