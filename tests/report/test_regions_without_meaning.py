"""mIoU is no headline of the pixels of one class; the report has its value."""

from __future__ import annotations

import pytest
from scenes import labels, softmax

import uqeval
from uqeval.glossary import families, headlines, no_meaning
from uqeval.records.report import Report
from uqeval.report.figures.contract import lines_of
from uqeval.report.figures.headlines import figure
from uqeval.report.findings.scores import headline_scores
from uqeval.report.page.cards import cards
from uqeval.report.tables.items import columns_of
from uqeval.report.tables.of_report import headline_table, tables_of

CLASS, BORDER = "segmentation@class:1", "segmentation@boundary:2"


@pytest.fixture(scope="module")
def report() -> Report:
    return uqeval.evaluate(
        softmax(1, 4, 2, 3, 16, 16), labels(1, 4, 16, 16, classes=3), "segmentation",
        region=["class:1", "boundary:2"], ci=0.9, draws=100,
    )  # fmt: skip


def test_the_headlines_of_a_class_are_without_miou(report: Report) -> None:
    assert headlines("segmentation") == headlines(BORDER) == ("miou", "pixel_accuracy")
    assert headlines(CLASS) == ("pixel_accuracy",)
    assert "only one class" in no_meaning(CLASS, "miou") and not no_meaning(BORDER, "miou")
    assert report.results[CLASS]["miou"] is not None
    row = next(row for row in report.results[CLASS]["per_class"] if row["class"] == 1)
    assert report.results[CLASS]["pixel_accuracy"] == row["accuracy"]  # the recall of the class


def test_every_reason_is_of_a_headline_or_none() -> None:
    metrics = [metric for family in families().values() for metric in family.metrics]
    said = {metric.id for metric in metrics if metric.no_meaning_in}
    assert said == {"segmentation.miou", "temporal.miou_mean"}


def test_views_leave_it_out_and_say_why(report: Report) -> None:
    table = headline_table(report, "")
    rows = [(row[0], row[1]) for row in table.texts]
    assert (CLASS, "mIoU ↑") not in rows and (BORDER, "mIoU ↑") in rows
    assert (CLASS, "pixel accuracy ↑") in rows
    said = f"mIoU is not meaningful in {CLASS}: only one class has labels there"
    assert said in table.note
    assert said in tables_of(report)[0].note and said in tables_of(report)[-1].note
    (miou,) = [card for card in cards(report) if card.title == "mIoU"]
    assert [name for name, _ in miou.others] == ["boundary:2"]
    assert (CLASS, "miou") not in {(own.key, own.name) for own in columns_of(report)}
    named = headline_scores("segmentation", CLASS, report.results[CLASS], {})
    assert [score.metric.field for score in named] == ["pixel_accuracy"]
    drawn = figure(lines_of({"": report}))
    assert drawn is not None and "mIoU is not meaningful in class:1: only one" in drawn.caption
