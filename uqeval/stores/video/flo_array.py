"""One .flo file of optical flow as an array."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqeval.errors import StoreError, cut
from uqeval.stores.array import Region
from uqeval.stores.files.file_array import FileArray, head_of

_MAGIC = b"PIEH"
_HEADER = 12


class FloArray(FileArray):
    """A .flo file of shape [H, W, 2], (dx, dy) in pixels; header and size are checked at once.

    Baker et al. (2011), Middlebury's `flow-code`: after "PIEH", width and height, 32-bit floats,
    all little-endian; more than 1e9 says unknown.
    """

    axes = ("y", "x", "class")
    dtype = np.dtype(np.float32)

    def __init__(self, path: Path) -> None:
        head, size = head_of(path, _HEADER)
        if len(head) < _HEADER or head[:4] != _MAGIC:
            problem = "cut short" if _MAGIC.startswith(head[:4]) else "not a .flo file"
            raise StoreError(
                f"{cut(path)}: is {problem}; expected PIEH, width and height in its first 12 "
                "bytes. Copy it again, or take it out of the folder."
            )
        width, height = (int(n) for n in np.frombuffer(head, "<i4", 2, 4))
        expected = _HEADER + 8 * width * height
        if width < 1 or height < 1 or size != expected:
            raise StoreError(
                f"{cut(path)}: is {size} bytes, but the flow of {width} × {height} pixels takes "
                f"{expected}. Copy it again."
            )
        super().__init__(path, (height, width, 2))

    def read(self, region: Region) -> NDArray[Any]:
        """Return the flow in `region`. Raises `StoreError` if the file cannot be read."""
        values = self._numbers("<f4", _HEADER, self.shape)
        return np.ascontiguousarray(values[region], self.dtype)
