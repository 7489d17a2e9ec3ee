"""Scores by rank of sets of pixels, from pixels and errors by bin: of one set, or of many.

Errors are the positives, the uncertainty their score. A threshold accepts or rejects the pixels of
a bin together, as those of a tie; AUROC and AUGRC average over their orders. Bins without pixels of
a set change nothing.

N pixels, E wrong, C right; a bin has n pixels, e wrong and c right ones; below it (more certain)
lie N_b pixels, E_b wrong and C_b right ones, and ↑ includes the bin itself. All scores are [set],
NaN where undefined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol

from uqeval.arrays import Array, np
from uqeval.metrics._columns import SetColumns, SetStates, at_least_0, difference, over
from uqeval.metrics._tiles import RankedSets, Tiles

if TYPE_CHECKING:
    from uqeval.metrics._rank_bins import RankBins

#: Coverages and risks, in percent, at which the risk-coverage curve is read.
COVERAGES, RISKS = (80, 90, 95), (1, 5)
#: Numbers of a field whose scores are computed at a time (512 kB).
_NUMBERS = 1 << 16
#: Fewer numbers are added up as they are.
_FEW = 1 << 12


class RankSums(Protocol):
    """Pixels and errors of bins [set, bin], up to the end of each bin, and of all bins [set]."""

    @property
    def pixels(self) -> Array: ...

    @property
    def errors(self) -> Array: ...

    @property
    def upto(self) -> Array: ...

    @property
    def errors_upto(self) -> Array: ...

    @property
    def total(self) -> Array: ...

    @property
    def wrong(self) -> Array: ...


@dataclass(frozen=True)
class SetRankBins:
    """Pixels and errors of each bin [set, bin], ascending; `states` are those of `RankedErrors` of
    one row."""

    states: SetStates

    @classmethod
    def of_one(cls, rank_bins: RankBins) -> SetRankBins:
        """Return the bins of one set."""
        fields = {"pixels": rank_bins.pixels, "errors": rank_bins.errors}
        return cls(SetStates({n: v[None, None].astype(np.float64) for n, v in fields.items()}))

    @property
    def tiles(self) -> Tiles:
        """Return tiles of bins, which the states of many sets have."""
        assert isinstance(self.states, RankedSets)
        return self.states.tiles

    @property
    def pixels(self) -> Array:
        """Return pixels of each bin."""
        return self.states["pixels"][:, 0]

    @property
    def errors(self) -> Array:
        """Return errors of each bin."""
        return self.states["errors"][:, 0]

    @cached_property
    def upto(self) -> Array:
        """Return pixels up to the end of each bin."""
        return cumulated(self.pixels)

    @cached_property
    def errors_upto(self) -> Array:
        """Return errors up to the end of each bin."""
        return cumulated(self.errors)

    @cached_property
    def total(self) -> Array:
        """Return all pixels [set]."""
        return self._sums("pixels")

    @cached_property
    def wrong(self) -> Array:
        """Return all errors [set]."""
        return self._sums("errors")

    @cached_property
    def mean_risk(self) -> Array:
        """Return Σ n·E↑/N↑ / N [set], NaN without pixels."""
        rate = np.maximum(self.upto, 1)
        np.divide(self.errors_upto, rate, out=rate)
        rate *= self.pixels
        return over(rate.sum(axis=1), self.total)

    def without_each(self, name: str) -> Array | None:
        """Return a score of `SCORES`, if the sets are all items but one and it need not be computed
        from bins."""
        without_each = self.states.without_each if isinstance(self.states, RankedSets) else None
        return None if without_each is None else without_each(name)

    def parts(self) -> Iterator[SetRankBins]:
        """Yield a few sets at a time, whose numbers stay in the cache of the CPU. At least one."""
        pixels, errors = self.states["pixels"], self.states["errors"]
        step = max(_NUMBERS // max(pixels.shape[-1], 1), 1)
        for first in range(0, max(len(pixels), 1), step):
            rows = slice(first, first + step)
            yield SetRankBins(SetStates({"pixels": pixels[rows], "errors": errors[rows]}))

    def _sums(self, name: str) -> Array:
        is_tiled = isinstance(self.states, RankedSets)
        values = self.tiles.totals(name) if is_tiled else self.states[name]
        return values[:, 0].sum(axis=1)


def columns(rank_bins: SetRankBins, fields: Collection[str]) -> SetColumns:
    """Return the wanted scores from bins."""
    wanted = {*SCORES, *AT_CUTS} & set(fields)
    found = {name: rank_bins.without_each(name) for name in wanted}
    results: SetColumns = {(name,): column for name, column in found.items() if column is not None}
    if others := [name for name, column in found.items() if column is None]:
        parts = [_columns(part, others) for part in rank_bins.parts()]
        results |= {place: np.concatenate([part[place] for part in parts]) for place in parts[0]}
    return results


def _columns(rank_bins: SetRankBins, fields: Collection[str]) -> SetColumns:
    results: SetColumns = {}
    for name, formula in SCORES.items():
        if name in fields:
            results[name,] = formula(rank_bins)
    for name, (cut, percents) in AT_CUTS.items():
        if name in fields:
            results |= {(name, str(percent)): cut(rank_bins, percent) for percent in percents}
    return results


def auroc(rank_bins: SetRankBins) -> Array:
    """Return Σ e·(C_b + c/2) / (E·C): the probability that a wrong pixel is less certain than a
    right one.

    Fawcett 2006, §7. Undefined without wrong or without right pixels.
    """
    wrong, right = rank_bins.wrong, rank_bins.total - rank_bins.wrong
    # Pairs of a wrong pixel and a right one below it; pairs in the same bin count half.
    errors = rank_bins.errors
    pairs = dot(errors, rank_bins.upto) - dot(errors, rank_bins.pixels) / 2
    ranked_errors = dot(errors, rank_bins.errors_upto) - dot(errors, errors) / 2
    return over(pairs - ranked_errors, wrong * right)


def aupr_error(rank_bins: SetRankBins) -> Array:
    """Return Σ e/E · E↑/N↑, from the least certain on: scikit-learn's average_precision of the
    errors. Undefined without wrong pixels.
    """
    from_top = np.ascontiguousarray(precisions_of_errors(rank_bins)[:, ::-1])
    return over(from_top.sum(axis=1), rank_bins.wrong)


def precisions_of_errors(bins: RankSums) -> Array:
    """Return e · (precision of errors at each bin and above) [set, bin]."""
    below = bins.upto - bins.pixels
    rate = bins.wrong[:, None] - (bins.errors_upto - bins.errors)
    rate /= np.maximum(bins.total[:, None] - below, 1)
    rate *= bins.errors
    return rate


def aupr_success(rank_bins: SetRankBins) -> Array:
    """Return the same as `aupr_error`, for right pixels ranked by certainty. Undefined without
    right pixels.
    """
    return over(precisions_of_right(rank_bins).sum(axis=1), rank_bins.total - rank_bins.wrong)


def precisions_of_right(bins: RankSums) -> Array:
    """Return c · (precision of right pixels up to each bin) [set, bin]."""
    rate = bins.upto - bins.errors_upto
    rate /= np.maximum(bins.upto, 1)
    rate *= bins.pixels - bins.errors
    return rate


def fpr95(rank_bins: SetRankBins) -> Array:
    """Return the share of right pixels that the highest threshold with 95 % recall rejects.

    Recall counts the wrong pixels. Undefined without wrong or without right pixels.
    """
    wrong, right = rank_bins.wrong, rank_bins.total - rank_bins.wrong
    # The last bin with 20·(errors of it and above) >= 19·errors: at most 5 % lie below it.
    last = rank_bins.upto.shape[1] - 1
    at = np.minimum(_first(rank_bins.errors_upto, wrong // 20, "right"), last)
    fields = (rank_bins.upto, rank_bins.pixels, rank_bins.errors_upto, rank_bins.errors)
    upto, pixels, errors_upto, errors = (_value_at_bin(values, at) for values in fields)
    below = (upto - pixels) - (errors_upto - errors)
    return np.where(wrong > 0, over(right - below, right), np.nan)


def aurc(rank_bins: SetRankBins) -> Array:
    """Return Σ n·E↑/N↑ / N: mean error rate of the k most certain pixels, k = 1 … N, ties as
    plateaus.

    Geifman & El-Yaniv 2017; Geifman et al. 2019, eq. 1. Undefined without pixels.
    """
    return rank_bins.mean_risk


def e_aurc(rank_bins: SetRankBins) -> Array:
    """Return AURC minus that of the best order, which has all errors last: Geifman et al. 2019,
    eq. 2. Undefined without pixels.
    """
    counts = zip(rank_bins.total.tolist(), rank_bins.wrong.tolist(), strict=True)
    best = [best_aurc(int(total), int(wrong)) for total, wrong in counts]
    return at_least_0(difference(rank_bins.mean_risk, np.array(best)))


def augrc(rank_bins: SetRankBins) -> Array:
    """Return area under E(k)/N over k/N, 0 to 1, ties averaged: Traub et al. 2024, eq. 5.

    Equal to r·(1 - r)·(1 - AUROC) + r²/2 with r = E/N. Undefined without pixels.
    """
    risks = rank_bins.errors_upto - rank_bins.errors / 2
    risks *= rank_bins.pixels
    return over(over(risks.sum(axis=1), rank_bins.total), rank_bins.total)


def best_aurc(pixels: int, wrong: int) -> float:
    """Return AURC with all errors last: (E - C·(H_N - H_C))/N, H the harmonic numbers."""
    right = pixels - wrong
    if wrong == 0:
        return 0.0
    return (wrong - right * harmonic(right, pixels)) / pixels


def harmonic(a: int, b: int) -> float:
    """Return H_b - H_a = 1/(a + 1) + … + 1/b for 0 <= a <= b, with at most 64 terms added up."""
    if not 0 <= a <= b:
        raise ValueError(f"harmonic numbers of {a} and {b}")
    start = min(max(a, 64), b)
    first = math.fsum(1 / m for m in range(a + 1, start + 1))
    if start == b:
        return first
    tail = [math.log1p((b - start) / start), 1 / (2 * b), -1 / (2 * start)]
    tail += [-1 / (12 * b**2), 1 / (12 * start**2), 1 / (120 * b**4), -1 / (120 * start**4)]
    tail += [-1 / (252 * b**6), 1 / (252 * start**6)]
    return math.fsum([first, *tail])


def risk_at(rank_bins: SetRankBins, percent: int) -> Array:
    """Return the error rate of the fewest most certain pixels that reach a coverage, ties whole."""
    at = _first(rank_bins.upto, -(-percent * rank_bins.total // 100), "left")
    return over(_value_at_bin(rank_bins.errors_upto, at), _value_at_bin(rank_bins.upto, at))


def coverage_at(rank_bins: SetRankBins, percent: int) -> Array:
    """Return the largest share of most certain pixels with an error rate of at most `percent` %.

    0 if even the most certain tie has a higher one.
    """
    good = 100 * rank_bins.errors_upto <= percent * rank_bins.upto
    return over(np.where(good, rank_bins.upto, 0.0).max(axis=1, initial=0.0), rank_bins.total)


def _first(cumulative: Array, limits: Array, side: Literal["left", "right"]) -> Array:
    """Return the first bin [set] that reaches (or, from the "right", passes) the limit of
    its set.
    """
    is_before = np.less if side == "left" else np.less_equal
    return np.count_nonzero(is_before(cumulative, limits[:, None]), axis=1)


def cumulated(values: Array) -> Array:
    """Return the sums of values [set, bin] up to the end of each bin, in the type of the values.

    Whole numbers are added up as integers. The sums are the same up to 2^53, and take a third of
    the time: the CPU begins a sum of floats when the one before it is done.
    """
    if values.size < _FEW or values.dtype.kind != "f":
        return values.cumsum(axis=1)
    with np.errstate(invalid="ignore"):
        counts = values.astype(np.int64)
    are_counts = (counts == values).all()
    return counts.cumsum(axis=1).astype(values.dtype) if are_counts else values.cumsum(axis=1)


def dot(a: Array, b: Array) -> Array:
    """Return Σ_bin a·b of each set."""
    return np.einsum("sb,sb->s", a, b)


def _value_at_bin(values: Array, bins: Array) -> Array:
    """Return the value [set] of each set at its bin; 0 where there are no bins."""
    if not values.shape[1]:
        return np.zeros(len(values))
    return np.take_along_axis(values, bins[:, None], axis=1)[:, 0]


#: Scores by rank, by their fields; and those at given percentages.
SCORES: dict[str, Callable[[SetRankBins], Array]] = {
    "auroc": auroc, "aupr_error": aupr_error, "aupr_success": aupr_success, "fpr95": fpr95,
    "aurc": aurc, "e_aurc": e_aurc, "augrc": augrc,
}  # fmt: skip
AT_CUTS: dict[str, tuple[Callable[[SetRankBins, int], Array], tuple[int, ...]]] = {
    "risk_at_coverage": (risk_at, COVERAGES), "coverage_at_risk": (coverage_at, RISKS),
}  # fmt: skip
