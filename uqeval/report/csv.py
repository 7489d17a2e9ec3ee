"""Tables as CSV; a report becomes one row per item."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from uqeval.errors import is_number
from uqeval.records.report import Report
from uqeval.report.tables.table import Cell, Row, Table


def to_csv(report: Report) -> str:
    """Return rows of `report.to_frame()` under a header line."""
    rows = report.to_frame()
    return csv_of(table_of(list(dict.fromkeys(column for row in rows for column in row)), rows))


def table_of(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Table:
    """Return a table of records; values that a record lacks are empty."""
    cells = [[_cell(record.get(column)) for column in columns] for record in rows]
    return Table("", list(columns), [Row(first.text, rest) for first, *rest in cells])


def csv_of(table: Table) -> str:
    """Return a table as CSV: numbers are not rounded, undefined values are empty.

    A text that a spreadsheet would run as a formula is quoted with an apostrophe.
    """
    rows = [[_no_formula(row.name), *map(_value, row.cells)] for row in table.rows]
    return "".join(map(_line, [table.columns, *rows]))


def _cell(value: Any) -> Cell:
    return Cell("" if value is None else str(value), value if is_number(value) else None)


def _value(cell: Cell) -> Any:
    return _no_formula(cell.text) if cell.number is None else cell.number


def _no_formula(text: str) -> str:
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _line(values: Iterable[Any]) -> str:
    # Write with CR LF: before Python 3.13, a CR in a name is quoted only with this line end.
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\r\n").writerow(values)
    return buffer.getvalue()[:-2] + "\n"
