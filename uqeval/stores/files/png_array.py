"""One PNG of class ids as an array: grey of 1 to 16 bits, or a palette's indices."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from uqeval.arrays import Array
from uqeval.errors import DataError, StoreError, cut, quoted
from uqeval.stores.array import Region
from uqeval.stores.files.file_array import FileArray, bytes_of, check_pixels, head_of
from uqeval.stores.files.image_file import PNG_SIGNATURE, image_bytes, undecoded
from uqeval.stores.zarr.source import MOST_DEFLATED

_GREY, _PALETTE = 0, 3
_KINDS = {2: "RGB", 4: "grey with alpha (LA)", 6: "RGBA"}

#: Cityscapes: label id -> train id. All other ids that the data set defines are void.
_CITYSCAPES = {
    7: 0, 8: 1, 11: 2, 12: 3, 13: 4, 17: 5, 19: 6, 20: 7, 21: 8, 22: 9,
    23: 10, 24: 11, 25: 12, 26: 13, 27: 14, 28: 15, 31: 16, 32: 17, 33: 18,
}  # fmt: skip
_VOID = 255
#: Values per pixel, by colour type.
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_UNDEFINED = -1


def label_table(label_map: str | None) -> NDArray[np.int16] | None:
    """Return the table of a named label map, −1 for undefined ids.

    Raises `StoreError` for an unknown name.
    """
    if label_map is None:
        return None
    if label_map != "cityscapes":
        raise StoreError(
            f"label map {quoted(label_map)} is not known; the known one is 'cityscapes'."
        )
    table = np.full(2**16, _UNDEFINED, np.int16)
    table[:34] = [_CITYSCAPES.get(label, _VOID) for label in range(34)]
    return table


@dataclass(frozen=True)
class PngHeader:
    """The header of a PNG file: size in pixels, bits per value, and colour type."""

    width: int
    height: int
    depth: int
    kind: int


class PngArray(FileArray):
    """A PNG file of shape [H, W]; the header is checked at once, the pixels are decoded when
    read.
    """

    axes = ("y", "x")
    _expected = (
        ", which does not say which class a pixel has. Save class ids as grey (8 or 16 bit) or "
        "palette PNG."
    )

    def __init__(self, path: Path, table: NDArray[np.int16] | None = None) -> None:
        header = png_header(path)
        if header.kind not in (_GREY, _PALETTE):
            raise StoreError(
                f"{cut(path)} is {_KINDS.get(header.kind, 'of unknown kind')}{self._expected}"
            )
        super().__init__(path, (header.height, header.width))
        self._stored = np.dtype(np.uint16 if header.depth == 16 else np.uint8)
        self.dtype = self._stored if table is None else np.dtype(np.uint8)
        self._depth = header.depth if header.kind == _GREY else 8
        self._table = table
        self.takes_label_map = table is None

    def read(self, region: Region) -> Array:
        """Return the class ids in `region`.

        Raises `StoreError` if the file is damaged, `DataError` for an id that the label map does
        not define.
        """
        return np.ascontiguousarray(self._decode()[region])

    def fingerprint(self) -> str:
        """Return SHA-256 of the whole file, because label files are small."""
        return self._digest

    def stamp(self, index: int | None) -> str | None:
        """Return a stamp of the file's content."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        digest = hashlib.sha256(bytes_of(self._path))
        if self._table is not None:
            digest.update(self._table.tobytes())
        return digest.hexdigest()

    def _decode(self) -> Array:
        from PIL import Image

        try:
            with Image.open(io.BytesIO(image_bytes(self._path)), formats=["PNG"]) as image:
                values = np.asarray(image)
        except StoreError:
            raise
        except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
            raise StoreError(
                f"{cut(self._path)} is too large to be a label image ({cut(error)})."
            ) from error
        except Exception as error:  # Pillow raises OSError, SyntaxError, ValueError, struct.error …
            raise StoreError(
                f"{cut(self._path)} is damaged or cut short ({undecoded(error)}). Copy it again."
            ) from error
        if values.shape != self.shape:
            raise StoreError(f"{cut(self._path)} changed while it was read. Start again.")
        # Pillow stretches grey of 2 and 4 bits to 0 … 255; undo it to get ids.
        values = values.astype(self._stored, copy=False)
        if self._depth in (2, 4):
            values = values // np.uint8(255 // (2**self._depth - 1))
        if self._table is None:
            return values
        mapped: NDArray[np.int16] = self._table[values]
        if (wrong := values[mapped == _UNDEFINED]).size:
            raise DataError(
                f"{cut(self._path)}: {wrong.size} pixels have ids that Cityscapes does not define, "
                f"the first is {int(wrong[0])}. Are these labelIds? Train ids need no label map."
            )
        return np.asarray(mapped, np.uint8)


def png_header(path: Path) -> PngHeader:
    """Return the header of a PNG file; raises `StoreError` for another file, or too large a
    size.
    """
    head, size = head_of(path, 33)
    if len(head) < 33 or head[:8] != PNG_SIGNATURE or head[12:16] != b"IHDR":
        problem = "cut short" if PNG_SIGNATURE.startswith(head[:8]) else "not a PNG file"
        raise StoreError(f"{cut(path)} is {problem}. Copy it again, or remove it from the folder.")
    width, height = (int.from_bytes(head[at : at + 4], "big") for at in (16, 20))
    depth, kind = head[24], head[25]
    values = _CHANNELS.get(kind, 4)
    check_pixels(path, width, height, values * max(depth // 8, 1))
    if size * MOST_DEFLATED < height * (width * depth * values // 8):
        raise StoreError(
            f"{cut(path)} claims to be {width} × {height} pixels, for which its {size} bytes are "
            "too few. Copy it again."
        )
    return PngHeader(width, height, depth, kind)
