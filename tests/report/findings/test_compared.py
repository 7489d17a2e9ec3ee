"""The sentences of a comparison claim no more than the verdicts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from uqeval.compare import Cell, Choice, Comparison, Difference, Row
from uqeval.compare.models import Model
from uqeval.records.addresses import Address
from uqeval.records.resampling import Interval, Units
from uqeval.report.findings.compared import findings_of_comparison
from uqeval.report.tables.comparison import to_markdown

SCORES = ("segmentation.miou", "failure.auroc", "calibration.ece", "calibration.nll", "pavpu.pavpu")


def compared(*differences: Difference | None, level: float | None = 0.95) -> Comparison:
    """Return a comparison of two models, of as many scores as there are differences."""
    rows = tuple(
        Row(Address.parse(at), "fraction", "higher", 9, (Cell(0.5), Cell(0.4, difference=own)))
        for at, own in zip(SCORES, differences, strict=False)
    )
    return Comparison((Model("a", ()), Model("b", ())), 0, Choice(level=level), rows, (), 9, 0)


def change(p: float | None, better: bool | None) -> Difference:
    """Return a difference with an adjusted p-value, and an interval without 0."""
    return Difference(0.1, better, None if p is None else 0.95, Interval(0.95, 0.05, 0.15), p, p)


WORSE, BETTER, OTHER, SAME = (
    change(0.01, False), change(0.05, True), change(0.02, None), change(0.051, True)
)  # fmt: skip
ALONE = replace(WORSE, interval=None)  # a p-value alone
UNTESTED = replace(WORSE, p=None, p_adjusted=None)


@pytest.mark.parametrize(("differences", "text"), [
    ((WORSE, SAME, SAME), "Worse than a in 1 of 3 scores (segmentation.miou). No "
     "difference is seen in the other 2."),
    ((WORSE, SAME), "Worse than a in 1 of 2 scores (segmentation.miou). No difference is seen "
     "in the other one."),
    ((WORSE, BETTER, OTHER), "Better than a in 1 of 3 scores (failure.auroc), worse in 1 "
     "(segmentation.miou), different in 1 (calibration.ece)."),
    ((BETTER,) * 5, "Better than a in 5 of 5 scores (segmentation.miou, "
     "failure.auroc, calibration.ece, calibration.nll and 1 more)."),
    ((OTHER,), "Different from a in 1 of 1 score (segmentation.miou)."),
    ((SAME, SAME), "No difference from a is seen in any of the 2 scores."),
    ((SAME, None), "No difference from a is seen in the score."),
    ((WORSE, ALONE), "Worse than a in 1 of 2 scores (segmentation.miou). 1 has no interval, so no "
     "verdict."),
    ((WORSE, SAME, ALONE, UNTESTED, UNTESTED), "Worse than a in 1 of 5 scores (segmentation.miou). "
     "No difference is seen in 1. 1 has no interval and 2 have no p-value, so no verdict."),
    ((SAME, SAME, UNTESTED), "No difference from a is seen in 2 of 3 scores. 1 has no p-value, so "
     "no verdict."),
    ((ALONE, ALONE), "2 have no interval, so no verdict."),
])  # fmt: skip
def test_a_sentence_for_each_other_model(
    differences: tuple[Difference | None, ...], text: str
) -> None:
    (found,) = findings_of_comparison(compared(*differences))
    assert (found.title, found.text) == ("b", text)
    assert f"**b:** {text}" in to_markdown(compared(*differences))


def test_too_few_units_to_show_a_difference_are_named() -> None:
    """The smallest p-value of n units is 2^(1−n), or larger if it is adjusted."""
    few = Difference(
        0.1, True, 0.95, Interval(0.95, -0.1, 0.3), p=0.25,
        p_adjusted=0.25, p_least=0.25, p_least_adjusted=0.25,
        swapped=Units("batch", 3, 3),
    )  # fmt: skip
    adjusted = replace(few, p_least=0.03125, p_least_adjusted=0.0625, swapped=Units("item", 12, 6))
    text = "3 batches cannot show a difference (the smallest p is 0.25)."
    (found,) = findings_of_comparison(compared(few))
    assert found.text == f"No difference from a is seen in the score. {text}"
    assert to_markdown(compared(few)).count(text) == 2
    (found,) = findings_of_comparison(compared(adjusted, adjusted))
    assert found.text.endswith(
        " 6 items cannot show a difference (the smallest p is 0.031, 0.062 after the adjustment)."
    )
    text = (
        "Too few units to show a difference in 1 score: failure.auroc (3 batches, the smallest p "
        "is 0.25)."
    )
    (found,) = findings_of_comparison(compared(SAME, few))
    assert found.text == "No difference from a is seen in any of the 2 scores."
    assert text in to_markdown(compared(SAME, few))


def test_without_tests_there_is_no_sentence() -> None:
    assert findings_of_comparison(compared(change(None, True), level=None)) == []
