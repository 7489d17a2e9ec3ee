"""Conformal prediction: the distribution of the coverage over images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from uqeval.report.figures import style
from uqeval.report.figures.contract import Figure, Line, label_among, lines_by_risk
from uqeval.report.figures.curves import format_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas


def figures(lines: list[Line]) -> Iterator[Figure]:
    """Yield the distribution of the images' coverage, one figure for each risk."""
    for by_risk in lines_by_risk(line for line in lines if _coverages(line)):
        yield _figure(*by_risk)


def _coverages(line: Line) -> list[float]:
    """Return the coverage of each evaluated image, ascending."""
    records = [item.get(line.key, {}) for item in line.report.items]
    losses = [record.get("loss") for record in records]
    return sorted(1 - loss for loss in losses if loss is not None)


def _figure(risk: str, suffix: str, lines: Sequence[Line]) -> Figure:
    summary = "; ".join(
        f"{_label(line, lines)}: mean {format_number(line.record['items']['mean'])}, lowest "
        f"{format_number(line.record['items']['least'])}, images above α "
        f"{format_number(line.record['items_above'])}"
        for line in lines
    )
    return Figure(
        f"conformal-images{suffix}",
        f"Coverage of single images: {risk}",
        f"Share of images whose coverage is at most the value on the x axis. {summary}.",
        f"Images left of the line have a coverage below 1 - α. {lines[0].record['guarantee']}",
        (6.6, 3.6),
        lambda canvas: _draw(canvas, lines),
    )


def _label(line: Line, lines: Sequence[Line]) -> str:
    return label_among(line, lines, line.record["method"], f"α = {line.record['alpha']:g}")


def _draw(canvas: Canvas, lines: Sequence[Line]) -> None:
    axes = canvas.subplots()
    marked = set()
    for line in lines:
        values = _coverages(line)
        shares = [(k + 1) / len(values) for k in range(len(values))]
        axes.step(
            [values[0], *values], [0.0, *shares], line.dashes, where="post",
            color=line.colour, label=_label(line, lines),
        )  # fmt: skip
        if (level := 1 - line.record["alpha"]) not in marked:
            marked.add(level)
            axes.axvline(level, color=style.SOFT, linewidth=0.9, linestyle=":")
            axes.annotate(
                f"1 - α = {level:g}", (level, 0.0), xytext=(3, 4), textcoords="offset points",
                fontsize=8, color=style.SOFT,
            )  # fmt: skip
    axes.set_xlabel("coverage of an image")
    axes.set_ylabel("share of images, at most")
    axes.set_ylim(0, 1.05)
    axes.margins(x=0.05)
    style.legend(canvas, axes, 1)
