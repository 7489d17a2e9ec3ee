"""PAvPU, its conditionals and the Surplus over both thresholds (Mukhoti & Gal, Ma et al.)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from uqeval.report.figures import style
from uqeval.report.figures.contract import Figure, Line, lines_with
from uqeval.report.figures.curves import format_number, fractions, hover, numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_PANELS = {
    "pavpu": "PAvPU",
    "p_accurate_given_certain": "p(accurate | certain)",
    "p_uncertain_given_inaccurate": "p(uncertain | inaccurate)",
    "surplus": "Surplus",
}


def figures(lines: list[Line]) -> Iterator[Figure]:
    """Yield the scores over the uncertainty threshold, and over the accuracy threshold."""
    plotted = lines_with(lines, "curve")
    if plotted:
        summary = "; ".join(
            f"{line.label}: PAvPU {format_number(line.record['pavpu'])}, Surplus "
            f"{format_number(line.record['surplus'])} at the threshold "
            f"{format_number(line.record['uncertainty_threshold'])}{_peak(line.record)}"
            for line in plotted
        )
        yield Figure(
            "pavpu-threshold",
            "Patch scores over the uncertainty threshold",
            f"Four panels over the threshold t from 0 to 1. {summary}.",
            "t is 0 at the lowest uncertainty and 1 at the highest. Dot: the threshold in use; "
            "triangle: the peak. Where the Surplus is below 0 (shaded), the uncertainty is worse "
            "than chance: do not use the PAvPU there.",
            (8.2, 5.6),
            lambda canvas: _panels(canvas, plotted, "curve", "t", "uncertainty threshold t"),
        )
    plotted_accuracy = lines_with(lines, "accuracy_curve")
    if plotted_accuracy:
        yield Figure(
            "pavpu-accuracy-threshold",
            "Patch scores over the accuracy threshold",
            "Four panels over the accuracy that makes a patch accurate. "
            + "; ".join(
                f"{line.label}: PAvPU {format_number(line.record['pavpu'])} at "
                f"{format_number(line.record['accuracy_threshold'])}"
                for line in plotted_accuracy
            )
            + ".",
            "At the uncertainty threshold in use. Dot: the accuracy threshold in use. Thin dashes: "
            "the PAvPU of an uncertainty that is independent of the errors."
            + _at_1(plotted_accuracy),
            (8.2, 5.6),
            lambda canvas: _panels(
                canvas,
                plotted_accuracy,
                "accuracy_curve",
                "accuracy_threshold",
                "accuracy threshold",
            ),
        )


def _at_1(lines: Sequence[Line]) -> str:
    """Return why no patch is accurate at the threshold 1, unless `accuracy_op` is >=."""
    operators = {line.report.settings.get(line.key, {}).get("accuracy_op") for line in lines}
    if ">" not in operators:
        return ""
    return " A patch is accurate above the threshold (>), so at 1 no patch is accurate."


def _peak(record: dict[str, Any]) -> str:
    peak = record.get("surplus_peak")
    return f", best Surplus {format_number(peak['value'])} at t = {peak['t']:.2f}" if peak else ""


def _panels(canvas: Canvas, lines: Sequence[Line], curve: str, over: str, label: str) -> None:
    axes = canvas.subplots(2, 2, sharex=True).flat
    for panel, (field, title) in zip(axes, _PANELS.items(), strict=True):
        for line in lines:
            record = line.record[curve]
            x, y = record[over], numbers(record[field])
            panel.plot(x, y, line.dashes, color=line.colour, label=line.label)
            hover(panel, x, y, line.label, f"{title} {{1}} at {{0}}")
            if field == "pavpu" and "pavpu_chance" in record:
                panel.plot(
                    x,
                    numbers(record["pavpu_chance"]),
                    linestyle=(0, (2, 2)),
                    color=line.colour,
                    linewidth=1.0,
                )
            _marks(panel, line, field, curve)
        # The name of the line is in the title: beside the line, it would cross the curves.
        panel.set_title(f"{title} (dashes: chance)" if field == "surplus" else title)
        fractions(panel, y=field != "surplus")
        if field == "surplus":
            _below_zero(panel)
    for panel in canvas.axes[2:]:
        panel.set_xlabel(label)
    style.legend(canvas, canvas.axes[0])


def _marks(panel: Axes, line: Line, field: str, curve: str) -> None:
    """Draw a dot at the threshold in use, and a triangle at the peak of this curve."""
    record = line.record
    x = _threshold_position(record) if curve == "curve" else record["accuracy_threshold"]
    if x is not None and record[field] is not None:
        panel.plot([x], [record[field]], "o", color=line.colour, markersize=6)
    peak = record.get(f"{field}_peak")
    if curve == "curve" and peak:
        panel.plot([peak["t"]], [peak["value"]], "^", color=line.colour, markersize=7)


def _threshold_position(record: dict[str, Any]) -> float | None:
    """Return the position of the threshold in use on the axis, from 0 to 1; None if outside."""
    ends, in_use = record["curve"]["threshold"], record["uncertainty_threshold"]
    if in_use is None or ends[0] is None or ends[0] == ends[-1]:
        return None
    t = (in_use - ends[0]) / (ends[-1] - ends[0])
    return float(t) if 0 <= t <= 1 else None


def _below_zero(panel: Axes) -> None:
    low, high = panel.get_ylim()
    low = min(low, -0.08 * max(high, 0.1))
    high = high if high >= 0 else -0.08 * min(low, -0.1)
    panel.set_ylim(low, high)
    panel.axhspan(low, 0, color=style.BAD, alpha=0.12, linewidth=0, zorder=0)
    panel.axhline(0, color=style.BAD, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
