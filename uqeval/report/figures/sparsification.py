"""Sparsification: the error that remains when the most uncertain pixels are removed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from uqeval.report.figures import style
from uqeval.report.figures.contract import Figure, Line, lines_with
from uqeval.report.figures.curves import hover, numbers, reference, scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas


def figures(lines: list[Line]) -> Iterator[Figure]:
    """Yield the curves and their oracles."""
    plotted = lines_with(lines, "curve")
    if not plotted:
        return
    summary = scores(plotted, {"AUSE": "ause", "AURG": "aurg"})
    yield Figure(
        "sparsification",
        "Sparsification",
        f"Error of the remaining pixels over the fraction removed. {summary}.",
        "The most uncertain pixels are removed first; the oracle (dashed) removes the largest "
        "errors first. Lower panel: the difference of the two curves, the sparsification error. "
        "The area under it is the AUSE.",
        (6.6, 5.6),
        lambda canvas: _draw(canvas, plotted),
    )


def _draw(canvas: Canvas, lines: Sequence[Line]) -> None:
    axes, lower = canvas.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    oracles = {tuple(numbers(line.record["oracle"])) for line in lines}
    for i, line in enumerate(lines):
        r, colour = line.record, line.colour
        x, curve, oracle = r["fractions"], numbers(r["curve"]), numbers(r["oracle"])
        axes.plot(x, curve, line.dashes, color=colour, label=line.label)
        if len(oracles) > 1 or i == 0:
            oracle_colour = style.SOFT if len(oracles) == 1 else colour
            name = "oracle" if len(lines) == 1 or len(oracles) == 1 else f"{line.label}: oracle"
            axes.plot(
                x, oracle, linestyle=(0, (4, 2)), linewidth=1.3, color=oracle_colour, label=name
            )
        if len(lines) <= 3:
            axes.fill_between(x, oracle, curve, color=colour, alpha=0.13, linewidth=0)
        error = [a - b for a, b in zip(curve, oracle, strict=True)]
        lower.plot(x, error, line.dashes, color=colour)
        hover(axes, x, curve, line.label, "error {1} at {0} removed")
        hover(lower, x, error, line.label, "{1} above the oracle at {0} removed")
    normalised = all(line.record["curve"][0] == 1 for line in lines)
    if normalised:
        reference(axes, 1.0, "removed at random")
    axes.set_xlim(-0.01, 1.01)
    axes.set_ylim(bottom=0)
    lower.set_xlabel("fraction of pixels removed")
    lower.set_ylabel("above the oracle")
    lower.set_ylim(bottom=min(0.0, lower.get_ylim()[0]))
    canvas.align_ylabels()
    errors = ", ".join(dict.fromkeys(str(line.record["error"]) for line in lines))
    axes.set_ylabel(f"error of the rest ({errors}{', of all = 1' if normalised else ''})")
    style.legend(canvas, axes)
