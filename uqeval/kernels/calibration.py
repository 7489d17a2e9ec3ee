"""Count confidences by bin, for calibration errors and reliability diagrams."""

from __future__ import annotations

import numpy as np

from uqeval.kernels._jit import kernel, kernel_part
from uqeval.kernels.counting import count_below
from uqeval.kernels.logarithm import log_64


@kernel_part
def bin_of(value, edges, upper):
    """Return the bin of a float32 `value` between `edges` float64 [bin + 1] of about equal width.

    A value on an inner edge lies in the bin below it, or with `upper` in the one above. Values at
    or above the last edge lie in an extra bin after the others, values below the first edge in the
    first bin. With edges k / B this is max(⌈B·value⌉, 1) - 1, with `upper` ⌊B·value⌋: the product
    of a float32 and a small integer is exact in float64.
    """
    bins = edges.shape[0] - 1
    v = np.float64(value)
    if v >= edges[bins]:
        return bins
    b = min(int(max(v, 0.0) * bins), bins - 1)
    if upper:
        if v < edges[b]:
            b -= 1
        elif v >= edges[b + 1]:
            b += 1
    elif v <= edges[b]:
        b -= 1
    elif v > edges[b + 1]:
        b += 1
    return min(max(b, 0), bins - 1)


@kernel_part
def count_bins(value, hit, label, void, edges, upper, count, hits, total, special):
    """Count non-void values [i] by bin: all in `count`, right ones in `hits`, their sum in `total`.

    All three are [bin + 1], the last bin for values at or above 1 (see `bin_of`). `special` [3]
    counts values of exactly 1, values on an inner edge, and invalid values (negative or above 2).
    """
    last = edges.shape[0] - 2
    # Most probabilities of one class lie in the first bin: counted in registers, twice as fast.
    first = edges[1]
    many, right, sum_ = 0, 0, 0.0
    for i in range(value.shape[0]):
        if label[i] == void:
            continue
        v = value[i]
        if 0 <= v < first:
            many += 1
            right += hit[i]
            sum_ += np.float64(v)
            continue
        b = bin_of(v, edges, upper)
        count[b] += 1
        hits[b] += hit[i]
        total[b] += np.float64(v)
        special[0] += v == 1
        if (0 < b <= last and v == edges[b]) or (b < last and v == edges[b + 1]):
            special[1] += 1
        special[2] += v < 0 or v > 2
    count[0] += many
    hits[0] += right
    total[0] += sum_


@kernel_part
def add_fine_gaps(value, hit, label, void, pixels, absolute, gaps):
    """Add hit - value of the non-void pixels [i] to `gaps` [node] at the nodes k / (nodes - 1).

    A value between two nodes is shared by its distance to them; values outside [0, 1] lie at the
    ends. `pixels` [1] counts the pixels, `absolute` [1] sums |hit - value|.
    """
    last = gaps.shape[0] - 1
    count, total = 0, 0.0
    for i in range(value.shape[0]):
        if label[i] == void:
            continue
        v = np.float64(value[i])
        place = min(max(v, 0.0), 1.0) * last
        node = min(int(place), last - 1)
        share = place - node
        gap = np.float64(hit[i]) - v
        gaps[node] += (1.0 - share) * gap
        gaps[node + 1] += share * gap
        count += 1
        total += abs(gap)
    pixels[0] += count
    absolute[0] += total


@kernel_part
def count_intervals(value, hit, label, void, edges, count, hits, total):
    """Count non-void values [i] by the number of ascending `edges` (float32) below them.

    Adds to `count`, `hits` and `total`, each [edges + 1].
    """
    for i in range(value.shape[0]):
        if label[i] == void:
            continue
        v = value[i]
        interval = count_below(edges, v, False)
        count[interval] += 1
        hits[interval] += hit[i]
        total[interval] += np.float64(v)


@kernel
def count_quantiles(mean, target, error, sigma, label, void, quantiles, counts):
    """Count evaluated pixels [i] by the first of the ascending quantiles with μ - y <= quantile·σ.

    μ - y is ±ε with the sign of `mean` - `target`, compared in float64. Adds to `counts` [quantile
    + 1], of which the last counts pixels above all quantiles.
    """
    for i in range(label.shape[0]):
        if label[i] == void:
            continue
        e, s = np.float64(error[i]), np.float64(sigma[i])
        if mean[i] < target[i]:
            e = -e
        low, high = 0, quantiles.shape[0]
        while low < high:
            middle = (low + high) // 2
            if e <= quantiles[middle] * s:
                high = middle
            else:
                low = middle + 1
        counts[low] += 1


@kernel_part
def sum_scores(probability, brier, label, void, clip, counts, sums):
    """Sum the proper scores of non-void pixels [i].

    `counts` [3]: pixels, those with p̄_y below `clip`, and those with an invalid p̄_y (negative or
    above 2). `sums` [2]: -ln max(p̄_y, clip), and the Brier score.
    """
    for i in range(probability.shape[0]):
        if label[i] == void:
            continue
        p = np.float64(probability[i])
        counts[0] += 1
        counts[1] += p < clip
        counts[2] += p < 0 or p > 2
        sums[0] -= log_64(max(p, clip))
        sums[1] += np.float64(brier[i])
