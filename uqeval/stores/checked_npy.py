"""Arrays that are kept on disk from run to run: .npy files with a checksum behind.

What is read is what was written, whoever put it there; anything else reads as nothing. Several
processes may share a folder.
"""

from __future__ import annotations

import io
import math
import os
import tempfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from uqeval.errors import OutputError

#: Bytes that a header takes at most, of a plain array, and the checksum.
_HEAD, _CHECK = 1024, 4


def folder_for(what: str, folder: str | Path) -> Path:
    """A folder to keep `what` in. Raises `OutputError` if it cannot be written."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OutputError(
            f"{folder}: {what} cannot be kept there: {error.strerror}. Name another folder."
        ) from error
    return Path(folder)


def read_checked(
    path: Path, fits: Callable[[tuple[int, ...], np.dtype[Any]], bool]
) -> NDArray[Any] | None:
    """The array in a file; None if there is none, it is damaged, or its shape and dtype do not
    fit."""
    try:
        with path.open("rb") as file:
            if np.lib.format.read_magic(file) != (1, 0):
                return None
            shape, _, dtype = np.lib.format.read_array_header_1_0(file, _HEAD)
            whole = file.tell() + math.prod(shape) * dtype.itemsize + _CHECK
            if os.fstat(file.fileno()).st_size != whole or not fits(shape, dtype):
                return None
            values = np.empty(shape, dtype)
            file.readinto(_bytes(values))
            return values if file.read() == _checksum(_head(shape, dtype), values) else None
    except (OSError, ValueError):
        return None


def write_checked(path: Path, values: NDArray[Any]) -> bool:
    """Put an array in place, or nothing at all; returns whether it is there."""
    temporary = None
    try:
        path.parent.mkdir(exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem[:8]}.")
        with os.fdopen(handle, "wb") as file:
            _put(file, np.ascontiguousarray(values, values.dtype.newbyteorder("<")))
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)
        Path(temporary).replace(path)
    except OSError:
        if temporary is not None:
            with suppress(OSError):
                Path(temporary).unlink()
        return False
    return True


def _put(file: IO[bytes], values: NDArray[Any]) -> None:
    head = _head(values.shape, values.dtype)
    file.write(head)
    file.write(_bytes(values))
    file.write(_checksum(head, values))


def _head(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bytes:
    buffer = io.BytesIO()
    kind = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, kind)
    return buffer.getvalue()


def _bytes(values: NDArray[Any]) -> memoryview:
    return values.reshape(-1).view(np.uint8).data


def _checksum(head: bytes, values: NDArray[Any]) -> bytes:
    return zlib.crc32(_bytes(values), zlib.crc32(head)).to_bytes(_CHECK, "little")
