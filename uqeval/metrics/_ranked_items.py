"""Scores by rank of whole items, of many sets of items at once.

Each item has a `target` (its risk, or whether it is a positive) and a `score`, its uncertainty.
`weights` [set, item] say how often each item is in each set. Items with equal scores are a tie; so
are the copies of an item that a set has several times. Items whose target or score is NaN are left
out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from uqeval.arrays import Array, Floats, np
from uqeval.metrics._columns import over
from uqeval.metrics.sparsification_curves import harmonics

if TYPE_CHECKING:
    Numbers = Floats

#: Entries of the matrix of signs that are made at a time (16 MB as float32).
_SIGNS = 1 << 22


@dataclass(frozen=True)
class RankedItems:
    """Ties of items by ascending score: items and sums of their targets, [set, tie]."""

    items: Numbers
    targets: Numbers

    @classmethod
    def of(cls, weights: Array, target: Numbers, score: Numbers) -> RankedItems:
        """Return the ties of each set."""
        is_defined = np.isfinite(target) & np.isfinite(score)
        order = np.argsort(score[is_defined], kind="stable")
        target, score = (values[is_defined][order] for values in (target, score))
        w = weights[:, is_defined][:, order].astype(np.float64)
        if not score.size:
            return cls(w, w)
        first = np.flatnonzero(np.append(True, score[1:] != score[:-1]))
        sums = (np.add.reduceat(values, first, axis=1) for values in (w, w * target))
        return cls(*sums)

    @cached_property
    def upto(self) -> Numbers:
        """Return the items up to the end of each tie."""
        cumulative: Numbers = self.items.cumsum(axis=1)
        return cumulative

    @cached_property
    def targets_upto(self) -> Numbers:
        """Return the sums of targets up to the end of each tie."""
        cumulative: Numbers = self.targets.cumsum(axis=1)
        return cumulative

    @property
    def total(self) -> Numbers:
        """Return the items of each set."""
        total: Numbers = self.items.sum(axis=1)
        return total


def aurc(weights: Array, risk: Numbers, uncertainty: Numbers) -> Numbers:
    """Return the mean over k of the mean risk of the k most certain items, ties as plateaus.

    Geifman & El-Yaniv 2017, with risks of any value: Σ n·R↑/N↑ / N over the ties.
    """
    ranked = RankedItems.of(weights, risk, uncertainty)
    return over((ranked.items * _mean_upto(ranked)).sum(axis=1), ranked.total)


def e_aurc(weights: Array, risk: Numbers, uncertainty: Numbers) -> Numbers:
    """Return AURC minus that of the best order, by ascending risk: Geifman et al. 2019, eq. 2.

    An item that is m times in a set adds Σ_j (R + j·r)/(N + j), j = 1 … m, to the best AURC·N.
    """
    area = aurc(weights, risk, uncertainty)
    ranked = RankedItems.of(weights, risk, np.where(np.isfinite(uncertainty), risk, np.nan))
    if not ranked.items.shape[1]:
        return area
    r = over(ranked.targets, ranked.items)
    r[np.isnan(r)] = 0.0
    before = ranked.upto - ranked.items
    excess = ranked.targets_upto - ranked.targets - r * before
    best = ranked.targets + excess * harmonics(before, ranked.upto)
    difference: Numbers = area - over(best.sum(axis=1), ranked.total)
    return difference


def augrc(weights: Array, risk: Numbers, uncertainty: Numbers) -> Numbers:
    """Return the area under R(k)/N over k/N, ties averaged: Traub et al. 2024, eq. 5, with risks of
    any value."""
    ranked = RankedItems.of(weights, risk, uncertainty)
    area = (ranked.items * (ranked.targets_upto - ranked.targets / 2)).sum(axis=1)
    return over(over(area, ranked.total), ranked.total)


def auroc(weights: Array, positive: Numbers, score: Numbers) -> Numbers:
    """Return the probability that a positive has a higher score than a negative; ties count half.

    Fawcett 2006, §7. Undefined without positives or without negatives.
    """
    ranked = RankedItems.of(weights, positive, score)
    negatives = ranked.items - ranked.targets
    below = negatives.cumsum(axis=1) - negatives / 2
    pairs = ranked.targets.sum(axis=1) * negatives.sum(axis=1)
    return over((ranked.targets * below).sum(axis=1), pairs)


def average_precision(weights: Array, positive: Numbers, score: Numbers) -> Numbers:
    """Return Σ (R_n − R_{n−1})·P_n over the thresholds: scikit-learn's average_precision.

    Undefined without positives.
    """
    ranked = RankedItems.of(weights, positive, score)
    flagged, hits = _from_top(ranked)
    precision = over(hits, flagged)
    precision[flagged == 0] = 0.0
    return over((ranked.targets * precision).sum(axis=1), ranked.targets.sum(axis=1))


def average_precision_in(weights: Array, positive: Numbers, score: Numbers) -> Numbers:
    """Return `average_precision` of the negatives, ranked by the negated score."""
    return average_precision(weights, 1 - positive, -score)


def fpr95(weights: Array, positive: Numbers, score: Numbers) -> Numbers:
    """Return the share of negatives at or above the highest threshold that keeps 95 % of the
    positives. Undefined without positives or without negatives."""
    ranked = RankedItems.of(weights, positive, score)
    flagged, hits = _from_top(ranked)
    if not flagged.shape[1]:
        return np.full(len(flagged), np.nan)
    total = hits[:, :1]
    last = flagged.shape[1] - 1 - np.argmax((20 * hits >= 19 * total)[:, ::-1], axis=1)
    rows = np.arange(len(last))
    shares = over((flagged - hits)[rows, last], (flagged - hits)[:, 0])
    return np.where(total[:, 0] > 0, shares, np.nan)


def detection_error(weights: Array, positive: Numbers, score: Numbers) -> Numbers:
    """Return the least of (FPR + FNR)/2 over thresholds. Undefined as `fpr95`."""
    ranked = RankedItems.of(weights, positive, score)
    flagged, hits = _from_top(ranked)
    if not flagged.shape[1]:
        return np.full(len(flagged), np.nan)
    negatives = flagged - hits
    errors = over(negatives, negatives[:, :1]) + 1 - over(hits, hits[:, :1])
    least: Numbers = np.minimum(errors.min(axis=1) / 2, 0.5)
    return least


def _from_top(ranked: RankedItems) -> tuple[Numbers, Numbers]:
    """Return items and sums of targets from each tie on upwards."""
    flagged, hits = (
        values[:, ::-1].cumsum(axis=1)[:, ::-1] for values in (ranked.items, ranked.targets)
    )
    return flagged, hits


def spearman(weights: Array, risk: Numbers, uncertainty: Numbers) -> Numbers:
    """Return Spearman's ρ: Pearson's r of the ranks, ties averaged. Undefined where one of the two
    is constant."""
    is_defined = np.isfinite(risk) & np.isfinite(uncertainty)
    w = weights[:, is_defined].astype(np.float64)
    if not w.shape[1]:
        return np.full(len(w), np.nan)
    a, b = (_centred_ranks(w, values[is_defined]) for values in (risk, uncertainty))
    products = [(w * x * y).sum(axis=1) for x, y in ((a, b), (a, a), (b, b))]
    rho: Numbers = np.clip(over(products[0], np.sqrt(products[1] * products[2])), -1.0, 1.0)
    return rho


def kendall(weights: Array, risk: Numbers, uncertainty: Numbers) -> Numbers:
    """Return Kendall's τ-b: (concordant − discordant pairs)/√(pairs not tied in the one · in the
    other). Undefined where one of the two is constant."""
    is_defined = np.isfinite(risk) & np.isfinite(uncertainty)
    w = weights[:, is_defined].astype(np.float64)
    x, y = risk[is_defined], uncertainty[is_defined]
    total = w.sum(axis=1)
    pairs = [total * (total - 1) / 2 - _tied_pairs(w, values) for values in (x, y)]
    tau: Numbers = np.clip(over(_concordance(w, x, y), np.sqrt(pairs[0] * pairs[1])), -1.0, 1.0)
    return tau


def _mean_upto(ranked: RankedItems) -> Numbers:
    """Return the mean target up to the end of each tie; 0 where no item is."""
    mean: Numbers = ranked.targets_upto / np.maximum(ranked.upto, 1)
    return mean


def _centred_ranks(w: Numbers, values: Numbers) -> Numbers:
    """Return the rank of each item in each set, ties averaged, minus the mean rank: [set, item]."""
    distinct, tie_of = np.unique(values, return_inverse=True)
    items = _sums_of_ties(w, tie_of.reshape(-1), distinct.size)
    ranks = items.cumsum(axis=1) - (items - 1) / 2
    centred: Numbers = ranks[:, tie_of.reshape(-1)] - (w.sum(axis=1)[:, None] + 1) / 2
    return centred


def _tied_pairs(w: Numbers, values: Numbers) -> Numbers:
    """Return the pairs of items of equal values in each set."""
    distinct, tie_of = np.unique(values, return_inverse=True)
    items = _sums_of_ties(w, tie_of.reshape(-1), distinct.size)
    pairs: Numbers = (items * (items - 1) / 2).sum(axis=1)
    return pairs


def _sums_of_ties(w: Numbers, tie_of: Array, ties: int) -> Numbers:
    """Return the sums of weights [set, item] over the items of each tie: [set, tie]."""
    if not ties:
        return np.zeros((len(w), 0))
    order = np.argsort(tie_of, kind="stable")
    first = np.searchsorted(tie_of[order], np.arange(ties))
    sums: Numbers = np.add.reduceat(w[:, order], first, axis=1)
    return sums


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
    pairs: Numbers = sums[0 if is_simple else 1] / 2
    return pairs
