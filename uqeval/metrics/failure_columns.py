"""Scores of failure detection for many sets of items, from pixels and errors by bin.

The formulas of `failure_scores` over [set, bin], bins of ascending uncertainty that any set
occupies; the pixels of a bin are a tie, and bins without pixels of a set change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from uqeval.arrays import Array, np
from uqeval.metrics._columns import SetColumns, SetStates, over
from uqeval.metrics._tiles import RankedSets, Tiles
from uqeval.metrics.failure_cuts import COVERAGES, RISKS
from uqeval.metrics.sparsification_curves import harmonics


@dataclass(frozen=True)
class SetRankBins:
    """Pixels and errors of each bin [set, bin], ascending."""

    states: RankedSets

    @classmethod
    def from_states(cls, states: SetStates) -> SetRankBins:
        """Return the bins of states of `RankedErrors` of one row."""
        assert isinstance(states, RankedSets)
        return cls(states)

    @property
    def tiles(self) -> Tiles:
        """Return tiles of bins."""
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
        cumulative: Array = self.pixels.cumsum(axis=1)
        return cumulative

    @cached_property
    def errors_upto(self) -> Array:
        """Return errors up to the end of each bin."""
        cumulative: Array = self.errors.cumsum(axis=1)
        return cumulative

    @property
    def total(self) -> Array:
        """Return all pixels [set]."""
        pixels: Array = self.tiles.totals("pixels")[:, 0].sum(axis=1)
        return pixels

    @property
    def wrong(self) -> Array:
        """Return all errors [set]."""
        errors: Array = self.tiles.totals("errors")[:, 0].sum(axis=1)
        return errors


def columns(rank_bins: SetRankBins, fields: Collection[str]) -> SetColumns:
    """Return the wanted scores from bins."""
    results: SetColumns = {}
    for name, formula in SCORES.items():
        if name in fields:
            results[name,] = formula(rank_bins)
    if "risk_at_coverage" in fields:
        results |= {("risk_at_coverage", str(p)): _risk_at(rank_bins, p) for p in COVERAGES}
    if "coverage_at_risk" in fields:
        results |= {("coverage_at_risk", str(p)): _coverage_at(rank_bins, p) for p in RISKS}
    return results


def _auroc(rank_bins: SetRankBins) -> Array:
    wrong, right = rank_bins.wrong, rank_bins.total - rank_bins.wrong
    # Pairs of a wrong pixel and a right one below it; pairs in the same bin count half.
    errors = rank_bins.errors
    pairs = dot(errors, rank_bins.upto) - dot(errors, rank_bins.pixels) / 2
    ranked_errors = dot(errors, rank_bins.errors_upto) - dot(errors, errors) / 2
    return over(pairs - ranked_errors, wrong * right)


def _augrc(rank_bins: SetRankBins) -> Array:
    pixels, errors = rank_bins.pixels, rank_bins.errors
    area = dot(pixels, rank_bins.errors_upto) - dot(pixels, errors) / 2
    return over(over(area, rank_bins.total), rank_bins.total)


def _aurc(rank_bins: SetRankBins) -> Array:
    rate = np.maximum(rank_bins.upto, 1)
    np.divide(rank_bins.errors_upto, rate, out=rate)
    return over(dot(rank_bins.pixels, rate), rank_bins.total)


def _e_aurc(rank_bins: SetRankBins) -> Array:
    wrong, total = rank_bins.wrong, rank_bins.total
    right = total - wrong
    best = over(wrong - right * harmonics(right, total), total)
    excess: Array = _aurc(rank_bins) - best
    return excess


def _aupr_error(rank_bins: SetRankBins) -> Array:
    below = rank_bins.upto - rank_bins.pixels
    hits = rank_bins.wrong[:, None] - (rank_bins.errors_upto - rank_bins.errors)
    rate = hits / np.maximum(rank_bins.total[:, None] - below, 1)
    return over(dot(rank_bins.errors, rate), rank_bins.wrong)


def _aupr_success(rank_bins: SetRankBins) -> Array:
    rate = (rank_bins.upto - rank_bins.errors_upto) / np.maximum(rank_bins.upto, 1)
    return over(dot(rank_bins.pixels - rank_bins.errors, rate), rank_bins.total - rank_bins.wrong)


def _fpr95(rank_bins: SetRankBins) -> Array:
    wrong, right = rank_bins.wrong, rank_bins.total - rank_bins.wrong
    # The last bin with 20·(errors of it and above) >= 19·errors: at most 5 % lie below it.
    at = np.minimum(
        _first(rank_bins.errors_upto, wrong // 20, "right"), rank_bins.upto.shape[1] - 1
    )
    cumulative, wrong_upto = (
        _value_at_bin(rank_bins.upto, at),
        _value_at_bin(rank_bins.errors_upto, at),
    )
    below = (
        cumulative
        - _value_at_bin(rank_bins.pixels, at)
        - (wrong_upto - _value_at_bin(rank_bins.errors, at))
    )
    return np.where(wrong > 0, over(right - below, right), np.nan)


def _risk_at(rank_bins: SetRankBins, percent: int) -> Array:
    at = _first(rank_bins.upto, -(-percent * rank_bins.total // 100), "left")
    return over(_value_at_bin(rank_bins.errors_upto, at), _value_at_bin(rank_bins.upto, at))


def _coverage_at(rank_bins: SetRankBins, percent: int) -> Array:
    good = 100 * rank_bins.errors_upto <= percent * rank_bins.upto
    return over(np.where(good, rank_bins.upto, 0.0).max(axis=1, initial=0.0), rank_bins.total)


def _first(cumulative: Array, limits: Array, side: Literal["left", "right"]) -> Array:
    """Return the first bin [set] that reaches (or, from the "right", passes) the limit of
    its set.
    """
    pairs = zip(cumulative, limits, strict=True)
    return np.array([row.searchsorted(limit, side) for row, limit in pairs], np.int64)


def dot(a: Array, b: Array) -> Array:
    """Return Σ_bin a·b of each set."""
    products: Array = np.einsum("sb,sb->s", a, b)
    return products


def _value_at_bin(values: Array, bins: Array) -> Array:
    """Return the value [set] of each set at its bin; 0 where there are no bins."""
    if not values.shape[1]:
        return np.zeros(len(values))
    selected: Array = np.take_along_axis(values, bins[:, None], axis=1)[:, 0]
    return selected


#: Scores by rank of many sets, by their fields.
SCORES: dict[str, Callable[[SetRankBins], Array]] = {
    "auroc": _auroc, "aupr_error": _aupr_error, "aupr_success": _aupr_success, "fpr95": _fpr95,
    "aurc": _aurc, "e_aurc": _e_aurc, "augrc": _augrc,
}  # fmt: skip
