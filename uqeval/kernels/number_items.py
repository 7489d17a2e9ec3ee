"""Counting many small items of predicted numbers in one call: see `items`."""

from __future__ import annotations

import numpy as np

from uqeval.kernels._jit import kernel
from uqeval.kernels.counting import rank_key
from uqeval.kernels.error_sums import BLOCK, sum_item, sum_powers_about
from uqeval.kernels.items import largest_item, sort_keys
from uqeval.kernels.pairwise import pairwise_sum
from uqeval.kernels.ratios import look_at_item, ratio_of
from uqeval.kernels.sorting import DIGITS, RADIX


@kernel
def sum_errors_of_items(
    first, error, sigma, target, label, void, count, sums, zero, least, most, within, invalid, rest
):  # fmt: skip
    """Sum as `sum_item` and `sum_powers_about` do, into [item, …] arrays that are empty."""
    lanes, ends, centres = np.empty((5, BLOCK)), np.empty((2, BLOCK)), np.empty((2, BLOCK))
    for i in range(first.shape[0] - 1):
        a, b = first[i], first[i + 1]
        targets, labels = target[a:b], label[a:b]
        lanes[:] = 0.0
        ends[0, :], ends[1, :] = np.inf, -np.inf
        n, zeros, infinite = sum_item(error[a:b], sigma[a:b], targets, labels, void, lanes, ends)
        count[i, 0], zero[i, 0, 0], zero[i, 0, 1] = n, zeros, infinite
        invalid[i, 0] = b - a - n
        for k in range(5):
            sums[i, 0, k] = pairwise_sum(lanes[k])
        for k in range(BLOCK):
            least[i, 0] = min(least[i, 0], ends[0, k])
            most[i, 0] = max(most[i, 0], ends[1, k])
        if n > 0:
            centres[:] = 0.0
            sum_powers_about(sums[i, 0, 4] / n, targets, labels, void, centres[0], centres[1])
            rest[i, 0], within[i, 0] = pairwise_sum(centres[0]), pairwise_sum(centres[1])


@kernel
def rank_errors_of_items(
    first, error, sigma, label, void, lower, upper, totals, zero, statistics
):  # fmt: skip
    """Sum as `look_at_item` does, and find order statistics of λ and ε, float32, of each item.

    `totals` [item, (Σε, Σσ)], `zero` [item, 1, (σ = 0, λ infinite)]. The ranks `lower` and `upper`
    int64 [item] are -1 without any; `statistics` [item, (λ, ε), (lower, upper)].
    """
    largest = largest_item(first)
    limits = np.empty((2, 2), np.float32)
    limits[:, 0], limits[:, 1] = -np.inf, np.inf
    lanes, most, counts = np.empty((4, BLOCK)), np.empty(BLOCK), np.empty(7, np.int64)
    values, errors, none = np.empty((2, largest), np.float32), np.empty(largest), np.empty(0, "i4")
    keys, buffer = np.empty(largest, np.uint64), np.empty(largest, np.uint64)
    histogram = np.empty((DIGITS, RADIX), np.int64)
    for i in range(first.shape[0] - 1):
        a, b = first[i], first[i + 1]
        lanes[:], counts[:] = 0.0, 0
        look_at_item(
            error[a:b], sigma[a:b], label[a:b], void, limits, False, lanes, most, counts,
            values[0], errors, none,
        )  # fmt: skip
        n = counts[0]
        totals[i, 0], totals[i, 1] = pairwise_sum(lanes[0]), pairwise_sum(lanes[1])
        zero[i, 0, 0], zero[i, 0, 1] = counts[1], counts[2]
        for j in range(n):
            values[1, j] = np.float32(errors[j])
        for k in range(2):
            if lower[i] < 0:
                continue
            for j in range(n):
                keys[j] = np.uint64(rank_key(values[k, j]) << 32 | j)
            sort_keys(keys[:n], buffer, histogram)
            low, high = keys[lower[i]], keys[upper[i]]
            index = np.uint64(0xFFFFFFFF)
            statistics[i, k, 0] = values[k, np.int64(low & index)]
            statistics[i, k, 1] = values[k, np.int64(high & index)]


@kernel
def sum_retained_of_items(
    first, error, sigma, label, void, by_ratio, limit, count, sums, most
):  # fmt: skip
    """Count and sum the evaluated pixels of each item with ε, or `by_ratio` λ, up to its `limit`.

    `limit` [item]; ε and λ are compared as float32. Into `count` [item, 1], `sums`
    [item, (Σε, Σσ)], with Σσ only `by_ratio`, and `most` [item, 1], the largest ε.
    """
    largest = largest_item(first)
    errors, sigmas = np.empty(largest), np.empty(largest)
    for i in range(first.shape[0] - 1):
        n = 0
        for k in range(first[i], first[i + 1]):
            if label[k] == void:
                continue
            key = ratio_of(error[k], sigma[k]) if by_ratio else np.float32(error[k])
            if np.float64(key) <= limit[i]:
                errors[n], sigmas[n] = error[k], sigma[k]
                most[i, 0] = max(most[i, 0], errors[n])
                n += 1
        count[i, 0] = n
        sums[i, 0] = pairwise_sum(errors[:n])
        if by_ratio:
            sums[i, 1] = pairwise_sum(sigmas[:n])
