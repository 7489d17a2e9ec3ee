"""The report as CSV: one row an item."""

from __future__ import annotations

import csv
import io
from typing import Any

from uqeval.report.schema import Report


def to_csv(report: Report) -> str:
    """Return rows of `report.to_frame()` under a header line; undefined values are empty.

    A name that a spreadsheet would run as a formula is quoted with an apostrophe.
    """
    rows = report.to_frame()
    columns = list(dict.fromkeys(column for row in rows for column in row))
    lines = [_line(columns)]
    for row in rows:
        named = row | {"name": no_formula(row["name"])}
        lines.append(_line([named.get(column) for column in columns]))
    return "".join(lines)


def no_formula(name: str) -> str:
    """Return the name, with an apostrophe before it if a spreadsheet would run it as a formula."""
    return f"'{name}" if name.startswith(("=", "+", "-", "@", "\t", "\r")) else name


def _line(values: list[Any]) -> str:
    # Ended by CR LF while it is written: before Python 3.13 a CR in a name is only quoted then.
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\r\n").writerow(values)
    return buffer.getvalue()[:-2] + "\n"
