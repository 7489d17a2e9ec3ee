"""Tables for all writers, and the format of numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from uqeval.errors import decimals

#: The mark of a value that is computed from bins, that of an interval, and their legend.
MARK = "≈ "
ROUGH = f"{MARK}["
LEGEND = "≈: approximate, computed from bins."

#: Divides the texts of a row into a heading above it and the texts of the remaining columns.
Grouping = Callable[[list[str]], tuple[str, list[str]]]


@dataclass(frozen=True)
class Cell:
    """A value in a table: its text, the reason if it is undefined, its interval, and a verdict.

    `best`: whether it is the best of its row. `starred`: whether it has a star, which a note of the
    table explains. `link`: the anchor of its link.
    """

    text: str
    number: float | None = None
    reason: str = ""
    interval: str = ""
    verdict: str = ""
    best: bool = False
    starred: bool = False
    link: str = ""

    @property
    def is_text(self) -> bool:
        """Return whether the cell has nothing but its text."""
        return not (self.link or self.best or self.reason or self.interval or self.verdict)

    @property
    def plain(self) -> str:
        """Return the text of the cell: its value, its interval and the verdict."""
        return " ".join(filter(None, (self.text, self.interval, self.verdict)))


@dataclass(frozen=True)
class Row:
    """A row of a table: its name and cells, and a hint, an anchor and a link.

    `about`: pairs of heading and text that a page shows on demand. `command`: recomputes the row.
    `heading`: a line above the row, on narrow terminals.
    """

    name: str
    cells: list[Cell]
    hint: str = ""
    anchor: str = ""
    link: str = ""
    about: tuple[tuple[str, str], ...] = ()
    command: str = ""
    heading: str = ""


@dataclass(frozen=True)
class Table:
    """A table for all writers: terminal, page, Markdown, LaTeX, CSV.

    The first of the `columns` is the heading of the row names. `left`: indices of left-aligned
    columns of text. `folded`: whether a page shows the table only on demand. `grouping`: how a
    narrow terminal shortens the rows, by headings above them.
    """

    title: str
    columns: list[str]
    rows: list[Row]
    note: str = ""
    left: frozenset[int] = frozenset({0})
    folded: bool = False
    grouping: Grouping | None = None

    @property
    def texts(self) -> list[list[str]]:
        """Return the rows as texts; where cells are marked as best, the others are padded."""
        marks = any(cell.best for row in self.rows for cell in row.cells)
        unmarked = "  " if marks else ""
        return [
            [row.name, *(cell.plain + (" ★" if cell.best else unmarked) for cell in row.cells)]
            for row in self.rows
        ]

    @property
    def legend(self) -> str:
        """Return what the marks of its cells mean; empty without marks."""
        cells = [cell for row in self.rows for cell in row.cells]
        is_rough = any(ROUGH in cell.plain or cell.text.startswith(MARK) for cell in cells)
        return LEGEND if is_rough else ""

    @property
    def notes(self) -> str:
        """Return the note and the legend."""
        return " ".join(filter(None, (self.note, self.legend)))

    @cached_property
    def reasons(self) -> list[str]:
        """Return the reasons of undefined cells, each reason once."""
        reasons = (cell.reason for row in self.rows for cell in row.cells if cell.reason)
        return list(dict.fromkeys(reasons))

    def mark(self, cell: Cell) -> str:
        """Return the number of a cell's reason."""
        return str(self.reasons.index(cell.reason) + 1) if cell.reason else ""


def text_table(
    title: str,
    columns: list[str],
    rows: list[list[str]],
    note: str = "",
    left: frozenset[int] = frozenset({0}),
    grouping: Grouping | None = None,
) -> Table:
    """Return a table of rows of text."""
    cells = [Row(row[0], [*map(Cell, row[1:])]) for row in rows]
    return Table(title, columns, cells, note, left, grouping=grouping)


def by_address(texts: list[str]) -> tuple[str, list[str]]:
    """Return the address of a row without its last field as heading; the row keeps the field."""
    heading, _, field = texts[0].rpartition(".")
    return heading, [field, *texts[1:]]


@cache
def by_columns(count: int) -> Grouping:
    """Return the grouping whose headings are the first columns."""
    return lambda texts: ("  ".join(filter(None, texts[:count])), texts[count:])


#: A value this close to 1 is a rounded sum: a share of pixels is 1, or smaller than this.
_ROUNDING = 1e-13


def format_number(value: Any, digits: int = 4) -> str:
    """Return a value as text: a number with `digits` decimals, or with three significant digits
    below 0.01; never rounded to 0 or 1; a dash for an undefined value."""
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    if not isinstance(value, float):
        return str(value)
    value += 0.0  # not -0.0
    text = decimals(value, digits)
    if float(text) in (1.0, -1.0) and value != float(text):
        if abs(1 - abs(value)) < _ROUNDING:
            return text
        all_digits = f"{value:.8f}".rstrip("0")
        return all_digits if float(all_digits) not in (1.0, -1.0) else f"{value:.13f}".rstrip("0")
    return text
