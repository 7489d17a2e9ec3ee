"""Rows and curves of a record as tables of a page."""

from __future__ import annotations

import dataclasses

from small_report import report

from uqeval.report.tables.records import MOST_POINTS, tables
from uqeval.report.tables.table import format_number

N = 400


def test_a_table_has_some_points_of_a_long_curve_and_its_ends() -> None:
    curve = {"coverage": [i / N for i in range(N)], "risk": [i**2 / N**2 for i in range(N)]}
    made = dataclasses.replace(report(), results={"failure": {"curve": curve}})
    (table,) = tables(made, "failure")
    assert table.title == f"Curve (failure): {MOST_POINTS} of {N} points"
    assert len(table.rows) == MOST_POINTS
    shown = [(row.name, row.cells[0].text) for row in table.rows]
    points = [
        (format_number(x), format_number(y))
        for x, y in zip(curve["coverage"], curve["risk"], strict=True)
    ]
    assert [shown[0], shown[-1]] == [points[0], points[-1]]
    assert set(shown) <= set(points)
    assert len(set(shown)) == MOST_POINTS


def test_a_table_has_all_bins_of_a_reliability_diagram_and_all_points_of_a_short_curve() -> None:
    bins = {
        "confidence": [i / N for i in range(N)], "accuracy": [i / N for i in range(N)],
        "count": [1] * N,
    }  # fmt: skip
    curve = {"coverage": [0.5, 1.0], "risk": [0.1, 0.2]}
    made = dataclasses.replace(
        report(), results={"calibration": {"reliability": bins}, "failure": {"curve": curve}}
    )
    (of_bins,), (of_curve,) = tables(made, "calibration"), tables(made, "failure")
    assert len(of_bins.rows) == N
    assert [row.name for row in of_curve.rows] == ["0.5000", "1.0000"]
