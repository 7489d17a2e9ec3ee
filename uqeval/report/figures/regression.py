"""Calibration of predicted distributions: how often the target lies inside their intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from uqeval.report.figures import style
from uqeval.report.figures.contract import Figure, Line, lines_with
from uqeval.report.figures.curves import diagonal, fractions, hover, logarithmic, numbers, scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas


def figures(lines: list[Line]) -> Iterator[Figure]:
    """Yield observed coverage over nominal coverage, and errors over σ."""
    if plotted := lines_with(lines, "calibration"):
        yield _coverage(plotted)
    if plotted := lines_with(lines, "sigma_bins"):
        yield _sigma_bins(plotted)


def _coverage(plotted: list[Line]) -> Figure:
    summary = scores(plotted, {"AUCE": "auce", "of it over-confident": "auce_over"})
    return Figure(
        "regression-calibration",
        "Calibration of the intervals",
        f"Observed over nominal coverage of central intervals. {summary}.",
        "Below the diagonal, the target is inside the intervals less often than predicted: the "
        "model is over-confident. The shaded area is the AUCE.",
        (5.4, 4.8),
        lambda canvas: _draw(canvas, plotted),
    )


def _sigma_bins(plotted: list[Line]) -> Figure:
    summary = scores(plotted, {"ENCE": "ence", "UCE": "uce", "CV": "cv"})
    return Figure(
        "sigma-bins",
        "Errors by bins of σ",
        f"RMSE over the root of the mean σ² (RMV) in bins of σ. {summary}.",
        "Each point is a bin of σ; bins have equal numbers of pixels. On the diagonal errors are "
        "as large as σ; above it σ is too small. A level curve means that σ does not show which "
        "errors are large.",
        (5.4, 4.8),
        lambda canvas: _draw_sigma_bins(canvas, plotted),
    )


def _draw_sigma_bins(canvas: Canvas, lines: Sequence[Line]) -> None:
    axes = canvas.subplots()
    found: list[float] = []
    for line in lines:
        bins = line.record["sigma_bins"]
        filled = [k for k, n in enumerate(bins["pixels"]) if n]
        x, y = ([bins[name][k] for k in filled] for name in ("rmv", "rmse"))
        found += [*x, *y]
        axes.plot(x, y, f"o{line.dashes}", color=line.colour, markersize=4,
                  linewidth=1.4, label=line.label)  # fmt: skip
        hover(axes, x, y, line.label, "RMSE {1} at RMV {0}")
    low, high = (min(found), max(found)) if found else (0.0, 1.0)
    if low > 0 and high > 10 * low:
        logarithmic(axes)
    diagonal(axes, low, high)
    axes.set_xlabel("root of the mean σ² (RMV)")
    axes.set_ylabel("RMSE")
    style.legend(canvas, axes)


def _draw(canvas: Canvas, lines: Sequence[Line]) -> None:
    axes = canvas.subplots()
    diagonal(axes)
    for line in lines:
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
        axes.plot(p, observed, line.dashes, color=line.colour, label=line.label)
        hover(axes, p, observed, line.label, "observed {1} at nominal {0}")
    fractions(axes)
    axes.set_aspect("equal")
    axes.set_xlabel("nominal coverage p")
    axes.set_ylabel("observed coverage")
    style.legend(canvas, axes)
