"""Sums of errors and of their σ, by group and by limit, and the digits of rank keys by group."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqeval.kernels._jit import kernel, kernel_part

#: Pixels of a block, and lanes that sums are added up in, pixel i in lane i modulo `BLOCK`: sums in
#: many lanes need not wait for each other, and fill the vector registers.
BLOCK = 256


@kernel_part
def _add_powers(value, label, void, sums, squares):
    for i in range(value.shape[0]):
        v = np.float64(value[i]) if label[i] != void else 0.0
        sums[i] += v
        squares[i] += v * v


@kernel_part
def add_numbers(value, label, void, sums):
    for i in range(value.shape[0]):
        sums[i] += np.float64(value[i]) if label[i] != void else 0.0


@kernel_part
def _widen(value, label, void, least, most):
    for i in range(value.shape[0]):
        v, is_valid = np.float64(value[i]), label[i] != void
        low, high = v if is_valid else np.inf, v if is_valid else -np.inf
        least[i] = low if low < least[i] else least[i]
        most[i] = high if high > most[i] else most[i]


@kernel_part
def count_known(label, void):
    """Return how many pixels [i] are evaluated."""
    count: Any = np.int32(0)
    for i in range(label.shape[0]):
        count += np.int32(label[i] != void)
    return np.int64(count)


@kernel_part
def count_zeros(sigma, label, void):
    """Return how many evaluated pixels [i] have σ = 0."""
    count: Any = np.int32(0)
    for i in range(label.shape[0]):
        count += np.int32((label[i] != void) & (sigma[i] == 0))
    return np.int64(count)


@kernel_part
def count_infinite(error, sigma, label, void):
    """Return how many evaluated pixels [i] have σ = 0 and an error: λ is infinite."""
    count: Any = np.int32(0)
    for i in range(label.shape[0]):
        count += np.int32((label[i] != void) & (sigma[i] == 0) & (error[i] > 0))
    return np.int64(count)


@kernel
def sum_item(error, sigma, target, label, void, lanes, ends):
    """Add (ε, ε², σ, σ², y) of the evaluated pixels [i] to `lanes` [sum, BLOCK].

    Updates the smallest and the largest target in `ends` [(least, most), BLOCK]. Returns the
    numbers of evaluated pixels, of those with σ = 0, and of those with infinite λ.
    """
    count, zeros, infinite = 0, 0, 0
    for start in range(0, label.shape[0], BLOCK):
        stop = start + BLOCK
        labels, errors, sigmas = label[start:stop], error[start:stop], sigma[start:stop]
        targets = target[start:stop]
        _add_powers(errors, labels, void, lanes[0], lanes[1])
        _add_powers(sigmas, labels, void, lanes[2], lanes[3])
        add_numbers(targets, labels, void, lanes[4])
        _widen(targets, labels, void, ends[0], ends[1])
        count += count_known(labels, void)
        some = count_zeros(sigmas, labels, void)
        if some > 0:
            zeros += some
            infinite += count_infinite(errors, sigmas, labels, void)
    return count, zeros, infinite


@kernel
def sum_powers_about(mean, value, label, void, sums, squares):
    """Sum v - `mean` and its square over the evaluated pixels [i], each into lanes [BLOCK]."""
    for start in range(0, label.shape[0], BLOCK):
        labels, values = label[start : start + BLOCK], value[start : start + BLOCK]
        for i in range(labels.shape[0]):
            d = np.float64(values[i]) - mean if labels[i] != void else 0.0
            sums[i] += d
            squares[i] += d * d


@kernel_part
def add_flagged(number, flag, sums):
    """Add the numbers [i] of a block whose flag is 1, each to its lane."""
    for i in range(number.shape[0]):
        sums[i] += np.float64(number[i]) if flag[i] == 1 else 0.0


@kernel_part
def raise_flagged(number, flag, most):
    """Raise each lane to the largest flagged number."""
    for i in range(number.shape[0]):
        v = np.float64(number[i]) if flag[i] == 1 else -np.inf
        most[i] = v if v > most[i] else most[i]


@kernel_part
def count_flagged(flag):
    """Return how many flags of a block are 1."""
    count: Any = np.int32(0)
    for i in range(flag.shape[0]):
        count += np.int32(flag[i] == 1)
    return np.int64(count)


@kernel_part
def _add_upto(value, limit, label, void, sums):
    count: Any = np.int32(0)
    for i in range(value.shape[0]):
        inside = (label[i] != void) & (np.float32(value[i]) <= limit)
        sums[i] += np.float64(value[i]) if inside else 0.0
        count += np.int32(inside)
    return np.int64(count)


@kernel
def sum_upto(value, limit, label, void, lanes):
    """Sum the evaluated values [i] that are, rounded to float32, up to the `limit`, into `lanes`
    [BLOCK].

    Returns their number.
    """
    count = 0
    for start in range(0, label.shape[0], BLOCK):
        stop = start + BLOCK
        count += _add_upto(value[start:stop], limit, label[start:stop], void, lanes)
    return count


@kernel
def sum_errors(
    error, sigma, target, label, void, group, count, sums, zero, least, most, within, remainders
):  # fmt: skip
    """Add sums of evaluated pixels [y, x] by `group` [y, x] to [group]; group -1 is not evaluated.

    `count`; `sums` [group, (ε, ε², σ, σ², y)]; `zero` [group, (σ = 0, λ infinite)]; `least` and
    `most`, the extremes of the target; `within` and `remainders` [group], Σ (y - ȳ)² and Σ (y - ȳ)
    about the mean of these pixels in float64. All arrays must be empty before. Returns the number
    of void pixels.
    """
    height, width = label.shape
    voids = 0
    for y in range(height):
        x = 0
        while x < width:
            # Sum a run of one group in registers, which is several times as fast as in memory.
            g = group[y, x]
            n, zeros = 0, 0
            infinite: Any = 0
            e1, e2, s1, s2, t1 = 0.0, 0.0, 0.0, 0.0, 0.0
            low, high = np.inf, -np.inf
            while x < width and group[y, x] == g:
                if label[y, x] != void:
                    e, s = np.float64(error[y, x]), np.float64(sigma[y, x])
                    t = np.float64(target[y, x])
                    n += 1
                    e1 += e
                    e2 += e * e
                    s1 += s
                    s2 += s * s
                    t1 += t
                    if s == 0.0:
                        zeros += 1
                        infinite += e > 0.0
                    low = min(low, t)
                    high = max(high, t)
                else:
                    voids += 1
                x += 1
            if g >= 0 and n > 0:
                count[g] += n
                sums[g, 0] += e1
                sums[g, 1] += e2
                sums[g, 2] += s1
                sums[g, 3] += s2
                sums[g, 4] += t1
                zero[g, 0] += zeros
                zero[g, 1] += infinite
                least[g] = min(least[g], low)
                most[g] = max(most[g], high)
    for y in range(height):
        x = 0
        while x < width:
            g = group[y, x]
            mean = sums[g, 4] / count[g] if g >= 0 and count[g] > 0 else 0.0
            total, linear = 0.0, 0.0
            while x < width and group[y, x] == g:
                if label[y, x] != void:
                    d = np.float64(target[y, x]) - mean
                    total += d * d
                    linear += d
                x += 1
            if g >= 0:
                within[g] += total
                remainders[g] += linear
    return voids


@kernel_part
def _limits_below(limits, g, value):
    """Return how many of the ascending `limits` [group, limit] of group `g` lie below the
    `value`.
    """
    low, high = 0, limits.shape[1]
    while high > 1:  # no branch on the value: it would be mispredicted
        half = high // 2
        low = low + half if limits[g, low + half - 1] < value else low
        high -= half
    return low + (1 if high == 1 and limits[g, low] < value else 0)


@kernel
def sum_below(value, error, sigma, label, void, group, limits, count, sums, most):
    """Count and sum evaluated pixels by how many ascending `limits` of their group lie below
    `value` [y, x].

    `limits` float64 [group, limit]; values are compared as float32. Adds to [group, limits below]:
    `count`, `sums` of (ε, σ), and `most`, the largest ε. Pixels above all limits do not count.
    """
    height, width = label.shape
    for y in range(height):
        x = 0
        while x < width:
            # Sum runs in registers, as `sum_errors` does.
            g = group[y, x]
            if label[y, x] == void or g < 0:
                x += 1
                continue
            b = _limits_below(limits, g, np.float64(np.float32(value[y, x])))
            if b == limits.shape[1]:
                x += 1
                continue
            lower, upper = limits[g, b - 1] if b > 0 else -np.inf, limits[g, b]
            n, e1, s1, high = 0, 0.0, 0.0, -np.inf
            while x < width and group[y, x] == g and label[y, x] != void:
                v = np.float64(np.float32(value[y, x]))
                if n > 0 and not (v <= upper and (b == 0 or v > lower)):
                    break
                e = np.float64(error[y, x])
                n += 1
                e1 += e
                s1 += np.float64(sigma[y, x])
                high = max(high, e)
                x += 1
            count[g, b] += n
            sums[g, b, 0] += e1
            sums[g, b, 1] += s1
            most[g, b] = max(most[g, b], high)


@kernel
def count_digits(key, label, void, group, digit, shift, entries, first, counts):
    """Count evaluated pixels [y, x] by some bits of their rank keys.

    Entry k of `entries` [entry] selects the keys of one group whose bits above `shift + digit`
    equal it. The entries of group g are `first[g]` to `first[g + 1]`, ascending. The `digit` bits
    above `shift` of the selected keys are counted into [entry, bits].
    """
    height, width = label.shape
    mask = (np.int64(1) << digit) - 1
    for y in range(height):
        for x in range(width):
            g = group[y, x]
            if label[y, x] == void or g < 0:
                continue
            k = key[y, x]
            prefix = k >> (shift + digit)
            for entry in range(first[g], first[g + 1]):
                if entries[entry] == prefix:
                    counts[entry, (k >> shift) & mask] += 1
                    break
