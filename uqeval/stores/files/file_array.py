"""Base of formats in which a file is one array."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from uqeval.arrays import Array
from uqeval.disk.files import open_file, read_bytes, readable
from uqeval.errors import StoreError, cut
from uqeval.stores.array import StoredArray, file_digest
from uqeval.stores.watch import file_stamp, file_state

#: The largest number of pixels: above it Pillow warns of decompression bombs.
MOST_PIXELS = 2**30 // 12
#: The largest number of bytes of a decoded image.
MOST_IMAGE = 1 << 28


class FileArray(StoredArray):
    """An array that fills one file. The file is one chunk, so it is decoded whole."""

    def __init__(self, path: Path, shape: tuple[int, ...]) -> None:
        self.where = cut(path)
        self.shape = self.chunks = shape
        self.attributes = {}
        self._path = path

    def stored_bytes(self) -> int:
        return self._path.stat().st_size

    def fingerprint(self) -> str:
        """Return SHA-256 of the file's name, size and time of change."""
        return file_digest(self._path)

    def stamp(self, index: int | None) -> str | None:
        return file_stamp(self._path)

    def states(self, index: int | None) -> dict[str, str]:
        return {str(self._path): file_state(self._path)}

    def _numbers(self, dtype: DTypeLike, start: int, shape: tuple[int, ...]) -> Array:
        """Return the numbers from byte `start` to the end of the file.

        Raises `StoreError` if the file cannot be read, or no longer has `shape` numbers.
        """
        with readable(self._path), open_file(self._path) as file:
            file.seek(start)
            values = np.empty(math.prod(shape), dtype)
            size = file.readinto(values.view(np.uint8).data)
            is_complete = size == values.nbytes and not file.read(1)
        if not is_complete:
            raise StoreError(f"{cut(self._path)} changed while it was read. Start again.")
        return values.reshape(shape)


def check_pixels(path: str | Path, width: int, height: int, bytes_each: int) -> None:
    """Raise `StoreError` for an image that claims too many pixels or bytes."""
    most = min(MOST_PIXELS, MOST_IMAGE // max(bytes_each, 1))
    if not 0 < width * height <= most or min(width, height) < 1:
        raise StoreError(
            f"{cut(path)} claims to be {width} × {height} pixels of {bytes_each} bytes; expected "
            f"1 to {most:,} pixels. If it is not damaged, cut it into tiles or store it as Zarr."
        )


def bytes_of(path: Path) -> bytes:
    """Return the content of a file; raises `StoreError` if it is unreadable."""
    with readable(path):
        return read_bytes(path)


def head_of(path: Path, count: int) -> tuple[bytes, int]:
    """Return the first `count` bytes of a file, and its size; raises `StoreError` if it is
    unreadable.
    """
    with readable(path), open_file(path) as file:
        return file.read(count), file.seek(0, 2)
