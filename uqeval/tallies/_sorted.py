"""One item's errors in the order of a score, exact: sorted, or sorted where it matters."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Array, np
from uqeval.tallies._contract import Tally
from uqeval.tallies._fields import CountedItems, FieldOfItems
from uqeval.tallies._values import COARSE, FINE_BITS

if TYPE_CHECKING:
    #: Keys of ties, scores ascending, or of bins; their pixels (never 0) and sums of errors.
    Rungs = tuple[Array, Array, Array]


def ties(
    score: Array,
    error: Array,
    label: Array,
    void: int,
    pixels: int,
    bins: Array | None = None,
    squared: bool = False,
) -> Rungs | None:
    """Return the ties of the non-void pixels [y, x]; None for more than `pixels` pixels.

    `bins`: only ties in these bins of the high bits of the key (None: all). `score` and `error` are
    float32, and errors are not negative. The errors of a tie are added in ascending order.
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
