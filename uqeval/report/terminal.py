"""The report on a terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from uqeval.report.safe import printable
from uqeval.report.schema import Report
from uqeval.report.tables import tables_of


def show(report: Report, console: Console) -> None:
    """Print the tables, then what to know about the numbers."""
    for table in tables_of(report):
        shown = RichTable(
            title=table.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD,
            pad_edge=False, caption=table.note or None, caption_justify="left",
        )  # fmt: skip
        for i, column in enumerate(table.columns):
            shown.add_column(column, justify="left" if i in table.left else "right")
        for row in table.rows:
            shown.add_row(*(escape(printable(cell)) for cell in row))
        console.print(shown)
    if report.partial:
        console.print("[bold yellow]partial:[/] not all items were evaluated; a gate refuses this.")


def show_warnings(report: Report, console: Console) -> None:
    """Print the warnings, one a line."""
    for text in report.warnings:
        console.print(f"[yellow]warning:[/] {escape(printable(text))}", soft_wrap=True)
