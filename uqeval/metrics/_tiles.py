"""Counts by rank of many sets of items, one tile of bins at a time.

Thousands of sets times tens of thousands of bins do not fit into memory, and most scores need the
bins around a few ranks only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from uqeval.arrays import Array, np
from uqeval.metrics._columns import SetStates


class TileSums(Protocol):
    """Sums of a row of a field from the first bin of a tile to each of its bins, for many sets."""

    def first_reaching(self, sets: Array, ranks: Array) -> tuple[Array, Array, Array]:
        """Return the first bin in which each of `sets` [k] reaches its rank [k], and the sums
        before it and up to its end. The field has counts."""

    def around(self, sets: Array, bins: Array) -> tuple[Array, Array]:
        """Return the sums before each of `bins` [k] and up to its end."""


class Tiles(Protocol):
    """Fields [set, row, bin] in tiles of neighbouring bins."""

    @property
    def spans(self) -> Sequence[slice]:
        """Return the bins of each tile."""

    def totals(self, name: str, factor: Array | None = None) -> Array:
        """Return the sums of a field over the bins of each tile, [set, row, tile].

        `factor` [bin]: multiplies the field first.
        """

    def upto(self, name: str, tile: int, row: int) -> Array:
        """Return the sums of a row of a field from the first bin of a tile to each of its bins,
        [set, bin]."""

    def sums(self, name: str, tile: int, row: int) -> TileSums:
        """Return the same sums, of which only those that are read need be computed."""


@dataclass(frozen=True, kw_only=True)
class RankedSets(SetStates):
    """States of many sets of a tally of counts by rank; `fields` are folded when first read.

    `values`: those for which the columns stand, if the columns are not bins of the tally.
    `without_each`: returns a score by rank [set] by its name, if the sets are all items but one and
    there is a faster way than by bins; otherwise None.
    """

    tiles: Tiles
    values: Array | None = None
    without_each: Callable[[str], Array | None] | None = None


@dataclass(frozen=True)
class AllSums:
    """Sums up to each bin of a tile [set, bin], which are all known."""

    upto: Array

    def first_reaching(self, sets: Array, ranks: Array) -> tuple[Array, Array, Array]:
        """Return what `TileSums` does."""
        bins = _first_reaching(self.upto, sets, ranks)
        return bins, *self.around(sets, bins)

    def around(self, sets: Array, bins: Array) -> tuple[Array, Array]:
        """Return what `TileSums` does."""
        before = np.where(bins > 0, self.upto[sets, np.maximum(bins - 1, 0)], 0.0)
        return before, self.upto[sets, bins]


@dataclass(frozen=True)
class Cumulated:
    """One row of a field: its sums over each tile [set, tile], and those up to the end of the bins
    of a tile, from the beginning of the tile."""

    totals: Array
    of_tile: Callable[[int], TileSums]

    @classmethod
    def from_tiles(cls, tiles: Tiles, name: str) -> Cumulated:
        """Return the first row of a field of `tiles`."""
        return cls(tiles.totals(name)[:, 0], lambda tile: tiles.sums(name, tile, 0))


@dataclass(frozen=True)
class AtRanks:
    """The bin of each rank, and for each cumulated field its sums before the bin and up to its end,
    all [set, rank]."""

    bins: Array
    before: Sequence[Array]
    upto: Sequence[Array]


def at_ranks(tiles: Tiles, ranks: Array, *fields: Cumulated) -> AtRanks:
    """Return the first bins in which the first field, counts, reaches `ranks` [set, rank].

    Only tiles with a rank of any set are folded.
    """
    bins = np.zeros(ranks.size, np.int64)
    before, through = ([np.zeros(ranks.size) for _ in fields] for _ in range(2))
    if tiles.spans:
        ends = [field.totals.cumsum(axis=1) for field in fields]
        set_of = np.repeat(np.arange(len(ranks)), ranks.shape[1])
        tiles_by_set = _first_reaching(ends[0], set_of, ranks.reshape(-1)).reshape(ranks.shape)
        # The same rank of all sets lies in few bins: it is read of one set after the other.
        sets, wanted = np.tile(np.arange(len(ranks)), ranks.shape[1]), ranks.T.reshape(-1)
        tile_of = tiles_by_set.T.reshape(-1)
        for tile, places in _by_tile(tile_of):
            own, at = sets[places], None
            for field, end, low, high in zip(fields, ends, before, through, strict=True):
                sums = field.of_tile(tile)
                base = end[own, tile - 1] if tile else np.zeros(len(own))
                if at is None:
                    at, below, upto = sums.first_reaching(own, wanted[places] - base)
                    bins[places] = tiles.spans[tile].start + at
                else:
                    below, upto = sums.around(own, at)
                low[places], high[places] = base + below, base + upto

    def by_set(values: Array) -> Array:
        return np.ascontiguousarray(values.reshape(ranks.shape[::-1]).T)

    return AtRanks(by_set(bins), *([by_set(sums) for sums in own] for own in (before, through)))


def _by_tile(tile_of: Array) -> Iterator[tuple[int, Array]]:
    """Yield each tile that occurs, and its places in `tile_of`."""
    order = np.argsort(tile_of.astype(np.uint16), kind="stable")
    ends = np.cumsum(np.bincount(tile_of))
    for tile, places in enumerate(np.split(order, ends[:-1])):
        if places.size:
            yield tile, places


def _first_reaching(
    cumulative: Array, sets: Array, ranks: Array
) -> Array:  # fmt: skip
    """Return the first bin with `cumulative` [set, bin] >= rank of each pair of `sets` and `ranks`.

    All are searched at once: `cumulative` ascends within a set, and sets are put one above the
    other.
    """
    most = int(cumulative[:, -1].max(initial=0)) + 1
    above = np.arange(len(cumulative), dtype=np.float64) * most
    wanted = ranks + above[sets]
    stacked = cumulative + above[:, None]
    indices: Array = np.searchsorted(stacked.reshape(-1), wanted)
    indices -= sets * cumulative.shape[1]
    return indices
