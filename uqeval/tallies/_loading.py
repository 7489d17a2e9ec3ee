"""Unpack and check the saved states of several items at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from uqeval.arrays import Array, State, np
from uqeval.tallies._counted import CountedItems, FieldOfItems
from uqeval.tallies._fields import Field, identity

#: Counts above this are invalid: sums of many would overflow int64.
MOST_COUNT = 1 << 53


class PackedRows:
    """The bytes of several states, read field by field: `at` is the next byte of each state.

    Raises `ValueError` for states that are cut short.
    """

    def __init__(self, states: Sequence[bytes], skip: int) -> None:
        self._bytes = np.frombuffer(b"".join(states), np.uint8)
        self._ends = np.cumsum(np.array([len(state) for state in states], np.int64))
        self.at = np.concatenate([[0], self._ends[:-1]]) + skip

    def small(self, field: Field, dtype: np.dtype[Any]) -> FieldOfItems:
        """Return a field with all its values."""
        size = math.prod(field.shape)
        return FieldOfItems(self._take(self.at, size * dtype.itemsize, advance=True).view(dtype))

    def large(self, field: Field, dtype: np.dtype[Any]) -> FieldOfItems:
        """Return a field in sparse form: places and values of entries that differ from empty."""
        size = math.prod(field.shape)
        counts = self._take(self.at, 8, advance=True).view("<i8").reshape(-1).astype(np.int64)
        if counts.min(initial=0) < 0 or counts.max(initial=0) > size:
            raise ValueError("more entries than the field has numbers")
        first = np.concatenate([[0], np.cumsum(counts)])
        steps = self._entries(counts, first, np.dtype("<i4"))
        places = np.cumsum(steps, dtype=np.int64)
        places -= np.repeat(np.concatenate([[0], places])[first[:-1]], counts)
        if places.size and not 0 <= places.min() <= places.max() < size:
            raise ValueError("places outside the field")
        return FieldOfItems(self._entries(counts, first, dtype), places, first)

    def check_end(self) -> None:
        """Raise `ValueError` where a state has more bytes than its fields."""
        if (self.at != self._ends).any():
            raise ValueError("too many bytes")

    def _entries(self, counts: Array, first: Array, dtype: np.dtype[Any]) -> Array:
        """Return the next `counts` numbers of each state, one state after another."""
        if (self.at + counts * dtype.itemsize > self._ends).any():
            raise ValueError("cut short")
        within = np.arange(first[-1]) - np.repeat(first[:-1], counts)
        places = np.repeat(self.at, counts) + within * dtype.itemsize
        self.at = self.at + counts * dtype.itemsize
        return self._take(places, dtype.itemsize).view(dtype).reshape(-1)

    def _take(self, places: Array, size: int, advance: bool = False) -> Array:
        """Return `size` bytes from each place on, [place, byte]."""
        if advance:
            if (self.at + size > self._ends).any():
                raise ValueError("cut short")
            self.at = self.at + size
        if not size or not places.size:
            return np.empty((places.size, size), np.uint8)
        windows = np.lib.stride_tricks.sliding_window_view(self._bytes, size)
        return np.ascontiguousarray(windows[places])


def check_values(id_: str, fields: Mapping[str, Field], values: Mapping[str, Array]) -> None:
    """Raise `ValueError` for values that no data can produce."""
    for name, field in fields.items():
        numbers = values[name]
        if numbers.dtype.kind in "iu":
            if numbers.size and not 0 <= numbers.min() <= numbers.max() <= MOST_COUNT:
                wrong = numbers[(numbers < 0) | (numbers > MOST_COUNT)].flat[0]
                raise ValueError(f"{id_}.{name} holds the count {wrong}")
        elif field.merge != "sum":  # a threshold that an item does not have is NaN
            continue
        elif np.isnan(numbers).any():
            raise ValueError(f"{id_}.{name} is not a number")
        elif not field.signed and (numbers < 0).any():
            raise ValueError(f"{id_}.{name} holds the sum {numbers.min()}")


@dataclass(frozen=True)
class ItemColumns:
    """Large fields of several items, by the columns (of the last axis) that are not all zero.

    An entry is one such column of one item: its numbers of each field are [row, entry]. Entries
    are in the order of items, then of columns.
    """

    items: int
    item: Array
    column: Array
    fields: State

    @classmethod
    def of(cls, fields: Mapping[str, Field], counted: CountedItems) -> ItemColumns:
        """Return the large ones of these fields."""
        large = {
            name: (fields[name], entries)
            for name, entries in zip(fields, counted.fields, strict=True)
            if entries.places is not None
        }
        width = max((field.shape[-1] for field, _ in large.values()), default=1)
        split = {}
        for name, (_, entries) in large.items():
            assert entries.places is not None and entries.first is not None
            row, column = np.divmod(entries.places, width)
            item = np.repeat(np.arange(counted.items), np.diff(entries.first))
            split[name] = row, item * width + column
        keys = [key for _, key in split.values()]
        # Each field's keys ascend within an item, so that a stable sort only merges them.
        entry_keys = np.sort(np.concatenate([np.empty(0, np.int64), *keys]), kind="stable")
        entry_keys = entry_keys[np.flatnonzero(np.diff(entry_keys, prepend=-1))]
        values: State = {}
        for name, (field, entries) in large.items():
            rows = math.prod(field.shape[:-1])
            values[name] = np.full((rows, entry_keys.size), identity(field), field.dtype)
            row, key = split[name]
            values[name][row, np.searchsorted(entry_keys, key)] = entries.values
        item, column = np.divmod(entry_keys, width)
        return cls(counted.items, item, column, values)

    def padded(self, fields: Mapping[str, Field]) -> State:
        """Return the fields [item, …, column of the item]; missing columns are as if empty."""
        first = np.searchsorted(self.item, np.arange(self.items + 1))
        within = np.arange(self.item.size) - first[self.item]
        most = int(np.diff(first).max(initial=0))
        state: State = {}
        for name, values in self.fields.items():
            field = fields[name]
            rows = np.full((self.items, len(values), most), identity(field), field.dtype)
            rows[self.item, :, within] = values.T
            state[name] = rows.reshape(self.items, *field.shape[:-1], most)
        return state


@dataclass(frozen=True)
class LoadedItems:
    """The checked states of several items of one tally.

    `columns`: the large fields by what they hold, of a tally that `checks_columns`. `pixels` and
    `evaluated` [item] as the tally has them.
    """

    counted: CountedItems
    columns: ItemColumns | None
    pixels: Array | None
    evaluated: Array | None
