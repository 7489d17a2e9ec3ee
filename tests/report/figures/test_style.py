"""Figures as files."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from family_reports import of_classes

from uqeval.errors import OutputError
from uqeval.report.figures import FORMATS, write_figures

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
    one = of_classes(family="calibration").model_copy(deep=True)
    one.results["segmentation"]["per_class"][0]["name"] = "$\\frac{<b>"
    write_figures({"r": one}, tmp_path, "svg")
    assert "$\\frac{&lt;b&gt;" in (tmp_path / "segmentation-classes.svg").read_text("utf-8")


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be made"):
        write_figures({"r": of_classes(family="calibration")}, tmp_path / "file" / "x", "svg")


def test_svg_files_hold_no_address(tmp_path: Path) -> None:
    for path in write_figures({"r": of_classes(family="pavpu")}, tmp_path, "svg"):
        assert not re.findall(r'href="(?!#)', path.read_text("utf-8"))
