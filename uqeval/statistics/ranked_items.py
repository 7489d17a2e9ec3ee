"""Counts by rank of all items, folded over sets of items one tile of bins at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from uqeval.arrays import Array, Floats, Ints
from uqeval.metrics._tiles import AllSums, RankedSets, TileSums
from uqeval.statistics.column_sums import ColumnHalves, ColumnSums, ColumnValues, TileColumns
from uqeval.statistics.item_values import SparseValues
from uqeval.statistics.single_pixels import SinglePixels
from uqeval.statistics.swapping import Halves, Swaps, kept
from uqeval.statistics.weighting import LIGHT_WEIGHT, Each, Fold, ItemSets, MakeSets, summable
from uqeval.tallies._fields import LazyFields

if TYPE_CHECKING:
    from uqeval.tallies._packing import ItemColumns

#: The number of bins of a tile.
TILE = 512
#: In fewer numbers, all bins are summed: it takes less time than loading a kernel.
_FEW = 1 << 20
#: Tiles are summed by sparse entries if these are less than this share: products of arrays take
#: less time per number.
_SPARSE = 0.15
#: Larger tiles (bytes) are never arrays if the entries are less than this share.
_LARGE_TILE = 16 << 20
_SPARSE_IF_LARGE = 0.25


@dataclass(frozen=True)
class RankedItems:
    """The large fields of a tally that is read `by_column`, of all items.

    `bins` are those that any item occupies, ascending. An entry is an item's numbers in one of
    them, of each field [row, entry]; entries are in the order of their tiles.
    """

    items: int
    bins: Ints
    item: NDArray[np.int32]
    column: NDArray[np.int32]
    fields: Mapping[str, Array]
    #: What the bins stand for, if not their numbers in the tally.
    values: Floats | None = None
    _dense: dict[tuple[Any, ...], Array] = field(default_factory=dict)
    _entries: dict[tuple[str, int], SparseValues] = field(default_factory=dict)
    halves: dict[tuple[Any, ...], Halves | None] = field(default_factory=dict)
    _columns: dict[tuple[str, int, int], ColumnValues | None] = field(default_factory=dict)
    _column_halves: dict[tuple[str, int, int], ColumnHalves | None] = field(default_factory=dict)

    @classmethod
    def of(cls, loaded: Sequence[ItemColumns]) -> RankedItems:
        """Return the columns of some items in a row, and of those after them."""
        firsts = np.cumsum([0, *(part.items for part in loaded)]).tolist()
        item = np.concatenate(
            [part.item + first for part, first in zip(loaded, firsts, strict=False)]
        )
        column = np.concatenate([part.column for part in loaded])
        fields = {
            name: np.concatenate([_narrow(part.fields[name]) for part in loaded], axis=1)
            for name in loaded[0].fields
        }
        is_used = np.zeros(int(column.max(initial=-1)) + 1, bool)
        is_used[column] = True
        at = np.cumsum(is_used) - 1  # of each bin among those that are taken
        return cls._sorted(firsts[-1], np.flatnonzero(is_used), item, at[column], fields)

    @classmethod
    def _sorted(
        cls, items: int, bins: Array, item: Array, column: Array, fields: Mapping[str, Array]
    ) -> RankedItems:
        order = np.argsort((column // TILE).astype(np.uint16), kind="stable")
        sorted_fields = {name: values[:, order] for name, values in fields.items()}
        return cls(items, bins, item[order].astype("i4"), column[order].astype("i4"), sorted_fields)

    @classmethod
    def paired(
        cls,
        pair: Sequence[RankedItems],
        items: Sequence[Sequence[int]],
        places: Sequence[Array] | None = None,
    ) -> RankedItems:
        """Return some items of one run, then some of another, of tallies of the same shape.

        `places` [bin] or [row, bin] of each run: where its bins stand among those of both, if not
        by their numbers. They are the `values` of the result.
        """
        scales = [ranked.bins for ranked in pair] if places is None else places
        union = np.unique(np.concatenate([of_run.reshape(-1) for of_run in scales]))
        first, runs = 0, []
        for ranked, of_run, positions in zip(pair, scales, items, strict=True):
            at = np.full(ranked.items, -1)
            at[list(positions)] = first + np.arange(len(positions))
            place = np.searchsorted(union, of_run).astype("i4")
            runs.append(ranked._moved(at, place, first + len(positions), union.size))
            first += len(positions)
        item, column = (
            np.concatenate([getattr(own, name) for own in runs]) for name in ("item", "column")
        )
        fields = {
            k: np.concatenate([own.fields[k] for own in runs], axis=1) for k in runs[0].fields
        }
        bins = union if places is None else np.arange(union.size)
        moved = cls._sorted(first, bins, item, column, fields)
        return moved if places is None else replace(moved, values=union)

    def _moved(
        self, at: Ints, place: NDArray[np.int32], items: int, bins: int
    ) -> RankedItems:  # fmt: skip
        """Return some items at other numbers `at` [item], -1 for none, with their bins at `place`
        [bin] or [row, bin]."""
        retained = np.flatnonzero(at[self.item] >= 0)
        retained = retained[np.argsort(at[self.item[retained]], kind="stable")]
        item, column = at[self.item[retained]].astype("i4"), self.column[retained]
        fields = {name: values[:, retained] for name, values in self.fields.items()}
        every = np.arange(bins)
        if place.ndim == 1:
            return RankedItems(items, every, item, place[column], fields)
        entries: list[tuple[Array, Array, dict[str, Array]]] = []
        for row, of_row in enumerate(place):
            own = np.flatnonzero(np.logical_or.reduce([v[row] != 0 for v in fields.values()]))
            alone = {name: _row_alone(values, row, own) for name, values in fields.items()}
            entries.append((item[own], of_row[column[own]], alone))
        items_of, columns, of_rows = zip(*entries, strict=True)
        fields = {k: np.concatenate([alone[k] for alone in of_rows], axis=1) for k in fields}
        moved = RankedItems(items, every, np.concatenate(items_of), np.concatenate(columns), fields)
        # An item may have numbers of two rows in one place.
        return moved.by_unit(np.arange(items), items)

    def mean_ranks(self, positions: Sequence[int]) -> Floats:
        """Return the mean rank of the pixels of each bin among those of some items, from 0 to 1."""
        weights = np.bincount(np.asarray(positions, np.int64), minlength=self.items)
        pixels = next(iter(self.fields.values())).sum(axis=0, dtype=np.int64)
        counts = np.bincount(self.column, pixels * weights[self.item], self.bins.size)
        upto = counts.cumsum()
        ranks: Floats = (upto - counts / 2) / max(upto[-1:].sum(), 1.0)
        return ranks

    def by_unit(self, unit_of: Ints, units: int) -> RankedItems:
        """Return units in place of items; `unit_of`: that of each item, -1 for none."""
        unit = unit_of[self.item]
        retained = np.flatnonzero(unit >= 0)
        place = unit[retained] * self.bins.size + self.column[retained]
        order = np.argsort(place, kind="stable")
        first = np.flatnonzero(np.diff(place[order], prepend=-1))
        fields = {
            name: _narrow(
                np.add.reduceat(
                    values[:, retained[order]], first, axis=1, dtype=_wide(values.dtype)
                )
            )
            for name, values in self.fields.items()
        }
        item, column = np.divmod(place[order][first], self.bins.size)
        return self._sorted(units, self.bins, item, column, fields)

    @cached_property
    def starts(self) -> list[int]:
        """Return the first entry of each tile, and their number."""
        counts = np.bincount(self.column // TILE, minlength=len(self.spans))
        return [0, *counts.cumsum().tolist()]

    @cached_property
    def spans(self) -> list[slice]:
        """Return the columns of each tile."""
        size = self.bins.size
        return [slice(first, min(first + TILE, size)) for first in range(0, size, TILE)]

    @property
    def is_sparse(self) -> bool:
        """Return whether most numbers of an array of a tile would be zero."""
        cells = self.items * self.bins.size
        return cells >= _FEW and self.item.size < _SPARSE * cells

    @property
    def is_large(self) -> bool:
        """Return whether an array of a tile would be large, and many of its numbers zero."""
        tile_bytes = self.items * min(self.bins.size, TILE) * 8
        cells = self.items * self.bins.size
        return tile_bytes > _LARGE_TILE and self.item.size < _SPARSE_IF_LARGE * cells

    def entries(self, name: str, tile: int) -> SparseValues:
        """Return a field of all items in one tile, [item, row·bin]."""
        if (name, tile) not in self._entries:
            values, span = self.fields[name], self.spans[tile]
            first, last = self.starts[tile : tile + 2]
            bins, rows = span.stop - span.start, len(values)
            item, column = self.item[first:last], self.column[first:last] - span.start
            place = (np.arange(rows)[:, None] * bins + column).T.reshape(-1)
            value = values[:, first:last].T.reshape(-1)
            most = float(np.bincount(place, value).max(initial=0))
            is_light = value.dtype.kind == "i" and most * LIGHT_WEIGHT < 2**24
            self._entries[name, tile] = SparseValues(
                self.items, rows * bins, np.repeat(item, rows), place.astype(np.int32),
                value.astype(np.float32 if is_light else np.float64),
            )  # fmt: skip
        return self._entries[name, tile]

    def tile(self, name: str, tile: int, cumulated: bool) -> Array:
        """Return a field of all items in one tile, [item, row·bin], or its cumulative sums."""

        def made() -> Array:
            values, span = self.fields[name], self.spans[tile]
            first, last = self.starts[tile : tile + 2]
            dense = np.zeros((self.items, len(values), span.stop - span.start), _wide(values.dtype))
            column = self.column[first:last] - span.start
            dense[self.item[first:last], :, column] = values[:, first:last].T
            if cumulated:
                np.cumsum(dense, axis=-1, out=dense)
            most = float(dense.sum(axis=0, dtype=np.float64).max(initial=0))
            return summable(dense.reshape(self.items, -1), most)

        return kept(self._dense, (name, tile, cumulated), made)

    def _made_columns(self, name: str, tile: int, row: int) -> ColumnValues | None:
        """Return the cumulative sums of a row of a field in one tile; None where sums of all bins
        are as fast, or a number is infinite."""
        if self.is_large or self.items * self.bins.size < _FEW:
            return None
        values, span = self.fields[name][row], self.spans[tile]
        first, last = self.starts[tile : tile + 2]
        dense = np.zeros((span.stop - span.start, self.items), _wide(values.dtype))
        dense[self.column[first:last] - span.start, self.item[first:last]] = values[first:last]
        np.cumsum(dense, axis=0, out=dense)
        if not np.isfinite(dense[-1]).all():
            return None
        # In 16 bits, they take less of the CPU's cache and of its time.
        fits_16_bits = dense.dtype.kind == "i" and dense[-1].max(initial=0) < 2**15
        return ColumnValues(dense.astype(np.int16) if fits_16_bits else _narrow(dense))

    def columns_over(self, sets: ItemSets) -> TileColumns:
        """Return the sums of single bins over sets of items."""

        return lambda *place: sets.columns(
            lambda: kept(self._columns, place, lambda: self._made_columns(*place))
        )

    def swapped_columns(self, swaps: Swaps, run: int) -> TileColumns:
        """Return the sums of single bins of one of two runs that change places."""

        def made(place: tuple[str, int, int]) -> ColumnHalves | None:
            values = self._made_columns(*place)
            return None if values is None else values.halves()

        def sums(*place: Any) -> ColumnSums | None:
            halves = kept(self._column_halves, place, lambda: made(place))
            return None if halves is None else swaps.columns(halves, run)

        return sums

    @property
    def numbers(self) -> int:
        """Return an estimate of the values of a set that are in memory: a few tiles of its bins."""
        return sum(len(values) for values in self.fields.values()) * self.bins.size // 4

    def totals(self, name: str, factor: Array | None) -> Array:
        """Return the sums of a field over each tile, times `factor` [bin]: [item, row·tile]."""
        key = (name, "totals", b"" if factor is None else factor.tobytes())
        if key not in self._dense:
            field_values = self.fields[name]
            values = field_values if factor is None else field_values * factor[self.column]
            tiles = len(self.spans)
            place = self.item.astype(np.int64) * tiles + self.column // TILE
            sums = [np.bincount(place, row, self.items * tiles) for row in values]
            tile_sums = np.stack([row.reshape(self.items, tiles) for row in sums], axis=1)
            self._dense[key] = tile_sums.reshape(self.items, -1)
        return self._dense[key]

    @cached_property
    def single_pixels(self) -> SinglePixels | None:
        """Return the pixels of items of one pixel each; None for other items."""
        return SinglePixels.of(self.items, self.item, self.column, self.fields)

    def over(self, sets: ItemSets, small: Mapping[str, MakeSets]) -> RankedSets:
        """Return the states of sets of items; `small` makes their other fields."""
        single, ranked, own = self.single_pixels, self, sets
        if single is not None and isinstance(sets, Each):
            ranked, own = self._alone(single, sets.chosen), Each(np.arange(sets.sets))
        each = None if single is None else partial(single.without_each, sets)
        columns = ranked.columns_over(own)
        return ranked.sets(weighted_by(own), own.sets, small, columns, each)

    def _alone(self, single: SinglePixels, chosen: Ints) -> RankedItems:
        """Return some items of one pixel, with their bins alone."""
        item, column, fields = single.entries(chosen)
        used, at = np.unique(column, return_inverse=True)
        values = None if self.values is None else self.values[used]
        alone = self._sorted(len(chosen), self.bins[used], item, at.reshape(-1), fields)
        return replace(alone, values=values)

    def whole(self, name: str, fold: Fold, sets: int) -> Array:
        """Return a field over sets of items, all bins: [set, row, bin]."""
        rows = len(self.fields[name])
        sums = np.zeros((sets, rows, self.bins.size))
        for tile, span in enumerate(self.spans):
            sums[:, :, span] = self.folded(name, tile, fold, False).reshape(sets, rows, -1)
        return sums

    def folded(self, name: str, tile: int, fold: Fold, cumulated: bool) -> Array:
        """Return a field of sets of items in one tile, [set, row·bin], or its cumulative sums."""
        # Few cumulative sums are zero.
        if not (self.is_large or (self.is_sparse and not cumulated)):
            return fold(partial(self.tile, name, tile, cumulated), (name, tile, cumulated))
        sums = fold(partial(self.entries, name, tile), (name, tile, False))
        if not cumulated:
            return sums
        rows = len(self.fields[name])
        upto: Array = sums.reshape(len(sums), rows, -1).cumsum(axis=-1)
        return upto.reshape(len(sums), -1)

    def sets(
        self,
        fold: Fold,
        sets: int,
        small: Mapping[str, MakeSets],
        columns: TileColumns | None = None,
        without_each: Callable[[str], Floats | None] | None = None,
    ) -> RankedSets:
        """Return the states of sets of items; `small` makes their other fields, `columns` sums of
        single bins."""
        large = {name: partial(self.whole, name, fold, sets) for name in self.fields}
        return RankedSets(
            LazyFields({**small, **large}), self.bins,
            tiles=_Folded(self, fold, sets, columns), values=self.values,
            without_each=without_each,
        )  # fmt: skip


def _row_alone(values: Array, row: int, entries: Ints) -> Array:
    """Return some entries of numbers [row, entry], with zeros in all rows but one."""
    alone = np.zeros((len(values), entries.size), values.dtype)
    alone[row] = values[row, entries]
    return alone


@dataclass(frozen=True)
class _Folded:
    """Ranked items over sets, as `uqeval.metrics._tiles.Tiles` has it."""

    items: RankedItems
    fold: Fold
    sets: int
    columns: TileColumns | None

    @property
    def spans(self) -> Sequence[slice]:
        return self.items.spans

    def totals(self, name: str, factor: Array | None = None) -> Array:
        make = partial(self.items.totals, name, factor)
        sums = self.fold(make, (name, "totals", factor is None))
        return sums.reshape(self.sets, len(self.items.fields[name]), len(self.spans))

    def upto(self, name: str, tile: int, row: int) -> Array:
        sums = self.items.folded(name, tile, self.fold, True)
        rows = len(self.items.fields[name])
        return sums.astype(np.float64, copy=False).reshape(self.sets, rows, -1)[:, row]

    def sums(self, name: str, tile: int, row: int) -> TileSums:
        sums = None if self.columns is None else self.columns(name, tile, row)
        return AllSums(self.upto(name, tile, row)) if sums is None else sums


def weighted_by(sets: ItemSets) -> Fold:
    """Return the sums over sets of items."""
    return lambda make, key: sets.sums(make())


def _narrow(values: Array) -> Array:
    """Return counts in 32 bits where they fit."""
    small = values.dtype.kind == "i" and values.max(initial=0) < 2**31
    return values.astype(np.int32) if small else values


def _wide(dtype: np.dtype[Any]) -> str:
    return "i8" if dtype.kind == "i" else "f8"
