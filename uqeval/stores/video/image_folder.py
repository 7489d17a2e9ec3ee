"""A folder of images that are the frames of a video."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqeval.disk.suffixes import IMAGES
from uqeval.errors import StoreError, cut, quoted
from uqeval.stores.array import Store, StoredArray, file_digest
from uqeval.stores.files.file_array import check_pixels
from uqeval.stores.files.image_file import image_bytes, undecoded
from uqeval.stores.names import files_below, natural
from uqeval.stores.watch import combined_stamp, file_stamp, file_state
from uqeval.unicode_names import in_one_spelling

FORMATS = ("PNG", "JPEG", "BMP", "TIFF", "WEBP", "PPM")
#: The EXIF tag of the orientation: 1 is upright, 5 to 8 swap height and width.
_ORIENTATION = 0x112
#: Pillow's modes with at most 8 bits per channel.
_MODES = frozenset({"1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr"})


class ImageFolder:
    """Images below a folder, in natural order of their names, which are their paths without the
    suffix.

    Pillow decodes them without EXIF rotation, except TIFF; grey and palettes become RGB, and alpha
    is dropped. Raises `StoreError` if there are no images, or two with the same name.
    """

    sequential = False
    arrays: tuple[StoredArray, ...] = ()
    store: Store | None = None

    def __init__(self, folder: Path) -> None:
        by_name: dict[str, str] = {}
        for file in files_below(folder, IMAGES):
            name = file.rpartition(".")[0]
            if (duplicate := by_name.setdefault(name, file)) != file:
                raise StoreError(
                    f"{cut(folder)}: {duplicate} and {cut(file)} are both the frame "
                    f"{quoted(name)}. Remove one."
                )
        if not by_name:
            raise StoreError(
                f"{cut(folder)} holds no images; expected frames as {', '.join(IMAGES)} files. "
                "Check the path."
            )
        names = tuple(sorted(by_name, key=natural))
        self.where = cut(folder)
        self.names: tuple[str, ...] | None = in_one_spelling(names)
        self._folder = folder
        self._files = [by_name[name] for name in names]  # paths would take long for many files

    def __len__(self) -> int:
        return len(self._files)

    def size(self, i: int) -> tuple[int, int]:
        """Return height and width from the file's header. Raises `StoreError`."""
        with self._opened(i) as image:
            return image.height, image.width

    def read(self, i: int) -> NDArray[np.uint8]:
        """Return frame `i` as [y, x, 3], read-only. Raises `StoreError`."""
        with self._opened(i) as image:
            self._check(i, image.mode, image.width, image.height)
            # Pillow warns if a palette with transparent colours is converted to RGB directly.
            clear = image.mode in ("P", "PA") and "transparency" in image.info
            if image.mode != "RGB":
                image = (image.convert("RGBA") if clear else image).convert("RGB")
            return np.asarray(image)

    def single_channel(self, i: int) -> NDArray[np.uint8] | None:
        """Return frame `i` [y, x] before it becomes RGB: grey values, or a palette's indices.

        None for a frame of several channels. Raises `StoreError`.
        """
        with self._opened(i) as image:
            self._check(i, image.mode, image.width, image.height)
            return np.asarray(image, np.uint8) if image.mode in ("1", "L", "P") else None

    def orientation(self, i: int) -> int:
        """Return the EXIF orientation of frame `i`, which is not applied; 1 without one, and of
        TIFF, to which Pillow applies it. Raises `StoreError`."""
        with self._opened(i) as image:
            own = 1 if image.format == "TIFF" else image.getexif().get(_ORIENTATION, 1)
            return own if own in range(1, 9) else 1

    @contextmanager
    def _opened(self, i: int) -> Iterator[Any]:
        """Open the image of frame `i` for decoding inside the context. Raises `StoreError`."""
        from PIL import Image

        try:
            data = io.BytesIO(image_bytes(self._path(i)))
            with Image.open(data, formats=FORMATS) as image:
                yield image
        except StoreError:
            raise
        except Exception as error:  # Pillow raises OSError, SyntaxError, ValueError, struct.error …
            raise StoreError(
                f"{self._path(i)} is not an image, or it is damaged or cut short "
                f"({undecoded(error)}). Copy it again."
            ) from error

    def _path(self, i: int) -> Path:
        return self._folder / self._files[i]

    def where_of(self, i: int) -> str:
        """Return the file."""
        return str(self._path(i))

    def fingerprint(self) -> str:
        """Return SHA-256 of the files' names, sizes and times of change."""
        digest = hashlib.sha256()
        for i, name in enumerate(self.names or ()):
            digest.update(file_digest(self._path(i), name).encode())
        return digest.hexdigest()

    def stamp(self, i: int) -> str | None:
        """Return a stamp of the frame's file, and of the version of its decoder."""
        import PIL

        return combined_stamp([file_stamp(self._path(i))], PIL.__version__)

    def states(self, i: int) -> dict[str, str]:
        """Return the state of the frame's file."""
        return {str(self._path(i)): file_state(self._path(i))}

    def _check(self, i: int, mode: str, width: int, height: int) -> None:
        if mode not in _MODES:
            raise StoreError(
                f"{self._path(i)} has pixels of more than 8 bits (Pillow's mode {mode}); a frame "
                "is 8-bit grey or RGB. Scale the frames to 0 … 255 and save them again."
            )
        check_pixels(self._path(i), width, height, 3)


def turned(frames: Any, i: int, least: int = 2) -> str:
    """Return a warning if the EXIF orientation of frame `i` is `least` or more, else an empty text.

    Raises `StoreError`.
    """
    own = frames.orientation(i) if isinstance(frames, ImageFolder) else 1
    if own < least:
        return ""
    return (
        f"{frames.where_of(i)} has the EXIF orientation {own}. "
        "Viewers and OpenCV turn such images; "
        "uqeval and Pillow read the pixels as they are stored, so predictions from turned frames "
        "do not fit. Turn the frames, by exiftran -ai *.jpg or by Pillow's ImageOps.exif_transpose "
        "and save; if the predictions fit, remove the EXIF tag."
    )
