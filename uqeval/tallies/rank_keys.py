"""Values by their rank keys: pixels counted by key, or sorted; and percentiles of the counts.

Rank keys are whole numbers in [0, 2^32) that order as float32 numbers do.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from uqeval.arrays import Array, np
from uqeval.errors import DataError
from uqeval.tallies._contract import Tally
from uqeval.tallies._fields import CountedItems, FieldOfItems

#: A key has 19 high bits, its coarse bin, and 13 low bits; as `uqeval.kernels.counting` has them.
COARSE, FINE_BITS = 1 << 19, 13
#: The key of 0; negative numbers have smaller keys.
ZERO_KEY = 1 << 31


def keys_of(values: Array) -> Array:
    """Return the keys, int64, of numbers, which are rounded to float32."""
    bits = np.ascontiguousarray(values, np.float32).view(np.int32).astype(np.int64)
    return np.where(bits >= 0, bits + ZERO_KEY, -bits - 1)


def values_of(keys: Array) -> Array:
    """Return the float32 numbers [i] of keys int64 [i]."""
    bits = np.where(keys >= ZERO_KEY, keys - ZERO_KEY, -keys - 1)
    return bits.astype(np.int32).view(np.float32)


def value_of(key: int) -> float:
    """Return the float32 number of a key."""
    return float(values_of(np.array([key]))[0])


def ties(
    score: Array,
    error: Array,
    label: Array,
    void: int,
    pixels: int,
    bins: Array | None = None,
    squared: bool = False,
) -> tuple[Array, Array, Array] | None:
    """Return the ties of the non-void pixels [y, x]: keys, ascending; pixels, and sums of errors.

    None for more than `pixels` pixels. `bins`: only ties in these bins of the high bits of the key
    (None: all). `score` and `error` are float32, and errors are not negative. The errors of a tie
    are added in ascending order.
    """
    from uqeval.kernels.sorting import DIGITS, RADIX, pack_keys, radix_sort, sum_ties

    is_wanted = np.zeros(COARSE + 1, np.uint8)
    is_wanted[slice(-1) if bins is None else bins] = 1
    keys = np.empty(pixels, np.uint64)
    n = pack_keys(
        score.reshape(-1), error.reshape(-1), label.reshape(-1), void, is_wanted, FINE_BITS, keys
    )
    if n > pixels:
        return None
    keys, buffer = keys[:n], np.empty(n, np.uint64)
    if radix_sort(keys, buffer, np.zeros((DIGITS, RADIX), np.int64)):
        keys, buffer = buffer, keys
    count, sums = buffer.view(np.int64), np.empty(n, np.float64)
    n = sum_ties(keys, squared, count, sums)
    return keys[:n].astype(np.int64), count[:n], sums[:n]


def rank_counts(
    tally: Tally,
    first: Array,
    score: Array,
    error: Array,
    label: Array,
    void: int,
    squared: bool,
    rest: int,
) -> CountedItems:
    """Return the pixels of several items by the high bits of their rank keys, `key >> rest`, and
    the sums of their errors if the tally has them.

    Pixels [i] of `score`, `error` and `label` are those of one item after another, from `first` on.
    """
    from uqeval.kernels.items import count_ranks_of_items

    bins = 1 << (32 - rest)
    n = int(np.minimum(np.diff(first), bins).sum())
    ends = np.zeros(first.size, np.int64)
    places, pixels, errors = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    count_ranks_of_items(
        first, score.reshape(-1), error.reshape(-1), label.reshape(-1), void, squared, rest,
        *_empty_bins(bins), ends, places, pixels, errors,
    )  # fmt: skip
    return of_entries(tally, ends, places, pixels, errors)


def of_entries(
    tally: Tally, ends: Array, places: Array, pixels: Array, errors: Array
) -> CountedItems:
    """Return states of a tally of pixels, and possibly of errors, by place.

    Item i has the entries `ends[i]` up to `ends[i + 1]` of the arrays.
    """
    fields, used = [], int(ends[-1])
    for field, values in zip(tally.fields.values(), (pixels, errors), strict=False):
        entries = np.flatnonzero(values[:used])
        fields.append(
            FieldOfItems(
                values[entries].astype(field.dtype), places[entries], np.searchsorted(entries, ends)
            )
        )
    return CountedItems(ends.size - 1, tuple(fields))


_of_thread = threading.local()


def _empty_bins(bins: int) -> list[Array]:
    """Return the arrays of zeros that `count_ranks_of_items` works in, one set a thread: a state of
    all bins is mostly empty, and clearing it takes longer than counting a small item."""
    arrays: dict[int, list[Array]] = _of_thread.__dict__.setdefault("arrays", {})
    if bins not in arrays:
        words = -(-bins // 64)
        arrays[bins] = [
            np.zeros(bins, np.int64), np.zeros(bins),
            np.zeros(words, np.uint64), np.zeros(-(-words // 64), np.uint64),
        ]  # fmt: skip
    return arrays[bins]


def rows_of_bins(
    bins: Sequence[Any], shape: tuple[int, ...], dtype: str = "int16"
) -> tuple[Array, Array]:
    """Return which bins of a state have a row, uint8 [..., bin + 1], and the row of each, [...,
    bin]. `bins` are places in `shape` [..., bin], by row."""
    row = np.zeros(shape, dtype)
    is_wanted = np.zeros((*shape[:-1], shape[-1] + 1), np.uint8)
    for i, place in enumerate(bins):
        row[place], is_wanted[place] = i, 1
    return is_wanted, row


def ranks_of(n: int, p: float, rule: str) -> tuple[int, int, float] | None:
    """Return ranks below and above the p-th percentile of n values, and the weight of the one
    above.

    `rule`: linear and inverted_cdf are NumPy's; truncated is the last of the first int(n·(p/100)),
    in float64 as the public code of n-MeRCI, so it may be one rank below ⌊n·p/100⌋.
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
            raise DataError(f"{where} changed while it was read. Start again.")
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
