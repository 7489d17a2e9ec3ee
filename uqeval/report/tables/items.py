"""The items of a report as a table of a page, sorted by a score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from uqeval.glossary import headlines, label_of, of_items
from uqeval.keys import family_of
from uqeval.records.report import Report
from uqeval.records.scalars import with_arrow
from uqeval.report.tables.cells import about, cell
from uqeval.report.tables.table import Cell, Row, Table


@dataclass(frozen=True)
class Column:
    """A score of every item: its key and field, its title, and its direction."""

    key: str
    name: str
    title: str
    direction: str


def columns_of(report: Report) -> list[Column]:
    """Return the columns of the table of items: the headlines of each result that items have."""
    tables = []
    for key in report.results:
        family = family_of(key)
        for name in (*headlines(key), *of_items(family)):
            if any(isinstance(item.get(key), dict) and name in item[key] for item in report.items):
                direction = about(report, key, name).get("direction") or (
                    "higher" if of_items(family) else ""
                )
                tables.append(Column(key, name, label_of(key, name), direction))
    return tables


def worst_first(report: Report, column: Column) -> list[int]:
    """Return the indices of the items with a defined score, the worst first."""
    defined = [
        (item[column.key][column.name], i)
        for i, item in enumerate(report.items)
        if isinstance(item.get(column.key), dict)
        and isinstance(item[column.key].get(column.name), int | float)
    ]
    sign = -1 if column.direction == "lower" else 1
    return [i for _, i in sorted(defined, key=lambda pair: (sign * pair[0], pair[1]))]


def items(report: Report, order: Sequence[int], columns: Sequence[Column]) -> Table:
    """Return rows of these items."""
    rows = [
        Row(
            str(report.items[i]["name"]),
            [
                cell(record, c.name)
                if isinstance(record := report.items[i].get(c.key), dict)
                else Cell("")
                for c in columns
            ],
            anchor=f"item-{i}",
        )
        for i in order
    ]
    titles = [with_arrow(c.title, c.direction) for c in columns]
    return Table("Items", ["item", *titles], rows)
