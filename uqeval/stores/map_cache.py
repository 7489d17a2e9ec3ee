"""Cache of arrays on disk between runs, with checksums, and of the maps of items, so that sample
stacks are read once.

A read returns the array that any process has written under that name, or None. Several processes
may share a folder.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import shutil
import zlib
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from uqeval.arrays import Array
from uqeval.disk.files import open_file
from uqeval.disk.objects import ObjectFile, is_object_url
from uqeval.disk.outputs import refuse_url
from uqeval.disk.publishing import hidden_path, new_file
from uqeval.errors import OutputError, cut

#: Bytes of a disk that are left free.
SPARE = 1 << 30
#: The length of a checksum in bytes.
_CHECKSUM = 4


def folder_for(content: str, folder: str | Path) -> Path:
    """Return a folder for `content`, created if needed. Raises `OutputError` if it cannot be
    written.
    """
    refuse_url(folder)
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        trial = hidden_path(path / "trial")
        trial.touch()
        trial.unlink()
    except OSError as error:
        reason = "it is not a folder" if path.exists() and not path.is_dir() else error.strerror
        raise OutputError(
            f"{cut(folder)}: {content} cannot be written there: {reason}. Name another folder."
        ) from error
    return path


class CacheFolder:
    """A folder of cached arrays. One that has all of them may be read-only: whether it can be
    written is tested once, at the first array that it lacks.

    Raises `OutputError` for a path that is no folder and cannot become one.
    """

    def __init__(self, content: str, folder: str | Path) -> None:
        self.path = Path(folder)
        self._content, self._folder = content, folder
        self._writable = False
        if not self.path.is_dir():
            self.require_writable()

    def require_writable(self) -> None:
        """Raise `OutputError` if the folder cannot be written."""
        if not self._writable:
            folder_for(self._content, self._folder)
            self._writable = True


def has_room(folder: Path, size: int) -> bool:
    """Return whether a folder's disk has room for `size` bytes and a reserve."""
    return shutil.disk_usage(folder).free >= size + SPARE


def read_checked(path: Path, shape: tuple[int, ...], dtype: DTypeLike) -> Array | None:
    """Return the array of this shape and dtype in a file; None if it is missing or damaged."""
    try:
        with open_file(path) as file:
            return _read(file, path.name, shape, np.dtype(dtype))
    except OSError:
        return None


def _read(
    file: io.BufferedIOBase, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Array | None:
    head = _head(shape, dtype)
    if file.read(len(head)) != head:
        return None
    values = np.empty(shape, dtype)
    if file.readinto(_bytes(values)) != values.nbytes:
        return None
    return values if file.read() == _checksum(name, head, values) else None


def write_checked(path: Path, values: Array) -> bool:
    """Write an array completely or not at all; return whether it exists.

    It does not if the disk is nearly full, or cannot be written. A link or a pipe in its place is
    replaced, and no link is followed: others may write to the folder of a cache.
    """
    try:
        path.parent.mkdir(exist_ok=True)
        if not has_room(path.parent, values.nbytes):
            return False
        if path.is_symlink() or not path.is_file():
            path.unlink(missing_ok=True)
        with new_file(path) as file:
            _write(file, path.name, values)
    except OSError:
        return False
    return True


def _write(file: IO[bytes], name: str, values: Array) -> None:
    little = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    head = _head(little.shape, little.dtype)
    file.write(head)
    file.write(_bytes(little))
    file.write(_checksum(name, head, little))


def _head(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bytes:
    buffer = io.BytesIO()
    kind = {"descr": dtype.newbyteorder("<").str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, kind)
    return buffer.getvalue()


def _bytes(values: Array) -> memoryview:
    return values.reshape(-1).view(np.uint8).data


def _checksum(name: str, head: bytes, values: Array) -> bytes:
    """Return the checksum of the name and the file, so that swapped files are detected."""
    parts = (name.encode(), head, _bytes(values))
    check = 0
    for data in parts:
        check = zlib.crc32(data, check)
    return check.to_bytes(_CHECKSUM, "little")


class _Folder:
    """Arrays as files in a folder."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = CacheFolder("maps", folder)

    def read(self, key: str, shape: tuple[int, ...], dtype: str) -> Array | None:
        return read_checked(self._folder.path / key, shape, dtype)

    def require_writable(self) -> None:
        self._folder.require_writable()

    def write(self, key: str, values: Array) -> bool:
        return write_checked(self._folder.path / key, values)


class _Objects:
    """Arrays as objects below a URL. A server error ends the run, as for inputs."""

    def __init__(self, url: str) -> None:
        self._any = ObjectFile(f"{url.rstrip('/')}/maps", OutputError)
        self._any.version()  # raises now if the server cannot be reached

    def read(self, key: str, shape: tuple[int, ...], dtype: str) -> Array | None:
        kind = np.dtype(dtype)
        most = len(_head(shape, kind)) + math.prod(shape) * kind.itemsize + _CHECKSUM
        data = self._any.sibling(key).read(most)
        if data is None:
            return None
        return _read(io.BytesIO(data), key.rpartition("/")[2], shape, kind)

    def require_writable(self) -> None:  # `write` raises
        return

    def write(self, key: str, values: Array) -> bool:
        buffer = io.BytesIO()
        _write(buffer, key.rpartition("/")[2], values)
        self._any.sibling(key).write(buffer.getvalue())
        return True


#: Returns the shape and dtype of a map, from its name and item.
Form: TypeAlias = "Callable[[str, int], tuple[tuple[int, ...], str]]"
#: Returns whether a map of this name may have these values.
IsValid: TypeAlias = "Callable[[str, Array], bool]"


class MapCache:
    """Maps of items, each in a file or object whose name depends on its sources.

    `stamps` change when an item's maps do (`inputs.opened.stamps_of`); maps of items without one
    are not cached. Runs with other metrics or stores may share the folder; `uqeval` never removes a
    file. Anyone may have written to it, and a checksum is no signature: a map that is not `valid`
    counts as damaged, because kernels check no values. Raises `OutputError` if the folder cannot be
    written, at the first maps that it lacks.
    """

    def __init__(
        self, folder: str | Path, names: Sequence[str], stamps: Sequence[str | None], form: Form,
        valid: IsValid,
    ) -> None:  # fmt: skip
        self.folder = folder
        self._files = _Objects(str(folder)) if is_object_url(folder) else _Folder(folder)
        self._names, self._stamps = names, stamps
        self._form, self._valid = form, valid
        #: Items whose maps could not be cached.
        self.unstamped = {i for i, stamp in enumerate(stamps) if stamp is None}
        self.refused: set[int] = set()

    def read(self, item: int, names: Collection[str]) -> dict[str, Array] | None:
        """Return the wanted maps of an item; None if one of them is missing or damaged."""
        if item in self.unstamped:
            return None
        maps = {}
        for name in names:
            values = self._files.read(self._key(item, name), *self._form(name, item))
            if values is None or not self._valid(name, values):
                self._files.require_writable()
                return None
            maps[name] = values
        return maps

    def write(self, item: int, maps: dict[str, Array]) -> bool:
        """Write the maps of an item; return whether all of them are cached."""
        if item in self.unstamped:
            return False
        stored = all(
            self._files.write(self._key(item, name), values) for name, values in maps.items()
        )
        if not stored:
            self.refused.add(item)
        return stored

    def warnings(self) -> list[str]:
        """Return warnings about maps that are not cached."""
        reasons = (
            (self.unstamped, "changes to them cannot be detected, or they were changed just now"),
            (self.refused, "the disk has less than 1 GiB free, or cannot be written"),
        )
        return [
            f"--map-cache {self.folder}: the maps of {len(items)} of {len(self._names)} items are "
            f"not cached: {reason}."
            for items, reason in reasons
            if items
        ]

    def _key(self, item: int, name: str) -> str:
        key = [self._names[item], self._stamps[item], name]
        digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()
        return f"{digest[:2]}/{digest}.npy"
