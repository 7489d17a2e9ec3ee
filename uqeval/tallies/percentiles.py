"""Percentile rules: the ranks that each needs, and its value from them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from uqeval.arrays import Array, np
from uqeval.errors import DataError
from uqeval.tallies._values import FINE_BITS, ZERO_KEY, value_of, values_of


def ranks_of(n: int, p: float, rule: str) -> tuple[int, int, float] | None:
    """Return ranks below and above the p-th percentile of n values, and the weight of the one
    above.

    `rule`: linear and inverted_cdf are NumPy's; truncated is the last of the first ⌊n·p/100⌋.
    None without values, or where `truncated` keeps none.
    """
    if n == 0:
        return None
    if rule == "linear":
        position = (n - 1) * (p / 100.0)
        lower = min(math.floor(position), n - 1)
        return lower, min(lower + 1, n - 1), position - lower
    if rule == "inverted_cdf":
        rank = min(max(math.ceil(n * (p / 100.0) - 1), 0), n - 1)
    else:
        rank = int(n * (p / 100.0)) - 1
        if rank < 0:
            return None
    return rank, rank, 0.0


def between(a: float, b: float, weight: float) -> float:
    """Return linear interpolation between two order statistics, as NumPy rounds it; ∞ is no
    trouble.
    """
    if weight == 0 or a == b:
        return a
    if math.isinf(b):
        return b
    return b - (b - a) * (1 - weight) if weight >= 0.5 else a + (b - a) * weight


class RequiredPercentiles:
    """Percentiles of one population, found in two passes of `Ranks` or `ErrorRanks`.

    After the first pass, `bins` are the coarse bins that hold the ranks which the percentiles need;
    after the second, `values` gives the percentiles.
    """

    def __init__(self, coarse: Array, percentiles: Iterable[float], rule: str) -> None:
        occupied = np.flatnonzero(coarse != 0)  # of booleans, which is several times as fast
        below = np.append(0, np.cumsum(coarse[occupied]))
        self.n = int(below[-1])
        self.rule = rule
        self.percentiles = tuple(percentiles)
        self._ranks = sorted(
            {
                r
                for p in self.percentiles
                if (rank_pair := ranks_of(self.n, p, rule))
                for r in rank_pair[:2]
            }
        )
        at = np.searchsorted(below[1:], self._ranks, side="right")
        self._bin_of = occupied[at].tolist()
        self._within = (self._ranks - below[at]).tolist()
        self.bins = tuple(sorted(set(self._bin_of)))
        #: The largest number of values in one of these bins.
        self.most = max((int(coarse[b]) for b in self.bins), default=0)

    def limit(self, p: float) -> float | None:
        """Return which non-negative values lie below the bins of the p-th percentile: those up to
        here.
        """
        bins = self.bins_of(p)
        if not bins:
            return None
        key = bins[0] << FINE_BITS
        return value_of(key - 1) if key > ZERO_KEY else -1.0

    def bins_of(self, p: float) -> tuple[int, ...]:
        """Return the coarse bins, ascending, that hold the ranks of the p-th percentile."""
        ranks = (ranks_of(self.n, p, self.rule) or ())[:2]
        return tuple(sorted({self._bin_of[self._ranks.index(rank)] for rank in ranks}))

    def between(self, fine: Array, sums: Array, p: float, value: float) -> tuple[int, float]:
        """Return how many values lie in the bins of the p-th percentile up to a `value`, and their
        sum, of `sums` [entry of these bins, low bits]."""
        count, total = 0, 0.0
        for b, own_sums in zip(self.bins_of(p), sums, strict=True):
            row = fine[self.bins.index(b)]
            at = np.flatnonzero(row)
            smaller = at[values_of((b << FINE_BITS) + at).astype(np.float64) <= value]
            count += int(row[smaller].sum())
            total += float(own_sums[smaller].sum())
        return count, total

    def values(self, fine: Array, where: str) -> Mapping[float, float | None]:
        """Return each percentile; None if undefined. `fine` [entry of bins, low bits].

        Raises `DataError` if the values are not those counted before. `where` names the store.
        """
        from uqeval.kernels.counting import find_ranks

        row = np.searchsorted(self.bins, self._bin_of)
        low = np.empty(row.size, np.int64)
        if not find_ranks(fine, row, np.array(self._within, np.int64), low):
            raise DataError(f"{where}: changed while it was read. Start again.")
        keys = np.array(self._bin_of, np.int64) * fine.shape[1] + low
        statistic = dict(zip(self._ranks, values_of(keys).tolist(), strict=True))
        percentiles: dict[float, float | None] = {}
        for p in self.percentiles:
            ranks = ranks_of(self.n, p, self.rule)
            percentiles[p] = (
                None
                if ranks is None
                else between(statistic[ranks[0]], statistic[ranks[1]], ranks[2])
            )
        return percentiles
