"""The states of several items of one tally, as one array for each field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from uqeval.arrays import Array, State, np
from uqeval.tallies._fields import Field, Thin, identity, is_large


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
    def of_arrays(cls, fields: Mapping[str, Field], state: State) -> CountedItems:
        """Return states of these fields, arrays with the items as the first axis."""
        items = len(next(iter(state.values())))
        return cls(items, tuple(_rows(field, state[name]) for name, field in fields.items()))

    def thin(self, item: int) -> Thin:
        """Return the sparse form of the state of one item (see `Tally.thin`)."""
        return [entries.of_item(item) for entries in self.fields]

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
    places = [indices for indices, _ in entries if indices is not None]
    if not places:
        return FieldOfItems(np.stack([values for _, values in entries]))
    first = np.zeros(len(entries) + 1, np.int64)
    np.cumsum([indices.size for indices in places], out=first[1:])
    if len(entries) == 1:
        return FieldOfItems(entries[0][1], places[0], first)
    return FieldOfItems(
        np.concatenate([values for _, values in entries]), np.concatenate(places), first
    )


def _rows(field: Field, values: Array) -> FieldOfItems:
    rows = np.ascontiguousarray(values, field.dtype).reshape(len(values), -1)
    if not is_large(field):
        return FieldOfItems(rows)
    item, places = np.nonzero(rows != identity(field))
    return FieldOfItems(rows[item, places], places, np.searchsorted(item, np.arange(len(rows) + 1)))
