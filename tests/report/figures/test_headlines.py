"""The figure of headlines: which panels share a row."""

from __future__ import annotations

import copy

import pytest
from family_reports import of_classes
from matplotlib.figure import Figure as Canvas

from uqeval.records.report import Report
from uqeval.report.figures import figures_of

REGIONS = ("boundary:8", "class:0")


def with_regions(*families: str) -> Report:
    """A report of families and two regions, whose scores are those of the whole image."""
    own = copy.deepcopy(of_classes(family="calibration"))
    own.results = {
        key: own.results["segmentation"] if family == "segmentation" else own.results["calibration"]
        for family in families
        for key in (family, *(f"{family}@{region}" for region in REGIONS))
    }
    return own


def panels(report: Report) -> list[tuple[int, int, list[str]]]:
    """Row, column and names beside the axis of each panel that is drawn."""
    (figure,) = figures_of({"r": report})[""]
    canvas = Canvas()
    figure.draw(canvas)
    places = []
    for axes in canvas.axes:
        spec = axes.get_subplotspec()
        names = [label.get_text() for label in axes.get_yticklabels()]
        assert spec is not None
        places.append((spec.rowspan.start, spec.colspan.start, names))
    return places


def test_families_with_the_same_lines_share_a_row() -> None:
    first, second = panels(with_regions("segmentation", "calibration"))
    assert first == (0, 0, ["whole image", *REGIONS])
    assert second == (0, 1, [])


@pytest.mark.parametrize("family", ["segmentation", "calibration"])
def test_a_family_with_other_lines_begins_a_row(family: str) -> None:
    report = with_regions("segmentation", "calibration")
    del report.results[f"{family}@class:0"]
    first, second = panels(report)
    assert first[:2] == (0, 0) and second[:2] == (1, 0)
    assert {len(first[2]), len(second[2])} == {2, 3}
    assert all(first[2]) and all(second[2])
