"""Errors ε and their ratios to σ, λ, which are made a block at a time: no map need hold them."""

from __future__ import annotations

import numpy as np

from uqeval.kernels._jit import kernel
from uqeval.kernels.counting import BLOCK, COARSE, FINE, FINE_BITS, gather, high_bits, rank_key
from uqeval.kernels.error_sums import BLOCK as LANES
from uqeval.kernels.error_sums import (
    add_flagged,
    add_numbers,
    count_flagged,
    count_infinite,
    count_known,
    count_zeros,
    raise_flagged,
)

#: Values that are looked at together, most of which hold nothing of what is collected.
_FEW = 8


@kernel
def ratio_of(error, sigma):
    """Return λ = ε/σ rounded to float32, a rank key; ∞ or 0 where σ = 0."""
    e, s = np.float64(error), np.float64(sigma)
    at_zero = np.inf if e > 0 else 0.0
    return np.float32(e / s if s > 0 else at_zero)


@kernel
def _set_ratios(error, sigma, ratio):
    for i in range(ratio.shape[0]):
        ratio[i] = ratio_of(error[i], sigma[i])


@kernel
def narrow(value, key):
    """Round numbers [i] to float32, the type of rank keys."""
    for i in range(value.shape[0]):
        key[i] = np.float32(value[i])


@kernel
def _count(high, coarse):
    for i in range(high.shape[0]):
        b = np.uint32(high[i])
        if b < COARSE:
            coarse[b] += 1


@kernel
def count_ratios(error, sigma, label, void, coarse):
    """Evaluated pixels [i] by the high bits of the keys of λ and ε, into [(λ, ε), coarse bin]."""
    value, high = np.empty(BLOCK, np.float32), np.empty(BLOCK, np.int32)
    for start in range(0, label.shape[0], BLOCK):
        stop = start + BLOCK
        errors, known = error[start:stop], label[start:stop]
        n = known.shape[0]
        _set_ratios(errors, sigma[start:stop], value[:n])
        high_bits(value[:n], known, void, FINE_BITS, high)
        _count(high[:n], coarse[0])
        narrow(errors, value[:n])
        high_bits(value[:n], known, void, FINE_BITS, high)
        _count(high[:n], coarse[1])


@kernel
def _count_finely(values, known, void, wanted, slot, high, places, fine):
    for j in range(gather(values, known, void, FINE_BITS, wanted, high, places)):
        key = rank_key(values[places[j]])
        fine[slot[key >> FINE_BITS], key & (FINE - 1)] += 1


@kernel
def count_ratios_finely(error, sigma, label, void, wanted, slot, fine):
    """The same of coarse bins that are `wanted` [(λ, ε), coarse bin, one for void], into
    [`slot` [(λ, ε), coarse bin], low bits]."""
    value, high = np.empty(BLOCK, np.float32), np.empty(BLOCK, np.int32)
    places = np.empty(BLOCK, np.int32)
    for start in range(0, label.shape[0], BLOCK):
        stop = start + BLOCK
        errors, known = error[start:stop], label[start:stop]
        values = value[: known.shape[0]]
        _set_ratios(errors, sigma[start:stop], values)
        _count_finely(values, known, void, wanted[0], slot[0], high, places, fine)
        narrow(errors, values)
        _count_finely(values, known, void, wanted[1], slot[1], high, places, fine)


@kernel
def sum_finely(error, label, void, wanted, slot, sums):
    """Sum ε of evaluated pixels [i] whose key's coarse bin is `wanted` [coarse bin, one for void],
    into [`slot` [coarse bin], low bits]."""
    value, high = np.empty(BLOCK, np.float32), np.empty(BLOCK, np.int32)
    places = np.empty(BLOCK, np.int32)
    for start in range(0, label.shape[0], BLOCK):
        stop = start + BLOCK
        errors, known = error[start:stop], label[start:stop]
        values = value[: known.shape[0]]
        narrow(errors, values)
        for j in range(gather(values, known, void, FINE_BITS, wanted, high, places)):
            key = rank_key(values[places[j]])
            sums[slot[key >> FINE_BITS], key & (FINE - 1)] += np.float64(errors[places[j]])


@kernel
def _flag(value, label, void, low, high, flag):
    """1 for evaluated values below `low`, 16 for those from it up to `high`, else 0."""
    for i in range(value.shape[0]):
        v, known = value[i], label[i] != void
        inside = np.uint8(16) if v <= high else np.uint8(0)
        side = np.uint8(1) if v < low else inside
        flag[i] = side if known else np.uint8(0)


@kernel
def _collect(flag, some, value, start, found, values, places):
    """The values that are inside after the `found` ones, and their places, of each as many as there
    is room for; `flag` is 0 after the block, and `some` the same bytes, eight at a time."""
    for j in range(some.shape[0]):
        if some[j] & np.uint64(0x1010101010101010):
            for i in range(_FEW * j, _FEW * (j + 1)):
                if flag[i] == 16:
                    if found < values.shape[0]:
                        values[found] = value[i]
                    if found < places.shape[0]:
                        places[found] = start + i
                    found += 1
    return found


@kernel
def take_sample(error, sigma, label, void, step, sample):
    """λ and ε of the evaluated ones of every `step`-th pixel [i], into [(λ, ε), n]; returns n."""
    n = 0
    for i in range(0, label.shape[0], step):
        if label[i] != void:
            sample[0, n] = ratio_of(error[i], sigma[i])
            sample[1, n] = np.float32(error[i])
            n += 1
    return n


@kernel
def look_at_item(
    error, sigma, label, void, limits, by_ratio, lanes, most, counts, own_ratios, own_errors, places
):  # fmt: skip
    """All that n-MeRCI needs of one item's pixels [i], but what lies within `limits`.

    `limits` float32 [(λ, ε), (low, high)]. `lanes` [(Σε, Σσ, and both below), LANES]: "below" are
    evaluated pixels with ε, or `by_ratio` λ, under its low limit; `most` [LANES] is their largest
    ε. Their Σσ and `most` are needed, and found, `by_ratio` alone. `counts` [7]: evaluated, σ = 0,
    λ infinite, λ below, ε below, and then how many λ and ε were found from the low limit up to the
    high one. λ float32 are put into `own_ratios`, with their `places`, and ε into `own_errors`, of
    each as many as there is room for. ε is compared as float32.
    """
    ratio, key = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    flags = np.zeros((2, LANES), np.uint8)
    some, none = flags.view(np.uint64), places[:0]
    for start in range(0, label.shape[0], LANES):
        stop = start + LANES
        errors, sigmas, known = error[start:stop], sigma[start:stop], label[start:stop]
        n = known.shape[0]
        if n < LANES:
            flags[:, n:] = 0
        ratios, by_ratios, by_errors = ratio[:n], flags[0, :n], flags[1, :n]
        _set_ratios(errors, sigmas, ratios)
        narrow(errors, key[:n])
        _flag(ratios, known, void, limits[0, 0], limits[0, 1], by_ratios)
        _flag(key[:n], known, void, limits[1, 0], limits[1, 1], by_errors)
        below = by_ratios if by_ratio else by_errors
        add_numbers(errors, known, void, lanes[0])
        add_numbers(sigmas, known, void, lanes[1])
        add_flagged(errors, below, 1, lanes[2])
        if by_ratio:
            add_flagged(sigmas, below, 1, lanes[3])
            raise_flagged(errors, below, 1, most)
        counts[0] += count_known(known, void)
        zeros = count_zeros(sigmas, known, void)
        if zeros > 0:
            counts[1] += zeros
            counts[2] += count_infinite(errors, sigmas, known, void)
        counts[3] += count_flagged(by_ratios, 1)
        counts[4] += count_flagged(by_errors, 1)
        counts[5] = _collect(flags[0], some[0], ratio, start, counts[5], own_ratios, places)
        counts[6] = _collect(flags[1], some[1], errors, start, counts[6], own_errors, none)
