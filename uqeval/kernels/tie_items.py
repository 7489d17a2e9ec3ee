"""Exact ranks of many items, in some of the rank bins, in one call: see `items`."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqeval.kernels._jit import bits_of_float32, float32_of, kernel
from uqeval.kernels.counting import BLOCK, gather, rank_key
from uqeval.kernels.items import largest_item, sort_keys
from uqeval.kernels.sorting import DIGITS, RADIX, pack_keys, sum_ties


@kernel
def split_bins_of_items(
    first, score, error, label, void, squared, rest_bits, bin_first, bins, pixels, errors, split,
    is_wanted, ends, pixels_of_ties, errors_upto,
):  # fmt: skip
    """Count pixels and errors of each item by rank, with ties in place of the bins to `split`.

    Item i has the entries `bin_first[i]` up to `bin_first[i + 1]` of `bins`, the high bits of rank
    keys, ascending, with their `pixels` and `errors`; the bins to split are among its pixels of
    `score`, `error` and `label` [k], packed as by `pack_keys`. `is_wanted` uint8 [bin + 1] is a
    work array, all 0 before and after. Item i gets the entries `ends[i]` up to `ends[i + 1]`:
    `pixels_of_ties`, and errors up to the end of each.
    """
    histogram, no_keys = np.empty((DIGITS, RADIX), np.int64), np.empty(0, np.uint64)
    no_counts, no_sums = np.empty(0, np.int64), np.empty(0, np.float64)
    written = 0
    for i in range(first.shape[0] - 1):
        a, b = first[i], first[i + 1]
        entries = range(bin_first[i], bin_first[i + 1])
        wanted = 0
        for j in entries:
            if split[j]:
                is_wanted[bins[j]] = 1
                wanted += pixels[j]
        keys, count, sums = no_keys, no_counts, no_sums
        if wanted > 0:
            keys, buffer = np.empty(wanted, np.uint64), np.empty(wanted, np.uint64)
            count, sums = np.empty(wanted, np.int64), np.empty(wanted, np.float64)
            pack_keys(score[a:b], error[a:b], label[a:b], void, is_wanted, rest_bits, keys)
            sort_keys(keys, buffer, histogram)
            keys = keys[: sum_ties(keys, squared, count, sums)]
        total, tie = 0.0, 0
        for j in entries:
            if not split[j]:
                total += errors[j]
                pixels_of_ties[written], errors_upto[written] = pixels[j], total
                written += 1
                continue
            is_wanted[bins[j]] = 0
            while tie < keys.shape[0] and np.int64(keys[tie] >> np.uint64(rest_bits)) == bins[j]:
                total += sums[tie]
                pixels_of_ties[written], errors_upto[written] = count[tie], total
                written += 1
                tie += 1
        ends[i + 1] = written


@kernel
def count_finely_of_items(
    first, score, error, label, void, squared, skip_shift, rest_bits, bits, is_wanted, slot, share,
    ends, places, pixels, errors,
):  # fmt: skip
    """Count pixels and their errors as `count_ranked_finely` does, per item.

    A place is `slot` [high bits of a key] << `bits`, plus the `bits` bits above the low
    `rest_bits`. Errors of a place are added in the order of pixels; if at most one of `share`
    pixels of an item counts (0: never), in ascending order, as `sum_ties` does. Item i gets the
    entries `ends[i]` up to `ends[i + 1]`: `places`, ascending, with their `pixels` and `errors`.
    """
    keys, buffer = np.empty(largest_item(first), np.uint64), np.empty(largest_item(first), "u8")
    histogram = np.empty((DIGITS, RADIX), np.int64)
    high, indices = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    mask, low = (1 << bits) - 1, np.uint64(0xFFFFFFFF)
    written = 0
    for i in range(first.shape[0] - 1):
        a, b = first[i], first[i + 1]
        n = 0
        for start in range(a, b, BLOCK):
            stop = min(start + BLOCK, b)
            scores = score[start:stop]
            for j in range(
                gather(scores, label[start:stop], void, skip_shift, is_wanted, high, indices)
            ):
                key = rank_key(scores[indices[j]])
                place = np.int64(slot[key >> skip_shift]) << bits | (key >> rest_bits) & mask
                keys[n] = np.uint64(place << 32 | (start - a + indices[j]))
                n += 1
        is_sorted = share > 0 and n <= max((b - a) // share, 1)
        for j in range(n if is_sorted else 0):
            e = error[a + np.int64(keys[j] & low)] + np.float32(0.0)
            keys[j] = (keys[j] & ~low) | np.uint64(np.int64(bits_of_float32(e)))
        sort_keys(keys[:n], buffer, histogram)
        for j in range(n):
            place, rest = np.int64(keys[j] >> np.uint64(32)), np.int64(keys[j] & low)
            if j == 0 or places[written - 1] != place:
                places[written], pixels[written], errors[written] = place, 0, 0.0
                written += 1
            narrow: Any = np.int32(rest)
            e = np.float64(float32_of(narrow) if is_sorted else error[a + rest])
            pixels[written - 1] += 1
            errors[written - 1] += e * e if squared else e
        ends[i + 1] = written
