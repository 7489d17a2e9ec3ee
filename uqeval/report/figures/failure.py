"""Failure detection: the risk at each coverage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from uqeval.report.figures import style
from uqeval.report.figures.contract import Figure, Line
from uqeval.report.figures.curves import format_number, hover, reference

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

_WORDS = "risk {1} at coverage {0}"


def figures(lines: list[Line]) -> Iterator[Figure]:
    """Yield risk over coverage, and the points that the report names."""
    plotted = [line for line in lines if len(points(line.record)) > 1]
    if not plotted:
        return
    summary = "; ".join(
        f"{line.label}: AUROC {format_number(line.record['auroc'])}, "
        + ", ".join(f"risk {r:.4g} at coverage {c:.4g}" for c, r in points(line.record))
        for line in plotted
    )
    yield Figure(
        "risk-coverage",
        "Risk over coverage",
        f"Share of wrong pixels among the most certain ones. {summary}.",
        "Coverage: fraction of pixels kept, the most certain ones. Risk: fraction of these that is "
        "wrong. " + _caption(plotted),
        (6.6, 4.0),
        lambda canvas: _draw(canvas, plotted),
    )


def _caption(lines: Sequence[Line]) -> str:
    bounds = [line.record["curve"]["bound"] for line in lines if line.record.get("curve")]
    if len(bounds) < len(lines):  # reports of earlier versions have points alone
        return "The report has the points; the lines between them are interpolated."
    return f"Between its points, a line differs from the exact curve by at most {max(bounds):.1g}."


def points(record: dict[str, Any]) -> list[tuple[float, float]]:
    """Return (coverage, risk), both fractions, by coverage; the last is that of all pixels."""
    curves = [
        (float(level) / 100, risk)
        for level, risk in record.get("risk_at_coverage", {}).items()
        if level.isdigit() and risk is not None
    ]
    curves += [
        (coverage, float(level) / 100)
        for level, coverage in record.get("coverage_at_risk", {}).items()
        if level.isdigit() and coverage
    ]
    if record.get("pixels"):
        curves.append((1.0, record["errors"] / record["pixels"]))
    return sorted(set(curves))


def _draw(canvas: Canvas, lines: Sequence[Line]) -> None:
    axes = canvas.subplots()
    for line in lines:
        look: dict[str, Any] = {"color": line.colour, "linewidth": 1.4, "label": line.label}
        if curve := line.record.get("curve"):
            axes.plot(curve["coverage"], curve["risk"], line.dashes, **look)
            hover(axes, curve["coverage"], curve["risk"], line.label, _WORDS)
            look = {"color": line.colour, "linewidth": 0}
        x, y = zip(*points(line.record), strict=True)
        axes.plot(x, y, f"o{line.dashes}", markersize=5, **look)
        for coverage, risk in zip(x, y, strict=True):
            words = _WORDS.format(f"{coverage:.4g}", f"{risk:.4g}")
            style.hovered(axes, coverage, risk, f"{line.label}: {words}")
    rates = {line.record["errors"] / line.record["pixels"] for line in lines}
    if len(rates) == 1:
        reference(axes, rates.pop(), "kept at random")
    axes.set_xlabel("coverage (fraction of pixels kept)")
    axes.set_ylabel("risk (fraction of them wrong)")
    axes.margins(y=0.12)
    axes.set_ylim(bottom=0)
    style.legend(canvas, axes)
