"""Colours, and arrays of pixels as pictures."""

from __future__ import annotations

import colorsys
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Array, np
from uqeval.disk.suffixes import IMAGES
from uqeval.errors import StoreError, UsageError, cut
from uqeval.report.page.gallery import Meanings, Picture
from uqeval.stores.files.image_file import image_bytes
from uqeval.stores.matching import match_some, warnings_of_folders
from uqeval.stores.names import files_below
from uqeval.stores.video.image_folder import FORMATS

if TYPE_CHECKING:
    from PIL.Image import Image

#: Cityscapes' colours of its 19 classes; more classes continue around the colour wheel.
_CITYSCAPES = (
    (128, 64, 128), (244, 35, 232), (70, 70, 70), (102, 102, 156), (190, 153, 153),
    (153, 153, 153), (250, 170, 30), (220, 220, 0), (107, 142, 35), (152, 251, 152),
    (70, 130, 180), (220, 20, 60), (255, 0, 0), (0, 0, 142), (0, 0, 70), (0, 60, 100),
    (0, 80, 100), (0, 0, 230), (119, 11, 32),
)  # fmt: skip
#: Colours for few classes, which are easier to distinguish.
_FEW = (
    (70, 130, 180), (158, 90, 60), (240, 200, 60), (128, 64, 128), (244, 35, 232), (60, 140, 50),
    (220, 220, 0), (190, 153, 153), (0, 60, 200), (220, 20, 60), (0, 190, 190), (255, 140, 0),
)  # fmt: skip
VOID, HIDDEN = (30, 30, 34), (150, 156, 163)
RIGHT, WRONG = (205, 210, 216), (200, 30, 40)
_WIDEST = 480


def colours(classes: int) -> list[tuple[int, int, int]]:
    """Return a colour for each class."""
    palette: Sequence[tuple[int, int, int]] = _FEW if classes <= len(_FEW) else _CITYSCAPES
    colour_list = list(palette[:classes])
    for i in range(len(colour_list), classes):
        hue = (i * 0.618033988749895) % 1
        r, g, b = colorsys.hsv_to_rgb(hue, 0.55 + 0.4 * (i % 2), 0.95 - 0.25 * (i % 3))
        colour_list.append((round(255 * r), round(255 * g), round(255 * b)))
    return colour_list


def css(colour: tuple[int, int, int]) -> str:
    """Return a colour in CSS: `#rrggbb`."""
    return f"#{colour[0]:02x}{colour[1]:02x}{colour[2]:02x}"


def heat(
    title: str,
    values: Array,
    name: str,
    ends: tuple[float, float] | None = None,
    void: Array | None = None,
) -> Picture:
    """Return a map as a picture, from dark (least) to bright (greatest)."""
    from uqeval.report.figures.style import ramp

    finite = values[np.isfinite(values)]
    low, high = ends or ((0.0, float(finite.max())) if finite.size else (0.0, 1.0))
    scaled = np.nan_to_num((values - low) / ((high - low) or 1.0), posinf=1.0)
    pixels = ramp()[(scaled.clip(0, 1) * 255).astype(np.uint8)]
    if void is not None:
        pixels[void] = HIDDEN
    return replace(
        painted(
            f"{title}, {low:.3g} (dark) … {high:.3g}",
            pixels,
            f"{title} of {name}, bright is high.",
            () if void is None else ((css(HIDDEN), "not evaluated"),),
        ),
        scale=(low, high),
    )


def painted(title: str, pixels: Array, alt: str, meanings: Meanings = ()) -> Picture:
    """Return pixels [y, x, 3], uint8 RGB, as a PNG of at most 480 columns; do not interpolate.

    `meanings`: CSS colours of categories, and their meanings.
    """
    from PIL import Image

    image = Image.fromarray(pixels)
    shape = image.size
    if image.width > _WIDEST:
        size = (_WIDEST, max(1, round(image.height * _WIDEST / image.width)))
        image = image.resize(size, Image.Resampling.NEAREST)
    png = _png(image.quantize(256) if len(image.getcolors(256) or ()) else image)
    return Picture(title, png, alt, meanings=meanings, shape=shape)


def photo(images: dict[str, Path], name: str) -> list[Picture]:
    """Return the item's own image, if a file has its name. Raises `StoreError` for a bad file."""
    from PIL import Image, UnidentifiedImageError

    if name not in images:
        return []
    path = images[name]
    try:
        with Image.open(io.BytesIO(image_bytes(path)), formats=FORMATS) as stored:
            shape = stored.size
            stored.draft("RGB", (_WIDEST, 4 * _WIDEST))  # a JPEG is decoded at a smaller size
            image = _eight_bits(stored).convert("RGB")
    except StoreError:
        raise
    except UnidentifiedImageError:
        raise StoreError(
            f"{cut(path)} is damaged, or not an image of the formats {', '.join(FORMATS)}. Copy "
            "it again, or save it as PNG."
        ) from None
    except Image.DecompressionBombError as error:
        raise StoreError(
            f"{cut(path)} is too large to be shown ({cut(error)}). Save a smaller one."
        ) from None
    except Exception as error:  # Pillow raises OSError, SyntaxError, ValueError, struct.error …
        reason = getattr(error, "strerror", None) or error
        raise StoreError(
            f"{cut(path)} cannot be read as an image: {cut(reason)}. Copy it again."
        ) from None
    image.thumbnail((_WIDEST, 4 * _WIDEST))
    return [Picture("image", _png(image), f"The image {name}.", shape=shape)]


def _eight_bits(image: Image) -> Image:
    """Return an image of 16 or 32 bits from its darkest (0) to its brightest value (255), others
    unchanged.
    """
    if not image.mode.startswith(("I", "F")):
        return image
    from PIL import Image

    values = np.asarray(image).astype(np.float64)
    known = values[np.isfinite(values)]
    low, high = (known.min(), known.max()) if known.size else (0.0, 0.0)
    scaled = np.nan_to_num((values - low) / ((high - low) or 1) * 255, nan=0, posinf=255, neginf=0)
    return Image.fromarray(scaled.round().astype(np.uint8))


def images_of(folder: str | Path | None, names: Sequence[str]) -> dict[str, Path]:
    """Return the images below a folder by the names of their items.

    Raises `UsageError` if the path is not a folder; `StoreError` if no item has an image, if an
    item has several, if an image fits several items, and if the folder cannot be listed.
    """
    if folder is None:
        return {}
    if not Path(folder).is_dir():
        raise UsageError(
            f"images {cut(folder)} is not a folder of images; expected one with files named as "
            "the items. Correct the path, or leave it out."
        )
    files = files_below(folder, IMAGES)
    files_of_names = match_some(folder, files, names, "image")
    return {name: Path(folder) / file for name, file in files_of_names.items()}


def warnings_of_images(folder: str | Path | None, images: Mapping[str, Path]) -> list[str]:
    """Return a warning if items may be in another sequence than their `images_of` the folder."""
    if folder is None:
        return []
    files = {name: path.relative_to(folder).as_posix() for name, path in images.items()}
    return warnings_of_folders(folder, files, "image")


def _png(image: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()
