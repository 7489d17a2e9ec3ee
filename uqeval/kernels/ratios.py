"""Errors ε and ratios λ = ε/σ, computed block by block so that no map of λ is needed."""

from __future__ import annotations

import numpy as np

from uqeval.kernels._jit import kernel, kernel_part
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

#: Flags that are tested at once: in most such groups, no value is collected.
_FEW = 8


@kernel_part
def ratio_of(error, sigma):
    """Return λ = ε/σ rounded to float32, a rank key; ∞ or 0 where σ = 0."""
    e, s = np.float64(error), np.float64(sigma)
    at_zero = np.inf if e > 0 else 0.0
    return np.float32(e / s if s > 0 else at_zero)


@kernel_part
def _set_ratios(error, sigma, ratio):
    for i in range(ratio.shape[0]):
        ratio[i] = ratio_of(error[i], sigma[i])


@kernel_part
def narrow(value, key):
    """Round numbers [i] to float32, the type of rank keys."""
    for i in range(value.shape[0]):
        key[i] = np.float32(value[i])


@kernel_part
def _count(high, coarse):
    for i in range(high.shape[0]):
        b = np.uint32(high[i])
        if b < COARSE:
            coarse[b] += 1


@kernel
def count_ratios(error, sigma, label, void, coarse):
    """Count evaluated pixels [i] by the high bits of the keys of λ and ε, into [(λ, ε), coarse
    bin].
    """
    value, high = np.empty(BLOCK, np.float32), np.empty(BLOCK, np.int32)
    for start in range(0, label.shape[0], BLOCK):
        stop = start + BLOCK
        errors, labels = error[start:stop], label[start:stop]
        n = labels.shape[0]
        _set_ratios(errors, sigma[start:stop], value[:n])
        high_bits(value[:n], labels, void, FINE_BITS, high)
        _count(high[:n], coarse[0])
        narrow(errors, value[:n])
        high_bits(value[:n], labels, void, FINE_BITS, high)
        _count(high[:n], coarse[1])


@kernel_part
def _count_finely(values, labels, void, is_wanted, slot, high, indices, fine):
    for j in range(gather(values, labels, void, FINE_BITS, is_wanted, high, indices)):
        key = rank_key(values[indices[j]])
        fine[slot[key >> FINE_BITS], key & (FINE - 1)] += 1


@kernel
def count_ratios_finely(error, sigma, label, void, is_wanted, slot, fine):
    """Count as `count_ratios` does, in coarse bins that are `is_wanted` [(λ, ε), coarse bin,
    one for void], into [`slot` [(λ, ε), coarse bin], low bits].
    """
    value, high = np.empty(BLOCK, np.float32), np.empty(BLOCK, np.int32)
    indices = np.empty(BLOCK, np.int32)
    for start in range(0, label.shape[0], BLOCK):
        stop = start + BLOCK
        errors, labels = error[start:stop], label[start:stop]
        values = value[: labels.shape[0]]
        _set_ratios(errors, sigma[start:stop], values)
        _count_finely(values, labels, void, is_wanted[0], slot[0], high, indices, fine)
        narrow(errors, values)
        _count_finely(values, labels, void, is_wanted[1], slot[1], high, indices, fine)


@kernel
def sum_finely(error, label, void, is_wanted, slot, sums):
    """Sum ε of evaluated pixels [i] whose key's coarse bin is `is_wanted` [coarse bin, one for
    void], into [`slot` [coarse bin], low bits].
    """
    value, high = np.empty(BLOCK, np.float32), np.empty(BLOCK, np.int32)
    indices = np.empty(BLOCK, np.int32)
    for start in range(0, label.shape[0], BLOCK):
        stop = start + BLOCK
        errors, labels = error[start:stop], label[start:stop]
        values = value[: labels.shape[0]]
        narrow(errors, values)
        for j in range(gather(values, labels, void, FINE_BITS, is_wanted, high, indices)):
            key = rank_key(values[indices[j]])
            sums[slot[key >> FINE_BITS], key & (FINE - 1)] += np.float64(errors[indices[j]])


@kernel_part
def _flag(value, label, void, low, high, flag):
    """Flag evaluated values: 1 below `low`, 16 from `low` up to `high`, else 0."""
    for i in range(value.shape[0]):
        v, is_valid = value[i], label[i] != void
        inside_flag = np.uint8(16) if v <= high else np.uint8(0)
        side = np.uint8(1) if v < low else inside_flag
        flag[i] = side if is_valid else np.uint8(0)


@kernel_part
def _collect(flag, is_flagged, value, start, collected, values, pixels):
    """Append the values inside the interval, and their indices, until the buffers are full.

    `collected` is the number of values before. Reset `flag`; `is_flagged` is the same bytes, eight
    at a time.
    """
    for j in range(is_flagged.shape[0]):
        if is_flagged[j] & np.uint64(0x1010101010101010):
            for i in range(_FEW * j, _FEW * (j + 1)):
                if flag[i] == 16:
                    if collected < values.shape[0]:
                        values[collected] = value[i]
                    if collected < pixels.shape[0]:
                        pixels[collected] = start + i
                    collected += 1
    return collected


@kernel
def take_sample(error, sigma, label, void, step, sample):
    """Copy λ and ε of every `step`-th pixel [i], if it is evaluated, into [(λ, ε), n]; return n."""
    n = 0
    for i in range(0, label.shape[0], step):
        if label[i] != void:
            sample[0, n] = ratio_of(error[i], sigma[i])
            sample[1, n] = np.float32(error[i])
            n += 1
    return n


@kernel
def look_at_item(
    error, sigma, label, void, limits, by_ratio, lanes, most, counts, own_ratios, own_errors, pixels
):  # fmt: skip
    """Count and sum one item's pixels [i] for n-MeRCI; collect the values within `limits`.

    `limits` float32 [(λ, ε), (low, high)]. `lanes` [(Σε, Σσ, and both below), LANES]: "below" are
    evaluated pixels with ε, or `by_ratio` λ, under its low limit; `most` [LANES] is their largest
    ε. Their Σσ and `most` are computed only with `by_ratio`. `counts` [7]: evaluated, σ = 0, λ
    infinite, λ below, ε below, and the numbers of λ and of ε from the low limit up to the high one.
    Writes these λ (float32) to `own_ratios` with their indices in `pixels`, and these ε to
    `own_errors`, until the arrays are full. ε is compared as float32.
    """
    ratio, key = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    flags = np.zeros((2, LANES), np.uint8)
    is_flagged, none = flags.view(np.uint64), pixels[:0]
    for start in range(0, label.shape[0], LANES):
        stop = start + LANES
        errors, sigmas, labels = error[start:stop], sigma[start:stop], label[start:stop]
        n = labels.shape[0]
        if n < LANES:
            flags[:, n:] = 0
        ratios, by_ratios, by_errors = ratio[:n], flags[0, :n], flags[1, :n]
        _set_ratios(errors, sigmas, ratios)
        narrow(errors, key[:n])
        _flag(ratios, labels, void, limits[0, 0], limits[0, 1], by_ratios)
        _flag(key[:n], labels, void, limits[1, 0], limits[1, 1], by_errors)
        below = by_ratios if by_ratio else by_errors
        add_numbers(errors, labels, void, lanes[0])
        add_numbers(sigmas, labels, void, lanes[1])
        add_flagged(errors, below, lanes[2])
        if by_ratio:
            add_flagged(sigmas, below, lanes[3])
            raise_flagged(errors, below, most)
        counts[0] += count_known(labels, void)
        zeros = count_zeros(sigmas, labels, void)
        if zeros > 0:
            counts[1] += zeros
            counts[2] += count_infinite(errors, sigmas, labels, void)
        counts[3] += count_flagged(by_ratios)
        counts[4] += count_flagged(by_errors)
        counts[5] = _collect(flags[0], is_flagged[0], ratio, start, counts[5], own_ratios, pixels)
        counts[6] = _collect(flags[1], is_flagged[1], errors, start, counts[6], own_errors, none)
