"""Sums of single columns of numbers of items over sets of items, where few columns are needed."""

from __future__ import annotations

import numpy as np

from uqeval.kernels._jit import kernel, kernel_part
from uqeval.kernels.counting import count_below

#: Partial sums of one sum of float64 numbers, so that the compiler vectorizes it: their order, and
#: with it the bits, do not depend on the CPU.
LANES = 64
#: The number of columns that are guessed before the rest are halved.
_GUESSES = 8


@kernel_part
def _weighted_count(counts, weights, is_small):
    if is_small:
        small_total = np.int32(0)
        for i in range(counts.shape[0]):
            product = np.int32(np.int32(counts[i]) * np.int32(weights[i]))
            small_total = np.int32(small_total + product)
        return np.int64(small_total)
    total = np.int64(0)
    for i in range(counts.shape[0]):
        total += np.int64(counts[i]) * np.int64(weights[i])
    return total


@kernel
def find_columns(
    counts, weights, is_small, sign, base, curve, sets, ranks, columns, before, upto
):  # fmt: skip
    """Find the first column in which the sum of a set reaches a rank, for pairs [k] of a set and a
    rank, into `columns`; its sum into `upto`, that of the column before it, or 0, into `before`.

    The sum of a column is `base` [column] plus `sign` times the `counts` [column, item] by
    `weights` [set, item]. Sums ascend by column; where none reaches the rank, the last column is
    taken. `curve` [column]: about the sums of a set, from which columns are guessed. `is_small`:
    no sum exceeds 32 bits.
    """
    last = counts.shape[0] - 1
    for k in range(sets.shape[0]):
        weight, rank = weights[sets[k]], ranks[k]
        low, high, is_high_known = -1, last, False
        low_sum, high_sum, shift = 0.0, 0.0, 0.0
        guesses = 0
        while high - low > 1 or not is_high_known:
            if guesses < _GUESSES:
                at = count_below(curve, rank - shift, False)
                guesses += 1
            else:
                at = (low + high) // 2
            at = max(min(at, high - 1 if is_high_known else high), low + 1)
            total = base[at] + sign * np.float64(_weighted_count(counts[at], weight, is_small))
            shift = total - curve[at]
            if total >= rank or at == last:
                high, high_sum, is_high_known = at, total, True
            else:
                low, low_sum = at, total
        columns[k], before[k], upto[k] = high, low_sum, high_sum


@kernel
def sum_columns(values, weights, sign, base, sets, columns, lanes, before, upto):
    """Write the sum of a column, as in `find_columns`, of pairs [k] of a set and a column to `upto`
    [k]; that of the column before it, or 0, to `before`. `lanes`: float64 [2, LANES].

    Both in one loop: most of the time goes to the conversion of the weights.
    """
    items = values.shape[1]
    whole = items - items % LANES
    for k in range(sets.shape[0]):
        column, weight = columns[k], weights[sets[k]]
        low, high = values[max(column - 1, 0)], values[column]
        lanes[:] = 0.0
        for i in range(0, whole, LANES):
            for j in range(LANES):
                w = np.float64(weight[i + j])
                lanes[0, j] += low[i + j] * w
                lanes[1, j] += high[i + j] * w
        low_sum = high_sum = 0.0
        for i in range(whole, items):
            low_sum += low[i] * weight[i]
            high_sum += high[i] * weight[i]
        for j in range(LANES):
            low_sum += lanes[0, j]
            high_sum += lanes[1, j]
        before[k] = base[column - 1] + sign * low_sum if column > 0 else 0.0
        upto[k] = base[column] + sign * high_sum
