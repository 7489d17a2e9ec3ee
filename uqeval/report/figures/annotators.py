"""Several annotators: the diversity of samples and annotators of each image, and reliability."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from uqeval.report.figures import style
from uqeval.report.figures.contract import Figure, Line, lines_with
from uqeval.report.figures.curves import scores
from uqeval.report.figures.reliability import draw

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas


def figures(lines: list[Line]) -> Iterator[Figure]:
    """Yield the diversities of the images, and the reliability diagram against the annotators."""
    diverse = [line for line in lines if _pairs(line)]
    if diverse:
        yield Figure(
            "annotators-diversity",
            "Diversity of samples and annotators",
            "Expected distance of two samples over that of two annotators, one point per image. "
            f"{scores(diverse, {'GED': 'ged'})}.",
            "On the line the samples differ as much as the annotators. Below it the samples differ "
            "less than the annotators: the model is over-confident.",
            (5.0, 4.6),
            lambda canvas: _draw(canvas, diverse),
        )
    plotted = lines_with(lines, "reliability")
    if plotted:
        yield Figure(
            "annotators-reliability",
            "Reliability diagram against the annotators",
            "Share of annotators who chose the predicted class, over confidence in bins. "
            f"{scores(plotted, {'ECE': 'ece'})}.",
            "On the diagonal the confidence is the share of annotators who agree.",
            (5.6, 6.0),
            lambda canvas: draw(canvas, plotted, "share of annotators", has_links=False),
        )


def _pairs(line: Line) -> list[tuple[float, float]]:
    """Return the diversity of the annotators and of the samples of each image that has both."""
    records = [item.get(line.key, {}) for item in line.report.items]
    values = [(r.get("annotator_diversity"), r.get("diversity")) for r in records]
    return [(a, b) for a, b in values if a is not None and b is not None]


def _draw(canvas: Canvas, lines: Sequence[Line]) -> None:
    axes = canvas.subplots()
    most = max(max(pair) for line in lines for pair in _pairs(line))
    axes.axline((0, 0), slope=1, color=style.SOFT, linewidth=1.0, linestyle=(0, (4, 3)))
    for line in lines:
        x, y = zip(*_pairs(line), strict=True)
        axes.scatter(x, y, s=18, color=line.colour, alpha=0.8, label=line.label)
    limit = 1.08 * most if most > 0 else 1.0
    axes.set_xlim(0, limit)
    axes.set_ylim(0, limit)
    axes.set_xlabel("distance of two annotators")
    axes.set_ylabel("distance of two samples")
    style.legend(canvas, axes)
