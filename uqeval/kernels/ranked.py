"""Counting pixels and summing errors by the rank key of a score."""

from __future__ import annotations

import numpy as np

from uqeval.kernels._jit import kernel
from uqeval.kernels.counting import BLOCK, gather, rank_key

#: High bits of a key that are looked up within a block (see `_row_of`).
LAST_BITS = 6


@kernel
def count_ranked_finely(
    score, error, label, void, squared, skip_shift, shift, is_wanted, slot, pixels, errors
):  # fmt: skip
    """Count pixels [i] with wanted high bits `key >> skip_shift` (see `counting.gather`); sum their
    errors (or squared errors).

    Adds to [`slot` [high bits], the following bits down to `shift`].
    """
    high, indices = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    mask = pixels.shape[1] - 1
    for start in range(0, label.shape[0], BLOCK):
        stop = start + BLOCK
        scores, labels, values = score[start:stop], label[start:stop], error[start:stop]
        for j in range(gather(scores, labels, void, skip_shift, is_wanted, high, indices)):
            i = indices[j]
            key, e = rank_key(scores[i]), np.float64(values[i])
            row, b = slot[key >> skip_shift], (key >> shift) & mask
            pixels[row, b] += 1
            errors[row, b] += e * e if squared else e


@kernel
def _row_of(key, c, void, by_class, block, column, slot, prefix_shift):
    """Return the row of a pixel with label `c`: `slot` [group, column of its key's high bits].

    The column is `column` [b, last `LAST_BITS` of the high bits], with b = `block` [other high
    bits]: one table of all high bits would be too large for the cache of the CPU. The group is the
    label if `by_class`, else 0. The row is -1 if the pixel does not count.
    """
    if c == void:
        return np.int64(-1)
    high = key >> prefix_shift
    of_key = column[block[high >> LAST_BITS], high & ((1 << LAST_BITS) - 1)]
    return np.int64(slot[np.int64(c) if by_class else np.int64(0), of_key])


@kernel
def count_ranked(
    score, error, label, void, by_class, squared, block, column, slot, prefix_shift, rest_shift,
    mask, pixels, errors,
):  # fmt: skip
    """Count pixels [y, x] and sum their errors (or squared errors) by rank key, into [row, bin].

    The row of a pixel is that of `_row_of`. The bin is the next bits of the key, `key >> rest_shift
    & mask`.
    """
    height, width = label.shape
    for y in range(height):
        for x in range(width):
            key = rank_key(score[y, x])
            row = _row_of(key, label[y, x], void, by_class, block, column, slot, prefix_shift)
            if row < 0:
                continue
            e = np.float64(error[y, x])
            b = (key >> rest_shift) & mask
            pixels[row, b] += 1
            errors[row, b] += e * e if squared else e


@kernel
def place_ranked(
    score, error, label, void, by_class, block, column, slot, prefix_shift, rest_shift, bits, keys
):
    """Write a key into `keys` [i] for each pixel that `count_ranked` counts; return their number.

    A key is twice the pixel's place in the flat [row, bin], plus 1 for an error. A row has 2^`bits`
    bins.
    """
    height, width = label.shape
    mask = (1 << bits) - 1
    n = 0
    for y in range(height):
        for x in range(width):
            key = rank_key(score[y, x])
            row = _row_of(key, label[y, x], void, by_class, block, column, slot, prefix_shift)
            if row < 0:
                continue
            place = np.int64(row) << bits | (key >> rest_shift) & mask
            keys[n] = place << 1 | (1 if error[y, x] != 0 else 0)
            n += 1
    return n
