"""The interface of a source of bytes: objects by key."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from uqeval.disk.files import MOST_BYTES
from uqeval.errors import StoreError

Buffer: TypeAlias = bytes | memoryview

_URL = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+://")
#: Any of these makes a folder a Zarr store.
_ZARR_FILES = ("zarr.json", ".zgroup", ".zattrs", ".zarray")


def is_url(path: str) -> bool:
    """Return whether `path` is a URL and not a local path."""
    return _URL.match(path) is not None


def is_zarr(path: str) -> bool:
    """Return whether `path` is a local Zarr store: a folder with metadata, or a zip file."""
    local = Path(path)
    if local.is_dir():
        return any((local / name).is_file() for name in _ZARR_FILES)
    return local.suffix == ".zip" and local.is_file()


@dataclass(frozen=True)
class Entry:
    """One stored object: its size, and what the store itself records of its content."""

    size: int
    tag: str = ""


class TooLong(StoreError):
    """An object is longer than what is stored there can be."""


class Source(ABC):
    """Read-only bytes by key. Keys use `/`; all methods are thread-safe.

    Whatever cannot be read for another reason than being absent raises `StoreError`.
    """

    path: str
    #: Whether `children` and `entries` work; web servers cannot list their content.
    listable = True
    #: Whether a few bytes of an object are read as fast as the object is found.
    local = True

    @abstractmethod
    def get(
        self, key: str, start: int = 0, length: int | None = None, most: int = MOST_BYTES
    ) -> Buffer | None:
        """Return `length` bytes from `start` (negative: from the end), or None if there is no such
        key.

        Fewer bytes where the object ends earlier. Raises `TooLong`, before anything is read, for
        more than `most`.
        """

    @abstractmethod
    def children(self, prefix: str) -> list[str]:
        """Return the sorted names directly below `prefix` that have objects below them."""

    @abstractmethod
    def entries(self, prefix: str) -> dict[str, Entry]:
        """Return every object below `prefix`, by its key relative to it; none if not `listable`."""

    @abstractmethod
    def stamp(self, key: str, entry: Entry) -> str | None:
        """Return text that changes when the object at `key` does; see `stamps`.

        `entry`: its listing.
        """

    def states(self, key: str) -> dict[str, str]:
        """Return the file that the object at a key is read from, and its state now."""
        return {}

    def recheck(self, prefix: str) -> None:  # noqa: B027 - files have states instead
        """Raise `ChangedError` if what was read below a prefix is not as it was."""

    def warnings(self) -> list[str]:
        """Return warnings about the source itself."""
        return []


def clip(size: int, start: int, length: int | None, most: int, key: str) -> tuple[int, int]:
    """Return begin and count of the requested bytes that exist. Raises `TooLong`."""
    begin = min(size, start) if start >= 0 else max(0, size + start)
    count = size - begin if length is None else min(length, size - begin)
    if count > most:
        raise TooLong(f"{key} has {count} bytes, expected at most {most}")
    return begin, count
