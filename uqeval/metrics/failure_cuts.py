"""The passes that rank pixels exactly, over the set and within each ground-truth class.

The bins that hide the exact place of a cut are split, and those that widen the bounds of areas. The
risk-coverage curve is read from the bins.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Array, np
from uqeval.metrics._contract import set_value
from uqeval.metrics._evaluation import Passes
from uqeval.metrics._rank_bins import RankBins
from uqeval.metrics.failure_columns import COVERAGES, RISKS

if TYPE_CHECKING:
    from uqeval.tallies._values import Uncertainty
    from uqeval.tallies.ranked_errors import RankedErrors


def bins_to_split(rank_bins: RankBins) -> list[int]:
    """Return the bins to split until cuts at given ranks are exact, the most urgent first.

    These are the bins that hold a wanted rank. For the coverage at a risk, they are also the bins
    above the last good one that may hold a better cut.
    """
    if not rank_bins.total:
        return []
    wrong, cumulative = rank_bins.errors_upto, rank_bins.upto
    wrong_before = wrong - rank_bins.errors
    cuts = _bins_at_cuts(rank_bins)
    for percent in RISKS:
        good = np.flatnonzero(100 * wrong <= percent * cumulative)
        hopeful = 100 * wrong_before <= percent * (cumulative - rank_bins.errors)
        hopeful[: good[-1] + 1 if good.size else 0] = False
        cuts += np.flatnonzero(hopeful & rank_bins.open)[::-1].tolist()
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


#: Most points of a curve, and the distance from the line within which no point is added.
MOST, CLOSE = 400, 3e-5


def put_curve(record: dict[str, Any], rank_bins: RankBins, undefined: str) -> None:
    """Set `curve` of a record: null without pixels."""
    if rank_bins.total:
        record["curve"] = curve(rank_bins)
    else:
        set_value(record, "curve", None, undefined)


def curve(rank_bins: RankBins) -> dict[str, Any]:
    """Return risk over coverage at exact cuts: Geifman & El-Yaniv 2017, §2.

    `coverage`: pixels kept, the most certain first, over all pixels; `risk`: wrong ones of them.
    A cut lies behind each tie or bin, of which there are `points`. At most `MOST` are kept; a cut
    that is left out is at most `bound` above or below the line between its neighbours.
    """
    coverage = rank_bins.upto / rank_bins.total
    risk = rank_bins.errors_upto / rank_bins.upto
    chosen, bound = thinned(coverage, risk)
    return {
        "coverage": np.asarray(coverage[chosen]).tolist(),
        "risk": np.asarray(risk[chosen]).tolist(),
        "points": len(coverage),
        "bound": bound,
    }


def thinned(x: Array, y: Array) -> tuple[Array, float]:
    """Return indices of at most `MOST` points, and the largest distance of the others to the line.

    Begins with the ends, and adds in each round the farthest point between neighbours.
    """
    chosen = np.unique([0, len(x) - 1])
    while True:
        gap = np.abs(y - np.interp(x, x[chosen], y[chosen]))
        bound = float(gap.max())
        if bound <= CLOSE or len(chosen) >= MOST:
            return chosen, bound
        widest = np.maximum.reduceat(gap, chosen)
        spans = np.argsort(-widest, kind="stable")[: MOST - len(chosen)]
        ends = np.append(chosen, len(x))
        added = [
            ends[i] + np.argmax(gap[ends[i] : ends[i + 1]]) for i in spans if widest[i] > CLOSE
        ]
        chosen = np.union1d(chosen, added)


#: High bits of a key: sign and exponent; those that all bins have before they are split.
BLOCK_BITS, POOLED_BITS = 9, 22
#: Rows of a state of the second pass, of 2^13 bins, and of the third, of 2^10 (48 and 32 MB).
BLOCK_ROWS, SPLIT_ROWS = 384, 2048
#: Bins that are split for the sake of the bounds: of the whole set, and of all classes together.
WIDEST = 512


def rank_pixels(
    uncertainty: Uncertainty,
    classes: int,
    cuts: Callable[[RankBins], list[int]] = bins_to_split,
    by_class: bool = True,
) -> Passes:
    """Rank the pixels of the set and of each class; return bins by class (None: the set).

    `cuts` returns the bins to split further, until it returns none; without `by_class` only the set
    is ranked.
    """
    from uqeval.tallies._errors import Error
    from uqeval.tallies.ranked_errors import RankedErrors

    wrong = Error("zero-one")
    occupied = RankedErrors(
        uncertainty, wrong, classes, True, 0, BLOCK_BITS, tuple((c, 0) for c in range(classes))
    )
    blocks = (yield (occupied,))[occupied].total["pixels"]
    by_group: dict[int | None, RankBins] = {}
    for bins in _batches(blocks):
        fine = RankedErrors(
            uncertainty, wrong, classes, True, BLOCK_BITS, POOLED_BITS - BLOCK_BITS, bins
        )
        state = (yield (fine,))[fine].total
        groups = dict.fromkeys(c for c, _ in bins) if by_class else {}
        for group, group_bins in RankBins.by_group(fine, state, groups).items():
            by_group[group] = (
                by_group[group].merged_with(group_bins) if group in by_group else group_bins
            )
    yield from _split(by_group, uncertainty, classes, cuts)
    return by_group


def _batches(blocks: Any) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield (class, block) of all pixels, all classes of a block in one batch of at most
    BLOCK_ROWS.
    """
    batch: list[tuple[int, int]] = []
    for block in np.flatnonzero(blocks.any(axis=0)).tolist():
        rows = [(c, block) for c in np.flatnonzero(blocks[:, block]).tolist()]
        if batch and len(batch) + len(rows) > BLOCK_ROWS:
            yield tuple(sorted(batch))
            batch = []
        batch += rows
    yield tuple(sorted(batch))


def _split(
    by_group: dict[int | None, RankBins],
    uncertainty: Uncertainty,
    classes: int,
    cuts: Callable[[RankBins], list[int]],
) -> Passes:
    """Split bins until every cut is exact; first also those that widen the bounds most."""
    from uqeval.tallies._errors import Error
    from uqeval.tallies.ranked_errors import RankedErrors

    rows_per_class = max(SPLIT_ROWS // max(len(by_group), 1), 8)
    first = True
    unfinished: Collection[int | None] = by_group.keys()
    while True:
        bins: dict[bool, list[tuple[int, int]]] = {False: [], True: []}
        for group in unfinished:
            rank_bins = by_group[group]
            split_bins = cuts(rank_bins)[: SPLIT_ROWS if group is None else rows_per_class]
            if first:
                widest = WIDEST if group is None else max(WIDEST // len(by_group), 8)
                split_bins += widest_bins(rank_bins, widest)
            prefixes = rank_bins.prefixes(split_bins, POOLED_BITS)
            bins[group is not None] += [(group or 0, p) for p in prefixes]
        first = False
        tallies: list[RankedErrors] = [
            RankedErrors(
                uncertainty, Error("zero-one"), classes, by_class,
                POOLED_BITS, 32 - POOLED_BITS, tuple(sorted(indices)),
            )
            for by_class, indices in bins.items() if indices
        ]  # fmt: skip
        if not tallies:
            return
        results = yield tuple(tallies)
        unfinished = []
        for tally in tallies:
            groups = dict.fromkeys(c for c, _ in tally.bins) if tally.by_class else {}
            finer = RankBins.by_group(tally, results[tally].total, groups)
            unfinished += groups or (None,)
            for group in groups or (None,):
                prefixes = [p for g, p in tally.bins if group in (None, g)]
                by_group[group] = by_group[group].with_split(finer[group], POOLED_BITS, prefixes)
