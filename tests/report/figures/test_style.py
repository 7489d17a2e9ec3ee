"""Figures as files."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
from pathlib import Path

import pytest
from family_reports import of_classes

from uqeval.errors import OutputError
from uqeval.report.figures import FORMATS, figures_of, write_figures
from uqeval.report.figures.contract import Figure
from uqeval.report.figures.failure import points
from uqeval.report.figures.style import inline_svg, render
from uqeval.report.tables.table import format_number

BEGINS = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}


@pytest.mark.parametrize("form", FORMATS)
def test_figures_are_files_and_always_the_same(form: str, tmp_path: Path) -> None:
    reports = {"r": of_classes(family="calibration")}
    with subprocess.Popen([sys.executable, "-c", ""]) as killed:
        killed.wait()
    (tmp_path / "a").mkdir()  # what a killed process has left goes
    (tmp_path / "a" / f".reliability.{form}.{killed.pid}-0").write_text("half a figure")
    first = write_figures(reports, tmp_path / "a", form)
    second = write_figures(reports, tmp_path / "b" / "c", form)
    assert {path.name for path in first} >= {f"reliability.{form}", f"segmentation-classes.{form}"}
    assert sorted((tmp_path / "a").iterdir()) == sorted(first)  # nothing half-written is left
    for one, two in zip(first, second, strict=True):
        assert one.read_bytes() == two.read_bytes()
        assert one.read_bytes().startswith(BEGINS[form])


def test_a_class_name_is_no_formula(tmp_path: Path) -> None:
    one = copy.deepcopy(of_classes(family="calibration"))
    one.results["segmentation"]["per_class"][0]["name"] = "$\\frac{<b>"
    write_figures({"r": one}, tmp_path, "svg")
    assert "$\\frac{&lt;b&gt;" in (tmp_path / "segmentation-classes.svg").read_text("utf-8")


@pytest.mark.parametrize("form", FORMATS)
def test_a_title_with_the_name_of_a_file_that_is_not_utf8(form: str) -> None:
    figure = Figure("f", "Difference from caf\udce9", "", "", (2, 2), lambda canvas: None)
    assert render(figure, form).startswith(BEGINS[form])
    assert inline_svg(figure).startswith("<svg")


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be made"):
        write_figures({"r": of_classes(family="calibration")}, tmp_path / "file" / "x", "svg")


def test_svg_files_hold_no_address(tmp_path: Path) -> None:
    for path in write_figures({"r": of_classes(family="pavpu")}, tmp_path, "svg"):
        assert not re.findall(r'href="(?!#)', path.read_text("utf-8"))


def test_curves_show_their_values_under_the_pointer(tmp_path: Path) -> None:
    """On a page; a file has no invisible marks."""
    report = of_classes(family="failure")
    figures = {one.name: one for own in figures_of({"r": report}).values() for one in own}
    svg = inline_svg(figures["risk-coverage"])
    marks = re.findall(r'<circle class="hover"[^>]*><title>(.*?)</title></circle>', svg)
    curve = report.results["failure"]["curve"]
    named = points(report.results["failure"])
    words = [f"failure: risk {risk:.4g} at coverage {coverage:.4g}" for coverage, risk in named]
    assert marks[-len(named) :] == words
    marks = marks[: -len(named)]
    assert 10 < len(marks) <= 42
    risk = format_number(curve["risk"][-1])
    assert marks[-1] == f"failure: risk {risk} at coverage 1.0000"
    assert "hover:" not in svg and 'stroke-opacity: 0"' not in svg
    write_figures({"r": report}, tmp_path, "svg")
    assert "hover" not in (tmp_path / "risk-coverage.svg").read_text("utf-8")


def test_an_earlier_report_has_points_without_a_curve() -> None:
    report = copy.deepcopy(of_classes(family="failure"))
    del report.results["failure"]["curve"]
    (figure,) = [
        one for own in figures_of({"r": report}).values() for one in own
        if one.name == "risk-coverage"
    ]  # fmt: skip
    assert "are interpolated" in figure.caption and "<svg" in inline_svg(figure)
