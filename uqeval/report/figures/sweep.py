"""Metrics over the number of samples M: the mean over drawn subsets, with a band of ± std."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from uqeval.report.figures import style
from uqeval.report.figures.contract import Figure, Line
from uqeval.report.figures.curves import format_number, numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

_COLUMNS = 3


def figures(lines: list[Line]) -> Iterator[Figure]:
    """Yield one panel per metric of which high or low values are better."""
    names = [
        name
        for name in dict.fromkeys(name for line in lines for name in line.record)
        if any((line.report.metrics.get(name) or {}).get("direction") for line in lines)
        and any(_drawable(line, name) for line in lines)
    ]
    if not names:
        return
    summary = "; ".join(
        f"{name}: {format_number(r['mean'][0])} at M = {r['m'][0]}, "
        f"{format_number(r['mean'][-1])} at M = {r['m'][-1]}"
        for name in names[:6]
        if (r := lines[0].record.get(name))
    )
    columns = min(_COLUMNS, len(names))
    rows = math.ceil(len(names) / columns)
    yield Figure(
        "sweep",
        "Scores over the number of samples",
        f"{len(names)} metrics over the number of samples M. {summary}.",
        "Band: ± one standard deviation over the drawn subsets; none if all samples are used. The "
        "arrow points to better values.",
        (8.2, 0.5 + 2.0 * rows) if columns == _COLUMNS else (1.6 + 3.2 * columns, 3.4),
        lambda canvas: _draw(canvas, lines, names, (rows, columns)),
    )


def _drawable(line: Line, name: str) -> bool:
    mean = (line.record.get(name) or {}).get("mean") or []
    return any(isinstance(value, int | float) for value in mean)


def _draw(
    canvas: Canvas, lines: Sequence[Line], names: Sequence[str], shape: tuple[int, int]
) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

    axes = list(canvas.subplots(*shape, sharex=True, squeeze=False).flat)
    for panel, name in zip(axes, names, strict=False):
        ms: set[int] = set()
        for line in lines:
            if not _drawable(line, name):
                continue
            r, colour = line.record[name], line.colour
            mean, std = numbers(r["mean"]), numbers(r["std"])
            low = [m - s for m, s in zip(mean, std, strict=True)]
            high = [m + s for m, s in zip(mean, std, strict=True)]
            panel.fill_between(r["m"], low, high, color=colour, alpha=0.2, linewidth=0)
            panel.plot(
                r["m"], mean, f"o{line.dashes}", color=colour, markersize=4, label=line.label
            )
            ms |= set(r["m"])
        direction = next(
            line.report.metrics[name]["direction"] for line in lines if name in line.report.metrics
        )
        panel.set_title(f"{name} {'↑' if direction == 'higher' else '↓'}", fontsize=7.5)
        panel.set_xscale("log", base=2)
        panel.xaxis.set_major_locator(FixedLocator(sorted(ms)))
        panel.xaxis.set_minor_locator(NullLocator())
        panel.xaxis.set_major_formatter(ScalarFormatter())
        panel.margins(y=0.15)
    for unused in axes[len(names) :]:
        unused.set_visible(False)
    for n, panel in enumerate(axes[: len(names)]):
        if n + shape[1] >= len(names):
            panel.set_xlabel("samples M")
            panel.tick_params(labelbottom=True)
    style.legend(canvas, axes[0])
