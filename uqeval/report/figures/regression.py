"""Calibration of predicted distributions: how often the target lies inside their intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from uqeval.report.figures import style
from uqeval.report.figures.contract import Figure, Line, lines_with
from uqeval.report.figures.curves import fractions, hover, numbers, scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas


def figures(lines: list[Line]) -> Iterator[Figure]:
    """Yield observed coverage over nominal coverage."""
    plotted = lines_with(lines, "calibration")
    if not plotted:
        return
    summary = scores(plotted, {"AUCE": "auce", "of it over-confident": "auce_over"})
    yield Figure(
        "regression-calibration",
        "Calibration of the intervals",
        f"Observed over nominal coverage of central intervals. {summary}.",
        "Below the diagonal the intervals hold the target less often than they say: the model is "
        "over-confident. The shaded area is the AUCE.",
        (5.4, 4.8),
        lambda canvas: _draw(canvas, plotted),
    )


def _draw(canvas: Canvas, lines: Sequence[Line]) -> None:
    axes = canvas.subplots()
    axes.plot([0, 1], [0, 1], color=style.SOFT, linewidth=1.0, linestyle=(0, (4, 3)))
    for i, line in enumerate(lines):
        p, observed = (
            line.record["calibration"]["p"],
            numbers(line.record["calibration"]["observed"]),
        )
        pairs = list(zip(p, observed, strict=True))
        if len(lines) == 1:
            for below, colour in ((True, style.BAD), (False, style.GOOD)):
                axes.fill_between(
                    p, p, observed, where=[(o < q) == below for q, o in pairs],
                    interpolate=True, color=colour, alpha=0.18, linewidth=0,
                    label="over-confident" if below else "under-confident",
                )  # fmt: skip
        axes.plot(p, observed, style.dashes(i), color=style.colour(i), label=line.label)
        hover(axes, p, observed, line.label, "observed {1} at nominal {0}")
    fractions(axes, x=True)
    axes.set_aspect("equal")
    axes.set_xlabel("nominal coverage p")
    axes.set_ylabel("observed coverage")
    style.legend(canvas, axes)
