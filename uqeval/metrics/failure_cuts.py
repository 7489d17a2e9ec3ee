"""The bins that hide the exact place of a cut, and those that widen the bounds of areas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uqeval.arrays import np
from uqeval.metrics.failure_columns import COVERAGES, RISKS

if TYPE_CHECKING:
    from uqeval.metrics._rank_bins import RankBins


def bins_to_split(rank_bins: RankBins) -> list[int]:
    """Return the bins to split until cuts at given ranks are exact, the most urgent first.

    These are the bins that hold a wanted rank. For the coverage at a risk, they are also the bins
    above the last good one that may hold a better cut.
    """
    if not rank_bins.total:
        return []
    wrong, cumulative, errors = rank_bins.errors_upto, rank_bins.upto, rank_bins.errors
    cuts = _bins_at_cuts(rank_bins)
    for percent in RISKS:
        good = 100 * wrong <= percent * cumulative
        first = good.size - int(np.argmax(good[::-1])) if good.any() else 0
        above = slice(first, None)
        wrong_before, best = wrong[above] - errors[above], cumulative[above] - errors[above]
        hopeful = 100 * wrong_before <= percent * best
        cuts += (first + np.flatnonzero(hopeful & rank_bins.open[above])[::-1]).tolist()
    return [i for i in dict.fromkeys(cuts) if rank_bins.open[i]]


def cut_ties(rank_bins: RankBins) -> int:
    """Return the pixels of the ties at a wanted coverage or at 95 % of the wrong pixels.

    No threshold divides a tie. Exact once `bins_to_split` is empty.
    """
    if not rank_bins.total:
        return 0
    return sum(
        int(rank_bins.pixels[i]) for i in set(_bins_at_cuts(rank_bins)) if rank_bins.pixels[i] > 1
    )


def widest_bins(rank_bins: RankBins, count: int) -> list[int]:
    """Return the open bins that widen the bounds most."""
    # The share of each bin in the bound of AUROC, and in that of AURC and AUPR.
    widths = (
        rank_bins.errors * rank_bins.right / 2,
        rank_bins.pixels * (rank_bins.pixels / rank_bins.upto),
    )
    width = sum(w / max(w.max(initial=0), 1e-300) for w in widths) * rank_bins.open
    candidates = np.arange(width.size)
    if width.size > count:
        candidates = np.flatnonzero(width >= np.partition(width, -count)[-count])
    order = candidates[np.argsort(-width[candidates], kind="stable")][:count]
    return [int(i) for i in order if width[i] > 0]


def _bins_at_cuts(rank_bins: RankBins) -> list[int]:
    """Return the bins of the wanted coverages, and of 95 % of the wrong pixels if defined."""
    bins = [_bin_of_coverage(rank_bins, percent) for percent in COVERAGES]
    wrong = int(rank_bins.errors.sum())
    return [*bins, bin_of_95(rank_bins)] if 0 < wrong < rank_bins.total else bins


def bin_of_95(rank_bins: RankBins) -> int:
    """Return the last bin at and above which lie at least 95 % of the wrong pixels, of which there
    must be some."""
    wrong = rank_bins.errors_upto
    above = wrong[-1] - wrong + rank_bins.errors
    return int(np.flatnonzero(20 * above >= 19 * wrong[-1])[-1])


def _bin_of_coverage(rank_bins: RankBins, percent: int) -> int:
    least = -(-percent * rank_bins.total // 100)  # of pixels, rounded up
    return int(np.searchsorted(rank_bins.upto, least))
