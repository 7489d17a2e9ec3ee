"""What a table of a page is made of: cells with their reasons and intervals, rows, grids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from uqeval.report.intervals import interval, units_of
from uqeval.report.table import Table, shown


@dataclass(frozen=True)
class Cell:
    """A value in a table: its text, why it is undefined, its interval, whether it is the best, and
    the anchor that it leads to."""

    text: str
    number: float | None = None
    reason: str = ""
    interval: str = ""
    best: bool = False
    link: str = ""


@dataclass(frozen=True)
class Row:
    """A row of a table: its heading, a hint, an anchor and a link for it, and cells."""

    name: str
    cells: list[Cell]
    hint: str = ""
    anchor: str = ""
    link: str = ""


@dataclass(frozen=True)
class Grid:
    """A table: `corner` heads the rows' names. `notes` are the reasons of what is undefined."""

    title: str
    corner: str
    columns: list[str]
    rows: list[Row]
    folded: bool = False
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        reasons = [cell.reason for row in self.rows for cell in row.cells if cell.reason]
        self.notes.extend(dict.fromkeys(reasons))

    def mark(self, cell: Cell) -> str:
        """The number of a cell's note."""
        return str(self.notes.index(cell.reason) + 1) if cell.reason else ""


def cell(record: Mapping[str, Any], name: str, interval: str = "") -> Cell:
    """The cell of a record's field, with its reason where it is undefined."""
    value = record.get(name)
    if value is None and name in record:
        return Cell("–", None, str(record.get(f"{name}_reason") or "the report gives no reason"))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Cell("" if name not in record else str(value))
    return Cell(shown(value), value, "", interval)


def interval_of(
    intervals: Mapping[str, Any], key: str, fields: Sequence[str], level: bool = False
) -> str:
    """The interval of a value for the eye: its ends, whether it is approximate, its level if asked
    for, and in how many units the value is defined if not in all."""
    found = interval(intervals, key, fields)
    if found is None:
        return ""
    about = "≈ " if found.get("approximate") else ""
    at = f"{100 * found['level']:.4g} %: " if level and found.get("level") else ""
    units = found.get("units") or {}
    part = f" ({units_of(found)})" if units.get("defined") != units.get("drawn") else ""
    return f"{at}{about}[{shown(found['low'])}, {shown(found['high'])}]{part}"


def grid_of(table: Table) -> Grid:
    """A table of text, as it stands."""
    rows = [Row(row[0], [Cell(text) for text in row[1:]]) for row in table.rows]
    return Grid(table.title, table.columns[0], table.columns[1:], rows)
