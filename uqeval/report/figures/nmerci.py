"""n-MeRCI over its percentile α, and by interval of the target."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from uqeval.report.figures import style
from uqeval.report.figures.contract import Figure, Line, lines_with
from uqeval.report.figures.curves import counts, format_number, hover, numbers, reference

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas


def figures(lines: list[Line]) -> Iterator[Figure]:
    """Yield the curve over α, and the scores by depth if the report has them."""
    plotted = lines_with(lines, "curve")
    summary = "; ".join(
        f"{line.label}: n-MeRCI {format_number(line.record['nmerci'])} at α = "
        f"{line.record['alpha']:g}"
        for line in lines
    )
    if plotted:
        yield Figure(
            "nmerci-alpha",
            "n-MeRCI over α",
            f"n-MeRCI over the percentile α. {summary}.",
            "0: the uncertainty equals the error. 1: it is as good as a constant; above 1: worse. "
            "Dot: the α in use. Gaps: undefined. Above the line, the scale is logarithmic.",
            (6.6, 3.6),
            lambda canvas: _over_alpha(canvas, plotted),
        )
    deep = lines_with(lines, "by_depth")
    if deep:
        yield Figure(
            "nmerci-depth",
            "By interval of the target",
            f"n-MeRCI and trimmed mean error by interval of the target. {summary}.",
            "Each interval has its own percentiles. Gaps: undefined. Arrows: values off the axis.",
            (7.6, 5.2),
            lambda canvas: _by_depth(canvas, deep),
        )


def _ideals(axes: Axes) -> None:
    reference(axes, 0.0, "ideal", style.GOOD)
    reference(axes, 1.0, "a constant uncertainty")


def _over_alpha(canvas: Canvas, lines: Sequence[Line]) -> None:
    axes = canvas.subplots()
    values: list[float] = []
    top = 2.0
    for line in lines:
        r = line.record
        axes.plot(
            r["curve"]["alpha"],
            numbers(r["curve"]["nmerci"]),
            line.dashes,
            color=line.colour,
            label=line.label,
        )
        hover(
            axes, r["curve"]["alpha"], numbers(r["curve"]["nmerci"]), line.label,
            "n-MeRCI {1} at α = {0}",
        )  # fmt: skip
        values += [v for v in r["curve"]["nmerci"] if v is not None]
        if r["nmerci"] is not None:
            top = max(top, 1.5 * r["nmerci"])
            axes.plot([r["alpha"]], [r["nmerci"]], "o", color=line.colour, markersize=6)
    _ideals(axes)
    if values and max(values) > top:
        _logarithmic_above(axes, top, values)
    defined = [
        alpha
        for line in lines
        for alpha, value in zip(*line.record["curve"].values(), strict=True)
        if value is not None
    ]
    axes.set_xlim(max(min(defined, default=2) - 2, 0), 101)
    axes.set_xlabel("α (percentile)")
    axes.set_ylabel("n-MeRCI")
    style.legend(canvas, axes)


def _logarithmic_above(axes: Axes, top: float, values: Sequence[float]) -> None:
    """Set an axis that is linear up to `top`, at two thirds of its height, then logarithmic."""
    from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

    greatest = max(values)
    decades = math.log10(greatest / top)
    axes.set_yscale("symlog", linthresh=top, linscale=2 * max(decades, 0.3))
    axes.set_ylim(min(-0.1, *values), greatest * 1.1)
    ticks = [t for t in MaxNLocator(4).tick_values(0, top) if 0 <= t <= top]
    first = math.ceil(math.log10(top))
    above = [10.0**k for k in range(first, math.floor(math.log10(greatest)) + 1)]
    axes.yaxis.set_major_locator(FixedLocator([*ticks, *(t for t in above if t > 1.2 * top)]))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.axhline(top, color=style.SOFT, linewidth=0.8, linestyle=":")


def _by_depth(canvas: Canvas, lines: Sequence[Line]) -> None:
    points: list[tuple[float, float, str]] = []
    upper, middle, lower = canvas.subplots(3, 1, sharex=True, height_ratios=(2, 1.4, 1))
    for line in lines:
        rows: list[dict[str, Any]] = line.record["by_depth"]
        x = [(row["lower"] + row["upper"]) / 2 for row in rows]
        look: dict[str, Any] = {"color": line.colour, "markersize": 4}
        form = f"o{line.dashes}"
        scores = numbers([r["nmerci"] for r in rows])
        upper.plot(x, scores, form, label=line.label, **look)
        points += zip(x, scores, [line.colour] * len(x), strict=True)
        middle.plot(x, numbers([r["mae_trimmed"] for r in rows]), form, **look)
        edges = [rows[0]["lower"], *(r["upper"] for r in rows)]
        lower.stairs(
            [r["pixels"] for r in rows],
            edges,
            color=line.colour,
            fill=len(lines) == 1,
            alpha=0.6 if len(lines) == 1 else 1.0,
        )
    _cut_axis(upper, points, [line.record["nmerci"] or 0.0 for line in lines])
    _ideals(upper)
    upper.set_ylabel("n-MeRCI")
    middle.set_ylabel("MAE trimmed")
    middle.set_ylim(bottom=0)
    counts(lower)
    lower.set_xlabel("target (in its unit)")
    canvas.align_ylabels()
    style.legend(canvas, upper)


def _cut_axis(
    axes: Axes, points: Sequence[tuple[float, float, str]], whole_scores: Sequence[float]
) -> None:
    """Cut the axis below outliers, and write their values at the edge."""
    defined = [y for _, y, _ in points if y == y]
    top = max(2.0, *(1.5 * v for v in whole_scores), 2 * median(defined)) if defined else 2.0
    if max(defined, default=0.0) <= 1.5 * top:  # no outliers: the whole axis is readable
        return
    axes.set_ylim(min(-0.1, *defined), top)
    for x, y, colour in points:
        if y > top:
            axes.annotate(
                f"↑ {y:.3g}", (x, top), xytext=(4, -4), textcoords="offset points", va="top",
                fontsize=8, color=colour,
            )  # fmt: skip
