"""Sets of all items but one, and sums of numbers of items over each of them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from uqeval.arrays import Array, Floats, Ints
from uqeval.statistics.item_values import SparseValues
from uqeval.statistics.weighting import ItemSets, Score, Values, are_exact

T = TypeVar("T")

#: At every so many units, the sums of all units before and after are stored.
_GRID = 1024


class AllBut(ItemSets):
    """One set for each of `chosen` items, which has all others of them, each once.

    A set is the items before it and those after it, in this order. Only of counts, whose sums are
    exact, the item is subtracted from all: from other sums, a large item would cost the others
    digits. `rows`: the sets of this part of all.
    """

    def __init__(
        self,
        chosen: Ints,
        rows: range | None = None,
        known: dict[int, tuple[weakref.ref[Any], Any]] | None = None,
        scores: dict[Hashable, Floats] | None = None,
    ) -> None:
        self.chosen = chosen
        self._rows = range(len(chosen)) if rows is None else rows
        self.sets = len(self._rows)
        #: What is computed from values for all parts, by their identity: these, and the result.
        self._known = {} if known is None else known
        self._scores = {} if scores is None else scores

    def sums(self, values: Values) -> Array:
        first, last = self._rows.start, self._rows.stop
        own = self._of(values, first, last)
        if are_exact(own):
            return self._once(values, self._all) - own
        sums = np.zeros_like(own)
        np.cumsum(own[:-1], axis=0, out=sums[1:])
        sums[:-1] += np.cumsum(own[:0:-1], axis=0)[::-1]
        if self.sets < len(self.chosen):
            before, after = self._once(values, self._grid)
            start, stop = first // _GRID, -(-last // _GRID)
            sums += before[start] + self._total(values, start * _GRID, first)
            sums += after[stop] + self._total(values, last, min(stop * _GRID, len(self.chosen)))
        return sums

    def quantiles(self, values: Floats, shares: Sequence[float]) -> Floats:
        ordered, places = self._once(values, self._order)
        # The item that a set lacks: its place in the order, after all if its value is undefined.
        without = places[self._rows.start : self._rows.stop]
        last = ordered.size - (without < ordered.size) - 1

        def value_at(place: Array) -> Floats:
            index = place.astype(np.int64)
            return ordered[np.clip(index + (index >= without), 0, ordered.size - 1)]

        found = np.full((self.sets, len(shares)), np.nan)
        for column, share in enumerate(shares if ordered.size else ()):
            position = last * share
            lower = np.floor(position)
            low, high = value_at(lower), value_at(np.minimum(lower + 1, last))
            found[:, column] = np.where(last >= 0, low + (high - low) * (position - lower), np.nan)
        return found

    def _order(self, values: Values) -> tuple[Floats, Ints]:
        """Return the defined values of the items in order, and the place of each item in it."""
        own = self._of(values, 0, len(self.chosen))
        order = np.argsort(np.where(np.isfinite(own), own, np.nan), kind="stable")
        places = np.empty(own.size, np.int64)
        places[order] = np.arange(own.size)
        return own[order[: int(np.isfinite(own).sum())]], places

    def _once(self, values: Values, compute: Callable[[Values], T]) -> T:
        """Return `compute(values)`, the same result for all parts of the sets."""
        known = self._known.get(id(values))
        if known is None or known[0]() is not values:
            self._known[id(values)] = known = weakref.ref(values), compute(values)
        return cast("T", known[1])

    def _all(self, values: Values) -> Array:
        """Return the sums of all items [number]."""
        return self._total(values, 0, len(self.chosen))

    def _grid(self, values: Values) -> tuple[Array, Array]:
        """Return the sums of all items before, and from, every `_GRID`-th item: [point, number]."""
        ends = range(_GRID, len(self.chosen) + _GRID, _GRID)
        cells = np.stack(
            [self._total(values, end - _GRID, min(end, len(self.chosen))) for end in ends]
        )
        before = np.concatenate([np.zeros_like(cells[:1]), np.cumsum(cells, axis=0)])
        after = np.concatenate([np.cumsum(cells[::-1], axis=0)[::-1], np.zeros_like(cells[:1])])
        return before, after

    def _of(self, values: Values, first: int, last: int) -> Array:
        return values[self.chosen[first:last]]

    def _total(self, values: Values, first: int, last: int) -> Array:
        if isinstance(values, SparseValues):
            return values.total_of(self.chosen[first:last])
        return self._of(values, first, last).sum(axis=0)

    def extremes(self, best: np.ufunc, values: Array, identity: Any) -> Array:
        own = values[self.chosen]
        ends = np.full((1, *own.shape[1:]), identity, own.dtype)
        before = best.accumulate(np.concatenate([ends, own[:-1]]), axis=0)
        after = best.accumulate(np.concatenate([ends, own[:0:-1]]), axis=0)[::-1]
        return best(before, after)[self._rows.start : self._rows.stop]

    def part(self, rows: slice) -> AllBut:
        return AllBut(self.chosen, self._rows[rows], self._known, self._scores)

    def at(self, places: Ints, items: int) -> AllBut:
        return AllBut(places[self.chosen], self._rows)

    def dense(self, items: int) -> Array:
        weights = np.zeros((self.sets, items), np.int8)
        weights[:, self.chosen] = 1
        weights[np.arange(self.sets), self.chosen[self._rows.start : self._rows.stop]] = 0
        return weights

    def without_each(self, items: int, key: Hashable, score: Score) -> Floats:
        if key not in self._scores:
            is_chosen = np.zeros(items, bool)
            is_chosen[self.chosen] = True
            self._scores[key] = score(is_chosen)
        return self._scores[key][self.chosen[self._rows.start : self._rows.stop]]
