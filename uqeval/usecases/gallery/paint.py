"""Colours, and arrays of pixels as pictures."""

from __future__ import annotations

import colorsys
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.disk.files import open_file
from uqeval.errors import StoreError, UsageError, cut, quoted
from uqeval.report.page.gallery import Meanings, Picture

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Cityscapes' colours of its 19 classes; more classes continue around the colour wheel.
_CITYSCAPES = (
    (128, 64, 128), (244, 35, 232), (70, 70, 70), (102, 102, 156), (190, 153, 153),
    (153, 153, 153), (250, 170, 30), (220, 220, 0), (107, 142, 35), (152, 251, 152),
    (70, 130, 180), (220, 20, 60), (255, 0, 0), (0, 0, 142), (0, 0, 70), (0, 60, 100),
    (0, 80, 100), (0, 0, 230), (119, 11, 32),
)  # fmt: skip
#: Where two classes of a short list look alike, these are told apart better.
_FEW = (
    (70, 130, 180), (158, 90, 60), (240, 200, 60), (128, 64, 128), (244, 35, 232), (60, 140, 50),
    (220, 220, 0), (190, 153, 153), (0, 60, 200), (220, 20, 60), (0, 190, 190), (255, 140, 0),
)  # fmt: skip
VOID, HIDDEN = (30, 30, 34), (150, 156, 163)
RIGHT, WRONG = (205, 210, 216), (200, 30, 40)
_WIDEST = 480
_IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")


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
    values: NDArray[Any],
    name: str,
    ends: tuple[float, float] | None = None,
    void: NDArray[Any] | None = None,
) -> Picture:
    """Return a map as a picture, from dark (least) to bright (greatest)."""
    import numpy as np

    from uqeval.report.figures.style import ramp

    finite = values[np.isfinite(values)]
    low, high = ends or ((0.0, float(finite.max())) if finite.size else (0.0, 1.0))
    scaled = np.nan_to_num((values - low) / ((high - low) or 1.0), posinf=1.0)
    pixels = np.array(ramp(), np.uint8)[(scaled.clip(0, 1) * 255).astype(np.uint8)]
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


def painted(title: str, pixels: NDArray[Any], alt: str, meanings: Meanings = ()) -> Picture:
    """Return pixels [y, x, 3], uint8 RGB, as a PNG of at most 480 columns; do not interpolate.

    `meanings`: CSS colours of categories, and what they mean.
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
    """Return the item's own image, if a file has its name."""
    from PIL import Image

    path = photo_of(images, name)
    if path is None:
        return []
    try:
        with open_file(path) as file, Image.open(file) as stored:
            image = stored.convert("RGB")
            shape = image.size
    except (OSError, ValueError) as error:
        raise StoreError(f"{cut(path)}: cannot be read as an image: {cut(error)}.") from None
    image.thumbnail((_WIDEST, 4 * _WIDEST))
    return [Picture("image", _png(image), f"The image {name}.", shape=shape)]


def photo_of(images: dict[str, Path], name: str) -> Path | None:
    """Return the file of an item's image among the files of a folder, by stem."""
    return images.get(name) or images.get(Path(name).stem)


def images_of(folder: str | Path | None, names: Sequence[str]) -> dict[str, Path]:
    """Return the images of a folder by stem.

    Raises `UsageError` if it is no folder, or has an image of none of the items.
    """
    if folder is None:
        return {}
    if not Path(folder).is_dir():
        raise UsageError(
            f"images {cut(folder)}: is no folder of images; expected one with files named as the "
            "items. Correct the path, or leave it out."
        )
    files = {p.stem: p for p in sorted(Path(folder).iterdir()) if p.suffix.lower() in _IMAGES}
    if not any(photo_of(files, name) for name in names):
        raise UsageError(
            f"images {cut(folder)}: none of its {len(files)} images is named as an item; the first "
            f"item is {quoted(names[0] if names else '-')}. Name the files as the items, or leave "
            "it out."
        )
    return files


def _png(image: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()
