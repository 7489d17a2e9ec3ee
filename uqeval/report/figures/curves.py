"""Helpers that several figures share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uqeval.report.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from uqeval.report.figures.contract import Line


def numbers(values: Sequence[float | None]) -> list[float]:
    """Return the values with NaN, which is drawn as a gap, for undefined ones."""
    return [float("nan") if value is None else value for value in values]


def format_number(value: Any) -> str:
    """Return a number as text; "undefined" for None."""
    if value is None:
        return "undefined"
    return f"{value + 0.0:.4g}" if isinstance(value, float) else str(value)  # not -0


def scores(lines: Sequence[Line], fields: Mapping[str, str]) -> str:
    """Return the scores of each line as text; `fields`: fields by the names to show."""
    return "; ".join(
        f"{line.label}: "
        + ", ".join(f"{name} {format_number(line.record[field])}" for name, field in fields.items())
        for line in lines
    )


def fractions(axes: Axes, y: bool = True) -> None:
    """Set axes from 0 to 1, with a margin for lines at 0 and 1."""
    axes.set_xlim(-0.01, 1.01)
    if y:
        axes.set_ylim(-0.03, 1.03)


def reference(axes: Axes, y: float, text: str, colour: str = style.SOFT) -> None:
    """Draw a horizontal reference line with its name at the right end."""
    axes.axhline(y, color=colour, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
    axes.annotate(
        text, (1, y), xycoords=("axes fraction", "data"), xytext=(-2, 3),
        textcoords="offset points", ha="right", va="bottom", fontsize=7.5, color=colour,
    )  # fmt: skip


#: Points of a curve that show their values under the pointer.
HOVERED = 40


def hover(axes: Axes, x: Sequence[float], y: Sequence[float], name: str, words: str) -> None:
    """Show the values of a curve under the pointer, at about `HOVERED` places along x.

    `words` names both values: `coverage {}, risk {}`.
    """
    from uqeval.report.tables.table import format_number as rounded

    if not style.is_on_page(axes) or not len(x):
        return
    width = (x[-1] - x[0]) / HOVERED
    last = -math.inf
    for i, (place, value) in enumerate(zip(x, y, strict=True)):
        if not math.isfinite(value) or (place < last + width and i < len(x) - 1):
            continue
        last = place
        text = f"{name}: {words.format(rounded(place), rounded(value))}"
        style.hovered(axes, place, value, text)


def diagonal(axes: Axes, low: float = 0.0, high: float = 1.0) -> None:
    """Draw the line on which both axes are equal."""
    axes.plot([low, high], [low, high], color=style.SOFT, linewidth=1.0, linestyle=(0, (4, 3)))


def counts(axes: Axes) -> None:
    """Set a logarithmic y axis for counts with plain tick labels: 1, 100, 10k."""
    from matplotlib.ticker import EngFormatter, NullFormatter

    axes.set_yscale("log")
    axes.set_ylim(bottom=0.7)
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylabel("pixels")


def logarithmic(axes: Axes) -> None:
    """Set logarithmic axes with plain tick labels: 0.01, 1, 100."""
    from matplotlib.ticker import NullFormatter, StrMethodFormatter

    axes.loglog()
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())


def draw_bars(
    axes: Axes, lines: Sequence[Line], names: Sequence[str], values: Any, ends: Any, title: str
) -> None:
    """Draw horizontal bars for each name, one for each line, the first name at the top.

    `values(line)` gives a value or None for each name, `ends(line)` its interval or None.
    """
    thick = 0.8 / len(lines)
    for i, line in enumerate(lines):
        where = [n + (i - (len(lines) - 1) / 2) * thick for n in range(len(names))]
        bar_values = values(line)
        bars = axes.barh(
            where,
            [v or 0.0 for v in bar_values],
            thick * 0.9,
            color=line.colour,
            label=line.label,
        )
        for bar, name, value in zip(bars, names, bar_values, strict=True):
            style.titled(bar, f"{name}, {line.label}: {format_number(value)}")
        for y, value, bar_ends in zip(where, bar_values, ends(line), strict=True):
            if bar_ends:
                axes.plot(bar_ends, [y, y], color=style.INK, linewidth=1.0)
            if value is None:
                axes.annotate(
                    "undefined", (0, y), xytext=(3, 0), textcoords="offset points",
                    va="center", fontsize=7, color=style.SOFT, style="italic",
                )  # fmt: skip
    axes.set_yticks(range(len(names)), [style.short(name) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    axes.set_title(title)


def tall(names: int, lines: int) -> float:
    """Return the height of a figure of bars in inches, with title and axis."""
    return 1.1 + names * max(0.24, 0.12 * lines + 0.06)
