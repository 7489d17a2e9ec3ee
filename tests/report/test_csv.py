"""The report as CSV: every number reads back, no name is run."""

from __future__ import annotations

import csv
import io

import pytest
from small_report import report

from uqeval.report.csv import to_csv


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_numbers_read_back() -> None:
    text = to_csv(report())
    assert text.splitlines()[0] == "name,pavpu.pavpu,pavpu.phi,segmentation.pixels"
    rows = read(text)
    assert float(rows[0]["pavpu.pavpu"]) == 0.1 + 0.2
    assert rows[0]["pavpu.phi"] == rows[0]["segmentation.pixels"] == ""
    assert rows[1] == {
        "name": "b", "pavpu.pavpu": "1.0", "pavpu.phi": "0.5", "segmentation.pixels": "7",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["a,b", 'say "so"', "two\nlines", "ümlaut", " spaces ", "a|b"])
def test_names_read_back(name: str) -> None:
    assert read(to_csv(report(items=[{"name": name}])))[0]["name"] == name


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_names_are_no_formulas(name: str) -> None:
    assert read(to_csv(report(items=[{"name": name}])))[0]["name"] == f"'{name}"


def test_no_items() -> None:
    assert to_csv(report(items=[])) == "\n"
