"""Sums of numbers of items over sets of items, each item as often as its weight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Weights up to this are multiplied in float32 where all sums are exact in it, twice as fast.
LIGHT_WEIGHT = 16


#: Makes numbers [item, number].
Make = Callable[[], NDArray[Any]]
#: Sums over sets of the numbers that a function makes: [set, number]. The key names the numbers.
Fold = Callable[[Make, tuple[Any, ...]], NDArray[Any]]
#: Fewer sets than this are not worth sums over the items before and after each.
_LEAST_SETS = 8


class Weighting:
    """Sums over the items of each row of `weights` [set, item]."""

    def __init__(self, weights: NDArray[np.int64]) -> None:
        self.weights = weights
        self.sets = len(weights)

    def sums(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the sums of `values` [item, number]: [set, number].

        An item of weight 0 adds nothing, not even infinity. The items of one set, each taken once,
        are added row by row, so that the sums have the bits of a run.
        """
        products: NDArray[Any]
        if self._once is not None:
            products = values[self._once].sum(axis=0)[None]
        elif self._single is not None:
            products = values[self._single]
        elif self._left_out is not None:
            items, left_out = self._left_out
            is_whole = items.size == len(values)
            products = _sums_without(values if is_whole else values[items], left_out)
        elif values.dtype.kind == "i":
            products = self.weights @ values
        elif values.dtype == np.float32 and self._light is not None:
            products = self._light @ values
        elif np.isfinite(values).all():
            products = self._heavy @ values.astype(np.float64, copy=False)
        else:
            products = np.stack([row[row > 0] @ values[row > 0] for row in self.weights])
        return products

    def extremes(self, best: np.ufunc, values: NDArray[Any], identity: Any) -> NDArray[Any]:
        """Return `best`, a minimum or maximum, of `values` [item, number]: [set, number]."""
        return np.stack(
            [best.reduce(values[row > 0], axis=0, initial=identity) for row in self.weights]
        )

    @cached_property
    def _once(self) -> NDArray[np.bool_] | None:
        """Return the items of a single set that takes none twice."""
        is_subset = self.sets == 1 and self.weights.max(initial=0) <= 1
        return self.weights[0] > 0 if is_subset else None

    @cached_property
    def _single(self) -> NDArray[np.int64] | None:
        """Return the item of each set, where each has one."""
        is_single = self.weights.size and (self.weights.sum(axis=1) == 1).all()
        return self.weights.argmax(axis=1) if is_single else None

    @cached_property
    def _left_out(self) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Return items, and which of these each set leaves out, each another one."""
        if self.sets < _LEAST_SETS or self.weights.max(initial=0) != 1:
            return None
        items = np.flatnonzero(self.weights.any(axis=0))
        weights = self.weights[:, items]
        left_out = weights.argmin(axis=1)
        if (weights.sum(axis=1) != items.size - 1).any() or np.unique(left_out).size < self.sets:
            return None
        return items, left_out

    @cached_property
    def _heavy(self) -> NDArray[np.float64]:
        return self.weights.astype(np.float64)

    @cached_property
    def _light(self) -> NDArray[np.float32] | None:
        light = self.weights.max(initial=0) <= LIGHT_WEIGHT
        return self.weights.astype(np.float32) if light else None


class AllThenEach(Weighting):
    """Sums over some items together, then over each of them alone: no weights for every pair."""

    def __init__(self, items: Sequence[int]) -> None:
        self._items = np.asarray(items, np.int64)
        self.sets = 1 + self._items.size

    def sums(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the sums of `values` [item, number]: [set, number]."""
        own = values[self._items]
        return np.concatenate([own.sum(axis=0)[None], own])

    def extremes(self, best: np.ufunc, values: NDArray[Any], identity: Any) -> NDArray[Any]:
        """Return `best` of `values` [item, number]: [set, number]."""
        own = values[self._items]
        return np.concatenate([best.reduce(own, axis=0, initial=identity)[None], own])


def _sums_without(values: NDArray[Any], left_out: NDArray[np.int64]) -> NDArray[Any]:
    """Return the sums of `values` [item, number] over all items but one, that of each set.

    Added up are the items of no set, and in the order of the sets those before and those after.
    Nothing is subtracted: a large item costs the others no digits.
    """
    is_of_none = np.ones(len(values), bool)
    is_of_none[left_out] = False
    own = values[left_out]
    sums: NDArray[Any] = np.zeros_like(own)
    np.cumsum(own[:-1], axis=0, out=sums[1:])
    sums[:-1] += np.cumsum(own[:0:-1], axis=0)[::-1]
    if is_of_none.any():
        sums += np.add.reduce(values, axis=0, where=is_of_none[:, None])
    return sums


def summable(values: NDArray[Any], most: float) -> NDArray[Any]:
    """Return counts [item, …] in the fastest type in which their sums are exact, other numbers as
    float64. `most`: the largest sum over all items."""
    if values.dtype.kind not in "iu":
        return values.astype(np.float64, copy=False)
    if most * LIGHT_WEIGHT < 2**24:
        return values.astype(np.float32)
    return values.astype(np.float64 if most * len(values) < 2**53 else np.int64, copy=False)
