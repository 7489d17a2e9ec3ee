"""The report on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.table import Table as RichTable

from uqeval.errors import printable
from uqeval.records.report import Report
from uqeval.report.findings import findings_of
from uqeval.report.findings.scores import Finding
from uqeval.report.tables.of_report import tables_of
from uqeval.report.tables.table import Table, text_table

#: Wide tables with at most this number of rows are transposed.
_FEW = 4


def turned(table: Table) -> Table:
    """Return the table with its rows as columns."""
    first, *headings = table.columns
    texts = table.texts
    columns = [first, *(row[0] for row in texts)]
    rows = [[name, *(row[i] for row in texts)] for i, name in enumerate(headings, 1)]
    return text_table(table.title, columns, rows, table.note)


def split(table: Table, width: int) -> list[Table]:
    """Return the table split into tables that fit `width`, each with the first column."""
    widths = _widths(table)
    groups: list[list[int]] = [[]]
    for i in range(1, len(table.columns)):
        width_so_far = widths[0] + sum(widths[k] for k in groups[-1])
        if groups[-1] and width_so_far + widths[i] > width:
            groups.append([])
        groups[-1].append(i)
    parts = []
    for n, group in enumerate(groups):
        chosen = [0, *group]
        parts.append(
            text_table(
                table.title if n == 0 else f"{table.title}, continued",
                [table.columns[i] for i in chosen],
                [[row[i] for i in chosen] for row in table.texts],
                table.note if n == len(groups) - 1 else "",
                frozenset(k for k, i in enumerate(chosen) if i in table.left),
            )
        )
    return parts


def _widths(table: Table) -> list[int]:
    """Return the width of each column in characters, with its spacing."""
    cells = [table.columns, *table.texts]
    return [max(len(printable(row[i])) for row in cells) + 3 for i in range(len(table.columns))]


def show(report: Report, console: Console) -> None:
    """Print the tables, the findings, and a note if the report is partial."""
    for table in tables_of(report):
        if sum(_widths(table)) > console.width and len(table.rows) <= _FEW:
            table = turned(table)
        for part in split(table, console.width):
            print_table(part, console)
    show_findings(findings_of(report), console)
    if report.partial:
        console.print("[bold yellow]partial:[/] not all items were evaluated; a gate refuses this.")


def show_findings(findings: Sequence[Finding], console: Console) -> None:
    """Print one paragraph per finding, wrapped at words."""
    for finding in findings:
        text = f"[bold]{escape(finding.title)}:[/] {escape(printable(finding.text))}"
        console.print(text, highlight=False)
    if findings:
        console.print()


def print_table(table: Table, console: Console) -> None:
    """Print one table with its title and note."""
    rich_table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, column in enumerate(table.columns):
        justify: JustifyMethod = "left" if i in table.left else "right"
        rich_table.add_column(escape(printable(column)), justify=justify)
    for row in table.texts:
        rich_table.add_row(*(escape(printable(cell)) for cell in row))
    console.print(f"[bold]{escape(printable(table.title))}[/]", highlight=False)
    console.print(rich_table)
    if table.note:
        console.print(f"[dim]{escape(table.note)}[/]", highlight=False)
        console.print()


def show_warnings(report: Report, console: Console) -> None:
    """Print one line per warning."""
    for text in report.warnings:
        console.print(f"[yellow]warning:[/] {escape(printable(text))}", soft_wrap=True)
