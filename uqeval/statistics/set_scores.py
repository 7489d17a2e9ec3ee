"""Scores of many sets of items. Those that most sets have alike are stored once."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import numpy as np

from uqeval.arrays import Array, Floats, Ints

#: Tables of fewer numbers are stored as they are (8 MB).
_SMALL = 1 << 20
#: So are those of which a larger share differs from the number that is stored once.
_SPARSE = 0.25


class SetScores:
    """Scores of `sets` sets of items, by address.

    With a thousand classes, the scores of a class are the same without any item that has no pixel
    of it: 50,000 items of one pixel would have 7 GB of such scores.
    """

    def __init__(self, sets: int) -> None:
        self.sets = sets
        self._columns: dict[str, tuple[Table, int]] = {}

    def add(self, addresses: Sequence[str]) -> Table:
        """Return an empty table of the scores at some addresses. Its user fills and closes it."""
        table = Table(self.sets, len(addresses))
        self._columns |= {address: (table, i) for i, address in enumerate(addresses)}
        return table

    def __getitem__(self, address: str) -> Floats:
        """Return the score of each set [set], NaN where it is undefined."""
        if address not in self._columns:
            return np.full(self.sets, np.nan)
        table, column = self._columns[address]
        return table.column(column)


class Table:
    """Numbers of `sets` sets in `width` columns, put in blocks of sets by several threads."""

    def __init__(self, sets: int, width: int) -> None:
        self.sets, self.width = sets, width
        #: All numbers [set, column], where they are stored as they are.
        self._all: Floats | None = None
        #: The number of each column that most sets of the first block have.
        self._most: Floats | None = None
        #: The sets whose numbers differ, with these: of each block, and at last sorted by column.
        self._parts: list[tuple[Ints, Ints, Floats]] = []
        self._differing: tuple[Ints, Floats] = np.zeros(0, np.int64), np.zeros(0)
        #: Where the entries of each column begin.
        self._first: Ints = np.zeros(width + 1, np.int64)
        self._lock = Lock()

    def put(self, first: int, block: Floats) -> None:
        """Put the numbers of sets from the `first` on: [set, column]. `block` may be changed."""
        block[np.isnan(block)] = np.nan  # one pattern of bits
        with self._lock:
            if self._most is None and self._all is None:
                self._begin(block)
        if self._all is not None:
            self._all[first : first + len(block)] = block
        elif self._most is not None:
            sets, columns = np.nonzero(_differ(block, self._most))
            self._parts.append((sets + first, columns, block[sets, columns]))

    def _begin(self, block: Floats) -> None:
        """Decide from the first block how the numbers are stored."""
        if self.sets * self.width > _SMALL:
            one, two, three = block[0], block[len(block) // 2], block[-1]
            most = np.where(_differ(two, three), one, two)
            if np.count_nonzero(_differ(block, most)) < _SPARSE * block.size:
                self._most = most
                return
        self._all = np.empty((self.sets, self.width))

    def close(self) -> None:
        """Sort the numbers by column, when all blocks were put."""
        if self._parts:
            sets, columns, values = map(np.concatenate, zip(*self._parts, strict=True))
            self._parts.clear()
            order = np.argsort(columns, kind="stable")
            self._differing = sets[order], values[order]
            self._first = np.searchsorted(columns[order], np.arange(self.width + 1))

    def column(self, index: int) -> Floats:
        """Return the numbers of a column [set]."""
        if self._all is not None:
            return self._all[:, index]
        column = np.full(self.sets, np.nan if self._most is None else self._most[index])
        own = slice(*self._first[index : index + 2])
        sets, values = self._differing
        column[sets[own]] = values[own]
        return column


def _differ(first: Floats, second: Floats) -> Array:
    """Return where the bits of numbers differ: 0 and -0 do."""
    return first.view(np.int64) != second.view(np.int64)
