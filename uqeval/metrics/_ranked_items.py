"""Scores by rank of whole items, of many sets of items at once.

Each item has a `target` (its risk, or whether it is a positive) and a `score`, its uncertainty.
Callers give numbers `without_noise`: ties are numbers that are equal to the bit.
`weights` [set, item] say how often each item is in each set. Items with equal scores are a tie; so
are the copies of an item that a set has several times. Items whose target or score is NaN are left
out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import uqeval.metrics.failure_columns as failure_columns
from uqeval.arrays import Array, Floats, np
from uqeval.metrics._columns import SetStates, at_least_0, difference, over
from uqeval.metrics.failure_columns import SetRankBins
from uqeval.metrics.sparsification_curves import harmonics

if TYPE_CHECKING:
    Numbers = Floats

#: Weights, targets and scores to a score of each set.
ItemScore: TypeAlias = "Callable[[Array, Numbers, Numbers], Numbers]"
#: Weights of sets whose pairs are counted at a time (16 MB as float64).
_VALUES = 1 << 21
#: Numbers that differ by less than this share of them are equal: two ways of computing the same
#: number differ by 1e-16 to 1e-14 of it.
_NOISE = 1e-12


def without_noise(values: Numbers, unit: float = 0.0) -> Numbers:
    """Return numbers [item] in which those that differ only by rounding are equal.

    0.2222222222222222 and 0.22222222222222232 are ties; each becomes the least of its tie. `unit`:
    the size of the numbers whose difference the values are, such as 1 of 1 - mIoU.
    """
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    is_new = np.ones(values.size, bool)
    is_new[1:] = ~(np.diff(ascending) <= _noise_of(ascending[1:], unit))
    result = np.empty_like(ascending)
    result[order] = ascending[is_new][np.cumsum(is_new) - 1]
    return result


def is_above(values: Numbers, limit: float, unit: float = 0.0) -> Array:
    """Return which numbers are above a limit by more than rounding; `unit` as of
    `without_noise`."""
    return values - limit > _noise_of(limit, unit)


def _noise_of(values: Numbers | float, unit: float) -> Any:
    return _NOISE * np.maximum(np.abs(values), unit)


def ties_of(weights: Array, target: Numbers, score: Numbers) -> SetRankBins:
    """Return the ties of each set by ascending score: items as pixels, targets as errors."""
    defined = np.flatnonzero(np.isfinite(target) & np.isfinite(score))
    order = defined[np.argsort(score[defined], kind="stable")]
    target, score = target[order], score[order]
    # `take` keeps the numbers of a set beside each other in memory; an index does not.
    items = weights.take(order, axis=1).astype(np.float64)
    targets = items * target
    first = np.flatnonzero(np.append(True, score[1:] != score[:-1])[: score.size])
    if first.size < score.size:
        items, targets = (np.add.reduceat(sums, first, axis=1) for sums in (items, targets))
    return SetRankBins(SetStates({"pixels": items[:, None], "errors": targets[:, None]}))


def of_items(score: Callable[[SetRankBins], Array]) -> ItemScore:
    """Return a score by rank of pixels as a score of items."""

    def of_sets(weights: Array, target: Numbers, value: Numbers) -> Numbers:
        parts = ties_of(weights, target, value).parts()
        return np.concatenate([score(part) for part in parts])

    return of_sets


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
    return at_least_0(difference(area, over(best.sum(axis=1), ranked.total)))


def spearman(weights: Array, risk: Numbers, uncertainty: Numbers) -> Numbers:
    """Return Spearman's ρ: Pearson's r of the ranks, ties averaged. Undefined where one of the two
    is constant."""
    is_defined = np.isfinite(risk) & np.isfinite(uncertainty)
    w = weights.compress(is_defined, axis=1).astype(np.float64)
    if not w.shape[1]:
        return np.full(len(w), np.nan)
    a, b = (centred_ranks(w, values[is_defined]) for values in (risk, uncertainty))
    products = [(w * x * y).sum(axis=1) for x, y in ((a, b), (a, a), (b, b))]
    return correlation(*products)


def kendall(weights: Array, risk: Numbers, uncertainty: Numbers) -> Numbers:
    """Return Kendall's τ-b: (concordant − discordant pairs)/√(pairs not tied in the one · in the
    other). Undefined where one of the two is constant."""
    is_defined = np.isfinite(risk) & np.isfinite(uncertainty)
    w = weights.compress(is_defined, axis=1).astype(np.float64)
    x, y = risk[is_defined], uncertainty[is_defined]
    total = w.sum(axis=1)
    pairs = [total * (total - 1) / 2 - _tied_pairs(w, values) for values in (x, y)]
    return correlation(_concordance(w, x, y), *pairs)


def correlation(common: Numbers, first: Numbers, second: Numbers) -> Numbers:
    """Return common/√(first·second), from -1 to 1."""
    return np.clip(over(common, np.sqrt(first * second)), -1.0, 1.0)


def centred_ranks(w: Numbers, values: Numbers) -> Numbers:
    """Return the rank of each item in each set, ties averaged, minus the mean rank: [set, item]."""
    distinct, tie_of = np.unique(values, return_inverse=True)
    items = _sums_of_ties(w, tie_of.reshape(-1), distinct.size)
    ranks = items.cumsum(axis=1) - (items - 1) / 2
    return ranks.take(tie_of.reshape(-1), axis=1) - (w.sum(axis=1)[:, None] + 1) / 2


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
    return np.add.reduceat(w.take(order, axis=1), first, axis=1)


def signed_pairs(x: Numbers, y: Numbers) -> Numbers:
    """Return Σ_j sign(x_i − x_j)·sign(y_i − y_j) of each item i."""
    sums, once = np.zeros(x.size), np.ones((1, x.size))
    for higher, lower in _halves(x, y):
        sums[higher.items] += higher.signed_sums(once, lower)[0]
        sums[lower.items] -= lower.signed_sums(once, higher)[0]
    return sums


def _concordance(w: Numbers, x: Numbers, y: Numbers) -> Numbers:
    """Return concordant minus discordant pairs of each set: ½ wᵀ·K·w, K = sign·sign [item, item].

    K itself has too many entries. All sums are whole numbers, so no order of additions changes a
    bit.
    """
    halves, sums = list(_halves(x, y)), np.zeros(len(w))
    step = max(_VALUES // max(x.size, 1), 1)
    for rows in (slice(first, first + step) for first in range(0, len(w), step)):
        for higher, lower in halves:
            sums[rows] += (
                w[rows, higher.items] * higher.signed_sums(w[rows], lower)
            ).sum(axis=1)  # fmt: skip
    return sums


class _Half(NamedTuple):
    """Some items, sorted by group, then by y. `key` of each: group, then rank by y; `start` and
    `end`: the bounds of the keys of its group."""

    items: Array
    key: Array
    start: Array
    end: Array

    def signed_sums(self, w: Numbers, other: _Half) -> Numbers:
        """Return for each item the weights of items of the other half and of its group: of those
        with a smaller y, minus of those with a larger y."""
        upto = np.zeros((len(w), other.items.size + 1))
        np.cumsum(w.take(other.items, axis=1), axis=1, out=upto[:, 1:])
        lower = np.searchsorted(other.key, self.key)
        higher = np.searchsorted(other.key, self.key, "right")
        start, end = (np.searchsorted(other.key, ends) for ends in (self.start, self.end))
        sums: Numbers = upto.take(lower, axis=1) + upto.take(higher, axis=1)
        sums -= upto.take(start, axis=1)
        sums -= upto.take(end, axis=1)
        return sums


def _halves(x: Numbers, y: Numbers) -> Iterator[tuple[_Half, _Half]]:
    """Yield pairs of halves, so that each pair of items with different x is in one of them, in the
    same group; the item of larger x is in the first half.

    Ranks of two items first differ in one bit. For each bit, items that share all higher bits are a
    group; its halves are the items with this bit, and those without.
    """
    rank_x, rank_y = (np.unique(v, return_inverse=True)[1].reshape(-1) for v in (x, y))
    by_y = np.argsort(rank_y, kind="stable")
    ties = int(rank_y.max(initial=0)) + 1

    def half(items: Array, bit: int) -> _Half:
        items = items[np.argsort(rank_x[items] >> bit + 1, kind="stable")]
        start = (rank_x[items] >> bit + 1) * ties
        return _Half(items, start + rank_y[items], start, start + ties)

    for bit in range(int(rank_x.max(initial=0)).bit_length()):
        has_bit = (rank_x[by_y] >> bit & 1).astype(bool)
        yield half(by_y[has_bit], bit), half(by_y[~has_bit], bit)
