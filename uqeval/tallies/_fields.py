"""The fields of a tally: its parameters as records; of its state shape, type and merging.

Also the states of several items, as one array for each field.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

from uqeval.arrays import Array, State, np

#: A count of a state; of the states of several items one for each, [item].
Counts: TypeAlias = Any
#: What is impossible in a state, and where.
Flaws: TypeAlias = "Iterator[tuple[str, Array]]"
#: Of each field of a state, in order: places of its flat array (None: all), and values there.
Thin: TypeAlias = "list[tuple[Array | None, Array]]"

#: Fields with more numbers than this are saved as the places and values of those that differ from
#: the empty state: rank counts of one item are mostly zeros.
_DENSE = 4096
#: Fields of at least this many bytes get a memory mapping of their own.
_LARGE = 1 << 21


@dataclass(frozen=True)
class Field:
    """One array of a state: shape, dtype, and how two of them merge."""

    shape: tuple[int, ...]
    dtype: str
    merge: Literal["sum", "min", "max"] = "sum"
    #: Whether a sum may be negative. It does not change the four bytes that identify saved fields.
    signed: bool = dataclasses.field(default=False, repr=False)


class LazyFields(Mapping[str, Array]):
    """Fields by name, each made when it is first read."""

    def __init__(self, make: Mapping[str, Callable[[], Array]]) -> None:
        self._make = make
        self._known: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        if name not in self._known:
            self._known[name] = self._make[name]()
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._make)

    def __len__(self) -> int:
        return len(self._make)


class SparseState(LazyFields):
    """A state to read, in its sparse form `thin`: of each field the places, ascending, and the
    values."""

    def __init__(self, fields: Mapping[str, Field], thin: Sequence[tuple[Array, Array]]) -> None:
        """`fields` are sums."""
        self.thin: Thin = [*thin]
        entries = zip(fields.items(), thin, strict=True)
        super().__init__({name: partial(_dense, field, *own) for (name, field), own in entries})


def _dense(field: Field, places: Array, values: Array) -> Array:
    dense = zeros(field)
    dense.reshape(-1)[places] = values
    dense.flags.writeable = False
    return dense


def is_large(field: Field) -> bool:
    """Return whether a field is saved in sparse form."""
    return math.prod(field.shape) > _DENSE


def most_bytes(field: Field) -> int:
    return 10 + math.prod(field.shape) * (4 + np.dtype(field.dtype).itemsize)


def zeros(field: Field) -> Array:
    """Return zeros that take no memory until they are written to: states of ranks are mostly empty.

    For large arrays, `numpy.zeros` would clear reused memory, or fault on every page.
    """
    import mmap

    size = math.prod(field.shape) * np.dtype(field.dtype).itemsize
    if size < _LARGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.zeros(field.shape, field.dtype)
    try:
        buffer = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"{size} bytes of counts cannot be mapped: {error.strerror}") from error
    with contextlib.suppress(OSError):  # a system without huge pages
        buffer.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(buffer, field.dtype).reshape(field.shape)


def identity(field: Field) -> float:
    return {"sum": 0.0, "min": float("inf"), "max": float("-inf")}[field.merge]


def record_of(parameters: Any) -> dict[str, Any]:
    """Return the fields of a dataclass, those of dataclasses among them as records.

    `dataclasses.asdict` copies each number of a tuple, and `bins` may have thousands.
    """
    return {
        own.name: _plain(getattr(parameters, own.name)) for own in dataclasses.fields(parameters)
    }


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return record_of(value)
    if isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
        return tuple(map(record_of, value))
    return value


@dataclass(frozen=True)
class FieldOfItems:
    """One field of several items.

    Small fields: `values` [item, number]. Large fields: `values` [entry] and their `places` [entry]
    in the flat array, only for entries that differ from the empty state. Item i has the entries
    `first[i]` up to `first[i + 1]` (excluded).
    """

    values: Array
    places: Array | None = None
    first: Array | None = None

    @classmethod
    def joined(cls, parts: Sequence[FieldOfItems]) -> FieldOfItems:
        """Return the items of several, one after another."""
        values = np.concatenate([part.values for part in parts])
        places = [part.places for part in parts if part.places is not None]
        if not places:
            return cls(values)
        counts = [np.diff(part.first) for part in parts if part.first is not None]
        first = np.concatenate([[0], *counts]).cumsum()
        return cls(values, np.concatenate(places), first)

    def of_item(self, item: int) -> tuple[Array | None, Array]:
        """Return places (None: all) and values of one item, as in the sparse form."""
        if self.places is None or self.first is None:
            return None, self.values[item]
        entries = slice(self.first[item], self.first[item + 1])
        return self.places[entries], self.values[entries]


@dataclass(frozen=True)
class CountedItems:
    """The states of `items` consecutive items; `fields` in the order of the tally."""

    items: int
    fields: tuple[FieldOfItems, ...]

    @classmethod
    def of(cls, states: Sequence[Thin]) -> CountedItems:
        """Return the states of items given in sparse form (see `Tally.thin`)."""
        return cls(len(states), tuple(_joined(entries) for entries in zip(*states, strict=True)))

    @classmethod
    def joined(cls, states: Sequence[CountedItems]) -> CountedItems:
        """Return the states of several, one after another."""
        if len(states) == 1:
            return states[0]
        items = sum(state.items for state in states)
        parts = zip(*(state.fields for state in states), strict=True)
        return cls(items, tuple(map(FieldOfItems.joined, parts)))

    @classmethod
    def of_arrays(cls, fields: Mapping[str, Field], state: State) -> CountedItems:
        """Return states of these fields, arrays with the items as the first axis."""
        items = len(next(iter(state.values())))
        return cls(items, tuple(_rows(field, state[name]) for name, field in fields.items()))

    def thin(self, item: int) -> Thin:
        """Return the sparse form of the state of one item (see `Tally.thin`)."""
        return [entries.of_item(item) for entries in self.fields]

    def state(self, fields: Mapping[str, Field], items: range) -> State:
        """Return the states of some items as arrays of these fields: [item, *shape]."""
        state = {}
        for (name, field), entries in zip(fields.items(), self.fields, strict=True):
            shape = (len(items), *field.shape)
            if entries.places is None or entries.first is None:
                state[name] = entries.values[items.start : items.stop].reshape(shape)
                continue
            state[name] = np.full(shape, identity(field), field.dtype)
            first = entries.first[items.start : items.stop + 1]
            chosen = slice(first[0], first[-1])
            rows = np.repeat(np.arange(len(items)), np.diff(first))
            state[name].reshape(len(items), -1)[rows, entries.places[chosen]] = entries.values[
                chosen
            ]
        return state

    def fold(self, fields: Mapping[str, Field], total: State) -> None:
        """Add all items to a state of these fields, one after another: the same bits as
        `Tally.fold` of each."""
        for (name, field), entries in zip(fields.items(), self.fields, strict=True):
            join = {"sum": np.add, "min": np.minimum, "max": np.maximum}[field.merge]
            flat = total[name].reshape(-1)
            if entries.places is not None:
                join.at(flat, entries.places, entries.values)
            elif field.dtype.startswith("float") and field.merge == "sum":
                # In item order, for identical bits: `sum` adds in pairs.
                rows = np.concatenate([flat[None], entries.values])
                flat[...] = np.add.accumulate(rows, axis=0, out=rows)[-1]
            else:
                join(flat, join.reduce(entries.values, axis=0), out=flat)


def _joined(entries: Sequence[tuple[Array | None, Array]]) -> FieldOfItems:
    if len(entries) == 1:
        ((of_entry, values),) = entries
        if of_entry is None:
            return FieldOfItems(values[None])
        return FieldOfItems(values, of_entry, np.array([0, of_entry.size]))
    places = [indices for indices, _ in entries if indices is not None]
    if not places:
        return FieldOfItems(np.stack([values for _, values in entries]))
    first = np.zeros(len(entries) + 1, np.int64)
    np.cumsum([indices.size for indices in places], out=first[1:])
    return FieldOfItems(
        np.concatenate([values for _, values in entries]), np.concatenate(places), first
    )


def _rows(field: Field, values: Array) -> FieldOfItems:
    rows = np.ascontiguousarray(values, field.dtype).reshape(len(values), -1)
    if not is_large(field):
        return FieldOfItems(rows)
    # One axis: NumPy takes many times as long for the entries of two.
    flat = np.flatnonzero(rows != identity(field))
    first = np.searchsorted(flat, np.arange(len(rows) + 1) * rows.shape[1])
    return FieldOfItems(rows.reshape(-1)[flat], flat % rows.shape[1], first)
