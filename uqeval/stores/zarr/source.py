"""Sources of a Zarr hierarchy's bytes: objects by key, in a folder, a zip file, or elsewhere."""

from __future__ import annotations

import json
import os
import re
import weakref
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from uqeval.arrays import Array
from uqeval.disk.files import MOST_BYTES, open_descriptor, open_file, parse_json, read_into
from uqeval.errors import StoreError, cut
from uqeval.stores.buffer_pool import CHUNKS
from uqeval.stores.file_values import FileValues
from uqeval.stores.watch import GONE, changed_error, combined_stamp, file_stamp, file_state

Buffer: TypeAlias = bytes | memoryview
Value = TypeVar("Value")

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
    """One stored object: its size, and the checksum or ETag that the store has of its content."""

    size: int
    tag: str = ""


def array_place(source: Source, name: str) -> str:
    """Return the name of an array or group `name` in `source` for messages."""
    return cut(f"{source.path.rstrip('/')}/{name}" if name else source.path)


class TooLong(StoreError):
    """An object is longer than it can be."""


class Source(ABC):
    """Read-only bytes by key. Keys use `/`; all methods are thread-safe.

    Raises `StoreError` for an object that exists and cannot be read.
    """

    path: str
    #: Whether `children` and `entries` work; web servers cannot list their content.
    listable = True
    #: Whether reading a few bytes of an object is as fast as finding it.
    local = True
    #: Whether `box` works.
    reads_boxes = False

    @abstractmethod
    def get(
        self, key: str, start: int = 0, length: int | None = None, most: int = MOST_BYTES
    ) -> Buffer | None:
        """Return `length` bytes from `start` (negative: from the end), or None if there is no such
        key.

        Fewer bytes if the object ends earlier. Raises `TooLong`, before reading, for more than
        `most`.
        """

    @abstractmethod
    def children(self, prefix: str) -> list[str]:
        """Return the sorted names directly below `prefix` that have objects below them."""

    @abstractmethod
    def entries(self, prefix: str) -> dict[str, Entry]:
        """Return every object below `prefix`, by its key relative to it; none if not `listable`."""

    @property
    def finds(self) -> bool:
        """Return whether `find` works, for a source that is not `listable`."""
        return False

    def find(self, keys: Sequence[str]) -> list[Entry | None]:
        """Return the object at each key, None if there is none; several are looked up at once."""
        raise NotImplementedError

    @abstractmethod
    def stamp(self, key: str, entry: Entry) -> str | None:
        """Return text that changes when the object at `key` does; see `stamps`.

        `entry`: its listing.
        """

    def box(
        self, key: str, shape: tuple[int, ...], dtype: np.dtype[Any], box: tuple[slice, ...]
    ) -> Array | None:
        """Return a box of an object that has just the values of an array, if `reads_boxes`; None if
        there is no such object, or it has another size.
        """
        raise NotImplementedError

    def each(self, read: Callable[[str], Value], names: Sequence[str]) -> list[Value]:
        """Return `read(name)` of each name, in their order; a server reads several at once."""
        return [read(name) for name in names]

    def states(self, key: str) -> dict[str, str]:
        """Return the file of the object at a key, and its current state."""
        return {}

    def watch(self, key: str, owner: str) -> None:  # noqa: B027 - a zip file has one state
        """Let `recheck` compare an object, which is read next, with its state now.

        `owner`: the array or group that depends on it, with all arrays below.
        """

    def recheck(self, prefix: str) -> None:  # noqa: B027 - a zip file has one state
        """Raise `ChangedError` if an object below a prefix has changed since it was read and has no
        state, or one that `watch` was called for: of the prefix and of the groups above."""

    def note_document(self, key: str, document: dict[str, Any] | None) -> None:
        """Note the content of a metadata document, None if there is none, for
        `is_same_document`."""
        self._documents.setdefault(key, _digest(document))

    @cached_property
    def _documents(self) -> dict[str, int]:
        return {}

    def is_same_document(self, key: str) -> bool:
        """Return whether a metadata document has its noted content now, in whatever form: writers
        of other arrays rewrite those of the group, and consolidate them."""
        if key not in self._documents:
            return False
        data = self.get(key, most=MOST_METADATA)
        try:
            document = None if data is None else parse_json(bytes(data), finite=False)
        except ValueError:
            return False
        return self._documents[key] == _digest(document)

    def warnings(self) -> list[str]:
        """Return warnings about the source itself."""
        return []


#: The largest number of bytes of a metadata document.
MOST_METADATA = 64 << 20


def _digest(document: object) -> int:
    """Return a hash of a metadata document without consolidated metadata."""
    if isinstance(document, dict):
        document = {k: v for k, v in document.items() if k != "consolidated_metadata"}
    return hash(json.dumps(document, sort_keys=True))


def clip(size: int, start: int, length: int | None, most: int, key: str) -> tuple[int, int]:
    """Return begin and count of the requested bytes that exist. Raises `TooLong`."""
    begin = min(size, start) if start >= 0 else max(0, size + start)
    count = size - begin if length is None else min(length, size - begin)
    if count > most:
        raise TooLong(f"{key} has {count} bytes, expected at most {most}")
    return begin, count


#: The largest compression ratio of deflate.
MOST_DEFLATED = 1032


class FolderSource(Source):
    """A local folder; symbolic links in it are followed."""

    reads_boxes = True

    def __init__(self, path: str) -> None:
        self.path = path
        self._root = path.rstrip("/") or "/"
        #: By array or group: the files of `watch`, with their states.
        self._watched: dict[str, dict[str, str]] = {}

    def get(
        self, key: str, start: int = 0, length: int | None = None, most: int = MOST_BYTES
    ) -> Buffer | None:
        with self._opened(key) as descriptor:
            if descriptor is None:
                return None
            size = os.fstat(descriptor).st_size
            # Clipped to the file: a length read from a damaged index must not be allocated.
            begin, count = clip(size, start, length, most, key)
            buffer = CHUNKS.empty((count,), np.uint8).data
            return read_into(descriptor, buffer, begin).toreadonly()

    def box(
        self, key: str, shape: tuple[int, ...], dtype: np.dtype[Any], box: tuple[slice, ...]
    ) -> Array | None:
        with self._opened(key) as descriptor:
            if descriptor is None:
                return None
            values = FileValues(descriptor, f"{cut(self.path)}: {key}", shape, dtype)
            if os.fstat(descriptor).st_size != values.nbytes:
                return None
            return values.read(box)

    @contextmanager
    def _opened(self, key: str) -> Iterator[int | None]:
        """Open the file of a key; None if there is none. Raises `StoreError`, also for a failed
        read.
        """
        try:
            descriptor = open_descriptor(f"{self._root}/{key}")
        except (FileNotFoundError, NotADirectoryError):
            yield None
            return
        except OSError as error:
            raise StoreError(
                f"{cut(self.path)}: {key} cannot be opened: {error.strerror}."
            ) from error
        try:
            yield descriptor
        except OSError as error:
            raise StoreError(
                f"{cut(self.path)}: {key} cannot be read: {error.strerror}."
            ) from error
        finally:
            os.close(descriptor)

    def children(self, prefix: str) -> list[str]:
        try:
            with os.scandir(f"{self._root}/{prefix}") as entries:
                return sorted(entry.name for entry in entries if entry.is_dir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise StoreError(
                f"{cut(self.path)}: the folder {prefix or '.'} cannot be listed: {error.strerror}."
            ) from error

    def entries(self, prefix: str) -> dict[str, Entry]:
        entries_by_name: dict[str, Entry] = {}
        folders = [""]
        while folders:
            folder = folders.pop()
            try:
                with os.scandir(f"{self._root}/{prefix}/{folder}") as entries:
                    for entry in entries:
                        if entry.is_dir():
                            folders.append(f"{folder}{entry.name}/")
                        else:
                            entries_by_name[folder + entry.name] = Entry(entry.stat().st_size)
            except OSError as error:
                raise StoreError(
                    f"{cut(self.path)}: the folder {prefix}/{cut(folder)} cannot be listed: "
                    f"{error.strerror}."
                ) from error
        return entries_by_name

    def watch(self, key: str, owner: str) -> None:
        path = f"{self._root}/{key}"
        self._watched.setdefault(owner, {}).setdefault(path, file_state(path))

    def recheck(self, prefix: str) -> None:
        names = prefix.split("/") if prefix else []
        for depth in range(len(names) + 1):
            watched = self._watched.get("/".join(names[:depth]), {})
            for path, before in watched.items():
                state = file_state(path)
                if state != before and not self.is_same_document(path[len(self._root) + 1 :]):
                    raise changed_error(path, "", state == GONE)

    def stamp(self, key: str, entry: Entry) -> str | None:
        return file_stamp(f"{self._root}/{key}")

    def states(self, key: str) -> dict[str, str]:
        path = f"{self._root}/{key}"
        return {path: file_state(path)}


class ZipSource(Source):
    """A zip file, its members stored or deflated; whole members are checked by their CRC-32."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._zip = open_zip(path, f"{path} cannot be opened as a zip file")
        # Not `is_dir`, which fails for an empty name in Python 3.11.
        members = self._zip.infolist()
        infos = {info.filename: info for info in members if not info.filename.endswith("/")}
        self._top = _top_folder(infos)
        self._infos = {name.removeprefix(self._top): info for name, info in infos.items()}

    def get(
        self, key: str, start: int = 0, length: int | None = None, most: int = MOST_BYTES
    ) -> Buffer | None:
        info = self._infos.get(key)
        if info is None:
            return None
        begin, count = clip(info.file_size, start, length, most, key)
        try:
            check_method(info)
            with self._zip.open(info) as member:
                member.seek(begin)
                # Always with a count: otherwise a whole member would be unpacked at once.
                data = member.read(count)
            if len(data) < count:
                raise EOFError(f"{len(data)} of {count} bytes")
            return data
        except (OSError, EOFError, RuntimeError, ValueError, zipfile.BadZipFile) as error:
            raise StoreError(
                f"{cut(self.path)}: {key} cannot be read ({cut(error or type(error).__name__)}): "
                "the zip file is damaged or cut short. Copy or write it again."
            ) from error
        except Exception as error:  # zlib.error has no common base with the others
            raise StoreError(
                f"{cut(self.path)}: {key} cannot be unpacked ({cut(error)}). Copy or write the zip "
                "file again."
            ) from error

    def children(self, prefix: str) -> list[str]:
        start = f"{prefix}/" if prefix else ""
        below = (key[len(start) :] for key in self._infos if key.startswith(start))
        return sorted({path.split("/", 1)[0] for path in below if "/" in path})

    def entries(self, prefix: str) -> dict[str, Entry]:
        start = f"{prefix}/" if prefix else ""
        return {
            key[len(start) :]: Entry(info.file_size, f"{info.CRC:08x}")
            for key, info in self._infos.items()
            if key.startswith(start)
        }

    def stamp(self, key: str, entry: Entry) -> str | None:
        return combined_stamp([self._stamp], key)  # its checksums do not reveal damage

    @cached_property
    def _stamp(self) -> str | None:
        """Return the stamp of the file, computed once, because it waits for the disk."""
        return file_stamp(self.path)

    def states(self, key: str) -> dict[str, str]:
        return {self.path: file_state(self.path)}


def _top_folder(names: Iterable[str]) -> str:
    """Return the folder of a zip that has a store, with a slash; empty if that is the zip itself,
    or there are several.

    `zip -r preds.zip preds.zarr` puts the store into a folder, and macOS adds `__MACOSX/` beside.
    """
    places = (name.rpartition("/") for name in names)
    folders = {folder for folder, _, file in places if file in _ZARR_FILES}
    top = min(folders, key=len, default="")
    is_only = all(f"{folder}/".startswith(f"{top}/") for folder in folders)
    return f"{top}/" if top and is_only else ""


def open_zip(path: str, problem: str) -> zipfile.ZipFile:
    """Return the archive at `path`; closing it closes its file. Raises `StoreError`, which begins
    with `problem`.
    """
    try:
        file = open_file(path)
        try:
            archive = zipfile.ZipFile(file)
        except BaseException:
            file.close()
            raise
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise StoreError(f"{problem} ({reason}). Copy or write it again.") from error
    weakref.finalize(archive, file.close)
    return archive


def check_method(info: zipfile.ZipInfo) -> None:
    """Raise `ValueError` for a member that claims more than its bytes can unpack to.

    It must be stored or deflated: the unpacked size of other methods has no bound.
    """
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"compression method {info.compress_type}, expected stored or deflated")
    ratio = 1 if info.compress_type == zipfile.ZIP_STORED else MOST_DEFLATED
    if info.file_size > ratio * info.compress_size:
        raise ValueError(f"claims {info.file_size} bytes of {info.compress_size} that are stored")
