"""One file of optical flow as an array: `.flo`, or a 16-bit RGB PNG as KITTI writes it."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np

from uqeval.arrays import Array
from uqeval.errors import StoreError, cut
from uqeval.stores.array import Region
from uqeval.stores.files.file_array import FileArray, bytes_of, head_of
from uqeval.stores.files.png_array import png_header

_MAGIC = b"PIEH"
_HEADER = 12


class FloArray(FileArray):
    """A .flo file of shape [H, W, 2], (dx, dy) in pixels; header and size are checked at once.

    Baker et al. (2011), Middlebury's `flow-code`: after "PIEH", width and height, 32-bit floats,
    all little-endian; values above 1e9 mean unknown.
    """

    axes = ("y", "x", "class")
    dtype = np.dtype(np.float32)

    def __init__(self, path: Path) -> None:
        head, size = head_of(path, _HEADER)
        if len(head) < _HEADER or head[:4] != _MAGIC:
            problem = "cut short" if _MAGIC.startswith(head[:4]) else "not a .flo file"
            raise StoreError(
                f"{cut(path)}: is {problem}; expected PIEH, width and height in its first 12 "
                "bytes. Copy it again, or remove it from the folder."
            )
        width, height = (int(n) for n in np.frombuffer(head, "<i4", 2, 4))
        expected = _HEADER + 8 * width * height
        if width < 1 or height < 1 or size != expected:
            raise StoreError(
                f"{cut(path)}: is {size} bytes, but the flow of {width} × {height} pixels takes "
                f"{expected}. Copy it again."
            )
        super().__init__(path, (height, width, 2))

    def read(self, region: Region) -> Array:
        """Return the flow in `region`. Raises `StoreError` if the file cannot be read."""
        values = self._numbers("<f4", _HEADER, self.shape)
        return np.ascontiguousarray(values[region], self.dtype)


_RGB = 2
_KINDS = {0: "grey", 2: "RGB", 3: "palette", 4: "grey with alpha", 6: "RGBA"}


class KittiFlow(FileArray):
    """A PNG file of shape [H, W, 2], (dx, dy) in pixels; its header is checked at once.

    Geiger et al., KITTI's `devkit/readme.txt`: red and green are 64 · dx + 2^15 and likewise dy;
    blue is 0 where the flow is unknown, which is read as NaN.
    """

    axes = ("y", "x", "class")
    dtype = np.dtype(np.float32)

    def __init__(self, path: Path) -> None:
        header = png_header(path)
        if (header.kind, header.depth) != (_RGB, 16):
            kind = _KINDS.get(header.kind, "unknown")
            raise StoreError(
                f"{cut(path)}: is a PNG of {header.depth}-bit {kind}; optical flow is a 16-bit RGB "
                "PNG as KITTI's (64 · dx + 2^15, 64 · dy + 2^15, known), .flo, .npy or .pfm. "
                "Remove it from the folder, or convert it."
            )
        super().__init__(path, (header.height, header.width, 2))

    def read(self, region: Region) -> Array:
        """Return the flow in `region`. Raises `StoreError` if the file is damaged."""
        import cv2  # Pillow reads 8 of the 16 bits

        data = bytes_of(self._path)
        image = None
        if _is_whole(data):
            image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
        if image is None:
            raise StoreError(f"{cut(self._path)}: is damaged or cut short. Copy it again.")
        if image.shape != (*self.shape[:2], 3) or image.dtype != np.uint16:
            raise StoreError(f"{cut(self._path)}: changed while it was read. Start again.")
        flow = (image[..., :0:-1].astype(np.float32) - np.float32(2**15)) / np.float32(64)
        flow[image[..., 0] == 0] = np.nan
        return np.ascontiguousarray(flow[region])


def _is_whole(data: bytes) -> bool:
    """Return whether a PNG has all chunks with their checksums, which OpenCV may not check."""
    at, name = 8, b""
    while name != b"IEND":
        end = at + 12 + int.from_bytes(data[at : at + 4], "big")
        if end > len(data):
            return False
        name, stored = data[at + 4 : at + 8], int.from_bytes(data[end - 4 : end], "big")
        if zlib.crc32(data[at + 4 : end - 4]) != stored:
            return False
        at = end
    return True
