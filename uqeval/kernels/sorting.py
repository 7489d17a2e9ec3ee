"""Sorting 64-bit keys by counting their digits: several times as fast as comparing them."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqeval.kernels._jit import bits_of_float32, float32_of, kernel
from uqeval.kernels.counting import BLOCK, gather, rank_key

_BITS = 11
#: Digits of a 64-bit key.
DIGITS = 6
#: Values of a digit.
RADIX = 1 << _BITS


@kernel
def radix_sort(keys, buffer, counts):
    """Sort `keys` uint64 [i] ascending; True if the sorted ones are in `buffer` [i].

    `counts` int64 [DIGITS, RADIX] is a work array of zeros. Digits that all keys share cost no
    time.
    """
    n = keys.shape[0]
    mask = np.uint64(RADIX - 1)
    for i in range(n):
        key = keys[i]
        for d in range(DIGITS):
            counts[d, np.int64((key >> np.uint64(d * _BITS)) & mask)] += 1
    source, target = keys, buffer
    swapped = False
    for d in range(DIGITS):
        shift = np.uint64(d * _BITS)
        if n == 0 or counts[d, np.int64((source[0] >> shift) & mask)] == n:
            continue
        begin = 0
        for value in range(RADIX):
            begin, counts[d, value] = begin + counts[d, value], begin
        for i in range(n):
            key = source[i]
            v = np.int64((key >> shift) & mask)
            target[counts[d, v]] = key
            counts[d, v] += 1
        source, target = target, source
        swapped = not swapped
    return swapped


@kernel
def pack_keys(score, error, label, void, is_wanted, rest_bits, keys):
    """Pack non-void scores and errors, float32 [i], into keys [j] sorted by score, then by error.

    Errors must not be negative. Only pixels are packed whose rank key without its low `rest_bits`
    bits is in `is_wanted`, as in `gather`. Returns their number. If `keys` is too small, the pixels
    of the last blocks are omitted.
    """
    high, indices = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    written = 0
    for start in range(0, score.shape[0], BLOCK):
        stop = start + BLOCK
        scores, errors = score[start:stop], error[start:stop]
        n = gather(scores, label[start:stop], void, rest_bits, is_wanted, high, indices)
        for j in range(n if written + n <= keys.shape[0] else 0):
            i = indices[j]
            low = np.int64(bits_of_float32(errors[i] + np.float32(0.0)))
            keys[written + j] = np.uint64(rank_key(scores[i]) << 32 | low)
        written += n
    return written


@kernel
def sum_ties(keys, squared, count, sums):
    """Count pixels and sum errors of each tie of sorted keys, into [tie]; return how many ties
    there are.

    Writes the rank key of tie j to `keys[j]`. With `squared`, squares errors in float64 before
    adding them.
    """
    n = keys.shape[0]
    ties, first = 0, 0
    total = 0.0
    for i in range(n):
        score = keys[i] >> np.uint64(32)
        bits = np.int64(keys[i] & np.uint64(0xFFFFFFFF))
        narrow: Any = np.int32(bits)
        error = np.float64(float32_of(narrow))
        total += error * error if squared else error
        if i + 1 == n or score != keys[i + 1] >> np.uint64(32):
            keys[ties] = score
            count[ties] = i + 1 - first
            sums[ties] = total
            ties += 1
            first, total = i + 1, 0.0
    return ties
