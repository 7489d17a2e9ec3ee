"""The sources of items: arrays, files and texts whose changes `Watch` detects."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, overload

if TYPE_CHECKING:
    from uqeval.stores.array import StoredArray


class Watched(Protocol):
    """A source of an item, such as an array."""

    def stamp(self) -> str | None:
        """Return text that changes when the data do; None if changes cannot be detected."""

    def states(self) -> dict[str, str]:
        """Return the current states of its files, by path; none for an array in memory."""

    @property
    def files(self) -> Hashable:
        """A key of its files: sources with equal keys have equal states."""

    @property
    def arrays(self) -> Sequence[StoredArray]:
        """The stored arrays with its data."""


class WatchedText:
    """Text that an item depends on, such as the name of an array."""

    arrays: Sequence[StoredArray] = ()
    files: Hashable = None

    def __init__(self, text: str) -> None:
        self._text = text

    def stamp(self) -> str | None:
        """Return text that changes when the data do; None if changes cannot be detected."""
        return self._text

    def states(self) -> dict[str, str]:
        """Return no states, because there is no file."""
        return {}


class PartsByItem(Sequence[tuple[Watched, ...]]):
    """The sources of each item: one that all items share, then one of each of `columns`, which have
    one for each item."""

    def __init__(self, shared: Watched, columns: Sequence[Sequence[Watched]]) -> None:
        self._shared, self._columns = shared, columns
        lengths = {len(column) for column in columns}
        if len(lengths) > 1:
            raise ValueError(f"sources of {lengths} items")

    def __len__(self) -> int:
        return len(self._columns[0]) if self._columns else 0

    @overload
    def __getitem__(self, place: int) -> tuple[Watched, ...]: ...
    @overload
    def __getitem__(self, place: slice) -> PartsByItem: ...
    def __getitem__(self, place: int | slice) -> tuple[Watched, ...] | PartsByItem:
        if isinstance(place, slice):
            return PartsByItem(self._shared, [column[place] for column in self._columns])
        return self._shared, *(column[place] for column in self._columns)

    def __iter__(self) -> Iterator[tuple[Watched, ...]]:
        return ((self._shared, *parts) for parts in zip(*self._columns, strict=True))

    def files_end(self, item: int) -> int:
        """Return an item up to which all items from this one on are in the same files."""
        return min(_files_end(column, item) for column in self._columns)

    def arrays(self) -> Iterator[StoredArray]:
        """Yield the stored arrays with the data, some more than once."""
        yield from self._shared.arrays
        for column in self._columns:
            yield from _arrays_in(column)


class PartsIfRead(Sequence[Watched]):
    """A column of `PartsByItem` whose states count only while `is_read()`: another process may
    write a map that the run does not read. Stamps always count."""

    def __init__(self, parts: Sequence[Watched], is_read: Callable[[], bool]) -> None:
        self._parts, self._is_read = parts, is_read

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def arrays(self) -> Iterator[StoredArray]:
        """Yield the stored arrays with the data, some more than once."""
        yield from _arrays_in(self._parts) if self._is_read() else ()

    def files_end(self, place: int) -> int:
        """Return the place up to which all items from this one on are in the same files."""
        return _files_end(self._parts, place)

    @overload
    def __getitem__(self, place: int) -> Watched: ...
    @overload
    def __getitem__(self, place: slice) -> PartsIfRead: ...
    def __getitem__(self, place: int | slice) -> Watched | PartsIfRead:
        if isinstance(place, slice):
            return PartsIfRead(self._parts[place], self._is_read)
        return _IfRead(self._parts[place], self._is_read)

    def __iter__(self) -> Iterator[Watched]:
        return (_IfRead(part, self._is_read) for part in self._parts)


class _IfRead:
    """One source of `PartsIfRead`."""

    def __init__(self, part: Watched, is_read: Callable[[], bool]) -> None:
        self._part, self._is_read = part, is_read
        self.stamp = part.stamp

    def states(self) -> dict[str, str]:
        """Return the current states of its files; none while it is not read."""
        return self._part.states() if self._is_read() else {}

    @property
    def files(self) -> Hashable:
        """A key of its files."""
        return self._part.files

    @property
    def arrays(self) -> Sequence[StoredArray]:
        """The stored arrays with its data, while it is read."""
        return self._part.arrays if self._is_read() else ()


def _arrays_in(column: Sequence[Watched]) -> Iterable[StoredArray]:
    arrays: Iterable[StoredArray] | None = getattr(column, "arrays", None)
    return arrays_of_parts(column) if arrays is None else arrays


def _files_end(column: Sequence[Watched], item: int) -> int:
    of_column: Callable[[int], int] | None = getattr(column, "files_end", None)
    return item + 1 if of_column is None else of_column(item)


def arrays_of_parts(parts: Iterable[Watched]) -> Iterator[StoredArray]:
    return (array for part in parts for array in part.arrays)
