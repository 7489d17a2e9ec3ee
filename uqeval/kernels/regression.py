"""Predicted numbers and their targets: members joined, errors, and what is counted of them."""

from __future__ import annotations

import math

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
def sum_errors(error, sigma, target, label, void, group, count, sums, zero, least, most, within):
    """Sums of evaluated pixels [y, x] by `group` [y, x], into [group]; not evaluated ones of -1.

    `count`; `sums` [group, (ε, ε², σ, σ², y)]; `zero` [group, (σ = 0, λ infinite)]; the ends of the
    target, `least` and `most`; `within` [group], Σ (y - ȳ)² about the mean of these pixels, which
    is right if the arrays were empty before.
    """
    height, width = label.shape
    for y in range(height):
        for x in range(width):
            g = group[y, x]
            if label[y, x] == void or g < 0:
                continue
            e, s, t = np.float64(error[y, x]), np.float64(sigma[y, x]), np.float64(target[y, x])
            count[g] += 1
            sums[g, 0] += e
            sums[g, 1] += e * e
            sums[g, 2] += s
            sums[g, 3] += s * s
            sums[g, 4] += t
            if s == 0.0:
                zero[g, 0] += 1
                zero[g, 1] += e > 0.0
            least[g] = min(least[g], t)
            most[g] = max(most[g], t)
    for y in range(height):
        for x in range(width):
            g = group[y, x]
            if label[y, x] != void and g >= 0:
                d = np.float64(target[y, x]) - sums[g, 4] / count[g]
                within[g] += d * d


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
def sum_below(value, error, sigma, label, void, group, limits, count, sums, most):
    """Evaluated pixels by how many of their group's ascending `limits` lie below `value` [y, x].

    `limits` float64 [group, limit]. Into [group, limits below]: `count`, `sums` of (ε, σ), `most`
    the largest ε.
    """
    height, width = label.shape
    for y in range(height):
        for x in range(width):
            g = group[y, x]
            if label[y, x] == void or g < 0:
                continue
            v = np.float64(value[y, x])
            low, high = 0, limits.shape[1]
            while low < high:
                middle = (low + high) // 2
                if limits[g, middle] < v:
                    low = middle + 1
                else:
                    high = middle
            e = np.float64(error[y, x])
            count[g, low] += 1
            sums[g, low, 0] += e
            sums[g, low, 1] += np.float64(sigma[y, x])
            most[g, low] = max(most[g, low], e)


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
