"""The headlines of a report as cards of a page."""

from __future__ import annotations

from dataclasses import dataclass, field

from uqeval.glossary import ARROWS, headlines, label
from uqeval.records.report import Report
from uqeval.report.figures.contract import lines_of
from uqeval.report.tables.cells import cell, interval_of
from uqeval.report.tables.fields import DIRECTIONS, about, range_of, unit_of
from uqeval.report.tables.table import Cell

#: Most further variants on a card; the tables have all.
MOST_VARIANTS = 6


@dataclass(frozen=True)
class Card:
    """A headline: a value with all that is needed to read it.

    Where there are `others`, by what they are called, it is that of `variant`; `more` are counted.
    """

    title: str
    key: str
    cell: Cell
    arrow: str
    direction: str
    unit: str
    range: str
    meaning: str
    reference: str
    variant: str = ""
    others: list[tuple[str, Cell]] = field(default_factory=list)
    more: int = 0


def cards(report: Report) -> list[Card]:
    """Return the headlines of all results, those of further variants on the card of the first."""
    found = []
    for family, (first, *variants) in lines_of({"": report}).items():
        for name in headlines(family):
            if name not in first.record:
                continue
            known = about(report, first.key, name)
            direction = known.get("direction") or ""
            value, *others = (
                cell(own.record, name, interval_of(report.intervals, own.key, [name], own is first))
                for own in (first, *variants)
            )
            named = [(v.label, o) for v, o in zip(variants, others, strict=True) if o.text]
            found.append(
                Card(
                    label(family, name), first.key, value,
                    ARROWS.get(direction, ""), DIRECTIONS.get(direction, ""),
                    unit_of(known), range_of(known), known.get("meaning") or "",
                    known.get("reference") or "",
                    first.label if named else "", named[:MOST_VARIANTS],
                    len(named[MOST_VARIANTS:]),
                )
            )  # fmt: skip
    return found
