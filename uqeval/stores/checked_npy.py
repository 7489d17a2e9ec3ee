"""Arrays cached on disk between runs: .npy files with a trailing checksum.

What is read is what was written under that name, by whomever; anything else reads as nothing.
Several processes may share a folder.
"""

from __future__ import annotations

import io
import shutil
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from uqeval.disk.files import open_file
from uqeval.disk.publishing import hidden_path, new_file
from uqeval.errors import OutputError, cut

#: Disk that is left free for others.
SPARE = 1 << 30


def folder_for(content: str, folder: str | Path) -> Path:
    """Return a folder to keep `content` in. Raises `OutputError` if it cannot be written."""
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        trial = hidden_path(path / "trial")
        trial.touch()
        trial.unlink()
    except OSError as error:
        reason = "it is no folder" if path.exists() and not path.is_dir() else error.strerror
        raise OutputError(
            f"{cut(folder)}: {content} cannot be kept there: {reason}. Name another folder."
        ) from error
    return path


def has_room(folder: Path, size: int) -> bool:
    """Return whether a folder's disk takes so many bytes and still has some to spare."""
    return shutil.disk_usage(folder).free >= size + SPARE


def read_checked(path: Path, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any] | None:
    """Return the array of this shape and dtype in a file; None if it is not there, or not whole."""
    head = _head(shape, np.dtype(dtype))
    try:
        with open_file(path) as file:
            if file.read(len(head)) != head:
                return None
            values = np.empty(shape, dtype)
            if file.readinto(_bytes(values)) != values.nbytes:
                return None
            return values if file.read() == _checksum(path, head, values) else None
    except OSError:
        return None


def write_checked(path: Path, values: NDArray[Any]) -> bool:
    """Write an array whole or not at all; return whether it is there.

    Nothing is where the disk is full, or nearly so, or cannot be written.
    """
    try:
        path.parent.mkdir(exist_ok=True)
        if not has_room(path.parent, values.nbytes):
            return False
        with new_file(path) as file:
            _write(file, path, np.ascontiguousarray(values, values.dtype.newbyteorder("<")))
    except OSError:
        return False
    return True


def _write(file: IO[bytes], path: Path, values: NDArray[Any]) -> None:
    head = _head(values.shape, values.dtype)
    file.write(head)
    file.write(_bytes(values))
    file.write(_checksum(path, head, values))


def _head(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bytes:
    buffer = io.BytesIO()
    kind = {"descr": dtype.newbyteorder("<").str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, kind)
    return buffer.getvalue()


def _bytes(values: NDArray[Any]) -> memoryview:
    return values.reshape(-1).view(np.uint8).data


def _checksum(path: Path, head: bytes, values: NDArray[Any]) -> bytes:
    """Return the checksum of the name and the file, so that files cannot be exchanged."""
    parts = (path.name.encode(), head, _bytes(values))
    check = 0
    for data in parts:
        check = zlib.crc32(data, check)
    return check.to_bytes(4, "little")
