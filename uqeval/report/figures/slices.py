"""The first scores of each family by slice, with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uqeval.glossary import headlines
from uqeval.records.intervals import interval
from uqeval.report.figures import style
from uqeval.report.figures.contract import Figure, Line, panel_label, panel_title
from uqeval.report.figures.curves import format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

#: No figure with more slices than this, because it is not readable; the table has all.
MOST = 60
_COLUMNS = 3


def figure(
    families: Mapping[str, Sequence[Line]], slices: Mapping[str, Any], first: tuple[str, str] | None
) -> Figure | None:
    """Return one panel per headline, with one point per slice and line; None if it is empty.

    `first`: the family and the field of the score that the findings name. It is the first of its
    family.
    """
    slices = {name: record for name, record in slices.items() if record.get("results")}
    if not 0 < len(slices) <= MOST:
        return None
    panels: list[tuple[Sequence[Line], str]] = []
    grid: list[tuple[Sequence[Line], str] | None] = []  # a family begins a new row
    for family, lines in families.items():
        known = [f for f in headlines(family) if _has_values(lines, f, slices)]
        named = [field for field in known if (family, field) == first]
        fields = [*named, *(field for field in known if field not in named)][:_COLUMNS]
        panels += (record := [(lines, field) for field in fields])
        grid += [*record, *[None] * (-len(record) % _COLUMNS)]
    if not panels:
        return None
    rows = len(grid) // _COLUMNS
    summary = ""
    lines, field = panels[0]
    ranked = [
        (v, name)
        for name, record in slices.items()
        if (v := _value(record, lines[0], field)) is not None
    ]
    if ranked:
        (low, lowest), (high, highest) = min(ranked), max(ranked)
        summary = (
            f" {panel_label(lines, field)}: lowest {format_number(low)} of {lowest}, "
            f"highest {format_number(high)} of {highest}."
        )
    small = any(record.get("small") for record in slices.values())
    has_intervals = any(record.get("intervals") for record in slices.values())
    return Figure(
        "slices",
        "Headline scores by slice",
        f"{len(panels)} scores of {len(slices)} slices.{summary}",
        "Dashed: all items."
        + (" Lines: confidence intervals." if has_intervals else "")
        + (" Hollow: a slice of few units." if small else ""),
        (8.2, rows * (0.75 + 0.24 * max(len(slices), 2)) + 0.3),
        lambda canvas: _draw(canvas, grid, rows, slices),
    )


def _value(slice_record: Mapping[str, Any], line: Line, field: str) -> float | None:
    value = slice_record["results"].get(line.key, {}).get(field)
    return value if isinstance(value, int | float) else None


def _has_values(lines: Sequence[Line], field: str, slices: Mapping[str, Any]) -> bool:
    return any(
        _value(slice_record, line, field) is not None
        for line in lines
        for slice_record in slices.values()
    )


def _draw(
    canvas: Canvas,
    grid: Sequence[tuple[Sequence[Line], str] | None],
    rows: int,
    slices: Mapping[str, Any],
) -> None:
    axes = list(canvas.subplots(rows, _COLUMNS, sharey=True, squeeze=False).flat)
    for panel, plotted_panel in zip(axes, grid, strict=True):
        if plotted_panel is None:
            panel.set_visible(False)
            continue
        lines, field = plotted_panel
        for i, line in enumerate(lines):
            _points(panel, line, field, slices, (i - (len(lines) - 1) / 2) * 0.6 / len(lines))
        panel.set_title(panel_title(lines, field))
        panel.set_yticks(range(len(slices)), [style.short(name) for name in slices])
        panel.set_ylim(len(slices) - 0.5, -0.5)
        panel.tick_params(axis="y", length=0)
        panel.margins(x=0.08)
        panel.locator_params(axis="x", nbins=4)
        panel.ticklabel_format(axis="x", useOffset=False)
    style.legend(canvas, max(axes, key=lambda panel: len(panel.get_legend_handles_labels()[1])))


def _points(panel: Axes, line: Line, field: str, slices: Mapping[str, Any], shift: float) -> None:
    colour = line.colour
    if (of_all_items := line.record.get(field)) is not None:
        panel.axvline(of_all_items, color=colour, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
    for y, slice_record in enumerate(slices.values()):
        value = _value(slice_record, line, field)
        if value is None:
            continue
        if ends := interval(slice_record.get("intervals") or {}, line.key, field.split(".")):
            panel.plot([ends["low"], ends["high"]], [y + shift] * 2, color=colour, linewidth=1.6)
        panel.plot(
            [value],
            [y + shift],
            "o",
            color=colour,
            markersize=5.5,
            markerfacecolor=style.PAPER if slice_record.get("small") else colour,
        )
    panel.plot([], [], "o-", color=colour, label=line.label)
