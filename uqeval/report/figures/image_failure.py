"""Failure detection of whole items: risk over coverage, with all points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from uqeval.keys import Key
from uqeval.report.figures import style
from uqeval.report.figures.contract import Figure, Line
from uqeval.report.figures.curves import format_number, hover, reference

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

#: A curve with more points than this has no marks.
_MARKED = 60


def figures(lines: list[Line]) -> Iterator[Figure]:
    """Yield the risk-coverage curves of the items, one figure for each risk."""
    plotted = [line for line in lines if len((line.record.get("curve") or {}).get("risk", ())) > 1]
    risks = list(dict.fromkeys(line.record["risk"] for line in plotted))
    for risk in risks:
        of_risk = [line for line in plotted if line.record["risk"] == risk]
        yield _figure(risk, of_risk, len(risks) > 1)


def _figure(risk: str, lines: Sequence[Line], several: bool) -> Figure:
    summary = "; ".join(
        f"{_label(line, lines)}: AURC {format_number(line.record['aurc'])}, AUROC "
        f"{format_number(line.record['auroc'])}"
        for line in lines
    )
    suffix = "-" + "".join(c if c.isalnum() else "-" for c in risk) if several else ""
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
    """Return the label of a curve; for a single report its confidence."""
    if any(line_of_figure.report is not line.report for line_of_figure in lines):
        return line.label
    region = Key.parse(line.key).region
    words = [line.record["confidence"], line.record.get("uncertainty"), region]
    return " ".join(word for word in words if word)


def _draw(canvas: Canvas, lines: Sequence[Line]) -> None:
    axes = canvas.subplots()
    for i, line in enumerate(lines):
        curve = line.record["curve"]
        marker = "o" if len(curve["risk"]) <= _MARKED else ""
        axes.plot(
            curve["coverage"], curve["risk"], f"{marker}{style.dashes(i)}",
            color=style.colour(i), linewidth=1.2, markersize=3.5, label=_label(line, lines),
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
