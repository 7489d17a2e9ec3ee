"""The base of tallies: declared fields and one `update`; empty, merge, save and load follow.

A tally is a frozen dataclass whose fields are its parameters. Its state is a dict of arrays of
fixed shape and dtype, each merged by sum, minimum or maximum: nothing grows with the data.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

from uqeval.arrays import Array, Maps, State, np
from uqeval.maps.contract import WHOLE, View
from uqeval.tallies._fields import (
    CountedItems,
    Counts,
    Field,
    Flaws,
    SparseState,
    Thin,
    identity,
    is_large,
    record_of,
    zeros,
)

if TYPE_CHECKING:
    from uqeval.tallies._packing import LoadedItems, Packing

#: States of several items by tally.
KnownItems: TypeAlias = "dict[Tally, CountedItems]"


@dataclass(frozen=True)
class Tally(ABC):
    """Base of all tallies; see the module's docstring."""

    #: The data that are counted.
    view: View = dataclasses.field(default=WHOLE, kw_only=True)

    id: ClassVar[str]
    #: The last fields, which states of earlier versions lack; they load as empty.
    added: ClassVar[tuple[str, ...]] = ()
    #: The field whose sum over its last axis is the number of pixels with a label or target.
    evaluates: ClassVar[str] = ""
    #: Whether a pass returns the state of each item, or only the total (large states).
    keeps_items: ClassVar[bool] = True
    #: Whether the maps of an item depend on earlier items, so that no item can be skipped.
    carries_on: ClassVar[bool] = False
    #: Whether scores read only the occupied columns (of the last axis) of large fields.
    by_column: ClassVar[bool] = False
    #: Whether it has the mean uncertainty, and scores of it and of the tallies beside it (but for
    #: metrics that have a scale) stay the same if all uncertainties of a model are multiplied by a
    #: number.
    has_scale: ClassVar[bool] = False
    #: Whether `flaws`, `pixels` and `evaluated` accept large fields with occupied columns only.
    checks_columns: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        # Else `dataclass` makes a hash of all fields, and `bins` may have thousands of numbers.
        cls.__hash__ = Tally.__hash__  # type: ignore[method-assign]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(getattr(self, field.name) for field in dataclasses.fields(self)))

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle has: not the hash, because hashes of text differ by process."""
        return {name: value for name, value in self.__dict__.items() if name != "_hash"}

    @property
    def version(self) -> int:
        """Return the version of the definition; saved states of others are not used.

        Raise it if the same maps give another state.
        """
        return 1

    @property
    def counts_void(self) -> bool:
        """Return whether `pixels` includes void pixels, so that it is the size of an item."""
        return False

    @property
    def saved(self) -> bool:
        """Return whether the state of each item is saved with the report."""
        return self.keeps_items

    @property
    def any_order(self) -> bool:
        """Return whether one state may collect many items in any order.

        True if the sums have the same bits in any order, and only the total is used.
        """
        return False

    @property
    def by_order(self) -> bool:
        """Return whether scores read only the order of the columns, not the values that they stand
        for: they stay the same if the values of a model are rescaled."""
        return False

    def mean_uncertainty(self, states: Mapping[str, Array]) -> Array:
        """Return the mean uncertainty [set] of states [set, …], if the tally `has_scale`."""
        raise NotImplementedError

    def rescaled(self, name: str, values: Array, factor: float) -> Array:
        """Return a field [item, number] as it is if all uncertainties are multiplied by a
        factor."""
        return values

    def column_values(self, columns: Array, factor: float) -> Array | None:
        """Return the values [row, column] for which columns stand if all uncertainties are
        multiplied by a factor; None if they stand for no uncertainty."""
        return None

    @property
    def adds_exactly(self) -> bool:
        """Return whether the totals of items have the same bits in any order: no sums of floats."""
        return not any(
            field.merge == "sum" and field.dtype.startswith("float")
            for field in self.fields.values()
        )

    @property
    def pixelwise(self) -> bool:
        """Return whether the count of a pixel is independent of position and other pixels."""
        return False

    @property
    @abstractmethod
    def inputs(self) -> tuple[str, ...]:
        """Return the maps that `update` reads."""

    @property
    @abstractmethod
    def fields(self) -> dict[str, Field]:
        """Return the arrays of a state."""

    def update(self, state: State, maps: Maps) -> None:
        """Add the maps [y, x] of one item to a state, in place. Do not change the maps.

        Tallies have `update_items`, or a `count_items` for items of any size, or else this.
        """
        has_own = type(self).update_items is not Tally.update_items
        counted = None if has_own else self.count_item(maps)
        if counted is not None:
            self.fold_items(state, counted)
            return
        first = np.array([0, maps[self.inputs[0]].size])
        self.update_items({name: values[None] for name, values in state.items()}, maps, first)

    def flaws(self, state: State) -> Flaws:
        """Yield what is impossible in a state, and where: [...], True or not 0.

        Here and in `pixels` and `evaluated`, the first axis of the fields may be the items of
        several states.
        """
        yield from ()

    def pixels(self, state: State) -> Counts | None:
        """Return how many pixels a state counts; None if unknown."""
        return None

    def evaluated(self, state: State) -> Counts | None:
        """Return the number of pixels with a label or target in a state; None if unknown."""
        return state[self.evaluates].sum(axis=-1) if self.evaluates else None

    def check(self, state: State) -> None:
        """Raise `ValueError` for counts that are impossible. States may be forged."""
        from uqeval.tallies._packing import check_values

        check_values(self.id, self.packing.fields, state)
        self._refuse_flaws(state)

    def _refuse_flaws(self, state: State) -> None:
        for flaw, is_wrong in self.flaws(state):
            if is_wrong.any():
                raise ValueError(f"{self.id}: {flaw}")

    def load(self, data: bytes) -> State:
        """Return the state that `pack` saved.

        Raises `ValueError` for bytes of another tally, and for impossible counts.
        """
        state = self.unpack(data)
        self.check(state)
        return state

    def in_view(self, view: View) -> Self:
        """Return the same tally of another view."""
        return self if view == self.view else dataclasses.replace(self, view=view)

    @property
    def reads(self) -> set[str]:
        """Return the maps of a source that its view and `update` read."""
        return self.view.inputs(self.inputs)

    def parameters(self) -> dict[str, Any]:
        """Return id, version (if above 1) and parameters as JSON values.

        They identify the tally's states in a file.
        """
        version = {} if self.version == 1 else {"version": self.version}
        record = {"id": self.id, **version, **record_of(self)}
        del record["view"]
        if self.view.name:
            record["view"] = self.view.name
        if "sigma" in record:  # `sigma:NAME` is called NAME, as states were before
            record["sigma"] = record["sigma"].removeprefix("sigma:")
        return record

    def empty(self) -> State:
        """Return the state of no items: the identity of `merge`."""
        return {
            name: zeros(field)
            if field.merge == "sum"
            else np.full(field.shape, identity(field), field.dtype)
            for name, field in self.packing.fields.items()
        }

    def merge(self, target: State, source: State) -> None:
        """Add `source` to `target`, in place."""
        self.fold(target, [(None, source[name].reshape(-1)) for name in self.fields])

    def centred(self, states: State) -> State:
        """Return the states [item, …] of items with sums taken about a common value.

        Use it before summing subsets, to avoid cancellation of large numbers. Scores do not depend
        on the value. The default returns the states unchanged.
        """
        return states

    def thin(self, state: State) -> Thin:
        """Return the sparse form: large fields keep only entries that differ from `empty()`."""
        if isinstance(state, SparseState):
            return state.thin
        entries: Thin = []
        for name, field in self.packing.fields.items():
            values = np.ascontiguousarray(state[name], field.dtype).reshape(-1)
            # Not 0.0 of sums: counts would become floats.
            empty = 0 if field.merge == "sum" else identity(field)
            indices = np.flatnonzero(values != empty) if is_large(field) else None
            entries.append((indices, values if indices is None else values[indices]))
        return entries

    def clear(self, state: State, thin: Thin) -> bool:
        """Reset a state to the empty state, where `thin` is its sparse form.

        Return False and change nothing if `thin` shares memory with the state.
        """
        if any(indices is None for indices, _ in thin):
            return False
        for (name, field), (indices, _) in zip(self.packing.fields.items(), thin, strict=True):
            state[name].reshape(-1)[indices] = identity(field)
        return True

    def fold(self, target: State, source: Thin) -> None:
        """Add a sparse state (see `thin`) to `target`, in place: the same bits as `merge`."""
        join = {"sum": np.add, "min": np.minimum, "max": np.maximum}
        for (name, field), (indices, values) in zip(
            self.packing.fields.items(), source, strict=True
        ):
            flat = target[name].reshape(-1)
            if indices is None:
                join[field.merge](flat, values, out=flat)
            else:  # takes half as long as indexing twice
                join[field.merge].at(flat, indices, values)

    def fold_items(self, target: State, counted: CountedItems) -> None:
        """Add the states of several items to `target`, one after another: the same bits as `fold`
        of each."""
        if counted.items == 1:
            self.fold(target, counted.thin(0))
        else:
            counted.fold(self.packing.fields, target)

    def state_of(self, maps: Maps) -> State:
        """Return the state of one item."""
        state = self.empty()
        self.update(state, maps)
        return state

    def count_item(self, maps: Maps, known: KnownItems | None = None) -> CountedItems | None:
        """Return the state of one item as `count_items` does."""
        return self.count_items(maps, np.array([0, maps[self.inputs[0]].size]), known)

    def count_items(
        self, maps: Maps, first: Array, known: KnownItems | None = None
    ) -> CountedItems | None:
        """Return the states of several small items, or of one; None if `update` must count them.

        `maps` [1, pixel] contain the pixels of all items, one item after another. Item i has the
        columns `first[i]` up to `first[i + 1]` (excluded). The states have the same bits as those
        of `update`. `known`: states of other tallies of these items, which it may read and add to.
        """
        if type(self).update_items is Tally.update_items:
            return None
        fields, items = self.packing.fields, first.size - 1
        state = {
            name: np.full((items, *field.shape), identity(field), field.dtype)
            for name, field in fields.items()
        }
        self.update_items(state, maps, first)
        return CountedItems.of_arrays(fields, state)

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        """Add several items to their states, in place; the items are the first axis of the fields.

        `maps` and `first` as in `count_items`, or the maps [y, x] of one item. Tallies without it
        are counted item by item.
        """
        raise NotImplementedError

    def pack(self, state: State) -> bytes:
        """Return a state as bytes, the same for the same state; `unpack` undoes it."""
        return self.packing.pack(self.thin(state))

    def unpack(self, data: bytes) -> State:
        """Return the state that `pack` saved. Raises `ValueError` for bytes of another tally."""
        state = self.empty()
        for target, (indices, values) in zip(
            state.values(), self.packing.unpack(data), strict=True
        ):
            target.reshape(-1)[slice(None) if indices is None else indices] = values
        return state

    def unpack_items(self, states: Sequence[bytes]) -> State:
        """Return the states of several items, with the items as the first axis of each field.

        Raises `ValueError` as `unpack` does.
        """
        counted = self.packing.unpack_items(states)
        return counted.state(self.packing.fields, range(counted.items))

    def load_items(self, states: Sequence[bytes]) -> LoadedItems:
        """Return the states of several items. Raises `ValueError` as `load` does."""
        from uqeval.tallies._packing import ItemColumns, LoadedItems, check_values

        fields = self.packing.fields
        counted = self.packing.unpack_items(states)
        entries = dict(zip(fields, counted.fields, strict=True))
        check_values(self.id, fields, {name: own.values for name, own in entries.items()})
        is_sparse = any(own.places is not None for own in entries.values())
        if is_sparse and not self.checks_columns:
            parts = [self.load(state) for state in states]
            pixels, evaluated = (
                None if count(parts[0]) is None else np.array([count(part) for part in parts])
                for count in (self.pixels, self.evaluated)
            )
            return LoadedItems(counted, None, pixels, evaluated)
        columns = ItemColumns.of(fields, counted) if is_sparse else None
        state = {} if columns is None else columns.padded(fields)
        for name, own in entries.items():
            if own.places is None:
                state[name] = own.values.reshape(counted.items, *fields[name].shape)
        self._refuse_flaws(state)
        return LoadedItems(counted, columns, self.pixels(state), self.evaluated(state))

    @property
    def most_bytes(self) -> int:
        """Return the maximum number of bytes that `pack` returns."""
        return self.packing.most_bytes

    @property
    def working_bytes(self) -> int:
        """Return the bytes of memory for counting an item, without its maps and states."""
        return 0

    @cached_property
    def packing(self) -> Packing:
        """Return the `Packing` of these fields."""
        from uqeval.tallies._packing import Packing

        return Packing(self.id, self.fields, self.added)
