"""The figure of headline scores by slice."""

from __future__ import annotations

from typing import Any

from small_report import report

from uqeval.report.figures import figures_of
from uqeval.report.figures.style import inline_svg
from uqeval.report.findings import findings_of


def test_the_figure_begins_with_the_score_that_the_finding_names() -> None:
    """It has three panels of a family; the undetected errors are the fourth headline."""

    def part(undetected: float) -> dict[str, Any]:
        scores = {"auroc": 0.8, "aurc": 0.1, "fpr95": 0.5, "undetected_error_rate": undetected}
        ends = {"level": 0.95, "low": undetected - 0.005, "high": undetected + 0.005}
        intervals = {"failure.undetected_error_rate": ends}
        return {"results": {"failure": scores}, "intervals": intervals, "items": 20}

    slices = {"weather=clear": part(0.02), "weather=night": part(0.14)}
    own = report(**{"settings": {}} | part(0.05) | {"slices": slices, "items": []})
    text = next(found.text for found in findings_of(own) if found.title == "Weakest part")
    assert "undetected errors are 0.140" in text
    (figure,) = figures_of({"a": own})["slices"]
    svg = inline_svg(figure)
    places = [svg.index(name) for name in ("undetected errors", "AUROC", "AURC")]
    assert places == sorted(places) and "FPR95" not in svg
