"""Counts by rank of many sets of items, one tile of bins at a time.

Thousands of sets times tens of thousands of bins do not fit into memory, and most scores need the
bins around a few ranks only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from uqeval.arrays import Array, np
from uqeval.metrics._columns import SetStates


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


@dataclass(frozen=True, kw_only=True)
class RankedSets(SetStates):
    """States of many sets of a tally of counts by rank; `fields` are folded when first read."""

    tiles: Tiles


@dataclass(frozen=True)
class Cumulated:
    """One row of a field: its sums over each tile [set, tile], and those up to the end of each bin
    of a tile [set, bin], from the beginning of the tile."""

    totals: Array
    upto: Callable[[int], Array]

    @classmethod
    def from_tiles(cls, tiles: Tiles, name: str) -> Cumulated:
        """Return the first row of a field of `tiles`."""
        return cls(tiles.totals(name)[:, 0], lambda tile: tiles.upto(name, tile, 0))


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
    bins = np.zeros(ranks.shape, np.int64)
    before, through = ([np.zeros(ranks.shape) for _ in fields] for _ in range(2))
    if not tiles.spans:
        return AtRanks(bins, before, through)
    ends = [field.totals.cumsum(axis=1) for field in fields]
    set_indices = np.repeat(np.arange(len(ranks)), ranks.shape[1])
    tile_of = _first_reaching(ends[0], set_indices, ranks.reshape(-1)).reshape(ranks.shape)
    for tile in np.flatnonzero(np.bincount(tile_of.reshape(-1))).tolist():
        in_tile = tile_of == tile
        sets = np.nonzero(in_tile)[0]
        base = [end[sets, tile - 1] if tile else np.zeros(len(sets)) for end in ends]
        last = None
        for field, first, low, high in zip(fields, base, before, through, strict=True):
            sums = field.upto(tile)
            if last is None:
                last = _first_reaching(sums, sets, ranks[in_tile] - first)
            low[in_tile] = first + np.where(last > 0, sums[sets, np.maximum(last - 1, 0)], 0.0)
            high[in_tile] = first + sums[sets, last]
        bins[in_tile] = tiles.spans[tile].start + (0 if last is None else last)
    return AtRanks(bins, before, through)


def _first_reaching(
    cumulative: Array, sets: Array, ranks: Array
) -> Array:  # fmt: skip
    """Return the first bin with `cumulative` [set, bin] >= rank of each pair of `sets` and `ranks`.

    All are searched at once: `cumulative` ascends within a set, and sets are put one above the
    other.
    """
    most = int(cumulative[:, -1].max(initial=0)) + 1
    above = np.arange(len(cumulative), dtype=np.int64) * most
    stacked = cumulative.astype(np.int64)
    stacked += above[:, None]
    wanted = ranks.astype(np.int64) + above[sets]
    indices: Array = np.searchsorted(stacked.reshape(-1), wanted)
    indices -= sets * cumulative.shape[1]
    return indices
