"""Failure detection of whole items: risk over coverage, with all points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from uqeval.report.figures import style
from uqeval.report.figures.contract import Figure, Line, label_among, lines_by_risk
from uqeval.report.figures.curves import format_number, hover, reference

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

#: A curve with more points than this has no marks.
_MARKED = 60


def figures(lines: list[Line]) -> Iterator[Figure]:
    """Yield the risk-coverage curves of the items, one figure for each risk."""
    plotted = [line for line in lines if len((line.record.get("curve") or {}).get("risk", ())) > 1]
    for by_risk in lines_by_risk(plotted):
        yield _figure(*by_risk)


def _figure(risk: str, suffix: str, lines: Sequence[Line]) -> Figure:
    summary = "; ".join(
        f"{_label(line, lines)}: AURC {format_number(line.record['aurc'])}, AUROC "
        f"{format_number(line.record['auroc'])}"
        for line in lines
    )
    return Figure(
        f"image-risk-coverage{suffix}",
        f"Risk over coverage of whole items: {risk}",
        f"Mean risk of the most confident items. {summary}.",
        "Coverage: fraction of items kept, the most confident ones. Risk: mean risk of these. If "
        "the curve rises from left to right, the confidence rejects the bad items first.",
        (6.6, 4.0),
        lambda canvas: _draw(canvas, lines),
    )


def _label(line: Line, lines: Sequence[Line]) -> str:
    return label_among(line, lines, line.record["confidence"], line.record.get("uncertainty"))


def _draw(canvas: Canvas, lines: Sequence[Line]) -> None:
    axes = canvas.subplots()
    for line in lines:
        curve = line.record["curve"]
        marker = "o" if len(curve["risk"]) <= _MARKED else ""
        axes.plot(
            curve["coverage"], curve["risk"], f"{marker}{line.dashes}",
            color=line.colour, linewidth=1.2, markersize=3.5, label=_label(line, lines),
        )  # fmt: skip
        hover(
            axes, curve["coverage"], curve["risk"], _label(line, lines),
            "mean risk {1} at coverage {0}",
        )  # fmt: skip
    means = {line.record["mean_risk"] for line in lines}
    if len(means) == 1:
        reference(axes, means.pop(), "all items")
    axes.set_xlabel("coverage (fraction of items kept)")
    axes.set_ylabel(f"mean risk ({lines[0].record['risk']})")
    axes.margins(y=0.12)
    style.legend(canvas, axes)
