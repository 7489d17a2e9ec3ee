"""The interface of all formats: arrays that are read in whole chunks, and the items they hold."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from uqeval.arrays import Array
from uqeval.disk.files import readable
from uqeval.stores.axis_names import axis_called
from uqeval.stores.coordinates import Coordinate
from uqeval.unicode_names import in_one_spelling

Region = tuple[slice, ...]


def file_digest(path: Path, *details: object) -> str:
    """Return SHA-256 of a file's name, size and time of change, for files too large to read twice.

    `details`: further text that tells it apart. Raises `StoreError` if the file is gone.
    """
    with readable(path):
        stat = path.stat()
    identity = (path.name, stat.st_size, stat.st_mtime_ns, *details)
    return hashlib.sha256(repr(identity).encode()).hexdigest()


class StoredArray(ABC):
    """An array on disk, read region by region.

    `where` names it in messages; `shape`, `dtype`, `chunks` are as stored. `dimension_names` are
    the names of axes in the store, None if it has none; `axes` are their canonical names, which are
    set once `open_store` has put the array into a `Store`. `attributes` are those of the array.
    """

    where: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunks: tuple[int, ...]
    dimension_names: tuple[str | None, ...] | None = None
    axes: tuple[str, ...] = ()
    attributes: dict[str, Any]
    #: The axis of each dimension by name, which may be none of `axes`: items of a table that is
    #: read as an image. Set with `axes`.
    dimensions: Mapping[str, str] = MappingProxyType({})
    #: Of an array in memory: its coordinates.
    coordinates: Mapping[str, Coordinate] = MappingProxyType({})
    #: The name of a format that can leave out chunks, and how to write all of them.
    format_name: str = "Zarr"
    write_all_chunks: str = "with write_empty_chunks=True"
    #: Whether its format has attributes of arrays.
    has_attributes: bool = True
    #: Set by a reader that accepts unaligned numbers: members of an .npz may be unaligned, and then
    #: need no copy.
    anywhere: bool = False
    #: Whether there is no file: the caller has the array.
    in_memory: bool = False
    #: Whether it is an image of ids that --label-map applies to, and none is given.
    takes_label_map: bool = False
    #: Whether it is at a server, where a second read costs more than one of a temporary file.
    is_remote: bool = False

    @property
    def named_axes(self) -> tuple[str, ...]:
        """Return the canonical names of its axes; empty if the name of one is not known, or of a
        single axis, which may have any name."""
        called = [axis_called(name) for name in self.dimension_names or ()]
        known = tuple(axis for axis in called if axis is not None)
        return known if len(known) == len(called) > 1 else ()

    @abstractmethod
    def read(self, region: Region) -> Array:
        """Return the values of `region`, one slice an axis, in stored axis order.

        Thread-safe. Raises `StoreError`, which names the chunk, for one that is damaged or cut
        short. The result may be a read-only view.
        """

    def suit(self, axes: tuple[str, ...]) -> None:
        """Choose `chunks` for these axes if the format has no chunks."""
        return

    @property
    def bands(self) -> tuple[int, ...]:
        """Return the size of the boxes that are read alone: `chunks`, or parts of a chunk."""
        return self.chunks

    def length(self, axis: str) -> int:
        """Return the length of one of `axes`; 1 of one that is not stored."""
        return self.shape[self.axes.index(axis)] if axis in self.axes else 1

    def band(self, axis: str) -> int:
        """Return the length along one of `axes` in `bands`; 1 of one that is not stored."""
        return self.bands[self.axes.index(axis)] if axis in self.axes else 1

    def in_chunk(self, axis: str) -> int:
        """Return the length along one of `axes` in `chunks`; 1 of one that is not stored."""
        return max(self.chunks[self.axes.index(axis)], 1) if axis in self.axes else 1

    @property
    def chunk_bytes(self) -> int:
        """Return the bytes of a decoded chunk, including what is beyond the array's edge."""
        return math.prod(self.chunks) * self.dtype.itemsize

    @property
    def stored_rank(self) -> int:
        """Return the number of axes in the file; the first axes of `shape`."""
        return len(self.shape)

    def check_claims(self) -> None:  # noqa: B027 - most formats check their files at once
        """Raise `StoreError` if the stored bytes are too few for the shape, before it is used; also
        if members of an ensemble contradict each other."""

    @property
    def holders(self) -> Sequence[StoredArray]:
        """Return the arrays that have its values: itself, or those of members of an ensemble."""
        return (self,)

    @property
    def grid(self) -> tuple[int, ...]:
        """Return the number of its chunks along each axis, also of those that are missing."""
        return tuple(-(-n // c) for n, c in zip(self.shape, self.chunks, strict=True))

    @property
    def chunk_count(self) -> int:
        """Return the number of its chunks, also of those that are missing."""
        return math.prod(self.grid)

    def missing(self) -> list[tuple[int, ...]] | None:
        """Return the grid positions of missing chunks (which would read as the fill value); None if
        they are unknown."""
        return []

    def wrong_lengths(self) -> list[str]:
        """Return the stored chunks with an impossible length, each with the reason. May read a few
        bytes of each. Raises `StoreError`.
        """
        return []

    @abstractmethod
    def stored_bytes(self) -> int | None:
        """Return the bytes of the array on disk; None if they are unknown."""

    @abstractmethod
    def fingerprint(self) -> str | None:
        """Return hex digest of the metadata and of every chunk's key, size and stored checksum.

        None if the source does not tell them, so that other data could have the same digest.
        """

    def stamp(self, index: int | None) -> str | None:
        """Return text that changes when the stored data change; None if changes cannot be detected
        (see `stamps`).

        None as well if only reading the data would tell.
        """
        return None

    def states(self, index: int | None) -> dict[str, str]:
        """Return the state (`watch.file_state`) of each file that an item is read from, by path.

        With `item` None: of all files. Empty for an array in memory, and for a URL (see `recheck`).
        """
        return {}

    def file_group(self, index: int) -> int:
        """Return a number that is equal for items in the same files; it never falls with `index`.

        Each item has files of its own unless a format says otherwise.
        """
        return index

    def recheck(self) -> None:  # noqa: B027 - files have states instead
        """Raise `ChangedError` if metadata, or data on a server, have changed since they were
        read."""


class WrappedArray(StoredArray):
    """An array with the data of another one: all that a subclass does not change is as there."""

    def __init__(self, array: StoredArray) -> None:
        self._array = array
        for name in (
            "where", "shape", "dtype", "chunks", "dimension_names", "axes", "attributes",
            "dimensions", "coordinates", "format_name", "write_all_chunks", "anywhere",
            "in_memory", "is_remote", "has_attributes",
        ):  # fmt: skip
            setattr(self, name, getattr(array, name))

    @property
    def stored_rank(self) -> int:
        return self._array.stored_rank

    def check_claims(self) -> None:
        self._array.check_claims()

    def missing(self) -> list[tuple[int, ...]] | None:
        return self._array.missing()

    def wrong_lengths(self) -> list[str]:
        return self._array.wrong_lengths()

    def stored_bytes(self) -> int | None:
        return self._array.stored_bytes()

    def fingerprint(self) -> str | None:
        return self._array.fingerprint()

    def stamp(self, index: int | None) -> str | None:
        return self._array.stamp(index)

    def states(self, index: int | None) -> dict[str, str]:
        return self._array.states(index)

    def file_group(self, index: int) -> int:
        return self._array.file_group(index)

    def recheck(self) -> None:
        self._array.recheck()


@dataclass(frozen=True, slots=True)
class ItemArray:
    """One item's part of a stored array: the whole array, or position `index` on its item axis."""

    array: StoredArray
    index: int | None

    def stamp(self) -> str | None:
        """Return text that changes when the stored data change; None if changes cannot be detected
        (see `stamps`).
        """
        return self.array.stamp(self.index)

    def states(self) -> dict[str, str]:
        """Return the states of its files now, by path."""
        return self.array.states(self.index)

    @property
    def files(self) -> Hashable:
        """A key of its files (see `Watched`)."""
        group = None if self.index is None else self.array.file_group(self.index)
        return id(self.array), group

    @property
    def arrays(self) -> tuple[StoredArray]:
        """The array."""
        return (self.array,)


class ItemsOf(Sequence[ItemArray]):
    """The items of one array at some positions of its item axis. An item is made when it is read,
    because an array may have millions."""

    def __init__(self, array: StoredArray, indices: range) -> None:
        self.array, self.indices = array, indices

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def arrays(self) -> tuple[StoredArray, ...]:
        """The array, if there is an item."""
        return (self.array,) if self.indices else ()

    def files_end(self, place: int) -> int:
        """Return the place up to which all items from this one on are in the same files."""
        group, steps = self.array.file_group, range(place, len(self.indices))
        if self.indices.step < 0:
            return place + 1
        own = group(self.indices[place])
        return place + bisect_right(steps, own, key=lambda other: group(self.indices[other]))

    @overload
    def __getitem__(self, place: int) -> ItemArray: ...
    @overload
    def __getitem__(self, place: slice) -> ItemsOf: ...
    def __getitem__(self, place: int | slice) -> ItemArray | ItemsOf:
        if isinstance(place, slice):
            return ItemsOf(self.array, self.indices[place])
        return ItemArray(self.array, self.indices[place])

    def __iter__(self) -> Iterator[ItemArray]:
        return (ItemArray(self.array, index) for index in self.indices)


def arrays_of(parts: Iterable[ItemArray]) -> list[StoredArray]:
    """Return the distinct arrays of items, in the order of their first items."""
    if isinstance(parts, ItemsOf):
        return [parts.array] if parts else []
    return distinct(part.array for part in parts)


def distinct(arrays: Iterable[StoredArray]) -> list[StoredArray]:
    """Return arrays, each once, in their order."""
    return list({id(array): array for array in arrays}.values())


def follow(items: Sequence[ItemArray]) -> NDArray[np.bool_]:
    """Return of each item but the first whether it is at the next position of the same array as
    the item before it. The order of items may be another than that of the array.
    """
    positions = [item.index or 0 for item in items]
    return (np.diff([id(item.array) for item in items]) == 0) & (np.diff(positions) == 1)


def digest_of(arrays: Iterable[StoredArray]) -> str | None:
    """Return SHA-256 of the arrays' own fingerprints; None if one has none."""
    digest = hashlib.sha256()
    for array in arrays:
        if (fingerprint := array.fingerprint()) is None:
            return None
        digest.update(fingerprint.encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class Store:
    """An opened store: for each kind of array (`probs`, `labels`, `entropy`, …), one part per item.

    `names` is None if the items have no names. `held`: the names of all arrays in the store, read
    or not, for messages.
    """

    path: str
    arrays: Mapping[str, Sequence[ItemArray]]
    names: tuple[str, ...] | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    #: The names in the store, where others are given for its items (`--names`).
    replaced: tuple[str, ...] | None = None
    #: The arrays that were found only because options name them, at a server that lists none.
    looked_up: frozenset[str] = frozenset()
    #: Whether there may be more arrays, because the server and the metadata list none.
    unlisted: bool = False
    #: The group (case, volume) of each item, if the store has groups.
    groups: tuple[str, ...] | None = None
    #: Why the order of the items is not clear without their names; empty if it is clear.
    unsure_order: str = ""
    #: The coordinates of axes, by their own names.
    coordinates: Mapping[str, Coordinate] = field(default_factory=dict)
    #: Of an ensemble: the path of the member that has an array which the first member lacks.
    other_paths: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key in ("names", "replaced"):
            if (names := getattr(self, key)) is not None:
                object.__setattr__(self, key, in_one_spelling(names))

    def path_of(self, name: str) -> str:
        """Return the path of the store that has an array."""
        return self.other_paths.get(name, self.path)

    @property
    def items(self) -> int:
        """Return the number of items; flow is between them."""
        return max(map(len, self.arrays.values()))

    def holds(self) -> str:
        """Return the names of all arrays in the store, for a message."""
        return (", ".join(sorted(self.held or self.arrays)) or "nothing") + self.and_others

    @property
    def and_others(self) -> str:
        """Return the end of a list of the arrays in a message."""
        return " (the web server lists no others; options find them by name)" * self.unlisted

    @property
    def in_memory(self) -> bool:
        """Return whether all arrays are in memory."""
        return all(own.in_memory for parts in self.arrays.values() for own in arrays_of(parts))
