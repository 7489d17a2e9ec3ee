"""The figure of headlines: which panels share a row."""

from __future__ import annotations

import copy

import pytest
from family_reports import of_classes
from matplotlib.figure import Figure as Canvas

from uqeval.records.report import Report
from uqeval.report.figures import figures_of
from uqeval.report.tables.table import format_number

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


def panels(report: Report) -> dict[tuple[float, float], list[str]]:
    """The names beside each panel that is drawn, by its place: from the top, from the left."""
    (figure,) = figures_of({"r": report})[""]
    canvas = Canvas()
    figure.draw(canvas)
    (axes,) = canvas.axes
    titles = [text.get_position() for text in axes.texts if text.get_weight() == "bold"]
    below = [*sorted({y for _, y in titles}), float("inf")]
    names = zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)
    rows = [(y, label.get_text()) for y, label in names]
    return {
        (y, x): [name for at, name in rows if y < at < below[below.index(y) + 1]] for x, y in titles
    }


def test_families_with_the_same_lines_share_a_row() -> None:
    (first, names), (second, _) = sorted(
        panels(with_regions("segmentation", "calibration")).items()
    )
    assert first[0] == second[0] and first[1] < second[1]
    assert names == ["whole image", *REGIONS]


@pytest.mark.parametrize("family", ["segmentation", "calibration"])
def test_a_family_with_other_lines_begins_a_row(family: str) -> None:
    report = with_regions("segmentation", "calibration")
    del report.results[f"{family}@class:0"]
    (first, upper), (second, lower) = sorted(panels(report).items())
    assert first[0] < second[0] and first[1] == second[1]
    assert {len(upper), len(lower)} == {2, 3}


@pytest.mark.parametrize(
    ("ends", "texts"),
    [
        ((0.5739, 0.99996075), ["0.5739", "1.0000"]),
        ((0.99996, 0.99999), ["0.99996", "0.99999"]),
        ((3.21e-05, 0.00012), ["0.0000321", "0.00012"]),
        ((-0.99996075, 2.0), ["-1.0000", "2"]),
    ],
)
def test_ends_of_a_scale_are_rounded(ends: tuple[float, float], texts: list[str]) -> None:
    report = with_regions("segmentation")
    low, high = ends
    for key, value in zip(list(report.results), (low, high, high), strict=True):
        report.results[key] = report.results[key] | {"miou": value}
    report.intervals = {"segmentation.miou": {"level": 0.95, "low": low, "high": high}}
    (figure,) = figures_of({"r": report})[""]
    canvas = Canvas()
    figure.draw(canvas)
    below = [text.get_text() for text in canvas.axes[0].texts if text.get_size() == 7]
    assert below == texts


def test_values_are_written_beside_their_points() -> None:
    report = with_regions("segmentation")
    (figure,) = figures_of({"r": report})[""]
    canvas = Canvas()
    figure.draw(canvas)
    texts = [text.get_text() for text in canvas.axes[0].texts]
    scores = [
        report.results[f"segmentation{at}"]["miou"] for at in ("", *(f"@{r}" for r in REGIONS))
    ]
    assert texts[1:] == [format_number(score) for score in scores]


@pytest.mark.parametrize(
    ("limits", "ends", "texts"),
    [
        ((0.0, 1.0), (0.7, 0.71), ["0", "1"]),
        ((0.0, None), (2.5, 2.75), ["0", "2.7500"]),
        ((None, 1.0), (-0.25, -0.2), ["-0.2500", "1"]),
        ((None, None), (-0.25, -0.2), ["-0.2500", "0"]),
    ],
)
def test_a_single_score_has_the_scale_of_its_metric(
    limits: tuple[float | None, float | None], ends: tuple[float, float], texts: list[str]
) -> None:
    """A narrow interval does not fill the panel."""
    report = with_regions("segmentation")
    low, high = ends
    report.results = {"segmentation": report.results["segmentation"] | {"miou": low}}
    report.metrics["segmentation.miou"]["range"] = list(limits)
    report.intervals = {"segmentation.miou": {"level": 0.95, "low": low, "high": high}}
    (figure,) = [own for own in figures_of({"r": report})[""] if own.name == "headlines"]
    assert "its possible values" in figure.caption
    canvas = Canvas()
    figure.draw(canvas)
    (axes,) = canvas.axes
    assert [text.get_text() for text in axes.texts if text.get_size() == 7] == texts
    (grid, bar) = (lines.get_segments()[0][:, 0] for lines in axes.collections[:2])
    first, last = (0.0 if limits[0] is not None else low), (limits[1] or max(high, 0.0))
    share = (high - low) / (last - first)
    assert (bar[1] - bar[0]) / (grid[1] - grid[0]) == pytest.approx(share)
