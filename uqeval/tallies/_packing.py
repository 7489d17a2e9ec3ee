"""The binary format of a tally's state, before compression.

Four bytes identify the fields. Then each field follows. A small field has all its values. A large
field has the entries that differ from the empty state: their number, places (as differences) and
values. Bytes may be forged, so reading checks them.

In a state with many entries the numbers are narrow: one byte for the width of a number, then the
first byte of each, then the second of each, and so on. A count takes as few bytes as hold the
largest; most are below 256. Bytes of one place are alike, so that they compress better, and faster.
In other states numbers are wide, as in memory.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from uqeval.arrays import Array, State, np
from uqeval.tallies._fields import (
    CountedItems,
    Field,
    FieldOfItems,
    Thin,
    identity,
    is_large,
    most_bytes,
)

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

    `columns`: the large fields by their nonzero columns, if the tally `checks_columns`. `pixels`
    and `evaluated` [item] as the tally has them.
    """

    counted: CountedItems
    columns: ItemColumns | None
    pixels: Array | None
    evaluated: Array | None


_MARK_BYTES = 4
#: The difference between two places.
_STEP = np.dtype("<i4")
#: An item with more entries is packed alone, in few bytes: packing items together moves single
#: bytes, which costs more for many entries than a call for each item.
_MANY_ENTRIES = 384


class Packing:
    """Packs and unpacks the states of a tally that has these `fields`.

    `added`: the last fields, which states of earlier versions lack.
    """

    def __init__(self, id_: str, fields: dict[str, Field], added: Collection[str]) -> None:
        self._id, self.fields = id_, fields
        self._mark, self._narrow_mark = _mark(id_, fields), _mark(f"{id_}, narrow", fields)
        self._earlier = {name: field for name, field in fields.items() if name not in added}
        self._dtypes = [np.dtype(field.dtype).newbyteorder("<") for field in fields.values()]
        #: Maximum size of a packed state in bytes.
        self.most_bytes = _MARK_BYTES + sum(map(most_bytes, fields.values()))

    def pack(self, thin: Thin) -> bytes:
        """Return the sparse form of a state as bytes; equal states give equal bytes."""
        entries = sum(values.size for indices, values in thin if indices is not None)
        is_narrow = entries > _MANY_ENTRIES
        pack = _pack_narrow if is_narrow else _pack_wide
        parts = [self._narrow_mark if is_narrow else self._mark]
        for (indices, values), dtype in zip(thin, self._dtypes, strict=True):
            if indices is not None:
                parts.append(np.int64(indices.size).tobytes())
                parts.append(pack(np.diff(indices, prepend=0), _STEP))
            parts.append(pack(values, dtype))
        return b"".join(parts)

    def pack_items(self, counted: CountedItems) -> list[bytes]:
        """Return the state of each item as `pack` does."""
        large = [np.diff(own.first) for own in counted.fields if own.first is not None]
        if large and np.sum(large, axis=0).max() > _MANY_ENTRIES:
            return [self.pack(counted.thin(item)) for item in range(counted.items)]
        if large:
            return self._pack_entries(counted)
        mark = np.frombuffer(self._mark, np.uint8)
        columns = [np.broadcast_to(mark, (counted.items, mark.size))]
        for entries, dtype in zip(counted.fields, self._dtypes, strict=True):
            rows = np.ascontiguousarray(entries.values, dtype)
            columns.append(rows.view(np.uint8).reshape(counted.items, -1))
        text = np.concatenate(columns, axis=1).tobytes()
        size = len(text) // counted.items
        return [text[at : at + size] for at in range(0, len(text), size)]

    def _pack_entries(self, counted: CountedItems) -> list[bytes]:
        """Return the state of each item, where items have different numbers of entries."""
        lengths = np.full(counted.items, _MARK_BYTES)
        for entries, dtype in zip(counted.fields, self._dtypes, strict=True):
            if entries.first is None:
                lengths += entries.values[0].size * dtype.itemsize
            else:
                lengths += 8 + np.diff(entries.first) * (4 + dtype.itemsize)
        ends = np.cumsum(lengths)
        out, at = np.empty(ends[-1], np.uint8), ends - lengths

        def put(places: Array, rows: Array) -> None:
            size = rows.shape[1] * rows.itemsize
            own = np.ascontiguousarray(rows).view(np.uint8).reshape(len(places), size)
            out[places[:, None] + np.arange(size)] = own

        put(at, np.broadcast_to(np.frombuffer(self._mark, np.uint8), (counted.items, _MARK_BYTES)))
        at = at + _MARK_BYTES
        for entries, dtype in zip(counted.fields, self._dtypes, strict=True):
            if entries.first is None or entries.places is None:
                put(at, entries.values.astype(dtype, copy=False))
                at = at + entries.values[0].size * dtype.itemsize
                continue
            counts, first = np.diff(entries.first), entries.first[:-1]
            put(at, counts.astype("<i8")[:, None])
            at = at + 8
            steps = np.diff(entries.places, prepend=0)
            begins = first[counts > 0]
            steps[begins] = entries.places[begins]
            for numbers in (steps.astype("<i4"), entries.values.astype(dtype, copy=False)):
                within = np.arange(numbers.size) - np.repeat(first, counts)
                put(np.repeat(at, counts) + within * numbers.itemsize, numbers[:, None])
                at = at + counts * numbers.itemsize
        text = out.tobytes()
        return [text[a:b] for a, b in zip((ends - lengths).tolist(), ends.tolist(), strict=True)]

    def unpack(self, data: bytes) -> Thin:
        """Return the state that `pack` was given. Raises `ValueError` for bytes of another tally.

        Fields that an earlier version lacked are as in the empty state.
        """
        is_narrow = data.startswith(self._narrow_mark)
        unpack = _unpack_narrow if is_narrow else _unpack_wide
        packed_fields, at = self.fields if is_narrow else self._fields_in(data), _MARK_BYTES
        thin: Thin = []
        for (name, field), dtype in zip(self.fields.items(), self._dtypes, strict=True):
            size = math.prod(field.shape)
            if name not in packed_fields:
                thin.append((None, np.full(size, identity(field), field.dtype)))
                continue
            count, indices = size, None
            if is_large(field):
                count = int(np.frombuffer(data, "<i8", 1, at)[0])
                if not 0 <= count <= size:
                    raise ValueError(f"{self._id}.{name}: {count} entries in {size}")
                steps, at = unpack(data, at + 8, count, _STEP)
                indices = np.cumsum(steps, dtype=np.int64)
                if count and not 0 <= indices.min() <= indices.max() < size:
                    raise ValueError(f"{self._id}.{name}: places outside its {size} entries")
            values, at = unpack(data, at, count, dtype)
            thin.append((indices, values))
        if at != len(data):
            raise ValueError(f"{len(data) - at} bytes too many for a state of {self._id}")
        return thin

    def unpack_items(self, states: Sequence[bytes]) -> CountedItems:
        """Return the states of several items. Raises `ValueError` as `unpack` does."""
        if len(states) < 2 or not all(state.startswith(self._mark) for state in states):
            return CountedItems.of([self.unpack(state) for state in states])
        rows = PackedRows(states, _MARK_BYTES)
        fields = tuple(
            rows.large(field, dtype) if is_large(field) else rows.small(field, dtype)
            for field, dtype in zip(self.fields.values(), self._dtypes, strict=True)
        )
        rows.check_end()
        return CountedItems(len(states), fields)

    def _fields_in(self, data: bytes) -> dict[str, Field]:
        if data.startswith(self._mark):
            return self.fields
        earlier_mark = _mark(self._id, self._earlier)
        if len(self._earlier) == len(self.fields) or not data.startswith(earlier_mark):
            raise ValueError(f"not of {self._id}, or of one with other parameters")
        return self._earlier


def _mark(id_: str, fields: dict[str, Field]) -> bytes:
    """Return four bytes that identify the fields of a state: sparse states may look alike."""
    return zlib.crc32(repr((id_, fields)).encode()).to_bytes(_MARK_BYTES, "little")


def _pack_wide(numbers: Array, dtype: np.dtype[Any]) -> bytes:
    """Return numbers of a dtype as bytes."""
    return numbers.astype(dtype, copy=False).tobytes()


def _unpack_wide(data: bytes, at: int, count: int, dtype: np.dtype[Any]) -> tuple[Array, int]:
    """Return `count` numbers from byte `at` on, and the place of the next byte; `ValueError` for
    data that are cut short."""
    return np.frombuffer(data, dtype, count, at), at + count * dtype.itemsize


def _pack_narrow(numbers: Array, dtype: np.dtype[Any]) -> bytes:
    """Return numbers of a dtype as bytes; integers in the narrowest dtype, if none is negative."""
    if dtype.kind == "i" and numbers.min(initial=0) >= 0:
        dtype = np.min_scalar_type(numbers.max(initial=0)).newbyteorder("<")
    rows = np.ascontiguousarray(numbers, dtype).view(np.uint8).reshape(-1, dtype.itemsize)
    return bytes([dtype.itemsize]) + rows.T.tobytes()


def _unpack_narrow(data: bytes, at: int, count: int, dtype: np.dtype[Any]) -> tuple[Array, int]:
    """Undo `_pack_narrow`, as `_unpack_wide` does.

    Raises `ValueError` for data that are cut short, and for a width that the dtype cannot have.
    """
    width = int(np.frombuffer(data, np.uint8, 1, at)[0])
    if width != dtype.itemsize and (dtype.kind != "i" or width not in (1, 2, 4)):
        raise ValueError(f"numbers of {width} bytes, where {dtype} has {dtype.itemsize}")
    own = dtype if width == dtype.itemsize else np.dtype(f"<u{width}")
    by_byte, at = _unpack_wide(data, at + 1, count * width, np.dtype(np.uint8))
    rows = np.ascontiguousarray(by_byte.reshape(width, count).T)
    return rows.reshape(-1).view(own).astype(dtype, copy=False), at
