"""Accuracy by predicted class and percentile of uncertainty (Ma et al. 2024, Figures 4 and 5)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from uqeval.report.figures import style
from uqeval.report.figures.classes import MOST
from uqeval.report.figures.contract import Figure, Line, of_whole_images
from uqeval.report.figures.curves import format_number, numbers
from uqeval.report.page.items_behind_cell import anchor

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas


def figures(lines: list[Line]) -> Iterator[Figure]:
    """Yield one heat map per line; none for regions, and none for several reports."""
    lines = of_whole_images(lines)
    if len({id(line.report) for line in lines}) > 1:
        return
    for n, line in enumerate(lines):
        table = line.record.get("accuracy_by_uncertainty")
        if not table or not table["rows"] or len(table["rows"]) > MOST:
            continue
        rows = table["rows"]
        known = [
            (a, row["name"], i)
            for row in rows
            for i, a in enumerate(row["accuracy"])
            if a is not None
        ]
        worst = min(known, default=None)
        summary = (
            f" Least: {worst[1]} in the interval {worst[2] + 1} of {len(rows[0]['accuracy'])}, "
            f"{format_number(worst[0])}." if worst else ""
        )  # fmt: skip
        yield Figure(
            f"accuracy-by-uncertainty{f'-{n + 1}' if n else ''}",
            f"Accuracy by class and uncertainty ({line.label})",
            f"Heat map of {len(rows)} predicted classes by intervals of uncertainty.{summary}",
            "Rows: predicted class; columns: intervals of equal numbers of pixels, from certain to "
            "uncertain. If the uncertainty is good, rows darken to the right. Empty: no pixel.",
            (8.2, 1.2 + 0.27 * len(rows)),
            partial(_draw, line),
            links="a report counts cells over all items together, so these are the items with the "
            "worst scores",
            behind=line.key,
        )


def _draw(line: Line, canvas: Canvas) -> None:
    table = line.record["accuracy_by_uncertainty"]
    rows = table["rows"]
    values = [numbers(row["accuracy"]) for row in rows]
    columns = len(values[0])
    axes = canvas.subplots()
    # One rectangle per cell, so that each can have a link.
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    colours = colormaps["cividis"]
    for y, row in enumerate(values):
        for x, value in enumerate(row):
            if value != value:
                continue
            url = f"#{anchor(line.report, line.key, y, x)}"
            axes.add_patch(Rectangle((x, y), 1, 1, facecolor=colours(value), linewidth=0, url=url))
            axes.text(
                x + 0.5, y + 0.5, _percent(value), ha="center", va="center",
                fontsize=7.5, url=url, color="#ffffff" if value < 0.55 else "#000000",
            )  # fmt: skip
    edges = [0.0, *table["percentiles"][: columns - 1], 100.0]
    axes.set_xlim(0, columns)
    axes.set_ylim(len(rows), 0)
    axes.set_xticks(range(columns + 1), [f"{e:g}" for e in edges[: columns + 1]])
    axes.set_yticks([i + 0.5 for i in range(len(rows))],
                    [style.short(str(row["name"])) for row in rows])  # fmt: skip
    axes.set_xlabel("percentile of the pixels' uncertainty")
    axes.set_title("accuracy in %")
    axes.grid(visible=False)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _percent(value: float) -> str:
    """Return percent without rounding up to 100."""
    return f"{100 * value:.0f}" if value in (0.0, 1.0) or value < 0.995 else ">99"
