"""Sums of sparse numbers of items over many sets of items."""

from __future__ import annotations

from uqeval.kernels._jit import kernel


@kernel
def add_weighted(item, column, value, weights, sums):
    """Add `value` [entry] times `weights` [item, set] of its item to `sums` [column, set]."""
    for entry in range(value.shape[0]):
        weight, total = weights[item[entry]], sums[column[entry]]
        for s in range(weight.shape[0]):
            total[s] += value[entry] * weight[s]
