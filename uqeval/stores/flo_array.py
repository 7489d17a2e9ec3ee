"""One .flo file of optical flow as an array."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqeval.errors import StoreError
from uqeval.stores.array import Region, StoredArray, file_digest

_MAGIC = b"PIEH"
_HEADER = 12


class FloArray(StoredArray):
    """A .flo file of shape [H, W, 2], (dx, dy) in pixels; header and size are checked at once.

    Baker et al. (2011), Middlebury's `flow-code`: after "PIEH", width and height, 32-bit floats,
    all little-endian; more than 1e9 says unknown.
    """

    axes = ("y", "x", "class")
    dtype = np.dtype(np.float32)

    def __init__(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                head = file.read(_HEADER)
                size = file.seek(0, 2)
        except OSError as error:
            raise StoreError(f"{path}: cannot be read: {error.strerror}.") from error
        if len(head) < _HEADER or head[:4] != _MAGIC:
            what = "cut short" if _MAGIC.startswith(head[:4]) else "not a .flo file"
            raise StoreError(
                f"{path}: is {what}; expected PIEH, width and height in its first 12 bytes. Copy "
                "it again, or take it out of the folder."
            )
        width, height = (int(n) for n in np.frombuffer(head, "<i4", 2, 4))
        expected = _HEADER + 8 * width * height
        if width < 1 or height < 1 or size != expected:
            raise StoreError(
                f"{path}: is {size} bytes, but the flow of {width} × {height} pixels takes "
                f"{expected}. Copy it again."
            )
        self.where = str(path)
        self.shape = (height, width, 2)
        self.chunks = self.shape
        self.attributes = {}
        self._path = path

    def read(self, region: Region) -> NDArray[Any]:
        """The flow in `region`. Raises `StoreError` if the file cannot be read."""
        try:
            values = np.fromfile(self._path, "<f4", offset=_HEADER)
        except OSError as error:
            raise StoreError(f"{self._path}: cannot be read: {error.strerror}.") from error
        if values.size != np.prod(self.shape):
            raise StoreError(f"{self._path}: changed while it was read. Start again.")
        return np.ascontiguousarray(values.reshape(self.shape)[region], self.dtype)

    def stored_bytes(self) -> int:
        """The size of the file."""
        return self._path.stat().st_size

    def fingerprint(self) -> str:
        """SHA-256 of the file's name, size and time of change."""
        return file_digest(self._path)
