"""The passes that rank pixels exactly, over the set and within each ground-truth class."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any

from uqeval.arrays import np
from uqeval.metrics._evaluation import Passes
from uqeval.metrics._rank_bins import RankBins
from uqeval.metrics.failure_cuts import bins_to_split, widest_bins

if TYPE_CHECKING:
    from uqeval.tallies._values import Uncertainty
    from uqeval.tallies.ranked_errors import RankedErrors

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
            rows = np.array(tally.bins, np.int64)
            groups = np.unique(rows[:, 0]).tolist() if tally.by_class else []
            finer = RankBins.by_group(tally, results[tally].total, groups)
            unfinished += groups or (None,)
            for group in groups or (None,):
                split = rows[:, 1] if group is None else rows[rows[:, 0] == group, 1]
                by_group[group] = by_group[group].with_split(finer[group], POOLED_BITS, split)
