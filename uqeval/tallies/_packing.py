"""The binary format of a tally's state, before compression.

Four bytes identify the fields. Then each field follows. A small field has all its values. A large
field has the entries that differ from the empty state: their number, places (as differences) and
values.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from uqeval.arrays import Array, np
from uqeval.tallies._fields import Field, Thin, identity, is_large, most_bytes

if TYPE_CHECKING:
    from uqeval.tallies._counted import CountedItems

_MARK_BYTES = 4
#: Entries of an item from which on it is packed alone: packing items together moves single bytes,
#: which costs more for many entries than a call for each item.
_MANY_ENTRIES = 384


class Packing:
    """Packs and unpacks the states of a tally that has these `fields`.

    `added`: the last fields, which states of earlier versions lack.
    """

    def __init__(self, id_: str, fields: dict[str, Field], added: Collection[str]) -> None:
        self._id, self.fields = id_, fields
        self._mark = _mark(id_, fields)
        self._earlier = {name: field for name, field in fields.items() if name not in added}
        self._dtypes = [np.dtype(field.dtype).newbyteorder("<") for field in fields.values()]
        #: Maximum size of a packed state in bytes.
        self.most_bytes = _MARK_BYTES + sum(map(most_bytes, fields.values()))

    def pack(self, thin: Thin) -> bytes:
        """Return the sparse form of a state as bytes; equal states give equal bytes."""
        parts = [self._mark]
        for (indices, values), dtype in zip(thin, self._dtypes, strict=True):
            if indices is not None:
                parts.append(np.int64(indices.size).tobytes())
                parts.append(np.diff(indices, prepend=0).astype("<i4").tobytes())
            parts.append(values.astype(dtype, copy=False).tobytes())
        return b"".join(parts)

    def pack_items(self, counted: CountedItems) -> list[bytes]:
        """Return the state of each item as `pack` does."""
        large = [entries.values.size for entries in counted.fields if entries.places is not None]
        if sum(large) > _MANY_ENTRIES * counted.items:
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
        packed_fields, at = self._fields_in(data), _MARK_BYTES
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
                indices = np.cumsum(np.frombuffer(data, "<i4", count, at + 8), dtype=np.int64)
                if count and not 0 <= indices.min() <= indices.max() < size:
                    raise ValueError(f"{self._id}.{name}: places outside its {size} entries")
                at += 8 + 4 * count
            thin.append((indices, np.frombuffer(data, dtype, count, at)))
            at += count * dtype.itemsize
        if at != len(data):
            raise ValueError(f"{len(data) - at} bytes too many for a state of {self._id}")
        return thin

    def unpack_items(self, states: Sequence[bytes]) -> CountedItems:
        """Return the states of several items. Raises `ValueError` as `unpack` does."""
        from uqeval.tallies._counted import CountedItems
        from uqeval.tallies._loading import PackedRows

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
        if len(self._earlier) == len(self.fields) or not data.startswith(
            _mark(self._id, self._earlier)
        ):
            raise ValueError(f"not of {self._id}, or of one with other parameters")
        return self._earlier


def _mark(id_: str, fields: dict[str, Field]) -> bytes:
    """Return four bytes that identify the fields of a state: sparse states may look alike."""
    return zlib.crc32(repr((id_, fields)).encode()).to_bytes(_MARK_BYTES, "little")
