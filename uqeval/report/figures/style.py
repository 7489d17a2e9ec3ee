"""The style of figures, and their rendering to files and pages."""

from __future__ import annotations

import html
import io
import re
import warnings
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from uqeval.errors import printable
from uqeval.report.figures.colours import SERIES

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from uqeval.report.figures.contract import Figure

#: Colours of roles on white; a page replaces each by its CSS variable of that name.
INK, SOFT, GRID, PAPER = "#1c2128", "#59636e", "#d5dae0", "#fefefe"
GOOD, BAD = "#117733", "#b3261e"
VARIABLES = {
    INK: "--ink", SOFT: "--soft", GRID: "--rule", PAPER: "--paper", GOOD: "--good", BAD: "--bad",
    **{colour: f"--series-{i}" for i, colour in enumerate(SERIES, 1)},
}  # fmt: skip

#: A title has a fixed place: to find one above all ticks takes a tenth of the time to draw.
_RC: Any = {
    "font.family": "DejaVu Sans", "font.size": 9.0, "axes.titlesize": 9.5, "axes.labelsize": 9.0,
    "xtick.labelsize": 8.0, "ytick.labelsize": 8.0, "legend.fontsize": 8.0,
    "axes.titlelocation": "left", "axes.titleweight": "bold", "axes.titlepad": 7.0,
    "axes.titley": 1.0,
    "text.color": INK, "axes.labelcolor": INK, "axes.titlecolor": INK, "axes.edgecolor": SOFT,
    "xtick.color": SOFT, "ytick.color": SOFT, "xtick.labelcolor": INK, "ytick.labelcolor": INK,
    "axes.linewidth": 0.8, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "axes.axisbelow": True, "grid.color": GRID, "grid.linewidth": 0.6,
    "lines.linewidth": 1.8, "lines.solid_capstyle": "round", "legend.frameon": False,
    "axes.facecolor": "none", "hatch.linewidth": 0.6, "text.parse_math": False,
    "svg.fonttype": "none", "pdf.fonttype": 42, "axes.formatter.use_mathtext": False,
    "axes.unicode_minus": True, "path.simplify_threshold": 0.2,
}  # fmt: skip


def legend(canvas: Canvas, axes: Axes, least: int = 2) -> None:
    """Draw one legend above all panels, for the labelled lines of one of them."""
    handles, labels = axes.get_legend_handles_labels()
    if len(handles) >= least:
        longest = max(map(len, labels)) + 6
        columns = max(1, min(len(labels), int(canvas.get_figwidth() * 13 / longest)))
        canvas.legend(handles, labels, loc="outside upper left", ncols=columns)


def short(text: str, most: int = 24) -> str:
    """Return a name shortened to `most` characters, to fit next to an axis."""
    text = printable(text)
    return text if len(text) <= most else f"{text[: most - 1]}…"


#: Prefix of the address of a mark that has a text for the pointer, and no link.
_TITLE = "title:"


def titled(mark: Artist, text: str) -> None:
    """Show a text under the pointer at this mark, on pages only."""
    if is_on_page(mark):
        mark.set_url(_TITLE + quote(printable(text)))


def is_on_page(artist: Artist) -> bool:
    """Return whether a part of a figure is drawn on a page, and not in a file."""
    return getattr(artist.get_figure(), "hover_marks", None) is not None


def hovered(axes: Axes, x: float, y: float, text: str, item: int | None = None) -> None:
    """Show a text under the pointer at a point, on pages only; `item`: the index of its item."""
    if is_on_page(axes):
        axes.get_figure().hover_marks.append((axes, x, y, text, item))  # type: ignore[union-attr]


def render(figure: Figure, form: str) -> bytes:
    """Return the figure as a file: `svg`, `png` or `pdf`, on white; the same bits each time."""
    return _drawn(figure, form, on_page=False)[0]


def _drawn(figure: Figure, form: str, on_page: bool) -> tuple[bytes, Canvas]:
    import matplotlib as mpl
    from matplotlib.backend_bases import get_registered_canvas_class
    from matplotlib.figure import Figure as Canvas
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    title, alt = printable(figure.title), printable(figure.alt)
    metadata: dict[str, Any] = {
        "svg": {"Date": None, "Creator": None, "Title": title, "Description": alt},
        "pdf": {"CreationDate": None, "Creator": None, "Producer": None, "Title": title},
        "png": {"Software": None, "Title": title, "Description": alt},
    }
    buffer = io.BytesIO()
    with mpl.rc_context(_RC | {"svg.hashsalt": figure.name}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        canvas = Canvas(figsize=figure.size, dpi=200 if form == "png" else 72)
        get_registered_canvas_class(form)(canvas)
        # Marks of `hovered`. Hundreds of artists would take most of the time.
        canvas.hover_marks = [] if on_page else None  # type: ignore[attr-defined]
        figure.draw(canvas)
        # To find places for labels next to all ticks takes a tenth of the time to draw.
        for axis in (axis for axes in canvas.axes for axis in (axes.xaxis, axes.yaxis)):
            if not axis.get_label_text():
                axis.set_label_coords(0, 0)
        # With a layout engine, matplotlib would draw twice, once to find the layout.
        if any(axes.get_subplotspec() for axes in canvas.axes):
            ConstrainedLayoutEngine().execute(canvas)
        canvas.savefig(buffer, format=form, dpi=200, facecolor="white", metadata=metadata[form])
    return buffer.getvalue(), canvas


def inline_svg(
    figure: Figure, targets: Collection[str] = (), titles: Mapping[str, str] | None = None
) -> str:
    """Return the figure as an <svg> with the colours and the font of the page.

    A mark links to its own anchor if that is in the page's `targets`, else to "worst", else to
    nothing. The links are for a mouse; the page has the same links in lists, for the keyboard.
    """
    drawn, canvas = _drawn(figure, "svg", on_page=True)
    text = drawn.decode("utf-8")
    text = text[text.index("<svg") :]
    for part in (r"<metadata>.*?</metadata>", r"<style .*?</style>", r"<title>.*?</title>"):
        text = re.sub(part, "", text, flags=re.DOTALL)
    # Ids of groups repeat from figure to figure; those that are referred to hold a hash.
    text = re.sub(r'<g id="[A-Za-z0-9.]+_\d+"(?=[ />])', "<g", text)
    # The first patch is the white ground.
    text = re.sub(r'<g>\s*<path [^>]*style="fill: #ffffff"/>\s*</g>', "", text, count=1)
    text = re.sub(r' width="[\d.]+pt" height="[\d.]+pt"', "", text, count=1)
    text = re.sub(r"'DejaVu Sans'[^;\"]*", "var(--font)", text)
    for value, variable in VARIABLES.items():
        text = text.replace(value, f"var({variable})")
    text = re.sub(
        r'<a xlink:href="#([^"]*)"[^>]*>(.*?)</a>',
        lambda match: _link(match[1], match[2], targets, titles or {}),
        text,
        flags=re.DOTALL,
    )
    text = re.sub(
        rf'<a xlink:href="{_TITLE}([^"]*)"[^>]*>(.*?)</a>',
        lambda match: f"<g><title>{html.escape(unquote(match[1]))}</title>{match[2]}</g>",
        text,
        flags=re.DOTALL,
    )
    text = text.replace("xlink:href", "href").strip()
    return text.removesuffix("</svg>") + "".join(_hover_circles(canvas)) + "</svg>"


def _hover_circles(canvas: Canvas) -> Iterator[str]:
    """Yield a transparent circle with a text for each mark inside its axes.

    Marks of items are in a group that names the upper and the lower edge of the axes: the line of a
    page's slider ends there.
    """
    marks_of_axes: dict[Axes, list[tuple[float, float, str, int | None]]] = {}
    for axes, *mark in canvas.hover_marks:  # type: ignore[attr-defined]
        marks_of_axes.setdefault(axes, []).append(tuple(mark))
    for axes, marks in marks_of_axes.items():
        # All points of the axes at once: one by one takes a tenth of the time to draw.
        points = axes.transData.transform([(x, y) for x, y, *_ in marks]).tolist()
        box = axes.bbox.padded(1)
        of_items = any(item is not None for *_, item in marks)
        if of_items:
            upper, lower = canvas.bbox.height - axes.bbox.y1, canvas.bbox.height - axes.bbox.y0
            yield f'<g class="moments" data-upper="{upper:.1f}" data-lower="{lower:.1f}">'
        for (right, up), (*_, text, item) in zip(points, marks, strict=True):
            if not box.contains(right, up):
                continue
            of_item = "" if item is None else f' data-item="{item}"'
            title = html.escape(printable(text))
            yield (
                f'<circle class="hover"{of_item} cx="{right:.1f}" '
                f'cy="{canvas.bbox.height - up:.1f}" r="4"><title>{title}</title></circle>'
            )
        if of_items:
            yield "</g>"


def _link(target: str, mark: str, targets: Collection[str], titles: Mapping[str, str]) -> str:
    where = next((place for place in (target, "worst") if place in targets), None)
    if where is None:
        return mark
    title = html.escape(printable(titles.get(where, "the worst items")))
    return f'<a tabindex="-1" href="#{where}"><title>{title}</title>{mark}</a>'


def ramp() -> Any:
    """Return 256 RGB colours from dark to bright for maps, also for colour-blind readers: [256, 3],
    uint8."""
    from matplotlib import colormaps

    rgba: Any = 255 * colormaps["inferno"](range(256))
    return rgba[:, :3].round().astype("u1")
