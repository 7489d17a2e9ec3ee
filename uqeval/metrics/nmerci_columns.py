"""n-MeRCI of many sets of items, from counts of λ and ε by bin.

All values of a bin count as its middle, and so as a tie.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import uqeval.metrics.nmerci_scores as ns
from uqeval.arrays import Array, np
from uqeval.metrics._columns import SetColumns, SetStates
from uqeval.metrics._tiles import AtRanks, Cumulated, RankedSets, Tiles, at_ranks

if TYPE_CHECKING:
    from uqeval.metrics.nmerci_settings import NmerciSettings

    #: Ranks below and above a percentile and the weight of the one above; None where undefined.
    Ranks = tuple[int, int, float] | None

_FIELDS = ("nmerci", "merci", "lambda", "mae", "mae_trimmed", "max_alpha", "pixels")
#: Fields that need errors of selected pixels, which states do not have.
OF_KEPT = ("nmerci", "merci", "mae_trimmed")


def middles(bins: Array) -> Array:
    """Return the middle of each bin of `ErrorRanks`; 0 and ∞ are their own bins' values."""
    from uqeval.tallies.rank_keys import FINE_BITS, values_of

    first = values_of(bins << FINE_BITS)
    middle = (first.view(np.int32) + (1 << (FINE_BITS - 1))).view(np.float32)
    return np.where((first == 0) | np.isinf(first), first, middle).astype(np.float64)


def columns_of(settings: NmerciSettings, sums: SetStates, states: SetStates) -> SetColumns:
    """Return the scores of states of `ItemErrors` and `ErrorRanks`, NaN where undefined."""
    from uqeval.tallies.percentiles import ranks_of

    assert isinstance(states, RankedSets) and states.columns is not None
    value, tiles = middles(states.columns), states.tiles
    counts = tiles.totals("coarse")[:, 0].sum(axis=1).astype(np.int64).tolist()
    ranks = [ranks_of(n, settings.alpha, settings.interpolation) for n in counts]
    ratio, error = (_located(tiles, row, ranks, value) for row in (0, 1))
    rows = []
    for i, item_ranks in enumerate(ranks):
        totals = ns.Sums(int(sums["pixels"][i, 0]), *sums["totals"][i].tolist())
        lambda_, most = (_percentile(at_ranks, i, item_ranks, value) for at_ranks in (ratio, error))
        below = None
        if most is not None and math.isfinite(most):
            end = int(most >= value[error.bins[i, 1]])  # in the bin below the percentile or above
            count, total = (cumulative[i, end] for cumulative in error.upto)
            below = ns.Sums(int(count), float(total), math.nan)
        parts = ns.Parts(totals, lambda_, most, below)
        scores = ns.score(parts, "all", settings.mae)
        trimmed = below.mae if below else None
        rows.append((scores[2], scores[1], scores[0], totals.mae, trimmed, most, totals.pixels))
    values = np.array(rows, np.float64).reshape(-1, len(_FIELDS)).T
    left_out = OF_KEPT if settings.over == "kept" else ()
    named_values = zip(_FIELDS, values, strict=True)
    return {(name,): column for name, column in named_values if name not in left_out}


def _located(
    tiles: Tiles, row: int, ranks: Sequence[Ranks], value: Array
) -> AtRanks:  # fmt: skip
    """Return the bins of the ranks below and above the percentile of each set, and the counts and
    sums of values up to these."""
    finite = np.where(np.isinf(value), 0.0, value)

    @lru_cache(1)  # both fields of a tile are read one after the other
    def cumulative_counts(tile: int) -> Array:
        return tiles.upto("coarse", tile, row)

    def sums(tile: int) -> Array:
        counts = np.diff(cumulative_counts(tile), prepend=0.0, axis=1)
        return np.asarray((counts * finite[tiles.spans[tile]]).cumsum(axis=1))

    required = np.array(
        [
            (0, 0) if rank_pair is None else (rank_pair[0] + 1, rank_pair[1] + 1)
            for rank_pair in ranks
        ]
    )
    of_counts = Cumulated(tiles.totals("coarse")[:, row], cumulative_counts)
    of_values = Cumulated(tiles.totals("coarse", finite)[:, row], sums)
    return at_ranks(tiles, required, of_counts, of_values)


def _percentile(at_ranks: AtRanks, i: int, ranks: Ranks, value: Array) -> float | None:
    from uqeval.tallies.percentiles import between

    if ranks is None:
        return None
    lower, upper = value[at_ranks.bins[i]].tolist()
    return between(lower, upper, ranks[2])
