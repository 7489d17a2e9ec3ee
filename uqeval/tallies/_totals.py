"""The sum of the states of many items, sparse while few of its numbers are used.

Counts by rank have a million bins, and the pixels of small data, or of a region, are in few of
them: to clear, add and search all bins takes longer than to count the pixels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from uqeval.arrays import Array, Maps, State, np
from uqeval.tallies._fields import CountedItems, Field, SparseState, Thin

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally

#: Sums of fields with at least so many numbers are sparse, up to one entry for some numbers: an
#: entry takes longer than a number.
_LEAST_NUMBERS, _NUMBERS_PER_ENTRY = 1 << 16, 4
#: Sparse states that wait to be added together. Those of an item of one pixel take 600 bytes.
_MOST_PARTS = 4096

#: Entries are sorted by place, unless a field has fewer numbers for each entry than this.
_NUMBERS_ADDED = 16


class Total:
    """The sum of states of a tally, added in order: the same bits as `Tally.fold` of each."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        fields = tally.packing.fields.values()
        numbers = [math.prod(field.shape) for field in fields]
        is_sparse = min(numbers) >= _LEAST_NUMBERS and {field.merge for field in fields} == {"sum"}
        self._dense: State | None = None if is_sparse else tally.empty()
        self._parts: list[Thin] = []
        self._entries, self._most_entries = 0, sum(numbers) // _NUMBERS_PER_ENTRY
        self._summed_entries = 0  # of the first part, the sum of earlier ones

    def update(self, maps: Maps) -> None:
        """Add the maps of an item."""
        counted = self._tally.count_item(maps) if self._dense is None else None
        if counted is None:
            self._tally.update(self._as_dense(), maps)
        else:
            self._add(counted.thin(0))

    def fold_items(self, counted: CountedItems) -> None:
        """Add the states of several items."""
        if self._dense is not None:
            self._tally.fold_items(self._dense, counted)
            return
        for item in range(counted.items):
            self._add(counted.thin(item))

    def merge(self, other: Total) -> None:
        """Add another total."""
        if other._dense is not None:
            self._tally.merge(self._as_dense(), other._dense)
        for thin in other._parts:
            self._add(thin)

    def merge_state(self, state: State) -> None:
        """Add a state."""
        self._tally.merge(self._as_dense(), state)

    def _add(self, thin: Thin) -> None:
        if self._dense is not None:
            self._tally.fold(self._dense, thin)
            return
        self._parts.append(thin)
        self._entries += sum(values.size for _, values in thin)
        if self._entries > self._most_entries:
            self._as_dense()
        elif len(self._parts) > _MOST_PARTS and 4 * self._entries > 5 * self._summed_entries:
            self._parts = [[*self._sums()]]
            self._entries = self._summed_entries = sum(v.size for _, v in self._parts[0])

    def _as_dense(self) -> State:
        """Return the sum so far as arrays, which all later states are added to."""
        if self._dense is None:
            self._dense = self._tally.empty()
            for thin in self._parts:
                self._tally.fold(self._dense, thin)
            self._parts = []
        return self._dense

    def state(self) -> State:
        """Return the sum."""
        if self._dense is not None:
            return self._dense
        return cast("State", SparseState(self._tally.packing.fields, self._sums()))

    def _sums(self) -> list[tuple[Array, Array]]:
        """Return the places and values of the sum of the sparse states, of each field."""
        return [
            _summed(field, [thin[number] for thin in self._parts])
            for number, field in enumerate(self._tally.packing.fields.values())
        ]


def _summed(field: Field, parts: Sequence[tuple[Array | None, Array]]) -> tuple[Array, Array]:
    """Return places, ascending, and the sums of the values at each, added in the order of parts."""
    places = np.concatenate([np.zeros(0, np.int64), *(at for at, _ in parts if at is not None)])
    values = np.concatenate([np.zeros(0, field.dtype), *(own for _, own in parts)])
    if places.size * _NUMBERS_ADDED > math.prod(field.shape):
        sums: Array = np.zeros(math.prod(field.shape), field.dtype)
        np.add.at(sums, places, values)
        is_used = np.zeros(sums.size, bool)
        is_used[places] = True
        places = np.flatnonzero(is_used)
        return places, sums[places]
    order = np.argsort(places, kind="stable")
    places, values = places[order], values[order]
    is_first = np.ones(places.size, bool)
    np.not_equal(places[1:], places[:-1], out=is_first[1:])
    first = np.flatnonzero(is_first)
    if not first.size:
        return places, values
    if field.dtype.startswith("float"):  # one after another: `reduceat` adds in pairs
        return places[first], np.bincount(np.cumsum(is_first) - 1, values)
    return places[first], np.add.reduceat(values, first, dtype=field.dtype)
