"""The report as Markdown tables, for a pull request or a job summary."""

from __future__ import annotations

import re

from uqeval.disk.files import content_of
from uqeval.errors import printable
from uqeval.records.report import Report
from uqeval.report.tables.of_report import tables_of
from uqeval.report.tables.table import Table

#: What starts code, emphasis, links or tables; GitHub links URLs without brackets too. An
#: underscore inside a word starts no emphasis.
_SPECIAL = re.compile(
    r"[\\|`\[*~]|(?<![^\W_])_|_(?![^\W_])|(?<=\bhttp):(?=//)|(?<=\bhttps):(?=//)|(?<=\bftp):(?=//)"
    r"|(?<=\bwww)\.",
    re.IGNORECASE,
)
#: The sign before the name of a user; only a comment keeps GitHub from linking it.
_MENTION = re.compile(r"(?<!\w)@(?=\w)")


def to_markdown(report: Report) -> str:
    """Return title, tables and warnings as GitHub-flavoured Markdown.

    Raises `StoreError` for a report whose content is not as uqeval writes it.
    """
    with content_of("the report"):
        predictions = ", ".join(store["path"] for store in report.inputs["predictions"])
        lines = [f"## uqeval: {cell(predictions)}", ""]
        if report.partial:
            lines += ["**Partial:** not all items were evaluated.", ""]
        for table in tables_of(report):
            lines += section_lines(table)
        if report.warnings:
            lines += ["### Warnings", "", *(f"- {cell(text)}" for text in report.warnings), ""]
        return "\n".join(lines)


def section_lines(table: Table) -> list[str]:
    """Return the lines of a table between its title and its notes."""
    notes = [f"<sub>{cell(table.notes)}</sub>", ""] if table.notes else []
    return [f"### {cell(table.title)}", "", *table_lines(table), "", *notes]


def table_lines(table: Table) -> list[str]:
    """Return the lines of a Markdown table."""
    marks = [":--" if i in table.left else "--:" for i in range(len(table.columns))]
    columns, *rows = [[cell(c) for c in row] for row in (table.columns, *table.texts)]
    rows = [columns, marks, *rows]
    return [f"| {' | '.join(row)} |" for row in rows]


def cell(text: str) -> str:
    """Return text escaped for a table cell: no HTML, code, emphasis, links, images or mentions."""
    text = printable(text.replace("\n", " "))
    text = text.replace("&", "&amp;").replace("<", "&lt;")
    text = _SPECIAL.sub(r"\\\g<0>", text)
    return _MENTION.sub("@<!-- -->", text)
