"""Pictures of several models on one page."""

from __future__ import annotations

from small_report import report

from uqeval.records.report import Report
from uqeval.report.page.gallery import Picture
from uqeval.report.page.side_by_side import SideBySide


class Named:
    """A label, and a prediction with the name of the item's place."""

    note = ""
    legend = (("#ff0000", "red"),)

    def pictures(self, item: int) -> list[Picture]:
        return [Picture("label", b"", "l"), Picture(f"prediction, {item}", b"", "p")]


def of(values: dict[str, float]) -> Report:
    items = [{"name": name, "pavpu": {"surplus": value}} for name, value in values.items()]
    return report(items=items, metrics={"pavpu.surplus": {"direction": "higher"}})


def test_items_that_differ_most_come_first() -> None:
    """Reports may have other items, in another order."""
    reports = {
        "a": of({"x": 0.1, "y": 0.2, "z": 0.3, "alone": 9.0}),
        "b": of({"z": 0.9, "y": 0.3, "x": 0.1}),
    }
    both = SideBySide(reports, {"a": Named(), "b": Named()})  # type: ignore[dict-item]
    assert both.order() == [2, 1, 0]  # z, y, x
    assert both.scores(2) == [("a", "0.3000"), ("b", "0.9000")]
    found = [(picture.group, picture.title) for picture in both.pictures(2)]
    assert found == [("", "label"), ("a", "prediction, 2"), ("b", "prediction, 0")]
    assert both.legend == [("#ff0000", "red")]
