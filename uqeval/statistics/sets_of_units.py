"""Sets of units, such as the sequences of a video, and sums of numbers of items over each unit."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqeval.arrays import Array, Ints
from uqeval.statistics.item_values import SparseValues
from uqeval.statistics.weighting import ItemSets, Values


class InUnits(ItemSets):
    """Sets of units of items; `unit_of`: the unit of each item, -1 for none."""

    def __init__(self, units: ItemSets, unit_of: Ints, count: int) -> None:
        self._units, self._unit_of, self._count = units, unit_of, count
        self.sets = units.sets

    def sums(self, values: Values) -> Array:
        return self._units.sums(by_unit(values, self._unit_of, self._count))

    def extremes(self, best: np.ufunc, values: Array, identity: Any) -> Array:
        best_of_units = best_by_unit(best, values, identity, self._unit_of, self._count)
        return self._units.extremes(best, best_of_units, identity)

    def part(self, rows: slice) -> InUnits:
        return InUnits(self._units.part(rows), self._unit_of, self._count)

    def dense(self, items: int) -> Array:
        weights = np.append(self._units.dense(self._count), np.zeros((self.sets, 1), int), axis=1)
        return weights[:, self._unit_of]

    def at(self, places: Ints, items: int) -> InUnits:
        unit_of = np.full(items, -1)
        unit_of[places] = self._unit_of
        return InUnits(self._units, unit_of, self._count)


def by_unit(values: Values, unit_of: Ints, units: int) -> Values:
    """Return the sums of `values` [item, number] over the items of each unit: [unit, number]."""
    if isinstance(values, SparseValues):
        return values.by_unit(unit_of, units)
    order = np.argsort(unit_of, kind="stable")
    order = order[np.searchsorted(unit_of[order], 0) :]
    sums = np.zeros((units, values.shape[1]), values.dtype)
    starts = np.searchsorted(unit_of[order], np.arange(units))
    if order.size:
        # Every unit has an item.
        np.add.reduceat(values[order], starts, axis=0, out=sums)
    return sums


def best_by_unit(best: np.ufunc, values: Array, identity: Any, unit_of: Ints, units: int) -> Array:
    """Return `best`, a minimum or maximum, of `values` [item, number]: [unit, number]."""
    bests = np.full((units, values.shape[1]), identity, values.dtype)
    best.at(bests, unit_of[unit_of >= 0], values[unit_of >= 0])
    return bests
