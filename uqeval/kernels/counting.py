"""Counting maps: pixels by class, patches by thresholds, numbers by rank."""

from __future__ import annotations

import numpy as np

from uqeval.kernels._jit import bits_of_float32, kernel, kernel_part

#: A rank key has 32 bits: `COARSE` bins by the high ones, `FINE` numbers in each.
FINE_BITS = 13
COARSE = 1 << (32 - FINE_BITS)
FINE = 1 << FINE_BITS
#: Numbers in a block, which is processed at once.
BLOCK = 4096
#: Counts in a block that `find_ranks` skips at once.
_STRIDE = 64


@kernel_part
def rank_key(value):
    """Return an integer in [0, 2^32) that orders like the float32 `value` (not NaN)."""
    bits = np.int64(bits_of_float32(value))
    if bits >= 0:
        return bits + np.int64(2147483648)
    return -bits - np.int64(1)


@kernel_part
def high_bits(values, labels, void, shift, high):
    """Write the rank keys of a block of numbers [i] without their low `shift` bits to `high`
    (int32).

    Void numbers get 2^(32 - `shift`), which no key has. The loop has no branch and no table lookup,
    so that the compiler vectorizes it.
    """
    void_code = 1 << (32 - shift)
    for i in range(values.shape[0]):
        bits = bits_of_float32(values[i])
        ordered = (bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF))) >> shift
        high[i] = ordered + (void_code >> 1) if labels[i] != void else void_code


@kernel_part
def gather(values, labels, void, shift, is_wanted, high, pixels):
    """Collect the `pixels` of a block of numbers [i] whose high bits are wanted; return how many.

    `is_wanted` uint8 [high bits + 1], the last for void numbers. `high`: see `high_bits`. The loop
    has no branch, because processors cannot predict which pixels are wanted.
    """
    high_bits(values, labels, void, shift, high)
    n = np.uint64(0)
    for i in range(values.shape[0]):
        pixels[n] = i
        n += np.uint64(is_wanted[np.uint32(high[i])])
    return np.int64(n)


@kernel
def count_all_ranks(value, label, void, coarse):
    """Count non-void numbers [i] by the high bits of their keys, into [coarse bin]."""
    high = np.empty(BLOCK, np.int32)
    for start in range(0, value.shape[0], BLOCK):
        values, labels = value[start : start + BLOCK], label[start : start + BLOCK]
        high_bits(values, labels, void, FINE_BITS, high)
        for i in range(values.shape[0]):
            b = np.uint32(high[i])
            if b < COARSE:
                coarse[b] += 1


@kernel
def count_all_ranks_finely(value, label, void, is_wanted, slot, fine):
    """Count numbers [i] in the wanted coarse bins (see `gather`), into [slot, low bits].

    `slot` [coarse bin]: the row of a bin.
    """
    high, pixels = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    for start in range(0, value.shape[0], BLOCK):
        values, labels = value[start : start + BLOCK], label[start : start + BLOCK]
        for j in range(gather(values, labels, void, FINE_BITS, is_wanted, high, pixels)):
            key = rank_key(values[pixels[j]])
            fine[slot[key >> FINE_BITS], key & (FINE - 1)] += 1


@kernel_part
def _sum(counts):
    total = np.int64(0)
    for i in range(counts.shape[0]):
        total += np.int64(counts[i])
    return total


@kernel
def find_ranks(counts, row, rank, place):
    """Find the place in its `row` [k] of `counts` [row, i] of each `rank` [k], into `place`.

    Ranks count from 0 within a row. Rows ascend, and the ranks of one row ascend. Returns False if
    a row has too few numbers.
    """
    i, below = 0, np.int64(0)
    for k in range(row.shape[0]):
        row_counts = counts[row[k]]
        if k == 0 or row[k] != row[k - 1]:
            i, below = 0, np.int64(0)
        while i < row_counts.shape[0]:
            if i % _STRIDE == 0:
                stride_count = _sum(row_counts[i : i + _STRIDE])
                if below + stride_count <= rank[k]:
                    below += stride_count
                    i += _STRIDE
                    continue
            if below + np.int64(row_counts[i]) > rank[k]:
                break
            below += np.int64(row_counts[i])
            i += 1
        if i >= row_counts.shape[0]:
            return False
        place[k] = i
    return True


@kernel
def count_ranks(value, group, void, separate, coarse):
    """Count numbers [i] by the high bits of their keys, into [group, coarse bin].

    Elements whose `group` [i] is `void` do not count. Unless groups are kept `separate`, all other
    elements count in one group.
    """
    for i in range(value.shape[0]):
        g = group[i]
        if g != void:
            coarse[g if separate else 0, rank_key(value[i]) >> FINE_BITS] += 1


@kernel
def count_ranks_finely(value, group, void, separate, slot, fine):
    """Count numbers [i] in the coarse bins that have a slot, into [slot, low bits].

    `slot` [group, coarse bin] is -1 where a bin is not wanted; else as `count_ranks`.
    """
    for i in range(value.shape[0]):
        g = group[i]
        if g != void:
            key = rank_key(value[i])
            s = slot[g if separate else 0, key >> FINE_BITS]
            if s >= 0:
                fine[s, key & (FINE - 1)] += 1


@kernel_part
def count_below(edges, value, closed):
    """Return how many ascending `edges` lie below `value` (`closed`: or on it)."""
    low, high = 0, edges.shape[0]
    while low < high:
        middle = (low + high) // 2
        if edges[middle] < value or (closed and edges[middle] == value):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def count_patches(
    mean, hits, valid, category, void, by_category, threshold, curve, accuracy_threshold, grid,
    accurate_closed, uncertain_closed, counts, by_threshold, by_accuracy, ties,
):  # fmt: skip
    """Count patches [i] by category, accuracy and uncertainty.

    `threshold` float32 [group] and `curve` float32 [group, t] ascending: thresholds of uncertainty,
    one group, or one per category. `grid` float64 [a] ascending: thresholds of accuracy.
    `*_closed`: a patch on the threshold counts as accurate (uncertain). Adds to `counts` [category,
    accurate, uncertain], `by_threshold` [category, accurate, thresholds of the curve below],
    `by_accuracy` [thresholds of the grid below, uncertain] and `ties` [accuracy, uncertainty].
    """
    mixed = counts.shape[0] - 1
    for i in range(mean.shape[0]):
        c = category[i]
        if c < 0:
            continue
        if c == void:
            c = mixed
        g = c if by_category else 0
        a = hits[i] / valid[i]
        u = mean[i]
        accurate = int(a > accuracy_threshold or (accurate_closed and a == accuracy_threshold))
        uncertain = int(u > threshold[g] or (uncertain_closed and u == threshold[g]))
        counts[c, accurate, uncertain] += 1
        by_threshold[c, accurate, count_below(curve[g], u, uncertain_closed)] += 1
        by_accuracy[count_below(grid, a, accurate_closed), uncertain] += 1
        ties[0] += a == accuracy_threshold
        ties[1] += u == threshold[g]


@kernel
def add_weighted(item, column, value, weights, sums):
    """Add `value` [entry] times `weights` [item, set] of its item to `sums` [column, set]."""
    for entry in range(value.shape[0]):
        weight, total = weights[item[entry]], sums[column[entry]]
        for s in range(weight.shape[0]):
            total[s] += value[entry] * weight[s]
