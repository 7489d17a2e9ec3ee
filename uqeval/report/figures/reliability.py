"""Reliability diagrams: accuracy over confidence, with the number of pixels in each bin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from uqeval.keys import Key
from uqeval.report.figures import style
from uqeval.report.figures.contract import Figure, Line, lines_with
from uqeval.report.figures.curves import counts, diagonal, format_number, fractions, scores
from uqeval.report.page.items_behind_cell import anchor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas


def figures(lines: list[Line]) -> Iterator[Figure]:
    """Yield one diagram: bars with their gaps for one line, curves for several."""
    plotted = lines_with(lines, "reliability")
    if not plotted:
        return
    lists = ""
    if len(plotted) > 1 and len({id(line.report) for line in plotted}) == 1:
        # Bins of several curves lie above each other: a click could not tell which one it means.
        regions = any(Key.parse(line.key).region for line in plotted)
        one = "without --region" if regions else "with one setting"
        lists = f" To see the items of each bin, evaluate {one}: the diagram then has one curve."
    summary = scores(plotted, {"ECE": "ece", "MCE": "mce"})
    yield Figure(
        "reliability",
        "Reliability diagram",
        f"Accuracy over confidence in bins, with the number of pixels of each. {summary}.",
        "On the diagonal, confidence equals accuracy; below it the model is over-confident. The "
        "lower panel shows the pixels per bin (logarithmic). Bins with few pixels are unreliable."
        + lists,
        (5.6, 6.0),
        lambda canvas: draw(canvas, plotted),
        links="a report counts bins over all items together, so these are the items with the worst "
        "scores"
        if len(plotted) == 1
        else "",
        behind=plotted[0].key if len(plotted) == 1 else "",
    )


def draw(
    canvas: Canvas, lines: Sequence[Line], label: str = "accuracy", *, has_links: bool = True
) -> None:
    """Draw the accuracy (`label`) of bins over their confidence, and their pixels below.

    `has_links`: bins link to their items on a page.
    """
    upper, lower = canvas.subplots(2, 1, sharex=True, height_ratios=(3.4, 1))
    diagonal(upper)
    upper.annotate("over-confident", (0.97, 0.05), ha="right", fontsize=8, color=style.BAD)
    upper.annotate("under-confident", (0.03, 0.93), fontsize=8, color=style.SOFT)
    upper.fill_between([0, 1], [0, 1], 0, color=style.BAD, alpha=0.06, linewidth=0)
    if len(lines) == 1:
        _bars(upper, lines[0], has_links)
    for line in lines:
        r = line.record["reliability"]
        occupied = [j for j, n in enumerate(r["count"]) if n]
        upper.plot(
            [r["confidence"][j] for j in occupied], [r["accuracy"][j] for j in occupied],
            f"o{line.dashes}", color=line.colour, markersize=4, linewidth=1.4,
            label=line.label,
        )  # fmt: skip
        if len(lines) > 1 or not has_links:  # else bins are links with their values
            _titles(upper, line, occupied, label)
        lower.stairs(
            r["count"], [*r["lower"], r["upper"][-1]], color=line.colour,
            fill=len(lines) == 1, alpha=0.6 if len(lines) == 1 else 1.0, linewidth=1.4,
        )  # fmt: skip
    fractions(upper)
    upper.set_ylabel(label)
    if any(sum(line.record["reliability"]["count"]) for line in lines):
        counts(lower)
    lower.set_xlabel("confidence")
    style.legend(canvas, upper)


def _titles(axes: Axes, line: Line, occupied: Sequence[int], label: str) -> None:
    """Show accuracy, confidence and pixels of each bin under the pointer."""
    r = line.record["reliability"]
    for j in occupied:
        x, y = r["confidence"][j], r["accuracy"][j]
        text = f"{label} {format_number(y)} at confidence {format_number(x)}"
        style.hovered(axes, x, y, f"{line.label}: {text}, {r['count'][j]:,} pixels")


def _bars(axes: Axes, line: Line, has_links: bool) -> None:
    """Draw the bins of a line, and the gap between accuracy and confidence of each."""
    r = line.record["reliability"]
    columns = zip(r["lower"], r["upper"], r["confidence"], r["accuracy"], strict=True)
    for i, (low, high, mean, accuracy) in enumerate(columns):
        if accuracy is None:
            continue
        wide = (high - low) * 0.94
        url = f"#{anchor(line.report, line.key, i)}" if has_links else None
        axes.bar((low + high) / 2, accuracy, wide, color=line.colour, alpha=0.28, url=url)
        axes.bar(
            (low + high) / 2, abs(mean - accuracy), wide, min(mean, accuracy), fill=False,
            edgecolor=style.BAD if mean > accuracy else style.SOFT, hatch="////", linewidth=0.7,
            url=url,
        )  # fmt: skip
