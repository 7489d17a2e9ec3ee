"""A forest plot: paired differences of models from the baseline, with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING

from uqeval.glossary import label_of
from uqeval.report.figures import colours, style
from uqeval.report.figures.contract import Figure
from uqeval.report.figures.curves import format_number
from uqeval.report.tables.comparison import difference, heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from uqeval.compare import Comparison, Row

#: No figure with more scores than this, because it is not readable; the table has all.
MOST = 40
#: A score whose interval reaches farther from 0 than this many times the median of its unit would
#: hide the others.
_FAR = 8


def figure(comparison: Comparison) -> Figure | None:
    """Return the differences, with an axis for each unit and one for its scores of far wider
    intervals; None if no difference has an interval.

    To the right is better. A filled mark: the models differ after Holm's adjustment for all tests.
    """
    models = [m for m in range(len(comparison.names)) if m != comparison.baseline]
    rows = [row for row in comparison.rows if any(_known(row, m) for m in models)][:MOST]
    if not rows:
        return None
    panels = list(_panels(rows, models))
    base = comparison.names[comparison.baseline]
    lines = [
        f"{row.address}, {comparison.names[m]}: {difference(row.cells[m]).plain}"
        for row in rows
        for m in models
        if _known(row, m)
    ]
    return Figure(
        "differences",
        f"Differences from {base}",
        f"{'; '.join(lines[:8])}.",
        f"Improvement over {base} on the same items; to the right is better. Lines: intervals of "
        "the paired difference. Filled marks: the models differ after the adjustment for all "
        "comparisons (Holm).",
        (7.6, 0.8 + 0.75 * len(panels) + 0.3 * len(rows) * max(1.0, 0.6 * len(models))),
        lambda canvas: _draw(canvas, comparison, panels, models),
    )


def _known(row: Row, model: int) -> bool:
    change = row.cells[model].difference
    return bool(row.direction) and change is not None and change.interval is not None


def _panels(rows: Sequence[Row], models: Sequence[int]) -> Iterator[list[Row]]:
    """Yield the rows of each unit, and those with far wider intervals apart."""
    units: dict[str, list[Row]] = {}
    for row in rows:
        units.setdefault(row.unit, []).append(row)
    for rows_of_unit in units.values():
        reaches = [_reach(row, models) for row in rows_of_unit]
        limit = _FAR * median(reaches)
        is_far = [reach > limit > 0 for reach in reaches]
        for far in (False, True):
            if panel := [row for row, f in zip(rows_of_unit, is_far, strict=True) if f == far]:
                yield panel


def _reach(row: Row, models: Sequence[int]) -> float:
    """Return the largest distance of an end of an interval from 0."""
    changes = (row.cells[m].difference for m in models if _known(row, m))
    intervals = (change.interval for change in changes if change is not None)
    return max(max(abs(i.low), abs(i.high)) for i in intervals if i is not None)


def _draw(
    canvas: Canvas, comparison: Comparison, rows_of_panels: Sequence[list[Row]], models: list[int]
) -> None:
    heights = [len(rows) + 1 for rows in rows_of_panels]
    panels = canvas.subplots(len(rows_of_panels), 1, squeeze=False, height_ratios=heights)
    for axes, rows in zip(panels.flat, rows_of_panels, strict=True):
        for y, row in enumerate(rows):
            for n, model in enumerate(models):
                if _known(row, model):
                    place = y + (n - (len(models) - 1) / 2) * 0.6 / len(models)
                    _draw_difference(axes, row, model, place, comparison.names[model])
        axes.axvline(0, color=style.SOFT, linewidth=1.0)
        axes.set_yticks(range(len(rows)), [style.short(heading(row), 40) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel(_improvement(rows))
        axes.margins(x=0.1)
    if len(models) > 1:
        style.legend(canvas, panels.flat[0])


def _improvement(rows: Sequence[Row]) -> str:
    """Return the label of the axis of scores of one unit."""
    unit = rows[0].unit
    names = {label_of(row.address.key, ".".join(row.address.fields[-1:])) for row in rows}
    if "×" in unit:  # a product is no unit of its own
        return f"improvement of the {names.pop()}" if len(names) == 1 else "improvement"
    return f"improvement ({unit})" if unit not in ("", "1") else "improvement"


def _draw_difference(axes: Axes, row: Row, model: int, y: float, name: str) -> None:
    change = row.cells[model].difference
    assert change is not None and change.interval is not None
    sign = -1 if row.direction == "lower" else 1
    colour = colours.colour(model)  # as in the other figures, which have all models
    ends = [sign * change.interval.low, sign * change.interval.high]
    axes.plot(ends, [y, y], color=colour, linewidth=1.6)
    filled = change.verdict == "differs"
    labelled = name not in axes.get_legend_handles_labels()[1]
    (mark,) = axes.plot(
        [sign * change.value], [y], "o", markersize=6.5, color=colour,
        markerfacecolor=colour if filled else style.PAPER,
        label=name if labelled else f"_{name}",
    )  # fmt: skip
    text = f"{row.address}, {name}: {difference(row.cells[model]).plain}"
    style.titled(mark, f"{text} ({format_number(row.cells[model].value)})")
