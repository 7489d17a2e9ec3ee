"""The report as CSV: one row an item."""

from __future__ import annotations

import csv
import io

from uqeval.report.schema import Report


def to_csv(report: Report) -> str:
    """Rows of `report.to_frame()` under a header line; undefined values are empty.

    A name that a spreadsheet would run as a formula is quoted with an apostrophe.
    """
    rows = report.to_frame()
    columns = list(dict.fromkeys(column for row in rows for column in row))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        name = row["name"]
        formula = name.startswith(("=", "+", "-", "@", "\t", "\r"))
        writer.writerow(row | {"name": f"'{name}" if formula else name})
    return buffer.getvalue()
