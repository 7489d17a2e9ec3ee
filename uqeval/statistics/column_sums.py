"""Sums over sets of items of the few columns that a score reads, in place of all columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from uqeval.arrays import Array, Floats, Ints


@dataclass(frozen=True)
class ColumnValues:
    """Numbers of items by column, [column, item]: counts as integers, others as float64.

    Those of a set, added up, ascend by column.
    """

    values: Array

    @property
    def nbytes(self) -> int:
        """Return the bytes of the numbers."""
        return self.values.nbytes

    @cached_property
    def totals(self) -> Floats:
        """Return the sums over all items [column]."""
        return self.values.sum(axis=1, dtype=np.float64)

    @cached_property
    def most(self) -> int:
        """Return the largest sum of the absolute counts of a column."""
        return int(np.abs(self.values).sum(axis=1, dtype=np.int64).max(initial=0))

    def halves(self) -> ColumnHalves:
        """Return the halves of two runs, whose items are those of one run, then of the other."""
        first, second = np.split(self.values, 2, axis=1)
        totals = (half.sum(axis=1, dtype=np.float64) for half in (first, second))
        return ColumnHalves(ColumnValues(first - second), *totals)


@dataclass(frozen=True)
class ColumnHalves:
    """Numbers of the items of one run minus those of the same items of another, and the sums of
    each run [column]."""

    differences: ColumnValues
    first: Floats
    second: Floats

    @property
    def nbytes(self) -> int:
        """Return the bytes of the numbers by item."""
        return self.differences.nbytes


@dataclass(frozen=True)
class ColumnSums:
    """`base` [column] plus `sign` times the numbers of items by `weights` [set, item]; it has the
    methods of `uqeval.metrics._tiles.TileSums`."""

    values: ColumnValues
    weights: NDArray[np.int8]
    base: Floats
    sign: float = 1.0

    @classmethod
    def of(cls, values: ColumnValues, weights: NDArray[np.int8]) -> ColumnSums:
        """Return the sums by weights alone."""
        return cls(values, weights, np.zeros(len(values.values)))

    def first_reaching(self, sets: Ints, ranks: Array) -> tuple[Ints, Floats, Floats]:
        """Return the first column in which each set reaches its rank, and the sums of the column
        before it and of itself; of counts only."""
        from uqeval.kernels.column_sums import find_columns

        columns = np.empty(len(sets), np.int64)
        before, upto = np.empty(len(sets)), np.empty(len(sets))
        some_weights = self.weights[::16]  # of sets that are much like the others
        mean_weight = float(some_weights.mean()) if some_weights.size else 0.0
        is_small = self.values.most * -np.iinfo(np.int8).min < 2**31
        curve = self.base + self.sign * mean_weight * self.values.totals
        find_columns(
            self.values.values, self.weights, is_small, self.sign, self.base, curve, sets,
            ranks.astype(np.float64, copy=False), columns, before, upto,
        )  # fmt: skip
        return columns, before, upto

    def around(self, sets: Ints, columns: Ints) -> tuple[Floats, Floats]:
        """Return the sums of the column before each column, or 0, and of itself."""
        from uqeval.kernels.column_sums import LANES, sum_columns

        before, upto = np.empty(len(sets)), np.empty(len(sets))
        values = self.values.values.astype(np.float64, copy=False)
        sum_columns(
            values, self.weights, self.sign, self.base, sets, columns, np.empty((2, LANES)),
            before, upto,
        )  # fmt: skip
        return before, upto


#: Makes numbers by column; None where all columns have to be added up.
MakeColumns: TypeAlias = Callable[[], "ColumnValues | None"]
#: The sums of a field in a tile, a row of it: by name, tile and row.
TileColumns: TypeAlias = Callable[[str, int, int], "ColumnSums | None"]
