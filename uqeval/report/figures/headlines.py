"""The first scores of each family side by side, with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from uqeval.glossary import headlines
from uqeval.report.figures import style
from uqeval.report.figures.contract import Figure, Line, of_whole_images, panel_label, panel_title
from uqeval.report.figures.curves import format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_COLUMNS = 3


def figure(families: Mapping[str, Sequence[Line]]) -> Figure | None:
    """Return one panel per headline with one point per line; None without a comparison."""
    panels: list[tuple[Sequence[Line], str]] = []
    #: Panels of a row share the names of its lines: a family with other lines begins a new row.
    grid: list[tuple[Sequence[Line], str] | None] = []
    names: list[str] = []
    for family, lines in families.items():
        row_panels = [
            (lines, field)
            for field in _fields(family, lines)
            if any(line.record.get(field) is not None for line in lines)
            and (len(lines) > 1 or any(line.interval(field) for line in lines))
        ]
        if row_panels and (own := [line.label for line in lines]) != names:
            grid += [None] * (-len(grid) % _COLUMNS)
            names = own
        panels += row_panels
        grid += row_panels
    if not panels:
        return None
    rows = -(-len(grid) // _COLUMNS)
    most = max(len(lines) for lines, _ in panels)
    summary = "; ".join(
        f"{panel_label(lines, field)}: "
        + ", ".join(f"{line.label} {format_number(line.record.get(field))}" for line in lines)
        for lines, field in panels[:8]
    )
    intervals = any(line.interval(field) for lines, field in panels for line in lines)
    return Figure(
        "headlines",
        "Headline scores",
        f"{summary}.",
        "The arrow points to better values."
        + (" Bars: confidence intervals." if intervals else ""),
        (8.2, 0.3 + rows * (0.85 + 0.22 * most)),
        lambda canvas: _draw(canvas, grid, rows),
    )


def _fields(family: str, lines: Sequence[Line]) -> Sequence[str]:
    """Return the headlines of a family; only the first if lines are of regions."""
    fields = headlines(family)
    return fields if len(of_whole_images(lines)) == len(lines) else fields[:1]


def _draw(canvas: Canvas, grid: Sequence[tuple[Sequence[Line], str] | None], rows: int) -> None:
    cells = canvas.add_gridspec(rows, _COLUMNS)
    for n, plotted_panel in enumerate(grid):
        if plotted_panel is None:
            continue
        panel = canvas.add_subplot(cells[divmod(n, _COLUMNS)])
        lines, field = plotted_panel
        _points(panel, lines, field)
        panel.set_title(panel_title(lines, field))
        # Ticks take most of the time to draw: only the first panel of a row names the lines.
        if n % _COLUMNS == 0:
            panel.set_yticks(range(len(lines)), [style.short(line.label, 18) for line in lines])
        else:
            panel.set_yticks([])
            across = panel.get_yaxis_transform()
            panel.hlines(range(len(lines)), 0, 1, style.GRID, lw=0.6, zorder=0.5, transform=across)
        panel.set_ylim(len(lines) - 0.5, -0.5)
        panel.tick_params(axis="y", length=0)
        panel.margins(x=0.15)
        panel.locator_params(axis="x", nbins=4)
        panel.ticklabel_format(axis="x", useOffset=False)


def _points(panel: Axes, lines: Sequence[Line], field: str) -> None:
    """Draw the score of each line with its interval, from top to bottom."""
    rows = [i for i, line in enumerate(lines) if line.record.get(field) is not None]
    colours = [style.colour(i) for i in rows]
    values = [lines[i].record[field] for i in rows]
    ends = [
        lines[i].interval(field) or (value, value) for i, value in zip(rows, values, strict=True)
    ]
    lows, highs = zip(*ends, strict=True)
    panel.hlines(rows, lows, highs, colours, linewidth=1.6)
    panel.scatter(values, rows, 36, colours, zorder=2.5)
    for i, value in zip(rows, values, strict=True):
        text = f"{panel_label(lines, field)}, {lines[i].label}: {format_number(value)}"
        if interval := lines[i].interval(field):
            text += f", interval {' to '.join(map(format_number, interval))}"
        style.hovered(panel, value, i, text)
