"""Scores by class, as bars."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from uqeval.report.figures import style
from uqeval.report.figures.contract import Figure, Line, lines_with, of_whole_images
from uqeval.report.figures.curves import draw_bars, format_number, tall

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from uqeval.metrics import ClassBars, Panel

#: No figure with more classes than this, because it is not readable; the table has all.
MOST = 60


def figures(family: str, bars: ClassBars, lines: list[Line]) -> Iterator[Figure]:
    """Yield the bars of a family, if a line has scores by class, and not too many.

    Regions have no bars; their scores by class are in tables.
    """
    plotted = _named_alike(lines_with(of_whole_images(lines), "per_class"))
    rows = [row for line in plotted for row in line.record["per_class"]]
    names = list(dict.fromkeys(str(row["display_name"]) for row in rows))
    panels = [panel for panel in bars.panels if any(panel.field in row for row in rows)]
    if not panels or len(names) > MOST:
        return
    intervals = any(any(_ends(line, names, panel.field)) for line in plotted for panel in panels)
    yield Figure(
        f"{family}-classes",
        f"{bars.title} by class",
        f"{panels[0].title} of {len(names)} classes, {plotted[0].label}."
        f"{_extremes(plotted[0], panels[0].field)}",
        "Lines: confidence intervals." if intervals else "",
        (8.2, min(tall(len(names), len(plotted)), 16.0)),
        lambda canvas: _draw(canvas, plotted, names, panels),
    )


def _extremes(line: Line, field: str) -> str:
    """Return a text with the classes of the lowest and the highest value."""
    ranked = [
        (row[field], row["display_name"])
        for row in line.record["per_class"]
        if row.get(field) is not None
    ]
    if not ranked:
        return ""
    (low, lowest), (high, highest) = min(ranked), max(ranked)
    return f" Lowest: {lowest} {format_number(low)}. Highest: {highest} {format_number(high)}."


def _named_alike(lines: Sequence[Line]) -> list[Line]:
    """Return the lines, with a `display_name` in each row of a class.

    Classes are paired by name, as in `uqeval compare`. Where a report has no names, the name that
    the other reports have for the id is used.
    """
    names: dict[str, dict[str, None]] = {}
    for line in lines:
        for row in line.record["per_class"]:
            if str(row["name"]) != str(row["class"]):
                names.setdefault(str(row["class"]), {})[str(row["name"])] = None
    renamed = []
    for line in lines:
        names_in_line = {str(row["name"]) for row in line.record["per_class"]}
        rows = []
        for row in line.record["per_class"]:
            display_name, class_names = str(row["name"]), list(names.get(str(row["class"]), ()))
            if (
                display_name == str(row["class"])
                and len(class_names) == 1
                and class_names[0] not in names_in_line
            ):
                display_name = class_names[0]
            rows.append(row | {"display_name": display_name})
        renamed.append(dataclasses.replace(line, record=line.record | {"per_class": rows}))
    return renamed


def _draw(
    canvas: Canvas, lines: Sequence[Line], names: Sequence[str], panels: Sequence[Panel]
) -> None:
    axes = canvas.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for panel, declared in zip(axes, panels, strict=True):
        field, mark = declared.field, declared.mark
        # The name of the line is in the title: beside the line, it would cross bars or the title.
        title = declared.title if mark is None else f"{declared.title} (line: {mark[1]})"
        draw_bars(
            panel, lines, names, lambda line, f=field: _column(line, names, f),
            lambda line, f=field: _ends(line, names, f), title,
        )  # fmt: skip
        if mark is not None:
            panel.axvline(mark[0], color=style.SOFT, linewidth=1.0)
        values = [v for line in lines for v in _column(line, names, field) if v is not None]
        values += [v for line in lines for ends in _ends(line, names, field) if ends for v in ends]
        if values and min(values) >= 0 and 0.25 < max(values) <= 1:
            panel.set_xlim(0, 1)
    style.legend(canvas, axes[0])


def _column(line: Line, names: Sequence[str], field: str) -> list[float | None]:
    values = {str(row["display_name"]): row.get(field) for row in line.record["per_class"]}
    return [values.get(name) for name in names]


def _ends(line: Line, names: Sequence[str], field: str) -> list[tuple[float, float] | None]:
    values = {
        str(row["display_name"]): line.class_interval(row, field)
        for row in line.record["per_class"]
    }
    return [values.get(name) for name in names]
