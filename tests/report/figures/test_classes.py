"""Figures of scores by class, of reports that call the classes by names and of others."""

from __future__ import annotations

import copy

from family_reports import of_classes

from uqeval.records.report import Report
from uqeval.report.figures import figures_of
from uqeval.report.figures.classes import _column, _named_alike
from uqeval.report.figures.contract import lines_of


def named(*names: str) -> Report:
    own = copy.deepcopy(of_classes(family="calibration"))
    rows = own.results["segmentation"]["per_class"]
    for row, name in zip(rows, names, strict=True):
        row["name"] = name
    return own


def said(*reports: Report) -> str:
    found = figures_of({f"r{i}": own for i, own in enumerate(reports)})
    return next(f.alt for f in found["segmentation"] if f.name == "segmentation-classes")


def test_classes_without_names_stand_beside_those_of_their_ids() -> None:
    nameless, known = of_classes(family="calibration"), named("road", "car", "sky")
    for pair in ((nameless, known), (known, nameless)):
        assert "IoU of 3 classes" in said(*pair)
    lines = _named_alike(lines_of({"a": nameless, "b": known})["segmentation"])
    columns = [_column(line, ["road", "car", "sky"], "iou") for line in lines]
    assert columns[0] == columns[1] and None not in columns[0]
    assert lines[0].record["per_class"][0]["name"] == "0"  # its intervals are under this


def test_classes_of_other_names_stay_apart() -> None:
    assert "IoU of 5 classes" in said(named("road", "car", "sky"), named("a", "car", "b"))
    unclear = said(named("road", "car", "sky"), named("a", "car", "b"), named("0", "1", "2"))
    assert "IoU of 7 classes" in unclear  # 0 and 2 have two names, 1 one
