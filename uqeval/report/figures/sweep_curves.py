"""Curves for each number of samples M: all drawn subsets, and their mean."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uqeval.report.figures import style
from uqeval.report.figures.contract import Figure, Line
from uqeval.report.figures.curves import counts, diagonal, format_number, numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_COLUMNS = 3


@dataclass(frozen=True)
class _Curve:
    """A curve of a family: `y` over `x`, fields of a sweep's results.

    `score`: its summary. `dashed`: another curve to show with it, such as an oracle. `diagonal`:
    whether the curve should be the diagonal. `count`: pixels at each point.
    """

    name: str
    title: str
    x: str
    y: str
    axes: tuple[str, str]
    score: str
    caption: str
    dashed: str = ""
    diagonal: bool = False
    count: str = ""


_CURVES = (
    _Curve(
        "sweep-sparsification", "Sparsification over M", "sparsification.fractions",
        "sparsification.curve", ("fraction removed", "error left"), "sparsification.ause",
        "Dashed: the oracle, which removes the most wrong first.", "sparsification.oracle",
    ),
    _Curve(
        "sweep-sparsification-error", "Sparsification error over M", "sparsification.fractions",
        "sparsification.error_curve", ("fraction removed", "curve - oracle"),
        "sparsification.ause", "The area below a curve is its AUSE.",
    ),
    _Curve(
        "sweep-calibration", "Calibration of the intervals over M", "regression.calibration.p",
        "regression.calibration.observed", ("nominal coverage p", "observed coverage"),
        "regression.auce", "Below the diagonal: over-confident.", diagonal=True,
    ),
    _Curve(
        "sweep-reliability", "Reliability over M", "calibration.reliability.confidence",
        "calibration.reliability.accuracy", ("confidence", "accuracy"), "calibration.ece",
        "Below the diagonal: over-confident. Lower panels: pixels of a bin, mean of the draws.",
        diagonal=True, count="calibration.reliability.count",
    ),
)  # fmt: skip


def figures(lines: list[Line]) -> Iterator[Figure]:
    """Yield one figure for each curve that a report has."""
    for curve in _CURVES:
        plotted = [line for line in lines if _has_curve(line, curve)]
        if plotted:
            yield _figure(curve, plotted)


def _has_curve(line: Line, curve: _Curve) -> bool:
    """Return whether any drawn subset of a line has this curve."""
    groups = line.record.get(curve.y, {"values": []})["values"]
    return any(values is not None for group in groups for values in group)


def _figure(curve: _Curve, lines: list[Line]) -> Figure:
    ms = sorted({m for line in lines for m in line.record[curve.y]["m"]})
    panels = len(ms) + len(lines)
    rows = math.ceil(panels / _COLUMNS)
    summary = "; ".join(
        f"{line.label}: {curve.score.rpartition('.')[2]} "
        + ", ".join(
            f"{format_number(mean)} at M = {m}"
            for m, mean in zip(
                line.record[curve.score]["m"], line.record[curve.score]["mean"], strict=True
            )
        )
        for line in lines
    )
    return Figure(
        curve.name,
        curve.title,
        f"{curve.axes[1]} over {curve.axes[0]}, for each number of samples M. {summary}.",
        f"Thin: each drawn subset of M samples; thick: their mean. {curve.caption}"
        + _without_curve(curve, lines),
        (8.2, 0.5 + rows * (2.9 if curve.count else 2.2)),
        lambda canvas: _draw(canvas, curve, lines, ms, rows),
    )


def _without_curve(curve: _Curve, lines: Sequence[Line]) -> str:
    """Return a sentence with the number of subsets without this curve; empty if all have it."""
    counts_of_lines = []
    for line in lines:
        record = line.record[curve.y]
        name = f"{line.label}, " if len(lines) > 1 else ""
        counts_of_lines += [
            f"{name}{group.count(None)} of {len(group)} at M = {m}"
            for m, group in zip(record["m"], record["values"], strict=True)
            if None in group
        ]
    return f" Subsets without a curve: {'; '.join(counts_of_lines)}." if counts_of_lines else ""


def _draw(
    canvas: Canvas, curve: _Curve, lines: Sequence[Line], ms: Sequence[int], rows: int
) -> None:
    uppers, lowers = _panels(canvas, bool(curve.count), rows)
    highest = [0.0]
    for panel, m in zip(uppers, ms, strict=False):
        for line in lines:
            highest.append(_of_draws(panel, curve, line, m))
        panel.set_title(f"M = {m}")
    for panel, line in zip(uppers[len(ms) :], lines, strict=False):
        _of_means(panel, curve, line)
        panel.set_title(f"means, {style.short(line.label, 22)}" if len(lines) > 1 else "means")
    for panel, m in zip(lowers, ms, strict=False):
        for line in lines:
            _counts(panel, curve, line, m)
    panel_count = len(ms) + len(lines)
    for n, panel in enumerate(uppers):
        panel.set_visible(n < panel_count)
        panel.set_xlim(-0.01, 1.01)
        top = 1.03 if curve.diagonal else 1.05 * (max(highest) or 1.0)
        panel.set_ylim(-0.03 * top, top)
        if n % _COLUMNS == 0:
            panel.set_ylabel(curve.axes[1])
        if curve.diagonal:
            diagonal(panel)
    for n, panel in enumerate(lowers or uppers):
        if n + _COLUMNS >= panel_count or lowers:
            panel.set_xlabel(curve.axes[0])
    for n, panel in enumerate(lowers):
        panel.set_visible(n < len(ms))
        panel.set_xlim(-0.01, 1.01)
        if n % _COLUMNS:
            panel.set_ylabel("")
    # A line without a curve at some M has no label there.
    labels = [len(panel.get_legend_handles_labels()[1]) for panel in uppers[: len(ms)]]
    style.legend(canvas, uppers[labels.index(max(labels))])


def _panels(canvas: Canvas, has_counts: bool, rows: int) -> tuple[list[Axes], list[Axes]]:
    """Return the panels of curves, and the panels of counts below them."""
    if not has_counts:
        return list(canvas.subplots(rows, _COLUMNS, squeeze=False).flat), []
    grid: Any = canvas.subplots(2 * rows, _COLUMNS, squeeze=False, height_ratios=[2.6, 1] * rows)
    return list(grid[0::2].flat), list(grid[1::2].flat)


def _draws(line: Line, curve: _Curve, field: str, m: int) -> list[list[float]]:
    """Return a field of each drawn subset of M samples that has the curve.

    Some fields, such as the removed fractions, are also there without a curve.
    """
    record = line.record[curve.y]
    if m not in record["m"]:
        return []
    place = record["m"].index(m)
    pairs = zip(line.record[field]["values"][place], record["values"][place], strict=True)
    return [numbers(values) for values, points in pairs if points is not None]


def _mean(draws: Sequence[Sequence[float]]) -> list[float]:
    """Return the mean of each point, over the draws in which it is defined."""
    points = [[v for v in point if not math.isnan(v)] for point in zip(*draws, strict=True)]
    return [math.fsum(point) / len(point) if point else math.nan for point in points]


def _of_draws(panel: Axes, curve: _Curve, line: Line, m: int) -> float:
    """Draw all subsets of M samples of a line; return the greatest value."""
    xs, ys = _draws(line, curve, curve.x, m), _draws(line, curve, curve.y, m)
    if not ys:
        return 0.0
    colour = line.colour
    if curve.dashed:
        oracle = _mean(_draws(line, curve, curve.dashed, m))
        panel.plot(_mean(xs), oracle, color=colour, linewidth=1.1, linestyle=(0, (4, 2)))
    for x, y in zip(xs, ys, strict=True):
        panel.plot(x, y, color=colour, linewidth=0.6, alpha=0.45)
    panel.plot(_mean(xs), _mean(ys), line.dashes, color=colour, label=line.label)
    return max((v for y in ys for v in y if not math.isnan(v)), default=0.0)


def _of_means(panel: Axes, curve: _Curve, line: Line) -> None:
    """Draw the means of all M of a line, from dark (few samples) to bright (many)."""
    from matplotlib import colormaps

    ms = line.record[curve.y]["m"]
    for n, m in enumerate(ms):
        colour = colormaps["viridis"](0.85 * n / max(len(ms) - 1, 1))
        draws = _draws(line, curve, curve.y, m)
        if draws:
            panel.plot(
                _mean(_draws(line, curve, curve.x, m)), _mean(draws), color=colour, linewidth=1.3,
                label=f"M = {m}",
            )  # fmt: skip
    panel.legend(fontsize=6.5, handlelength=1.2, labelspacing=0.25, borderaxespad=0.1)


def _counts(panel: Axes, curve: _Curve, line: Line, m: int) -> None:
    """Draw the mean number of pixels of each bin."""
    draws = _draws(line, curve, curve.count, m)
    if not draws:
        return
    prefix = curve.count.rpartition(".")[0]
    lower, upper = (_draws(line, curve, f"{prefix}.{end}", m)[0] for end in ("lower", "upper"))
    panel.stairs(_mean(draws), [*lower, upper[-1]], color=line.colour, linewidth=1.2)
    counts(panel)
