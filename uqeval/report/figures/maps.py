"""Pictures of one item as a figure: maps of one or several models side by side."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from uqeval.errors import printable
from uqeval.report.figures import style
from uqeval.report.figures.contract import Figure
from uqeval.report.page.gallery import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

#: Sizes in inches, and the largest number of columns.
_WIDTH, _COLUMNS, _TITLE, _HEAD, _GAP, _NAME = 8.2, 4, 0.19, 0.19, 0.1, 0.32
#: A rectangle in fractions of the picture: y0, y1, x0, x1.
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Strip:
    """Pictures that belong together, such as those of one model; `title` is above the first."""

    title: str
    pictures: Sequence[Picture]


def figure(name: str, title: str, strips: Sequence[Strip], boxes: Sequence[Box] = ()) -> Figure:
    """Return the strips below each other; strips of a single picture side by side.

    `boxes` are drawn on every picture.
    """
    rows = _rows(strips)
    columns = max(map(len, rows))
    width = _WIDTH / columns
    heights = [_height(row, width) for row in rows]
    words = "; ".join(
        f"{strip.title or 'shared'}: {', '.join(picture.title for picture in strip.pictures)}"
        for strip in strips
    )
    return Figure(
        name,
        title,
        f"Maps of {printable(title)}. {printable(words)}.",
        "Bright is high. Each map has its own scale, given in its title.",
        (_WIDTH, _NAME + sum(heights)),
        lambda canvas: _draw(canvas, title, rows, columns, heights, boxes),
    )


_Cell = tuple[str, Picture]


def _rows(strips: Sequence[Strip]) -> list[list[_Cell]]:
    """Return rows of at most four pictures, each with the title of its strip if it is the first."""
    rows: list[list[_Cell]] = []
    singles: list[_Cell] | None = None
    for strip in strips:
        cells = [
            (strip.title if n == 0 else "", picture) for n, picture in enumerate(strip.pictures)
        ]
        if len(cells) == 1 and singles is not None and len(singles) < _COLUMNS:
            singles += cells
            continue
        wide = -(-len(cells) // -(-len(cells) // _COLUMNS))  # 5 pictures: 3 and 2, not 4 and 1
        rows += [cells[n : n + wide] for n in range(0, len(cells), wide)]
        singles = rows[-1] if len(cells) == 1 else None
    return rows


def _height(row: Sequence[_Cell], width: float) -> float:
    """Return the height of a row in inches: its highest picture with its titles."""
    tallest = max(picture.size[1] / picture.size[0] for _, picture in row)
    ranges = any(_range(picture) for _, picture in row)
    heads = any(head for head, _ in row)
    return tallest * (width - _GAP) + _TITLE + _TITLE * 0.7 * ranges + _HEAD * heads + _GAP


def _range(picture: Picture) -> str:
    """Return the second line of a picture's title: the range of its scale."""
    return picture.title.partition(", ")[2]


def _draw(
    canvas: Canvas,
    title: str,
    rows: Sequence[Sequence[_Cell]],
    columns: int,
    heights: Sequence[float],
    boxes: Sequence[Box],
) -> None:
    """Place all pictures at their size. Matplotlib's layouts would move them for long titles."""
    inches = canvas.get_figheight()
    canvas.text(
        _GAP / 2 / _WIDTH, 1 - 0.06 / inches, printable(title), va="top", fontsize=9.5,
        fontweight="bold",
    )  # fmt: skip
    width = _WIDTH / columns
    bottom = inches - _NAME
    for cells, height in zip(rows, heights, strict=True):
        bottom -= height
        has_ranges = any(_range(picture) for _, picture in cells)
        for n, (head, picture) in enumerate(cells):
            wide, high = picture.size
            tall = (width - _GAP) * high / wide
            axes = canvas.add_axes(
                (
                    (n * width + _GAP / 2) / _WIDTH, (bottom + _GAP) / inches,
                    (width - _GAP) / _WIDTH, tall / inches,
                )
            )  # fmt: skip
            _show(axes, head, picture, boxes, int(17 * width), has_ranges)


def _show(
    axes: Axes,
    head: str,
    picture: Picture,
    boxes: Sequence[Box],
    letters: int,
    has_ranges: bool,
) -> None:
    """Draw a picture, its titles and the boxes; `has_ranges`: titles of the row have two lines."""
    from matplotlib.image import imread
    from matplotlib.patches import Rectangle

    pixels = imread(io.BytesIO(picture.png), format="png")
    wide, high = picture.size
    axes.imshow(pixels, interpolation="none", aspect="auto")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(visible=True, color=style.GRID, linewidth=0.6)
    line, points, size = picture.title.partition(", ")[0], 3.0, 7.5
    texts = [(_range(picture), size - 0.5, style.SOFT, "normal")] if has_ranges else []
    texts += [(style.short(line, letters), size, style.INK, "normal")]
    texts += [(printable(head), size + 1, style.INK, "bold")] if head else []
    for text, points_high, colour, weight in texts:
        axes.annotate(
            text, (0, 1), (0, points), xycoords="axes fraction", textcoords="offset points",
            fontsize=points_high, color=colour, fontweight=weight, annotation_clip=False,
            va="bottom",
        )  # fmt: skip
        points += points_high + 3.0
    for y0, y1, x0, x1 in boxes:
        axes.add_patch(
            Rectangle(
                (x0 * wide - 0.5, y0 * high - 0.5), (x1 - x0) * wide,
                (y1 - y0) * high, fill=False, edgecolor="#ffd400", linewidth=1.6,
            )
        )  # fmt: skip
