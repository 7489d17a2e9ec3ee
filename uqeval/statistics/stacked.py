"""The states of all items of a tally, side by side, folded over any sets of the items."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from uqeval.metrics._columns import LazyFields, SetStates
from uqeval.statistics.checked_states import checked_columns, checked_states
from uqeval.statistics.ranked_items import RankedItems, weighted_by
from uqeval.statistics.swapping import Halves, Swaps
from uqeval.statistics.weighting import LIGHT_WEIGHT, Fold, Make, Weighting
from uqeval.tallies._contract import Tally
from uqeval.tallies._fields import is_large

if TYPE_CHECKING:
    from uqeval.statistics.checked_states import StatesSource
    from uqeval.tallies._fields import Field, State


class Stacked:
    """The states of all items of one tally: each field [item, number], large ones by the numbers
    that any item has. Those of counts by rank are `ranked`."""

    def __init__(self, tally: Tally, states: Iterable[State]) -> None:
        self._begin(tally, tally.fields)
        thin = [tally.thin(state) for state in tally.centred(states)]
        for i, field in enumerate(self.whole.values()):
            entries = [state[i] for state in thin]
            if entries[0][0] is None:
                self._add(None, np.stack([values for _, values in entries]))
                continue
            indices = np.unique(np.concatenate([np.asarray(p) for p, _ in entries]))
            values = np.repeat(field[indices][None], len(entries), axis=0)
            for row, (p, v) in zip(values, entries, strict=True):
                row[np.searchsorted(indices, np.asarray(p))] = v
            self._add(indices, values)

    @classmethod
    def of(cls, saved: StatesSource, tally: Tally) -> Stacked:
        """Return stack the checked states of all items. Raises `StoreError` as `checked_states`
        does.
        """
        if tally.by_column:
            return cls._of_columns(tally, list(checked_columns(saved, tally)))
        return cls(tally, (state for _, state in checked_states(saved, tally)))

    @classmethod
    def _of_columns(cls, tally: Tally, loaded: Sequence[tuple[NDArray[Any], State]]) -> Stacked:
        """Return stack states that hold the `columns` of their large fields alone."""
        self = cls.__new__(cls)
        self._begin(tally, [name for name, field in tally.fields.items() if not is_large(field)])
        self.ranked = RankedItems.of(tally, loaded)
        for name in self.names:
            self._add(None, np.stack([state[name].reshape(-1) for _, state in loaded]))
        return self

    @property
    def is_centred(self) -> bool:
        """Return whether sums are taken about a value of these items, so that no others fit
        beside.
        """
        return type(self.tally).centred is not Tally.centred

    @classmethod
    def paired(cls, stacks: Sequence[Stacked], items: Sequence[Sequence[int]]) -> Stacked:
        """Return stack some items of one run and those of another, whose tallies have the same
        shape.
        """
        first, second = stacks
        self = cls.__new__(cls)
        self._begin(first.tally, first.names)
        if first.ranked is not None and second.ranked is not None:
            self.ranked = RankedItems.paired([first.ranked, second.ranked], items)
        for i, name in enumerate(self.names):
            pair = [
                stack.values[i].all()[list(at)] for stack, at in zip(stacks, items, strict=True)
            ]
            indices = first.places[i]
            if indices is not None:
                indices = np.union1d(indices, np.asarray(second.places[i]))
                for k, stack in enumerate(stacks):
                    wide = np.full((len(pair[k]), indices.size), self.identity(name), pair[k].dtype)
                    wide[:, np.searchsorted(indices, np.asarray(stack.places[i]))] = pair[k]
                    pair[k] = wide
            dtype = self.tally.fields[name].dtype
            self._add(indices, np.concatenate(pair).astype(dtype, copy=False))
        return self

    def by_unit(self, unit_of: NDArray[np.int64], units: int) -> Stacked:
        """Return the states of units of items; `unit_of`: that of each item, -1 for none."""
        copied = type(self).__new__(type(self))
        copied._begin(self.tally, self.names)
        if self.ranked is not None:
            copied.ranked = self.ranked.by_unit(unit_of, units)
        weighting = Weighting((unit_of == np.arange(units)[:, None]).astype(np.int64))
        for i, name in enumerate(self.names):
            dtype = self.tally.fields[name].dtype
            copied._add(self.places[i], self._field(i, weighting).astype(dtype, copy=False))
        return copied

    def _begin(self, tally: Tally, names: Iterable[str]) -> None:
        self.tally = tally
        self.whole = {name: values.reshape(-1) for name, values in tally.empty().items()}
        self.names = tuple(names)
        self.ranked: RankedItems | None = None
        self.places: list[NDArray[Any] | None] = []
        self.values: list[_Columns] = []

    def _add(self, indices: NDArray[Any] | None, values: NDArray[Any]) -> None:
        self.places.append(indices)
        self.values.append(_Columns.of(values))

    def identity(self, name: str) -> Any:
        """Return a number of the empty state."""
        field = self.whole[name]
        return field[0] if field.size else 0

    @property
    def columns(self) -> NDArray[np.int64] | None:
        """Return the bins of counts by rank that any item occupies."""
        return None if self.ranked is None else self.ranked.bins

    @property
    def numbers(self) -> int:
        """Return how many numbers a set takes."""
        ranked = 0 if self.ranked is None else self.ranked.numbers
        return ranked + sum(values.width for values in self.values)

    def folded(self, weights: NDArray[np.int64]) -> list[NDArray[Any]]:
        """Return each field over the items of each row of `weights` [set, item]: [set, number].

        One set of items taken once has the same bits as if they had been folded one by one.
        """
        weighting = Weighting(weights)
        dense = {name: self._field(i, weighting) for i, name in enumerate(self.names)}
        if self.ranked is not None:
            fold = weighted_by(weighting)
            for name in self.ranked.fields:
                dense[name] = self.ranked.whole(name, fold, len(weights)).reshape(len(weights), -1)
        return [
            dense[name].astype(field.dtype, copy=False) for name, field in self.tally.fields.items()
        ]

    def _field(self, i: int, weighting: Weighting) -> NDArray[Any]:
        """Return the i-th dense field over the items of each set: [set, number]."""
        merge, values = self.tally.fields[self.names[i]].merge, self.values[i]
        if merge == "sum":
            return values.sums(weighting)
        best = np.maximum if merge == "max" else np.minimum
        return weighting.extremes(best, values.all(), self.identity(self.names[i]))

    def state(self, folded: Sequence[NDArray[Any]], row: int) -> State:
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

    def _ranked_places(self, field: Field) -> NDArray[Any]:
        """Return the indices of the occupied bins of counts by rank in a flat state."""
        rows = np.arange(int(np.prod(field.shape[:-1])))[:, None] * field.shape[-1]
        assert self.columns is not None
        return (rows + self.columns).reshape(-1)

    def sets(self, weights: NDArray[np.int64] | Weighting) -> SetStates:
        """Return the states of the sets of items that are the rows of `weights` [set, item].

        Counts are float64, in which they are exact, so that scores are divisions of arrays. A field
        is summed when a score first reads it.
        """
        weighting = weights if isinstance(weights, Weighting) else Weighting(weights)
        fields = [partial(self._field, i, weighting) for i in range(len(self.names))]
        return self._sets(fields, weighted_by(weighting), weighting.sets)

    def swapped(self, swaps: Swaps) -> tuple[SetStates, SetStates]:
        """Return the states of two runs that change places, where the items are those of one run
        and then those of the other.
        """
        pairs = [_SwappedField(self, i, swaps) for i in range(len(self.names))]
        folds = swaps.folds({} if self.ranked is None else self.ranked.halves)
        first, second = (
            self._sets([partial(pair.of, run) for pair in pairs], folds[run], swaps.sets)
            for run in (0, 1)
        )
        return first, second

    def _sets(self, fields: Sequence[Make], fold: Fold, sets: int) -> SetStates:
        make = {name: partial(self._shaped, i, fields[i]) for i, name in enumerate(self.names)}
        if self.ranked is not None:
            return self.ranked.sets(fold, sets, make)
        return SetStates(LazyFields(make))

    def _shaped(self, i: int, make: Make) -> NDArray[Any]:
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

    def of(self, run: int) -> NDArray[Any]:
        """Return the sums of one run, [set, number]."""
        if self._pair is not None:
            return self._pair[run]
        return self.stacked._field(self.i, self.swaps.weightings[run])

    @cached_property
    def _pair(self) -> tuple[NDArray[Any], NDArray[Any]] | None:
        stacked = self.stacked
        if stacked.tally.fields[stacked.names[self.i]].merge != "sum":
            return None
        return stacked.values[self.i].swapped(self.swaps)


#: Fields of fewer numbers than this are not worth two products.
_WIDE = 1000


@dataclass(frozen=True)
class _Columns:
    """Numbers [item, column] of a field, by the types in which all their sums are exact."""

    width: int
    parts: Sequence[tuple[NDArray[Any] | slice, NDArray[Any]]]

    @classmethod
    def of(cls, values: NDArray[Any]) -> _Columns:
        """Return counts as float32 or float64, which multiply fast, where sums of them are
        exact.
        """
        width = values.shape[1]
        if values.dtype.kind != "i" or width < _WIDE:
            return cls(width, [(slice(None), _summable(values))])
        light = values.sum(axis=0, dtype=np.float64) * LIGHT_WEIGHT < 2**24
        if light.all():
            return cls(width, [(slice(None), values.astype(np.float32))])
        parts: list[tuple[NDArray[Any] | slice, NDArray[Any]]] = []
        if light.any():
            parts.append((np.flatnonzero(light), values[:, light].astype(np.float32)))
        parts.append((np.flatnonzero(~light), _summable(values[:, ~light])))
        return cls(width, parts)

    def sums(self, weighting: Weighting) -> NDArray[Any]:
        """Return sums over the items of each set: [set, column]."""
        return self._joined([weighting.sums(values) for _, values in self.parts])

    def swapped(self, swaps: Swaps) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Return sums of both of two runs; None where they do not follow from differences."""
        halves = [part_halves for part_halves in self._halves if part_halves is not None]
        if len(halves) < len(self.parts):
            return None
        first_sums, second_sums = zip(*map(swaps.pair, halves), strict=True)
        return self._joined(first_sums), self._joined(second_sums)

    @cached_property
    def _halves(self) -> list[Halves | None]:
        """Return for each part the halves of its items."""
        return [Halves.of(values) for _, values in self.parts]

    def _joined(self, sums: Sequence[NDArray[Any]]) -> NDArray[Any]:
        if len(sums) == 1:
            return sums[0]
        joined_sums = np.empty((len(sums[0]), self.width), np.result_type(*sums))
        for (at, _), part_sums in zip(self.parts, sums, strict=True):
            joined_sums[:, at] = part_sums
        return joined_sums

    def all(self) -> NDArray[Any]:
        """Return the numbers of every item [item, column]."""
        return self.sums(Weighting(np.eye(len(self.parts[0][1]), dtype=np.int64)))


def _summable(values: NDArray[Any]) -> NDArray[Any]:
    """Return float64 values, which multiply fast, where every sum over as many items is
    exact in it.
    """
    if values.dtype.kind == "i" and np.abs(values).max(initial=0) * len(values) >= 2**53:
        return values
    return values.astype(np.float64)
