"""Predicted numbers and their targets: members joined, errors, and their ratios."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uqeval.kernels._jit import kernel, kernel_part
from uqeval.kernels.ratios import ratio_of

#: The smallest number that rounds to infinity in float32, the type of rank keys.
_BEYOND = float(np.finfo(np.float32).max) * (1.0 + 2.0**-25)
#: Different targets are counted up to this number.
FEW_VALUES = 9
#: Most targets have as many among so many pixels.
_SOME_PIXELS = 4096


@kernel_part
def _count_invalid(bad, index):
    """Count one invalid value: `bad` is [count, first flat index]."""
    bad[0] += 1
    bad[1] = min(bad[1], index)


@kernel
def set_label(target, invalid, void, label):
    """Set `label` to 0 if the target [y, x] is finite and not in `invalid` [i], else to `void`."""
    for y in range(label.shape[0]):
        for x in range(label.shape[1]):
            label[y, x] = 0 if abs(target[y, x]) < np.inf else void
        for i in range(invalid.shape[0]):
            for x in range(label.shape[1]):
                label[y, x] = void if target[y, x] == invalid[i] else label[y, x]


@kernel
def count_targets(target, label, void, counts):
    """Write counts of the evaluated targets [y, x] of an item into zeros [10].

    Their number, those that are 0, and those below 0; the smallest, its count and the next above;
    the largest, its count and the next below; the number of different values, at most `FEW_VALUES`.
    The next is the end itself if there is no other value.
    """
    # Ends of each column first: loops over them are compiled to vector instructions.
    low = np.full(label.shape[1], np.inf, target.dtype)
    high = np.full(label.shape[1], -np.inf, target.dtype)
    pixels, zeros, negative = np.int64(0), np.int64(0), np.int64(0)
    for y in range(label.shape[0]):
        for x in range(label.shape[1]):
            value, is_valid = target[y, x], label[y, x] != void
            pixels += is_valid
            zeros += is_valid & (value == 0)
            negative += is_valid & (value < 0)
            low[x] = value if is_valid & (value < low[x]) else low[x]
            high[x] = value if is_valid & (value > high[x]) else high[x]
    if pixels == 0:
        return
    least, most = _least(low), -_least(-high)
    low[:], high[:] = most, least
    at_least, at_most = np.int64(0), np.int64(0)
    for y in range(label.shape[0]):
        for x in range(label.shape[1]):
            value, is_valid = target[y, x], label[y, x] != void
            at_least += is_valid & (value == least)
            at_most += is_valid & (value == most)
            low[x] = value if is_valid & (value > least) & (value < low[x]) else low[x]
            high[x] = value if is_valid & (value < most) & (value > high[x]) else high[x]
    above, below = _least(low), -_least(-high)
    counts[0], counts[1], counts[2] = pixels, zeros, negative
    counts[3], counts[4], counts[5] = least, at_least, above
    counts[6], counts[7], counts[8] = most, at_most, below
    counts[9] = _different(target, label, void)
    if counts[9] < FEW_VALUES:  # among the first pixels
        values, value = 1, least
        while values < FEW_VALUES and value < most:
            low[:] = most
            for y in range(label.shape[0]):
                for x in range(label.shape[1]):
                    other, is_valid = target[y, x], label[y, x] != void
                    low[x] = other if is_valid & (other > value) & (other < low[x]) else low[x]
            value = _least(low)
            values += 1
        counts[9] = values


@kernel_part
def _least(values):
    """Return the smallest of values [i], which are numbers."""
    least = values[0]
    for i in range(values.shape[0]):
        least = min(least, values[i])
    return least


@kernel_part
def _different(target, label, void):
    """Return the number of different values, at most `FEW_VALUES`, of some evaluated targets."""
    seen, values, pixels = np.empty(FEW_VALUES, target.dtype), 0, 0
    for y in range(label.shape[0]):
        for x in range(label.shape[1]):
            if label[y, x] == void:
                continue
            k = 0
            while k < values and seen[k] != target[y, x]:
                k += 1
            if k == values:
                seen[k] = target[y, x]
                values += 1
            pixels += 1
            if values == FEW_VALUES or pixels == _SOME_PIXELS:
                return values
    return values


@kernel
def add_means(
    tile, label, void, y0, x0, member, skip_nan, several_members, count, shift, total, first,
    second, bad,
):  # fmt: skip
    """Add one member's numbers `tile` [y, x] of the box from `y0`, `x0` on to maps [y, x].

    `count` and `total` of all members; if there are `several_members`, also `first` and `second`:
    sums of v - `shift` and of its square, `shift` being the first member's number. NaN and infinite
    numbers are counted in `bad` [count, first place], where a place is the flat index of (member,
    y, x).
    """
    height, width = label.shape
    for i in range(tile.shape[0]):
        for j in range(tile.shape[1]):
            y, x = y0 + i, x0 + j
            if label[y, x] == void:
                continue
            v = np.float64(tile[i, j])
            if not math.isfinite(v):
                if skip_nan and math.isnan(v):
                    continue
                _count_invalid(bad, (member * height + y) * width + x)
                continue
            if several_members:
                if count[y, x] == 0:
                    shift[y, x] = v
                d = v - shift[y, x]
                first[y, x] += d
                second[y, x] += d * d
            count[y, x] += 1
            total[y, x] += v


@kernel
def add_spreads(tile, label, void, y0, x0, member, squared, spread, bad, negative):
    """Add one member's σ² of a box to `spread` [y, x], from σ or (`squared`) σ².

    `bad` and `negative` as in `add_means`.
    """
    height, width = label.shape
    for i in range(tile.shape[0]):
        for j in range(tile.shape[1]):
            y, x = y0 + i, x0 + j
            if label[y, x] == void:
                continue
            v = np.float64(tile[i, j])
            if not math.isfinite(v):
                _count_invalid(bad, (member * height + y) * width + x)
            elif v < 0.0:
                _count_invalid(negative, (member * height + y) * width + x)
            else:
                spread[y, x] += v if squared else v * v


@kernel
def join_members(
    label, void, target, several_members, spreads, members, count, total, shift, first, second,
    spread,
    mean, error, sigma, bad, beyond,
):  # fmt: skip
    """Set μ, |μ - y| and σ of the mixture, float64 [y, x]; 0 where not evaluated.

    σ² = mean σ_m² (if there are `spreads`) + mean (μ_m - μ)² (if there are `several_members`).
    Counts pixels without any number in `bad`, and pixels beyond float32 in `beyond`, as `add_means`
    does. With `several_members`, |μ - y| is computed relative to `shift`, to avoid cancellation of
    large numbers.
    """
    height, width = label.shape
    for y in range(height):
        for x in range(width):
            mean[y, x] = 0.0
            error[y, x] = 0.0
            sigma[y, x] = 0.0
            if label[y, x] == void:
                continue
            n = count[y, x]
            if n == 0:
                _count_invalid(bad, y * width + x)
                continue
            m = total[y, x] / n
            e = m - target[y, x]
            variance = 0.0
            if spreads:
                variance = spread[y, x] / members
            if several_members:
                d = first[y, x]
                variance += max((second[y, x] - d * d / n) / n, 0.0)
                m = shift[y, x] + d / n
                e = (shift[y, x] - target[y, x]) + d / n
            s = math.sqrt(variance)
            mean[y, x] = m
            error[y, x] = abs(e)
            sigma[y, x] = s
            if not (abs(m) < _BEYOND and abs(e) < _BEYOND and s < _BEYOND):
                _count_invalid(beyond, y * width + x)


@kernel
def set_errors(tile, target, label, void, y0, x0, mean, error, bad, beyond):
    """Set μ and |μ - y|, float64, of a box of a single member's numbers; 0 where void.

    A `mean` of shape [0, 0] is not written. `bad` and `beyond` as in `join_members`.
    """
    n = tile.shape[1]
    for i in range(tile.shape[0]):
        # The loop has no branch and starts at 0, so that the compiler vectorizes it.
        y = y0 + i
        true, labels, errors = target[y, x0 : x0 + n], label[y, x0 : x0 + n], error[y, x0 : x0 + n]
        good: Any = True
        for j in range(n):
            e = abs(np.float64(tile[i, j]) - np.float64(true[j]))
            is_valid = labels[j] != void
            errors[j] = e if is_valid else 0.0
            good &= (e < _BEYOND) | (not is_valid)
        if mean.shape[0] > 0:
            means = mean[y, x0 : x0 + n]
            for j in range(n):
                m = np.float64(tile[i, j]) + 0.0
                is_valid = labels[j] != void
                means[j] = m if is_valid else 0.0
                good &= (abs(m) < _BEYOND) | (not is_valid)
        if not good:
            for j in range(n):
                v = np.float64(tile[i, j])
                place = y * label.shape[1] + x0 + j
                if labels[j] == void:
                    continue
                if not math.isfinite(v):
                    _count_invalid(bad, place)
                elif not (abs(v) < _BEYOND and errors[j] < _BEYOND):
                    _count_invalid(beyond, place)


@kernel
def set_sigmas(tile, label, void, y0, x0, squared, error, sigma, bad, negative, beyond):
    """Set σ, float64, of a box of a single member's σ (or σ², `squared`); 0 where void.

    `bad`, `negative` and `beyond` as in `add_spreads` and `join_members`: pixels whose `error` is
    beyond float32 are counted already.
    """
    n = tile.shape[1]
    for i in range(tile.shape[0]):
        y = y0 + i
        labels, errors, sigmas = label[y, x0 : x0 + n], error[y, x0 : x0 + n], sigma[y, x0 : x0 + n]
        good: Any = True
        for j in range(n):
            v = np.float64(tile[i, j])
            s = (math.sqrt(max(v, 0.0)) if squared else v) + 0.0
            is_valid = labels[j] != void
            sigmas[j] = s if is_valid else 0.0
            good &= ((v >= 0.0) & (s < _BEYOND)) | (not is_valid)
        if not good:
            for j in range(n):
                v = np.float64(tile[i, j])
                place = y * label.shape[1] + x0 + j
                if labels[j] == void:
                    continue
                if not math.isfinite(v):
                    _count_invalid(bad, place)
                elif v < 0.0:
                    _count_invalid(negative, place)
                elif errors[j] < _BEYOND and not sigmas[j] < _BEYOND:
                    _count_invalid(beyond, place)


@kernel
def sigma_of_logarithms(value, factor, slope, sigma):
    """Set σ = `factor`·exp(`slope`·v) of natural logarithms v [y, x], float64."""
    for y in range(value.shape[0]):
        for x in range(value.shape[1]):
            sigma[y, x] = factor * np.exp(slope * np.float64(value[y, x]))


@kernel
def copy_values(value, label, void, copied):
    """Copy numbers [y, x] as float64, -0.0 as 0.0, 0 where void; return whether all are finite, as
    float32 too."""
    good: Any = True
    for y in range(label.shape[0]):
        for x in range(label.shape[1]):
            v = np.float64(value[y, x]) + 0.0
            is_valid = label[y, x] != void
            copied[y, x] = v if is_valid else 0.0
            good &= (abs(v) < _BEYOND) | (not is_valid)
    return good


@kernel
def set_ratios(error, sigma, ratio):
    """Set λ = ε/σ [y, x] in float32, ∞ or 0 where σ = 0; return False if any σ is negative."""
    good: Any = True
    for y in range(error.shape[0]):
        for x in range(error.shape[1]):
            ratio[y, x] = ratio_of(error[y, x], sigma[y, x])
            good &= sigma[y, x] >= 0
    return good
