"""A field of all items of a tally: an array [item, number], or sparse entries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from uqeval.arrays import Array, Ints
from uqeval.statistics.item_values import SparseValues
from uqeval.statistics.sets_of_units import by_unit
from uqeval.statistics.swapping import Halves, Swaps
from uqeval.statistics.weighting import LIGHT_WEIGHT, ItemSets, Values
from uqeval.tallies._fields import Field, FieldOfItems, identity

#: Larger fields (bytes) are stored as sparse entries if these are less than a quarter.
_DENSE_BYTES = 64 << 20
_SPARSE = 0.25
#: For fields with fewer numbers per item or in all, two products are slower than one.
_WIDE, _MANY = 1000, 1 << 20


class Gathered:
    """One field of `items` items, gathered from some items in a row at a time.

    `keeps_all`: an array is needed, whatever it holds.
    """

    def __init__(self, field: Field, items: int, keeps_all: bool) -> None:
        self.field, self.size = field, math.prod(field.shape)
        self._items = items
        self._may_be_sparse = field.merge == "sum" and not keeps_all and self._is_much(self.size)
        self._parts: list[Values] = []

    def _is_much(self, numbers: int) -> bool:
        return self._items * numbers * np.dtype(self.field.dtype).itemsize > _DENSE_BYTES

    def add(self, entries: FieldOfItems) -> None:
        """Add the next items."""
        values = entries.values
        if entries.places is not None and entries.first is not None:
            counts = np.diff(entries.first)
            item = np.repeat(np.arange(counts.size, dtype=np.int32), counts)
            column = entries.places.astype(np.int32)
            self._parts.append(SparseValues(counts.size, self.size, item, column, values))
            return
        if self._may_be_sparse and not self._parts:
            self._may_be_sparse = bool(np.count_nonzero(values) < _SPARSE * values.size)
        self._parts.append(SparseValues.of(values) if self._may_be_sparse else values)

    def values(self) -> tuple[Array | None, Values]:
        """Return the numbers of all items, and which of the field they are (None: all)."""
        sparse = [part for part in self._parts if isinstance(part, SparseValues)]
        if len(sparse) < len(self._parts) or not sparse:
            return None, self.array()
        entries = SparseValues.joined(sparse)
        places = np.unique(entries.column)
        if self._may_be_sparse and self._is_much(places.size):
            return None, entries
        column = np.searchsorted(places, entries.column)
        rows = np.full((entries.items, places.size), identity(self.field), self.field.dtype)
        rows[entries.item, column] = entries.value
        return places, rows

    def array(self) -> Array:
        """Return all numbers of all items, [item, number]."""
        rows = np.empty((self._items, self.size), self.field.dtype)
        first = 0
        for part in self._parts:
            own = rows[first : first + len(part)]
            if isinstance(part, SparseValues):
                own[...] = identity(self.field)
                own[part.item, part.column] = part.value
            else:
                own[...] = part
            first += len(part)
        return rows


@dataclass(frozen=True)
class Columns:
    """Numbers [item, column] of a field, by the types in which all their sums are exact."""

    width: int
    parts: Sequence[tuple[Array | slice, Values]]

    @classmethod
    def of(cls, values: Values) -> Columns:
        """Return counts as float32 or float64, which multiply fast, if sums of them are
        exact.
        """
        if isinstance(values, SparseValues):
            return cls(values.width, [(slice(None), values.summable())])
        width = values.shape[1]
        if values.dtype.kind != "i" or (width < _WIDE and values.size < _MANY):
            return cls(width, [(slice(None), _summable(values))])
        light = values.sum(axis=0, dtype=np.float64) * LIGHT_WEIGHT < 2**24
        if light.all():
            return cls(width, [(slice(None), values.astype(np.float32))])
        parts: list[tuple[Array | slice, Values]] = []
        if light.any():
            parts.append((np.flatnonzero(light), values[:, light].astype(np.float32)))
        parts.append((np.flatnonzero(~light), _summable(values[:, ~light])))
        return cls(width, parts)

    def sums(self, sets: ItemSets) -> Array:
        """Return sums over the items of each set: [set, column]."""
        return self._joined([sets.sums(values) for _, values in self.parts])

    def swapped(self, swaps: Swaps) -> tuple[Array, Array] | None:
        """Return sums of both of two runs; None where they do not follow from differences."""
        halves = [half for half in self._halves if half is not None]
        if len(halves) < len(self.parts):
            return None
        first_sums, second_sums = zip(*map(swaps.pair, halves), strict=True)
        return self._joined(first_sums), self._joined(second_sums)

    @cached_property
    def _halves(self) -> list[Halves | None]:
        """Return for each part the halves of its items."""
        return [Halves.of(values) for _, values in self.parts]

    def _joined(self, sums: Sequence[Array]) -> Array:
        if len(sums) == 1:
            return sums[0]
        joined_sums = np.empty((len(sums[0]), self.width), np.result_type(*sums))
        for (at, _), part_sums in zip(self.parts, sums, strict=True):
            joined_sums[:, at] = part_sums
        return joined_sums

    def by_unit(self, unit_of: Ints, units: int) -> Columns:
        """Return the sums of units of items; `unit_of`: the unit of each item, -1 for none."""
        parts = [(at, by_unit(values, unit_of, units)) for at, values in self.parts]
        return Columns(self.width, parts)

    @property
    def is_sparse(self) -> bool:
        """Return whether the field is sparse."""
        return isinstance(self.parts[0][1], SparseValues)

    def take(self, items: Sequence[int], sparse: bool = False) -> Values:
        """Return the numbers of some items in this order, [item, column]."""
        chosen = np.asarray(items, np.int64)
        _, values = self.parts[0]
        if isinstance(values, SparseValues):
            return values.take(chosen)
        rows = self._joined(
            [part[chosen] for _, part in self.parts if isinstance(part, np.ndarray)]
        )
        return SparseValues.of(rows) if sparse else rows

    def array(self) -> Array:
        """Return the numbers of every item [item, column]."""
        values = self.take(range(len(self.parts[0][1])))
        return values.array() if isinstance(values, SparseValues) else values


def _summable(values: Array) -> Array:
    """Return float64 values, which multiply fast, where every sum over as many items is
    exact in it.
    """
    if values.dtype.kind == "i" and np.abs(values).max(initial=0) * len(values) >= 2**53:
        return values
    return values.astype(np.float64)
