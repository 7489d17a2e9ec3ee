"""The states of all items of a tally, side by side, folded over any sets of the items."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from uqeval.metrics._columns import SetStates
from uqeval.statistics.checked_states import checked_columns, checked_states
from uqeval.tallies._contract import Tally, is_large

if TYPE_CHECKING:
    from uqeval.statistics.checked_states import StatesSource
    from uqeval.tallies._contract import Field, State


class Stacked:
    """The states of all items of one tally: each field [item, number], large ones by the numbers
    that any item has."""

    def __init__(self, tally: Tally, states: Iterable[State]) -> None:
        self._begin(tally)
        thin = [tally.thin(state) for state in tally.centred(states)]
        for i, whole in enumerate(self.whole):
            own = [state[i] for state in thin]
            if own[0][0] is None:
                self._add(None, np.stack([values for _, values in own]))
                continue
            places = np.unique(np.concatenate([np.asarray(p) for p, _ in own]))
            values = np.repeat(whole[places][None], len(own), axis=0)
            for row, (p, v) in zip(values, own, strict=True):
                row[np.searchsorted(places, np.asarray(p))] = v
            self._add(places, values)

    @classmethod
    def of(cls, saved: StatesSource, tally: Tally) -> Stacked:
        """Stack the checked states of all items. Raises `StoreError` as `checked_states` does."""
        if tally.by_column:
            return cls._of_columns(tally, list(checked_columns(saved, tally)))
        return cls(tally, (state for _, state in checked_states(saved, tally)))

    @classmethod
    def _of_columns(cls, tally: Tally, loaded: Sequence[tuple[NDArray[Any], State]]) -> Stacked:
        """Stack states that hold the `columns` of their large fields alone."""
        self = cls.__new__(cls)
        self._begin(tally)
        taken = np.zeros(max(field.shape[-1] for field in tally.fields.values()), bool)
        for own, _ in loaded:
            taken[own] = True
        self.columns = columns = np.flatnonzero(taken)
        at = np.cumsum(taken) - 1  # of each column among those that are taken
        for (name, field), identity in zip(tally.fields.items(), self.identities, strict=True):
            if not is_large(field):
                self._add(None, np.stack([state[name].reshape(-1) for _, state in loaded]))
                continue
            rows = int(np.prod(field.shape[:-1]))
            values = np.full((len(loaded), rows, columns.size), identity, field.dtype)
            for into, (own, state) in zip(values, loaded, strict=True):
                into[:, at[own]] = state[name].reshape(rows, own.size)
            places = np.arange(rows)[:, None] * field.shape[-1] + columns
            self._add(places.reshape(-1), values.reshape(len(loaded), rows * columns.size))
        return self

    @property
    def is_centred(self) -> bool:
        """Whether sums are taken about a value of these items, so that no others fit beside."""
        return type(self.tally).centred is not Tally.centred

    @classmethod
    def beside(cls, stacks: Sequence[Stacked], items: Sequence[Sequence[int]]) -> Stacked:
        """Stack some items of one run and those of another, whose tallies have the same shape."""
        one, other = stacks
        self = cls.__new__(cls)
        self._begin(one.tally)
        if one.columns is not None and other.columns is not None:
            self.columns = np.union1d(one.columns, other.columns)
        for i, field in enumerate(one.tally.fields.values()):
            pair = [own.values[i].all()[list(at)] for own, at in zip(stacks, items, strict=True)]
            places = one.places[i]
            if places is not None:
                places = np.union1d(places, np.asarray(other.places[i]))
                if self.columns is not None:
                    rows = np.arange(int(np.prod(field.shape[:-1])))[:, None] * field.shape[-1]
                    places = (rows + self.columns).reshape(-1)
                for k, own in enumerate(stacks):
                    wide = np.full((len(pair[k]), places.size), self.identities[i], pair[k].dtype)
                    wide[:, np.searchsorted(places, np.asarray(own.places[i]))] = pair[k]
                    pair[k] = wide
            self._add(places, np.concatenate(pair).astype(field.dtype, copy=False))
        return self

    def _begin(self, tally: Tally) -> None:
        self.tally = tally
        self.whole = [values.reshape(-1) for values in tally.empty().values()]
        self.identities = [values[0] if values.size else 0 for values in self.whole]
        self.merges = [field.merge for field in tally.fields.values()]
        self.columns: NDArray[np.int64] | None = None
        self.places: list[NDArray[Any] | None] = []
        self.values: list[_Columns] = []

    def _add(self, places: NDArray[Any] | None, values: NDArray[Any]) -> None:
        self.places.append(places)
        self.values.append(_Columns.of(values))

    @property
    def numbers(self) -> int:
        """How many numbers an item has."""
        return sum(values.width for values in self.values)

    def folded(self, weights: NDArray[np.int64]) -> list[NDArray[Any]]:
        """Each field over the items of each row of `weights` [set, item]: [set, number].

        One set of items taken once has the same bits as if they had been folded one by one.
        """
        fields = self.tally.fields.values()
        return [
            own.astype(field.dtype, copy=False)
            for own, field in zip(self._folded(weights), fields, strict=True)
        ]

    def _folded(self, weights: NDArray[np.int64]) -> list[NDArray[Any]]:
        return [self._field(i, weights) for i in range(len(self.values))]

    def _field(self, i: int, weights: NDArray[np.int64]) -> NDArray[Any]:
        """The i-th field over the items of each row of `weights`: [set, number]."""
        merge, values = self.merges[i], self.values[i]
        if merge == "sum":
            return values.sums(weights)
        best, own = np.maximum if merge == "max" else np.minimum, values.all()
        rows = [best.reduce(own[row > 0], axis=0, initial=self.identities[i]) for row in weights]
        return np.stack(rows)

    def state(self, folded: Sequence[NDArray[Any]], row: int) -> State:
        """One set's state, as `metrics` take it; good until the next one is asked for."""
        state: State = {}
        columns = zip(self.tally.fields.items(), self.places, self.whole, folded, strict=True)
        for (name, field), places, whole, sums in columns:
            if places is None:
                state[name] = sums[row].reshape(field.shape)
            else:
                whole[places] = sums[row]  # the others are as in the empty state for ever
                state[name] = whole.reshape(field.shape)
        return state

    def sets(self, weights: NDArray[np.int64]) -> SetStates:
        """The states of the sets of items that are the rows of `weights` [set, item].

        Counts are float64, in which they are exact, so that scores are divisions of arrays.
        """
        return self._sets(self._folded(weights))

    def swapped(self, keeps: NDArray[np.int64]) -> tuple[SetStates, SetStates]:
        """The states of two runs that change places, where the items are those of one run and then
        those of the other: each has its own where `keeps` [set, item] is 1, else the other's."""
        weights = np.concatenate([keeps, 1 - keeps], axis=1)
        pairs = []
        for i, (merge, values) in enumerate(zip(self.merges, self.values, strict=True)):
            if merge == "sum" and values.finite:
                pairs.append(values.swapped(keeps))
            else:
                pairs.append((self._field(i, weights), self._field(i, 1 - weights)))
        ours, theirs = zip(*pairs, strict=True)
        return self._sets(ours), self._sets(theirs)

    def _sets(self, folded: Sequence[NDArray[Any]]) -> SetStates:
        columns = zip(self.tally.fields.items(), self.places, folded, strict=True)
        found = {
            name: self._shaped(field, places, sums.astype(np.float64, copy=False))
            for (name, field), places, sums in columns
        }
        return SetStates(found, self.columns)

    def _shaped(
        self, field: Field, places: NDArray[Any] | None, sums: NDArray[Any]
    ) -> NDArray[Any]:
        """A field of several sets in its shape; ranks by the columns that hold anything."""
        if places is None:
            return sums.reshape(len(sums), *field.shape)
        if self.columns is not None:
            return sums.reshape(len(sums), *field.shape[:-1], self.columns.size)
        identity = {"sum": 0.0, "min": np.inf, "max": -np.inf}[field.merge]
        dense = np.full((len(sums), int(np.prod(field.shape))), identity)
        dense[:, places] = sums
        return dense.reshape(len(dense), *field.shape)


#: Weights up to this are multiplied in float32 where all sums are exact in it, twice as fast.
_LIGHT_WEIGHT = 16
#: Fields of fewer numbers than this are not worth two products.
_WIDE = 1000


@dataclass(frozen=True)
class _Columns:
    """Numbers [item, column] of a field, by the types in which all their sums are exact."""

    width: int
    parts: Sequence[tuple[NDArray[Any] | slice, NDArray[Any]]]

    @classmethod
    def of(cls, values: NDArray[Any]) -> _Columns:
        """Counts as float32 or float64, which multiply fast, where sums of them are exact."""
        width = values.shape[1]
        if values.dtype.kind != "i" or width < _WIDE:
            return cls(width, [(slice(None), _summable(values))])
        light = values.sum(axis=0, dtype=np.float64) * _LIGHT_WEIGHT < 2**24
        if light.all():
            return cls(width, [(slice(None), values.astype(np.float32))])
        parts: list[tuple[NDArray[Any] | slice, NDArray[Any]]] = []
        if light.any():
            parts.append((np.flatnonzero(light), values[:, light].astype(np.float32)))
        parts.append((np.flatnonzero(~light), _summable(values[:, ~light])))
        return cls(width, parts)

    def sums(self, weights: NDArray[np.int64]) -> NDArray[Any]:
        """Sums over the items of each row of `weights` [set, item]: [set, column]."""
        return self._joined([weighted(weights, values) for _, values in self.parts])

    def swapped(self, keeps: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Sums of both runs as of `Stacked.swapped`, from their differences, item by item."""
        found = []
        for differences, one, other in self._halves:
            moved = keeps.astype(differences.dtype) @ differences
            found.append((other + moved, one - moved))
        ours, theirs = zip(*found, strict=True)
        return self._joined(ours), self._joined(theirs)

    @cached_property
    def _halves(self) -> list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
        """Of each part the first half of the items less the second, and the sums of both."""
        halves = [np.split(values, 2) for _, values in self.parts]
        sums = [[own.sum(axis=0).astype(np.float64) for own in pair] for pair in halves]
        return [(one - other, *own) for (one, other), own in zip(halves, sums, strict=True)]

    def _joined(self, sums: Sequence[NDArray[Any]]) -> NDArray[Any]:
        if len(sums) == 1:
            return sums[0]
        whole = np.empty((len(sums[0]), self.width), np.result_type(*sums))
        for (at, _), own in zip(self.parts, sums, strict=True):
            whole[:, at] = own
        return whole

    @cached_property
    def finite(self) -> bool:
        """Whether all numbers are finite."""
        return all(bool(np.isfinite(values).all()) for _, values in self.parts)

    def all(self) -> NDArray[Any]:
        """The numbers of every item [item, column]."""
        return self.sums(np.eye(len(self.parts[0][1]), dtype=np.int64))


def _summable(values: NDArray[Any]) -> NDArray[Any]:
    """As float64, which multiplies fast, where every sum over as many items is exact in it."""
    if values.dtype.kind == "i" and np.abs(values).max(initial=0) * len(values) >= 2**53:
        return values
    return values.astype(np.float64)


def weighted(weights: NDArray[np.int64], values: NDArray[Any]) -> NDArray[Any]:
    """Sums over the items, each as often as its weight; of items of weight 0 not even infinity."""
    found: NDArray[Any]
    if len(weights) == 1 and weights.max(initial=0) <= 1:
        found = values[weights[0] > 0].sum(axis=0)[None]  # row by row, as `fold` does
    elif weights.size and (weights.sum(axis=1) == 1).all():
        found = values[weights.argmax(axis=1)]
    elif values.dtype.kind == "i":
        found = weights @ values
    elif values.dtype == np.float32:
        kind = np.float32 if weights.max(initial=0) <= _LIGHT_WEIGHT else np.float64
        found = weights.astype(kind) @ values.astype(kind, copy=False)
    elif np.isfinite(values).all():
        found = weights.astype(np.float64) @ values
    else:
        found = np.stack([row[row > 0] @ values[row > 0] for row in weights])
    return found
