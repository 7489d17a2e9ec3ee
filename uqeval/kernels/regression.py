"""Predicted numbers and their targets: members joined, errors, and what is counted of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uqeval.kernels._jit import kernel

_SQRT2 = math.sqrt(2.0)
_INV_SQRT_PI = 1.0 / math.sqrt(math.pi)
_INV_SQRT_2PI = 1.0 / math.sqrt(2.0 * math.pi)
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@kernel
def add_means(
    tile, label, void, y0, x0, member, skip_nan, several, count, shift, total, first, second, bad
):  # fmt: skip
    """One member's numbers `tile` [y, x] of the box from `y0`, `x0` on, into maps [y, x].

    `count` and `total` of all members; if there are `several`, also `first` and `second`: sums of
    v - `shift` and of its square, `shift` being the first member's number. Not a number, or
    infinite: into `bad`, [how many, first place], a place being (member, y, x) as one number.
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
                bad[0] += 1
                bad[1] = min(bad[1], (member * height + y) * width + x)
                continue
            if several:
                if count[y, x] == 0:
                    shift[y, x] = v
                d = v - shift[y, x]
                first[y, x] += d
                second[y, x] += d * d
            count[y, x] += 1
            total[y, x] += v


@kernel
def add_spreads(tile, label, void, y0, x0, member, squared, spread, bad, negative):
    """One member's σ (or σ², `squared`) of a box, as the sum of σ² into `spread` [y, x].

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
                bad[0] += 1
                bad[1] = min(bad[1], (member * height + y) * width + x)
            elif v < 0.0:
                negative[0] += 1
                negative[1] = min(negative[1], (member * height + y) * width + x)
            else:
                spread[y, x] += v if squared else v * v


@kernel
def join_members(
    label, void, target, several, spreads, members, count, total, first, second, spread,
    mean, error, sigma, bad, beyond,
):  # fmt: skip
    """μ, |μ - y| and σ of the mixture [y, x], rounded to float32; 0 where not evaluated.

    σ² = mean σ_m² (if there are `spreads`) + mean (μ_m - μ)² (if there are `several`). Pixels
    without any number into `bad`, those beyond float32 into `beyond`, as in `add_means`.
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
                bad[0] += 1
                bad[1] = min(bad[1], y * width + x)
                continue
            mu = total[y, x] / n
            variance = 0.0
            if spreads:
                variance = spread[y, x] / members
            if several:
                d = first[y, x]
                variance += max((second[y, x] - d * d / n) / n, 0.0)
            m = np.float32(mu)
            e = np.float32(abs(mu - target[y, x]))
            s = np.float32(math.sqrt(variance))
            mean[y, x] = m
            error[y, x] = e
            sigma[y, x] = s
            if not (math.isfinite(m) and math.isfinite(e) and math.isfinite(s)):
                beyond[0] += 1
                beyond[1] = min(beyond[1], y * width + x)


@kernel
def set_errors(tile, target, label, void, y0, x0, mean, error, bad, beyond):
    """μ and |μ - y| of a box of a single member's numbers, rounded to float32; 0 where void.

    `mean` may be [0, 0]: then it is not wanted. `bad` and `beyond` as in `join_members`.
    """
    n = tile.shape[1]
    for i in range(tile.shape[0]):
        # Rows without a branch and from 0 on: the compiler takes several pixels at a time.
        y = y0 + i
        true, known, errors = target[y, x0 : x0 + n], label[y, x0 : x0 + n], error[y, x0 : x0 + n]
        good: Any = True
        for j in range(n):
            e = np.float32(abs(np.float64(tile[i, j]) - np.float64(true[j])))
            counted = known[j] != void
            errors[j] = e if counted else np.float32(0.0)
            good &= (e < np.inf) | (not counted)
        if mean.shape[0] > 0:
            means = mean[y, x0 : x0 + n]
            for j in range(n):
                m = np.float32(tile[i, j]) + np.float32(0.0)
                counted = known[j] != void
                means[j] = m if counted else np.float32(0.0)
                good &= (abs(m) < np.inf) | (not counted)
        if not good:
            for j in range(n):
                v = np.float64(tile[i, j])
                place = y * label.shape[1] + x0 + j
                if known[j] == void:
                    continue
                if not math.isfinite(v):
                    bad[0] += 1
                    bad[1] = min(bad[1], place)
                elif not (math.isfinite(np.float32(v)) and math.isfinite(errors[j])):
                    beyond[0] += 1
                    beyond[1] = min(beyond[1], place)


@kernel
def set_sigmas(tile, label, void, y0, x0, squared, error, sigma, bad, negative, beyond):
    """σ of a box of a single member's σ (or σ², `squared`), rounded to float32; 0 where void.

    `bad`, `negative` and `beyond` as in `add_spreads` and `join_members`: pixels whose `error` is
    beyond float32 are counted already.
    """
    n = tile.shape[1]
    for i in range(tile.shape[0]):
        y = y0 + i
        known, errors, found = label[y, x0 : x0 + n], error[y, x0 : x0 + n], sigma[y, x0 : x0 + n]
        good: Any = True
        for j in range(n):
            v = np.float64(tile[i, j])
            s = np.float32(math.sqrt(max(v, 0.0)) if squared else v) + np.float32(0.0)
            counted = known[j] != void
            found[j] = s if counted else np.float32(0.0)
            good &= ((v >= 0.0) & (s < np.inf)) | (not counted)
        if not good:
            for j in range(n):
                v = np.float64(tile[i, j])
                place = y * label.shape[1] + x0 + j
                if known[j] == void:
                    continue
                if not math.isfinite(v):
                    bad[0] += 1
                    bad[1] = min(bad[1], place)
                elif v < 0.0:
                    negative[0] += 1
                    negative[1] = min(negative[1], place)
                elif math.isfinite(errors[j]) and not math.isfinite(found[j]):
                    beyond[0] += 1
                    beyond[1] = min(beyond[1], place)


@kernel
def round_values(value, label, void, rounded):
    """Numbers [y, x] rounded to float32, -0.0 to 0.0, 0 where void; False if any is not finite."""
    good: Any = True
    for y in range(label.shape[0]):
        for x in range(label.shape[1]):
            v = np.float32(value[y, x]) + np.float32(0.0)
            counted = label[y, x] != void
            rounded[y, x] = v if counted else np.float32(0.0)
            good &= (abs(v) < np.inf) | (not counted)
    return good


@kernel
def set_ratios(error, sigma, ratio):
    """λ = ε/σ [y, x] in float32, ∞ or 0 where σ = 0; returns False if any σ is negative."""
    good: Any = True
    for y in range(error.shape[0]):
        for x in range(error.shape[1]):
            e, s = error[y, x], sigma[y, x]
            at_zero = np.float32(np.inf) if e > 0 else np.float32(0.0)
            ratio[y, x] = e / s if s > 0 else at_zero
            good &= s >= 0
    return good


@kernel
def sum_errors(error, sigma, target, label, void, group, count, sums, zero, least, most, within):
    """Sums of evaluated pixels [y, x] by `group` [y, x], into [group]; not evaluated ones of -1.

    `count`; `sums` [group, (ε, ε², σ, σ², y)]; `zero` [group, (σ = 0, λ infinite)]; the ends of the
    target, `least` and `most`; `within` [group], Σ (y - ȳ)² about the mean of these pixels, which
    is right if the arrays were empty before. Returns how many pixels are void.
    """
    height, width = label.shape
    voids = 0
    for y in range(height):
        x = 0
        while x < width:
            # A run of one group is added up in registers: several times as fast as in memory.
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
            total = 0.0
            while x < width and group[y, x] == g:
                if label[y, x] != void:
                    d = np.float64(target[y, x]) - mean
                    total += d * d
                x += 1
            if g >= 0:
                within[g] += total
    return voids


@kernel
def score_gaussian(e, s):
    """Negative log likelihood (σ > 0) and CRPS of N(μ, σ²) at |y - μ| = e."""
    if s == 0.0:
        return 0.0, e
    z = e / s
    nll = _HALF_LOG_2PI + math.log(s) + 0.5 * z * z
    density = _INV_SQRT_2PI * math.exp(-0.5 * z * z)
    crps = s * (z * math.erf(z / _SQRT2) + 2.0 * density - _INV_SQRT_PI)
    return nll, crps


@kernel
def score_laplace(e, s):
    """The same of a Laplace distribution of standard deviation σ: b = σ / √2."""
    if s == 0.0:
        return 0.0, e
    b = s / _SQRT2
    z = e / b
    return math.log(2.0 * b) + z, e + b * (math.exp(-z) - 0.75)


@kernel
def sum_scores(error, sigma, label, void, laplace, factors, shares, likelihood, crps, intervals):
    """Sums of evaluated pixels' NLL (σ > 0) and CRPS into [1], of interval scores into [level].

    The central interval of level k is μ ± factors[k] σ, and shares[k] = 2 / (1 - p_k).
    """
    height, width = label.shape
    for y in range(height):
        nll_row, crps_row = 0.0, 0.0
        for x in range(width):
            if label[y, x] == void:
                continue
            e, s = np.float64(error[y, x]), np.float64(sigma[y, x])
            nll, score = score_laplace(e, s) if laplace else score_gaussian(e, s)
            nll_row += nll
            crps_row += score
            for k in range(factors.shape[0]):
                half = factors[k] * s
                intervals[k] += 2.0 * half + shares[k] * max(e - half, 0.0)
        likelihood[0] += nll_row
        crps[0] += crps_row


@kernel
def count_levels(error, sigma, label, void, factors, levels, ties):
    """Evaluated pixels by the first of the ascending levels whose interval holds the target.

    Interval k holds it when ε <= factors[k] σ, in float64. Into `levels` [level, and none last];
    pixels with an ε on the end of an interval of σ > 0 into `ties` [1].
    """
    height, width = label.shape
    n = factors.shape[0]
    for y in range(height):
        for x in range(width):
            if label[y, x] == void:
                continue
            e, s = np.float64(error[y, x]), np.float64(sigma[y, x])
            low, high = 0, n
            while low < high:
                middle = (low + high) // 2
                if e <= factors[middle] * s:
                    high = middle
                else:
                    low = middle + 1
            levels[low] += 1
            ties[0] += low < n and s > 0.0 and e == factors[low] * s


@kernel
def _limits_below(limits, g, value):
    """How many of the ascending `limits` [group, limit] of group `g` lie below the `value`."""
    low, rest = 0, limits.shape[1]
    while rest > 1:  # without a branch that depends on the value: it would be guessed wrong
        half = rest // 2
        low = low + half if limits[g, low + half - 1] < value else low
        rest -= half
    return low + (1 if rest == 1 and limits[g, low] < value else 0)


@kernel
def sum_below(value, error, sigma, label, void, group, limits, count, sums, most):
    """Evaluated pixels by how many of their group's ascending `limits` lie below `value` [y, x].

    `limits` float64 [group, limit]. Into [group, limits below]: `count`, `sums` of (ε, σ), `most`
    the largest ε.
    """
    height, width = label.shape
    for y in range(height):
        x = 0
        while x < width:
            # Runs are added up in registers, as in `sum_errors`.
            g = group[y, x]
            if label[y, x] == void or g < 0:
                x += 1
                continue
            b = _limits_below(limits, g, np.float64(value[y, x]))
            lower = limits[g, b - 1] if b > 0 else -np.inf
            upper = limits[g, b] if b < limits.shape[1] else np.inf
            n, e1, s1, high = 0, 0.0, 0.0, -np.inf
            while x < width and group[y, x] == g and label[y, x] != void:
                v = np.float64(value[y, x])
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
    """Evaluated pixels by some bits of their rank keys [y, x], those above being as wanted.

    Entry k of `entries` [entry] asks for keys of one group whose bits above `shift + digit` equal
    it; the entries of group g are `first[g]` to `first[g + 1]`, ascending. The `digit` bits above
    `shift` are counted into [entry, bits].
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
