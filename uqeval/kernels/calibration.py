"""Count confidences by bin, for calibration errors and reliability diagrams.

`first` int64 [item + 1]: the pixels of item i are those from `first[i]` up to `first[i + 1]`.
"""

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


@kernel
def count_bins(first, value, hit, label, void, edges, upper, row, count, hits, total, special):
    """Count non-void values [k] by bin: all in `count`, right ones in `hits`, their sum in `total`.

    All three are [item, row, bin + 1], the last bin for values at or above 1 (see `bin_of`).
    `special` [item, 3] counts values of exactly 1, values on an inner edge, and invalid values
    (negative or above 2).
    """
    last = edges.shape[0] - 2
    # Most probabilities of one class lie in the first bin: counted in registers, twice as fast.
    end_of_first = edges[1]
    for i in range(first.shape[0] - 1):
        a, b = first[i], first[i + 1]
        values, is_hit, labels = value[a:b], hit[a:b], label[a:b]
        counts, of_hits, sums, of_item = count[i, row], hits[i, row], total[i, row], special[i]
        many, right, sum_ = 0, 0, 0.0
        for k in range(values.shape[0]):
            if labels[k] == void:
                continue
            v = values[k]
            if 0 <= v < end_of_first:
                many += 1
                right += is_hit[k]
                sum_ += np.float64(v)
                continue
            at = bin_of(v, edges, upper)
            counts[at] += 1
            of_hits[at] += is_hit[k]
            sums[at] += np.float64(v)
            of_item[0] += v == 1
            if (0 < at <= last and v == edges[at]) or (at < last and v == edges[at + 1]):
                of_item[1] += 1
            of_item[2] += v < 0 or v > 2
        counts[0] += many
        of_hits[0] += right
        sums[0] += sum_


@kernel
def add_fine_gaps(first, value, hit, label, void, pixels, absolute, gaps):
    """Add hit - value of the non-void pixels [k] to `gaps` [item, node] at the nodes
    j / (nodes - 1).

    A value between two nodes is shared by its distance to them; values outside [0, 1] lie at the
    ends. `pixels` [item, 1] counts the pixels, `absolute` [item, 1] sums |hit - value|.
    """
    last = gaps.shape[1] - 1
    for i in range(first.shape[0] - 1):
        a, b = first[i], first[i + 1]
        values, is_hit, labels, of_item = value[a:b], hit[a:b], label[a:b], gaps[i]
        count, total = 0, 0.0
        for k in range(values.shape[0]):
            if labels[k] == void:
                continue
            v = np.float64(values[k])
            place = min(max(v, 0.0), 1.0) * last
            node = min(int(place), last - 1)
            share = place - node
            gap = np.float64(is_hit[k]) - v
            of_item[node] += (1.0 - share) * gap
            of_item[node + 1] += share * gap
            count += 1
            total += abs(gap)
        pixels[i, 0] += count
        absolute[i, 0] += total


@kernel
def count_intervals(first, value, hit, label, void, edges, count, hits, total):
    """Count non-void values [k] by the number of ascending `edges` (float32) below them.

    `edges` is [item, edge], or [1, edge] for all items. Adds to `count`, `hits` and `total`, each
    [item, edges + 1].
    """
    for i in range(first.shape[0] - 1):
        a, b = first[i], first[i + 1]
        values, is_hit, labels = value[a:b], hit[a:b], label[a:b]
        of_item = edges[min(i, edges.shape[0] - 1)]
        counts, of_hits, sums = count[i], hits[i], total[i]
        for k in range(values.shape[0]):
            if labels[k] == void:
                continue
            v = values[k]
            interval = count_below(of_item, v, False)
            counts[interval] += 1
            of_hits[interval] += is_hit[k]
            sums[interval] += np.float64(v)


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


@kernel
def sum_scores(first, probability, brier, label, void, clip, counts, sums):
    """Sum the proper scores of non-void pixels [k].

    `counts` [item, 3]: pixels, those with p̄_y below `clip`, and those with an invalid p̄_y
    (negative or above 2). `sums` [item, 2]: -ln max(p̄_y, clip), and the Brier score.
    """
    for i in range(first.shape[0] - 1):
        a, b = first[i], first[i + 1]
        probabilities, briers, labels = probability[a:b], brier[a:b], label[a:b]
        of_item, scores = counts[i], sums[i]
        for k in range(probabilities.shape[0]):
            if labels[k] == void:
                continue
            p = np.float64(probabilities[k])
            of_item[0] += 1
            of_item[1] += p < clip
            of_item[2] += p < 0 or p > 2
            scores[0] -= log_64(max(p, clip))
            scores[1] += np.float64(briers[k])
