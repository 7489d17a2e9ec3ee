"""The headlines of a report as cards of a page, and the time when reports were finished."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from uqeval.glossary import headlines, label, no_meaning
from uqeval.records.addresses import Address
from uqeval.records.report import Report
from uqeval.records.scalars import ARROWS
from uqeval.report.command import command_of
from uqeval.report.figures.contract import lines_of
from uqeval.report.tables.cells import DIRECTIONS, about, cell, explained, interval_of
from uqeval.report.tables.table import ROUGH, Cell

#: The largest number of further variants on a card; the tables have all.
MOST_VARIANTS = 6


@dataclass(frozen=True)
class Card:
    """A headline: a value with its interval, meaning, direction and source.

    `others`: the values of further variants, by their labels; the value itself is that of `variant`
    then. `more`: the number of variants that the card leaves out. `address`: of the value, as rules
    of a gate and comparisons name it. `about`: headings and texts about it.
    """

    title: str
    key: str
    cell: Cell
    arrow: str
    direction: str
    meaning: str
    address: str
    about: tuple[tuple[str, str], ...]
    command: str = ""
    variant: str = ""
    others: list[tuple[str, Cell]] = field(default_factory=list)
    more: int = 0

    @property
    def is_rough(self) -> bool:
        """Return whether an interval on the card is computed from bins."""
        return any(ROUGH in own.interval for own in (self.cell, *(cell for _, cell in self.others)))


def cards(report: Report) -> list[Card]:
    """Return the headlines of all results, those of further variants on the card of the first."""
    result = []
    for family, (first, *variants) in lines_of({"": report}).items():
        command = command_of(report, first.key)
        for name in headlines(first.key):
            if name not in first.record:
                continue
            others = [line for line in variants if not no_meaning(line.key, name)]
            description = about(report, first.key, name)
            direction = description.get("direction") or ""
            value, *further = (
                cell(
                    line.record,
                    name,
                    interval_of(report.intervals, line.key, [name], line is first),
                )
                for line in (first, *others)
            )
            address = str(Address.of_key(first.key, tuple(name.split("."))))
            named = [(v.label, o) for v, o in zip(others, further, strict=True) if o.text]
            result.append(
                Card(
                    label(family, name), first.key, value,
                    ARROWS.get(direction, ""), DIRECTIONS.get(direction, ""),
                    description.get("meaning") or "", address, explained(description, address),
                    command, first.label if named else "", named[:MOST_VARIANTS],
                    len(named[MOST_VARIANTS:]),
                )
            )  # fmt: skip
    return result


_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\dZ")


def finish_time(reports: Iterable[Report]) -> str:
    """Return the time of the newest report, such as `2026-11-21 20:12 UTC`; empty if none has it.

    Reports of earlier versions of uqeval have no time.
    """
    matches = [_TIME.fullmatch(str(report.timing.get("finished"))) for report in reports]
    return max((f"{match[1]} {match[2]} UTC" for match in matches if match), default="")
