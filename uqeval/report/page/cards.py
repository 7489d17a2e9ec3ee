"""The headlines of a report as cards of a page, and when reports were finished."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from uqeval.glossary import ARROWS, headlines, label
from uqeval.records.addresses import Address
from uqeval.records.report import Report
from uqeval.report.command import command_of
from uqeval.report.figures.contract import lines_of
from uqeval.report.tables.cells import DIRECTIONS, about, cell, interval_of, range_of, unit_of
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
    place: str
    advice: str = ""
    command: str = ""
    variant: str = ""
    others: list[tuple[str, Cell]] = field(default_factory=list)
    more: int = 0

    @property
    def address(self) -> str:
        """Return the address of the value, as rules of a gate and comparisons name it."""
        return str(Address.of_key(self.key, tuple(self.place.split("."))))

    @property
    def about(self) -> list[tuple[str, str]]:
        """Return what the score means, how to read it, what to do, and its source."""
        reading = ", ".join(own for own in (self.direction, self.range, self.unit) if own)
        return [
            (name, text)
            for name, text in (
                ("Meaning", self.meaning), ("How to read", reading), ("If it is bad", self.advice),
                ("Source", self.reference), ("Address", self.address),
            )
            if text
        ]  # fmt: skip


def cards(report: Report) -> list[Card]:
    """Return the headlines of all results, those of further variants on the card of the first."""
    found = []
    for family, (first, *variants) in lines_of({"": report}).items():
        for name in headlines(family):
            if name not in first.record:
                continue
            description = about(report, first.key, name)
            direction = description.get("direction") or ""
            value, *others = (
                cell(
                    line.record,
                    name,
                    interval_of(report.intervals, line.key, [name], line is first),
                )
                for line in (first, *variants)
            )
            named = [(v.label, o) for v, o in zip(variants, others, strict=True) if o.text]
            found.append(
                Card(
                    label(family, name), first.key, value,
                    ARROWS.get(direction, ""), DIRECTIONS.get(direction, ""),
                    unit_of(description), range_of(description), description.get("meaning") or "",
                    description.get("reference") or "", name,
                    description.get("advice") or "", command_of(report, first.key),
                    first.label if named else "", named[:MOST_VARIANTS],
                    len(named[MOST_VARIANTS:]),
                )
            )  # fmt: skip
    return found


_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\dZ")


def finish_time(reports: Iterable[Report]) -> str:
    """Return `2026-11-21 20:12 UTC`, of the newest of them; empty where none says it: earlier
    versions of uqeval did not.
    """
    said = [_TIME.fullmatch(str(report.timing.get("finished"))) for report in reports]
    return max((f"{found[1]} {found[2]} UTC" for found in said if found), default="")
