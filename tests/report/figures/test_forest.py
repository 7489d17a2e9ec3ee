"""The forest plot of paired differences, and texts under the pointer."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from family_reports import of_classes

from uqeval.compare import Cell, Choice, Comparison, Difference, Row
from uqeval.compare.models import Model
from uqeval.records.addresses import Address
from uqeval.records.resampling import Interval
from uqeval.report.figures import figures_of, forest
from uqeval.report.figures.style import inline_svg, render


def change(value: float, p: float | None, width: float = 0.05) -> Difference:
    ends = Interval(0.95, value - width, value + width, False)
    return Difference(value, value > 0, 0.95, ends, p, p)


def comparison(direction: str | None = "higher") -> Comparison:
    rows = tuple(
        Row(Address.parse(f"toy.{name}"), unit, direction, 12,
            (Cell(0.5), Cell(0.5 + own.value, difference=own)))
        for name, unit, own in (
            ("a", "fraction", change(0.2, 0.001)), ("b", "nats", change(-0.01, 0.8)),
        )
    )  # fmt: skip
    models = (Model("old", ()), Model("n<w", ()))
    return Comparison(models, 0, Choice(), rows, (), 2, 0)


def test_marks_tell_what_differs_and_show_their_numbers() -> None:
    drawn = forest.figure(comparison())
    assert drawn is not None and drawn.title == "Differences from old"
    svg = inline_svg(drawn)
    titles = re.findall(r"<title>(.*?)</title>", svg)
    assert [title.split(":")[0] for title in titles] == ["toy.a, n&lt;w", "toy.b, n&lt;w"]
    assert " better" in titles[0] and not re.search("better|worse", titles[1])
    for part in ("improvement (fraction)", "improvement (nats)"):
        assert part in svg


def test_a_model_has_its_colour_of_the_other_figures() -> None:
    """The baseline has the first one, there."""
    drawn = forest.figure(comparison())
    assert drawn is not None
    svg = inline_svg(drawn)
    assert "var(--series-2)" in svg and "var(--series-1)" not in svg


def test_a_far_wider_interval_does_not_hide_the_others() -> None:
    (row, _), models = comparison().rows, comparison().models
    widths = {"a": 0.05, "wide": 2.0, "b": 0.04, "c": 0.03}
    rows = tuple(
        replace(row, address=Address.parse(f"toy.{name}"),
                cells=(Cell(0.5), Cell(0.51, difference=change(0.01, 0.5, width))))
        for name, width in widths.items()
    )  # fmt: skip
    drawn = forest.figure(Comparison(models, 0, Choice(), rows, (), 4, 0))
    assert drawn is not None
    svg = inline_svg(drawn)
    assert svg.count("improvement (fraction)") == 2
    titles = [title.split(":")[0] for title in re.findall(r"<title>(toy.*?)</title>", svg)]
    assert titles == [f"toy.{name}, n&lt;w" for name in ("a", "b", "c", "wide")]


def test_files_have_no_texts_under_the_pointer() -> None:
    drawn = forest.figure(comparison())
    assert drawn is not None and b"title:" not in render(drawn, "svg")


def test_without_intervals_or_a_better_direction_there_is_no_plot() -> None:
    assert forest.figure(comparison(None)) is None
    own = comparison()
    bare = tuple(replace(row, cells=(Cell(0.5), Cell(0.6))) for row in own.rows)
    assert forest.figure(replace(own, rows=bare)) is None


@pytest.mark.parametrize("name", ["headlines", "failure-classes", "risk-coverage"])
def test_figures_show_their_values_under_the_pointer(name: str) -> None:
    own = of_classes(family="failure")
    drawn = {f.name: f for group in figures_of({"a": own, "b": own}).values() for f in group}
    assert re.search(r"<title>[^<]*\d", inline_svg(drawn[name]))


def test_a_product_is_no_unit_of_an_axis() -> None:
    found = comparison()
    surplus = replace(
        found.rows[0], address=Address.parse("pavpu.surplus"), unit="correlation × std"
    )
    drawn = forest.figure(replace(found, rows=(surplus,)))
    assert drawn is not None and "improvement of the Surplus" in inline_svg(drawn)
