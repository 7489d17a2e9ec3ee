"""The first scores of each family side by side, with their intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from uqeval.glossary import headlines, no_meaning
from uqeval.keys import family_of
from uqeval.report.figures import style
from uqeval.report.figures.contract import Figure, Line, of_whole_images, panel_label, panel_title
from uqeval.report.figures.curves import format_number
from uqeval.report.tables.table import format_number as rounded

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

#: The lines of a family, and one of their fields.
_Panel: TypeAlias = "tuple[Sequence[Line], str]"

_COLUMNS = 3
#: Width of the scale of a panel, and where its values end; the next panel begins at 1.
_WIDTH, _VALUES = 0.68, 0.92
#: Height of the title of a panel, in rows.
_HEADING = 1.4


def figure(families: Mapping[str, Sequence[Line]]) -> Figure | None:
    """Return one panel per headline with one point per line; None without a comparison."""
    rows: list[list[_Panel]] = []
    for family, lines in families.items():
        for field in _fields(family, lines):
            if not any(line.record.get(field) is not None for line in lines) or (
                len(lines) == 1 and not lines[0].interval(field)
            ):
                continue
            if not rows or len(rows[-1]) == _COLUMNS or _names(rows[-1][0][0]) != _names(lines):
                rows.append([])
            rows[-1].append((lines, field))
    if not rows:
        return None
    panels = [panel for row in rows for panel in row]
    summary = "; ".join(
        f"{panel_label(lines, field)}: "
        + ", ".join(f"{line.label} {format_number(line.record.get(field))}" for line in lines)
        for lines, field in panels[:8]
    )
    empty = {
        f" {panel_label(lines, field)} is not meaningful in {line.label}: {reason}."
        for lines, field in panels
        for line in lines
        if (reason := no_meaning(line.key, field))
    }
    intervals = any(line.interval(field) for lines, field in panels for line in lines)
    return Figure(
        "headlines",
        "Headline scores",
        f"{summary}.",
        "The arrow points to better values. "
        + _scales(panels)
        + (" Bars: confidence intervals." if intervals else "")
        + "".join(sorted(empty)),
        (8.2, 0.1 + 0.25 * sum(_HEADING + len(row[0][0]) for row in rows)),
        lambda canvas: _draw(canvas, rows),
    )


def _names(lines: Sequence[Line]) -> list[str]:
    """Return the names of lines, which the panels of a row share."""
    return [line.label for line in lines]


def _fields(family: str, lines: Sequence[Line]) -> Sequence[str]:
    """Return the headlines of a family; only the first if lines are of regions."""
    fields = headlines(family)
    return fields if len(of_whole_images(lines)) == len(lines) else fields[:1]


def _draw(canvas: Canvas, rows: Sequence[Sequence[_Panel]]) -> None:
    # One axes and few calls: axes and their ticks take most of the time to draw.
    axes = canvas.subplots()
    places: list[float] = []
    names: list[str] = []
    points: list[_Point] = []
    top = _HEADING
    for row in rows:
        own = [style.short(name, 18) for name in _names(row[0][0])]
        for left, (lines, field) in enumerate(row):
            title = panel_title(lines, field)
            axes.text(left, top - 0.75, title, weight="bold", size=9.5, in_layout=False)
            points += _points(lines, field, left, top)
            if any(line.interval(field) for line in lines):
                _write_ends(axes, left, top + len(own), _scale(lines, field))
        places += [top + i for i in range(len(own))]
        names += own
        top += len(own) + _HEADING
    axes.set_yticks(places, names)
    axes.set_ylim(top - _HEADING - 0.1, 0)
    axes.set_xlim(-0.03, _COLUMNS)
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    y, colours = [point.y for point in points], [point.colour for point in points]
    lefts = [point.left for point in points]
    axes.hlines(y, lefts, [left + _WIDTH for left in lefts], style.GRID, lw=0.6, zorder=0.5)
    lows, highs = [point.low for point in points], [point.high for point in points]
    axes.hlines(y, lows, highs, colours, linewidth=1.6)
    axes.scatter([point.x for point in points], y, 36, colours, zorder=2.5)
    for point in points:
        style.hovered(axes, point.x, point.y, point.text)
        axes.text(
            point.left + _VALUES, point.y, point.value, ha="right", va="center", size=8,
            in_layout=False,
        )  # fmt: skip


class _Point(NamedTuple):
    """A score and the ends of its interval, on the scale of a panel that begins at x = `left`.

    `value` is written beside it, `text` is shown under the pointer.
    """

    left: float
    y: float
    low: float
    x: float
    high: float
    colour: str
    value: str
    text: str


def _points(lines: Sequence[Line], field: str, left: float, top: float) -> Iterator[_Point]:
    """Yield the points of a panel on its scale."""
    lowest, highest = _scale(lines, field)

    def place(value: float) -> float:
        return left + _WIDTH * (value - lowest) / ((highest - lowest) or 1.0)

    for i, line in enumerate(lines):
        if (value := line.record.get(field)) is None:
            continue
        text = f"{panel_label(lines, field)}, {line.label}: {format_number(value)}"
        if interval := line.interval(field):
            text += f", interval {' to '.join(map(format_number, interval))}"
        low, high = interval or (value, value)
        yield _Point(
            left, top + i, place(low), place(value), place(high), line.colour, rounded(value),
            text,
        )  # fmt: skip


def _scales(panels: Sequence[_Panel]) -> str:
    """Return what the scales of the panels are, as a sentence."""
    if any(len(lines) > 1 for lines, _ in panels):
        return "Each score has its own scale."
    return (
        "The scale of each score is that of its possible values; if these have no end, it ends "
        "at 0 or at the interval."
    )


def _scale(lines: Sequence[Line], field: str) -> tuple[float, float]:
    """Return the ends of the scale of a panel. Several lines fill it. A single one has the range of
    the metric, and 0 or its own end where that has none: else any interval fills the scale."""
    lowest, highest = _ends(lines, field)
    if len(lines) > 1:
        return lowest, highest
    metric = lines[0].report.metrics.get(f"{family_of(lines[0].key)}.{field}") or {}
    low, high = metric.get("range") or (None, None)
    return min(lowest, 0.0 if low is None else low), max(highest, 0.0 if high is None else high)


def _ends(lines: Sequence[Line], field: str) -> tuple[float, float]:
    """Return the lowest and the highest of the scores and the ends of their intervals."""
    values = [line.record[field] for line in lines if line.record.get(field) is not None]
    values += [end for line in lines for end in line.interval(field) or ()]
    return min(values), max(values)


def _write_ends(axes: Axes, left: float, below: float, ends: tuple[float, float]) -> None:
    """Write the ends of a scale under it; without intervals, they are values of two points."""
    for x, end, side in zip((left, left + _WIDTH), _texts(ends), ("left", "right"), strict=True):
        axes.text(
            x, below - 0.4, end, ha=side, va="center", size=7, color=style.SOFT,
            in_layout=False,
        )  # fmt: skip


def _texts(ends: tuple[float, float]) -> list[str]:
    """Return the ends of a scale as texts, whole numbers without decimals. Near 1 they have four,
    unlike a score, which is never rounded to 1; but not if both would have the same text."""
    texts = [
        f"{end:g}" if end == round(end) else f"{end:.4f}" if 0.5 < abs(end) < 1.5 else rounded(end)
        for end in ends
    ]
    return texts if texts[0] != texts[1] else list(map(rounded, ends))
