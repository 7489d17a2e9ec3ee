"""The notes of the tables of a comparison: numbers of tests and of units."""

from __future__ import annotations

import pytest

from uqeval.compare import Cell, Choice, Comparison, Difference, Row
from uqeval.compare.models import Model
from uqeval.records.addresses import Address
from uqeval.records.resampling import Interval, Units
from uqeval.report.tables.comparison import differences


def note(*units: Units, whole: int = 2, parts: int = 0) -> str:
    """Return the note of differences with intervals from these units."""
    rows = []
    for n, own in enumerate(units):
        interval = Interval(0.95, -0.1, 0.2, units=own)
        change = Difference(0.1, True, 0.95, interval, 0.4, 0.4)
        cells = (Cell(0.5), Cell(0.6, difference=change))
        rows.append(Row(Address.parse(f"a.b{n}"), "fraction", "higher", 9, cells))
    models = (Model("a", ()), Model("b", ()))
    return differences(Comparison(models, 0, Choice(), tuple(rows), (), whole, parts)).note


@pytest.mark.parametrize(
    ("whole", "parts", "text"),
    [
        (1, 0, "adjusted for 1 comparison (Holm)"),
        (0, 4, "adjusted for 4 comparisons of classes and slices (Holm)"),
        (16, 80, "16 comparisons of whole sets, and separately for 80 comparisons of classes and"),
    ],
)
def test_numbers_of_tests(whole: int, parts: int, text: str) -> None:
    assert text in note(Units("item", 9, 9), whole=whole, parts=parts)


@pytest.mark.parametrize(
    ("units", "text"),
    [
        ((Units("item", 30, 30), Units("item", 30, 30)), "from 30 items, not"),
        ((Units("item", 30, 12),), "from at most 30 items, not"),
        ((Units("item", 30, 30), Units("item", 12, 12)), "from 12 to 30 items, not"),
        ((Units("item", 12, 12), Units("item", 30, 7)), "from at most 30 items, not"),
        ((Units("item", 12, 12), Units("group", 30, 30)), "from 12 items or 30 groups, not"),
        ((Units("item", 12, 1), Units("group", 3, 3)), "or 12 items, fewer for some scores, not"),
    ],
)
def test_numbers_of_units(units: tuple[Units, ...], text: str) -> None:
    assert text in note(*units)
