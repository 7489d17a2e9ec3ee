"""Sparse numbers of items: entries instead of an array [item, number]."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqeval.arrays import Array, Ints

#: The number of entries that are weighted at a time.
_BLOCK = 1 << 20


@dataclass(frozen=True, eq=False)
class SparseValues:
    """Sparse numbers [item, number] of `items` items, `width` per item.

    `item` (ascending), `column` and `value` [entry].
    """

    items: int
    width: int
    item: NDArray[np.int32]
    column: NDArray[np.int32]
    value: Array

    def __len__(self) -> int:
        return self.items

    @property
    def nbytes(self) -> int:
        """Return the bytes of all entries."""
        return self.item.nbytes + self.column.nbytes + self.value.nbytes

    @classmethod
    def of(cls, rows: Array) -> SparseValues:
        """Return the entries of an array [item, number]."""
        item, column = np.nonzero(rows)
        value = rows[item, column]
        items, width = rows.shape
        return cls(items, width, item.astype(np.int32), column.astype(np.int32), value)

    @classmethod
    def joined(cls, parts: list[SparseValues]) -> SparseValues:
        """Return the concatenated items of several objects."""
        firsts = np.cumsum([0, *(part.items for part in parts)]).tolist()
        item = np.concatenate(
            [part.item + np.int32(first) for part, first in zip(parts, firsts, strict=False)]
        )
        column, value = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("column", "value")
        )
        return cls(firsts[-1], parts[0].width, item, column, value)

    def array(self) -> Array:
        """Return all numbers [item, number]."""
        rows = np.zeros((self.items, self.width), self.value.dtype)
        rows[self.item, self.column] = self.value
        return rows

    def summable(self) -> SparseValues:
        """Return the same as float64."""
        return replace(self, value=self.value.astype(np.float64))

    def take(self, chosen: Ints) -> SparseValues:
        """Return some items, in this order."""
        first, last = (np.searchsorted(self.item, chosen, side) for side in ("left", "right"))
        counts = last - first
        entries = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        item = np.repeat(np.arange(len(chosen), dtype=np.int32), counts)
        return SparseValues(
            len(chosen), self.width, item, self.column[entries], self.value[entries]
        )

    def __getitem__(self, chosen: Ints) -> Array:
        """Return the numbers of some items, [chosen, number], as an array does."""
        return self.take(chosen).array()

    def total(self, is_chosen: NDArray[np.bool_]) -> Array:
        """Return the sum over some items, in the order of items: [number]."""
        entries = is_chosen[self.item]
        column, value = self.column[entries], self.value[entries]
        return np.bincount(column, value, self.width).astype(self.value.dtype)

    def total_of(self, chosen: Ints) -> Array:
        """Return the sum over some items: [number]."""
        is_chosen = np.zeros(self.items, bool)
        is_chosen[chosen] = True
        return self.total(is_chosen)

    def weighted(self, weights: Array) -> Array:
        """Return the sums over sets of items by `weights` [item, set]: [set, number].

        In the type of the weights, float64 or, where all sums are exact in it, float32.
        """
        from uqeval.kernels.counting import add_weighted

        sums = np.zeros((self.width, weights.shape[1]), weights.dtype)
        for item, column, value in self._blocks(weights.dtype):
            if np.isfinite(value).all():
                add_weighted(item, column, value, weights, sums)
                continue
            own = weights[item]
            with np.errstate(invalid="ignore"):  # 0 times infinity is none
                np.add.at(sums, column, np.where(own, value[:, None] * own, 0))
        return sums.T

    def _blocks(self, dtype: np.dtype[Any]) -> Iterator[tuple[Array, Array, Array]]:
        for first in range(0, self.item.size, _BLOCK):
            rows = slice(first, first + _BLOCK)
            value = self.value[rows].astype(dtype, copy=False)
            yield self.item[rows], self.column[rows], value

    def widened(self, columns: Ints, width: int) -> SparseValues:
        """Return the numbers as these columns of `width`."""
        return replace(self, width=width, column=columns[self.column].astype(np.int32))

    def only(self, is_kept: NDArray[np.bool_]) -> SparseValues:
        """Return zeros for all items that are not kept."""
        at = is_kept[self.item]
        return replace(self, item=self.item[at], column=self.column[at], value=self.value[at])

    def by_unit(self, unit_of: Ints, units: int) -> SparseValues:
        """Return the sums over the items of each unit; `unit_of`: that of each item, -1: none."""
        unit = unit_of[self.item]
        is_of_unit = unit >= 0
        place = unit[is_of_unit] * self.width + self.column[is_of_unit]
        places, at = np.unique(place, return_inverse=True)
        value = np.bincount(at, self.value[is_of_unit], places.size).astype(self.value.dtype)
        item, column = np.divmod(places, self.width)
        return SparseValues(
            units, self.width, item.astype(np.int32), column.astype(np.int32), value
        )
