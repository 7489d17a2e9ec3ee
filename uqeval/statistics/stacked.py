"""The stacked states of all items of a tally, and their sums over sets of items."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from uqeval.arrays import Array, Ints, State
from uqeval.metrics._columns import SetStates
from uqeval.statistics.checked_states import StatesSource, checked_items
from uqeval.statistics.column_sums import TileColumns
from uqeval.statistics.item_columns import Columns, Gathered
from uqeval.statistics.item_values import SparseValues
from uqeval.statistics.ranked_items import RankedItems, weighted_by
from uqeval.statistics.sets_of_units import best_by_unit
from uqeval.statistics.swapping import Swaps
from uqeval.statistics.weighting import Fold, ItemSets, MakeSets, Values
from uqeval.tallies._contract import Tally
from uqeval.tallies._fields import Field, LazyFields, is_large

if TYPE_CHECKING:
    from uqeval.tallies._packing import LoadedItems


class Stacked:
    """The states of all items of one tally: each field [item, number], large ones by the numbers
    that any item has. Those of counts by rank are `ranked`."""

    ranked: RankedItems | None = None

    def __init__(self, tally: Tally, loaded: Iterable[LoadedItems], items: int) -> None:
        names = [
            name
            for name, field in tally.fields.items()
            if not (tally.by_column and is_large(field))
        ]
        self._begin(tally, names)
        gathered = {name: Gathered(tally.fields[name], items, self.is_centred) for name in names}
        ranked = []
        for part in loaded:
            fields = dict(zip(tally.fields, part.counted.fields, strict=True))
            for name in names:
                gathered[name].add(fields[name])
            if tally.by_column and part.columns is not None:
                ranked.append(part.columns)
        if self.is_centred:
            state = {
                name: own.array().reshape(-1, *own.field.shape) for name, own in gathered.items()
            }
            for values in tally.centred(state).values():
                self._add(None, values.reshape(len(values), -1))
        else:
            for name in names:
                self._add(*gathered[name].values())
        if ranked:
            self.ranked = RankedItems.of(ranked)

    @classmethod
    def of(cls, saved: StatesSource, tally: Tally) -> Stacked:
        """Return the checked states of all items. Raises `StoreError` as `checked_items` does."""
        parts = (loaded for _, loaded in checked_items(saved, tally))
        return cls(tally, parts, len(saved.index["items"]))

    @property
    def is_centred(self) -> bool:
        """Return whether sums are relative to a value of these items, so that sums of other items
        cannot be added."""
        return type(self.tally).centred is not Tally.centred

    @classmethod
    def paired(
        cls, stacks: Sequence[Stacked], items: Sequence[Sequence[int]], factor: float = 1.0,
        by_rank: bool = True,
    ) -> Stacked:  # fmt: skip
        """Return the stack of some items of one run, then of some of another run.

        Their tallies have the same shape. `factor`: multiplies the uncertainties of the other run.
        `by_rank`: where only their order counts, columns are in the order of ranks within each run.
        """
        first, second = stacks
        self = cls.__new__(cls)
        self._begin(first.tally, first.names)
        if first.ranked is not None and second.ranked is not None:
            ranked = (first.ranked, second.ranked)
            places: list[Array | None] = [None, None]
            if first.tally.by_order and by_rank:
                places = [own.mean_ranks(at) for own, at in zip(ranked, items, strict=True)]
            elif factor != 1:
                places = [
                    stack.tally.column_values(own.bins, of_run)
                    for stack, own, of_run in zip(stacks, ranked, (1.0, factor), strict=True)
                ]
            known = [own for own in places if own is not None]
            self.ranked = RankedItems.paired(ranked, items, known or None)
        for i, name in enumerate(self.names):
            is_sparse = any(stack.values[i].is_sparse for stack in stacks)
            pair = [
                stack.values[i].take(at, is_sparse) for stack, at in zip(stacks, items, strict=True)
            ]
            if factor != 1 and isinstance(pair[1], np.ndarray):
                pair[1] = second.tally.rescaled(name, pair[1], factor)
            self._add(*self._paired(i, stacks, pair))
        return self

    def _paired(
        self, i: int, stacks: Sequence[Stacked], pair: Sequence[Values]
    ) -> tuple[Array | None, Values]:
        """Return the i-th dense field of items of two runs, and which numbers these are."""
        field = self.tally.fields[self.names[i]]
        all_places = [stack.places[i] for stack in stacks]
        indices = None
        if any(places is not None for places in all_places):
            every = np.arange(math.prod(field.shape))
            known = [every if places is None else places for places in all_places]
            indices = np.union1d(*known)
            identity = self.identity(self.names[i])
            pair = [
                _widened(values, np.searchsorted(indices, own), indices.size, identity)
                for values, own in zip(pair, known, strict=True)
            ]
        sparse = [values for values in pair if isinstance(values, SparseValues)]
        if sparse:
            return indices, SparseValues.joined(sparse)
        rows = [values for values in pair if isinstance(values, np.ndarray)]
        return indices, np.concatenate(rows).astype(field.dtype, copy=False)

    def by_unit(self, unit_of: Ints, units: int) -> Stacked:
        """Return the states of units of items; `unit_of`: that of each item, -1 for none."""
        copied = type(self).__new__(type(self))
        copied._begin(self.tally, self.names)
        if self.ranked is not None:
            copied.ranked = self.ranked.by_unit(unit_of, units)
        for i in range(len(self.names)):
            copied.places.append(self.places[i])
            copied.values.append(self._of_units(i, unit_of, units))
        return copied

    def _of_units(self, i: int, unit_of: Ints, units: int) -> Columns:
        """Return the i-th dense field of units of items."""
        field, values = self.tally.fields[self.names[i]], self.values[i]
        if field.merge == "sum":
            return values.by_unit(unit_of, units)
        best = np.maximum if field.merge == "max" else np.minimum
        identity = self.identity(self.names[i])
        return Columns.of(best_by_unit(best, values.array(), identity, unit_of, units))

    def _begin(self, tally: Tally, names: Iterable[str]) -> None:
        self.tally = tally
        self.whole = {name: values.reshape(-1) for name, values in tally.empty().items()}
        self.names = tuple(names)
        self.places: list[Array | None] = []
        self.values: list[Columns] = []

    def _add(self, indices: Array | None, values: Values) -> None:
        self.places.append(indices)
        self.values.append(Columns.of(values))

    def identity(self, name: str) -> Any:
        """Return a number of the empty state."""
        field = self.whole[name]
        return field[0] if field.size else 0

    @property
    def columns(self) -> Ints | None:
        """Return the bins of counts by rank that any item occupies."""
        return None if self.ranked is None else self.ranked.bins

    @property
    def numbers(self) -> int:
        """Return the number of values of a set."""
        ranked = 0 if self.ranked is None else self.ranked.numbers
        return ranked + sum(values.width for values in self.values)

    def folded(self, sets: ItemSets) -> list[Array]:
        """Return each field over sets of items: [set, number].

        A set that has each item once has the same bits as folding the items one by one.
        """
        dense = {name: self._field(i, sets) for i, name in enumerate(self.names)}
        if self.ranked is not None:
            fold = weighted_by(sets)
            for name in self.ranked.fields:
                dense[name] = self.ranked.whole(name, fold, sets.sets).reshape(sets.sets, -1)
        return [
            dense[name].astype(field.dtype, copy=False) for name, field in self.tally.fields.items()
        ]

    def _field(self, i: int, sets: ItemSets) -> Array:
        """Return the i-th dense field over the items of each set: [set, number]."""
        merge, values = self.tally.fields[self.names[i]].merge, self.values[i]
        if merge == "sum":
            return values.sums(sets)
        best = np.maximum if merge == "max" else np.minimum
        return sets.extremes(best, values.array(), self.identity(self.names[i]))

    def state(self, folded: Sequence[Array], row: int) -> State:
        """Return the state of one set for `metrics`; valid until the next call."""
        state: State = {}
        indices_of_fields = dict(zip(self.names, self.places, strict=True))
        for (name, field), sums in zip(self.tally.fields.items(), folded, strict=True):
            identity = self.whole[name]
            at = (
                indices_of_fields[name] if name in indices_of_fields else self._ranked_places(field)
            )
            if at is None:
                state[name] = sums[row].reshape(field.shape)
            else:
                identity[at] = sums[row]  # the others are as in the empty state for ever
                state[name] = identity.reshape(field.shape)
        return state

    def _ranked_places(self, field: Field) -> Array:
        """Return the indices of the occupied bins of counts by rank in a flat state."""
        rows = np.arange(int(np.prod(field.shape[:-1])))[:, None] * field.shape[-1]
        assert self.columns is not None
        return (rows + self.columns).reshape(-1)

    def sets(self, sets: ItemSets) -> SetStates:
        """Return the states of sets of items.

        Counts are float64, in which they are exact, so that scores are divisions of arrays. A field
        is summed when a score first reads it.
        """
        fields = [partial(self._field, i, sets) for i in range(len(self.names))]
        small = self._made(fields)
        return (
            SetStates(LazyFields(small)) if self.ranked is None else self.ranked.over(sets, small)
        )

    def swapped(self, swaps: Swaps) -> tuple[SetStates, SetStates]:
        """Return the states of two runs that change places, where the items are those of one run
        and then those of the other.
        """
        pairs = [_SwappedField(self, i, swaps) for i in range(len(self.names))]
        folds = swaps.folds({} if self.ranked is None else self.ranked.halves)
        first, second = (
            self._sets(
                [partial(pair.of, run) for pair in pairs],
                folds[run],
                swaps.sets,
                None if self.ranked is None else self.ranked.swapped_columns(swaps, run),
            )
            for run in (0, 1)
        )
        return first, second

    def _sets(
        self, fields: Sequence[MakeSets], fold: Fold, sets: int, columns: TileColumns | None
    ) -> SetStates:
        small = self._made(fields)
        if self.ranked is not None:
            return self.ranked.sets(fold, sets, small, columns)
        return SetStates(LazyFields(small))

    def _made(self, fields: Sequence[MakeSets]) -> dict[str, MakeSets]:
        """Return what makes the dense fields of several sets in their shapes."""
        return {name: partial(self._shaped, i, fields[i]) for i, name in enumerate(self.names)}

    def _shaped(self, i: int, make: MakeSets) -> Array:
        """Return the i-th dense field of several sets in its shape."""
        field, indices = self.tally.fields[self.names[i]], self.places[i]
        sums = make().astype(np.float64, copy=False)
        if indices is None:
            return sums.reshape(len(sums), *field.shape)
        identity = {"sum": 0.0, "min": np.inf, "max": -np.inf}[field.merge]
        dense = np.full((len(sums), int(np.prod(field.shape))), identity)
        dense[:, indices] = sums
        return dense.reshape(len(dense), *field.shape)


@dataclass(frozen=True)
class _SwappedField:
    """The i-th dense field of two runs that change places, from one product."""

    stacked: Stacked
    i: int
    swaps: Swaps

    def of(self, run: int) -> Array:
        """Return the sums of one run, [set, number]."""
        if self._pair is not None:
            return self._pair[run]
        return self.stacked._field(self.i, self.swaps.weightings[run])

    @cached_property
    def _pair(self) -> tuple[Array, Array] | None:
        stacked = self.stacked
        if stacked.tally.fields[stacked.names[self.i]].merge != "sum":
            return None
        return stacked.values[self.i].swapped(self.swaps)


def _widened(values: Values, columns: Array, width: int, identity: Any) -> Values:
    """Return numbers [item, number] as these columns of `width`, the others as in no item."""
    if isinstance(values, SparseValues):
        return values.widened(columns, width)
    wide = np.full((len(values), width), identity, values.dtype)
    wide[:, columns] = values
    return wide
