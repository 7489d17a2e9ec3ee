"""One .pfm file as an array: numbers (grey) or optical flow (colour), rows from the bottom up."""

from __future__ import annotations

import hashlib
import math
import re
from pathlib import Path

import numpy as np

from uqeval.arrays import Array
from uqeval.errors import StoreError, cut
from uqeval.stores.array import Region, file_digest
from uqeval.stores.files.file_array import FileArray, bytes_of, head_of

#: `Pf`, width and height, and a scale whose sign gives the byte order; it ends with one line break.
_HEADER = re.compile(
    rb"(P[fF])\s+([0-9]{1,9})\s+([0-9]{1,9})\s+"
    rb"([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?)[ \t]*\r?\n"
)
_LONGEST = 512


class PfmArray(FileArray):
    """A grey PFM file of shape [H, W], row 0 at the top; header and size are checked at once.

    A negative scale means little-endian, a positive one big-endian. Its absolute value is not
    applied, as in Middlebury's own reader. Infinite values mean unknown.
    """

    axes: tuple[str, ...] = ("y", "x")
    _magic = b"Pf"
    _other = "is a colour PFM (PF); a target is grey (Pf)"
    _channels: tuple[int, ...] = ()

    def __init__(self, path: Path) -> None:
        head, size = head_of(path, _LONGEST)
        match = _HEADER.match(head)
        if match is None:
            raise StoreError(
                f"{cut(path)} is not a PFM file: expected Pf, width and height, and a scale in "
                "its first lines. Copy it again, or remove it from the folder."
            )
        if match[1] != self._magic:
            raise StoreError(f"{cut(path)} {self._other}.")
        width, height, scale = int(match[2]), int(match[3]), float(match[4])
        if scale == 0 or not math.isfinite(scale):
            raise StoreError(
                f"{cut(path)} has the scale {scale:g}, whose sign gives the byte order; expected "
                f"a number other than 0."
            )
        self._file_shape = (height, width, *self._channels)
        expected = match.end() + 4 * math.prod(self._file_shape)
        if size != expected or not width or not height:
            raise StoreError(
                f"{cut(path)} is {size} bytes, but {width} × {height} pixels after its header "
                f"make {expected}. Copy it again."
            )
        super().__init__(path, (height, width))
        self.dtype = np.dtype(np.float32)
        self._start = match.end()
        self._stored = np.dtype("<f4" if scale < 0 else ">f4")

    def read(self, region: Region) -> Array:
        """Return the numbers in `region`. Raises `StoreError` if the file cannot be read."""
        values = self._numbers(self._stored, self._start, self._file_shape)
        upright = values[::-1][tuple(map(slice, self.shape))]
        return np.ascontiguousarray(upright[region], self.dtype)

    def fingerprint(self) -> str:
        """Return SHA-256 of the file."""
        return hashlib.sha256(bytes_of(self._path)).hexdigest()


class PfmFlow(PfmArray):
    """A colour PFM file of optical flow: [H, W, 2], (dx, dy); its third channel is not read.

    Mayer et al. (2016), FlyingThings3D.
    """

    axes = ("y", "x", "class")
    _magic = b"PF"
    _other = "is a grey PFM (Pf); optical flow is colour (PF), with dx and dy as red and green"
    _channels = (3,)

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.shape = self.chunks = (*self.shape, 2)

    def fingerprint(self) -> str:
        """Return SHA-256 of the file's name, size and time of change."""
        return file_digest(self._path)
