"""The report on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich import box
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from uqeval.errors import printable
from uqeval.records.report import Report
from uqeval.report.findings import findings_of
from uqeval.report.findings.scores import Finding
from uqeval.report.tables.of_report import tables_of
from uqeval.report.tables.table import Cell, Row, Table, text_table

#: Wide tables with at most this number of rows are transposed.
_FEW = 4
#: Rows below a heading are indented by this number of characters.
_INDENT = 2
#: A last column of text may be as narrow as this.
_LEAST = 12
#: A character for private use, of the width of a space.
_NO_BREAK = "\ue000"


def transposed(table: Table) -> Table:
    """Return the table with its rows as columns; the new names of rows have no heading."""
    headings = table.columns[1:]
    texts = table.texts
    columns = ["", *(row[0] for row in texts)]
    rows = [[name, *(row[i] for row in texts)] for i, name in enumerate(headings, 1)]
    return text_table(table.title, columns, rows, table.note)


def fitted(table: Table, width: int) -> list[Table]:
    """Return the table as tables that fit `width`.

    A wide table is grouped under headings, or transposed if it has few rows, or split by column.
    Several rows, such as slices, are not transposed if a split would then part them: they are there
    to be compared.
    """
    if _total(table) <= width:
        return [table]
    if table.grouping is None and len(table.rows) <= _FEW:
        turned = transposed(table)
        table = turned if len(table.rows) == 1 or _total(turned) <= width else table
    grouped = _grouped(table)
    if _total(grouped) - _slack(grouped) <= width:
        return [grouped]
    return _split(grouped, width)


def _grouped(table: Table) -> Table:
    """Return the table with the start of its rows as headings; the same without a grouping."""
    if table.grouping is None or not table.rows:
        return table
    pairs = [table.grouping(texts) for texts in table.texts]
    dropped = len(table.columns) - len(pairs[0][1])
    rows = [Row(rest[0], [*map(Cell, rest[1:])], heading=heading) for heading, rest in pairs]
    left = frozenset(i - dropped for i in table.left) | {0}
    return Table(table.title, table.columns[dropped:], rows, table.note, left)


def _split(table: Table, width: int) -> list[Table]:
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
        rows = [
            Row(texts[0], [Cell(texts[i]) for i in group], heading=row.heading)
            for row, texts in zip(table.rows, table.texts, strict=True)
        ]
        parts.append(
            Table(
                table.title if n == 0 else f"{table.title}, continued",
                [table.columns[i] for i in (0, *group)],
                rows,
                table.note if n == len(groups) - 1 else "",
                frozenset(k for k, i in enumerate((0, *group)) if i in table.left),
            )
        )
    return parts


def _widths(table: Table) -> list[int]:
    """Return the width of each column in characters, with its spacing."""
    cells = [table.columns, *table.texts]
    widths = [cell_len(max((printable(row[i]) for row in cells), key=cell_len)) + 3
              for i in range(len(table.columns))]  # fmt: skip
    if any(row.heading for row in table.rows):
        widths[0] += _INDENT
    return widths


def _total(table: Table) -> int:
    """Return the width of a table in characters."""
    return sum(_widths(table))


def _slack(table: Table) -> int:
    """Return by how many characters the last column can be narrower, if it has text to wrap."""
    last = len(table.columns) - 1
    return max(0, _widths(table)[last] - 3 - _LEAST) if last in table.left else 0


def show(report: Report, console: Console, path: str | None = None) -> None:
    """Print the tables, the findings, and a note if the report is partial.

    `path`: the file of the report, for commands.
    """
    for table in tables_of(report):
        for part in fitted(table, console.width):
            print_table(part, console)
    show_findings(findings_of(report, path=path), console)
    if report.partial:
        console.print("[bold yellow]partial:[/] not all items were evaluated; a gate refuses this.")


def show_findings(findings: Sequence[Finding], console: Console) -> None:
    """Print one paragraph per finding, wrapped at words, and its command on one line."""
    for finding in findings:
        text = f"[bold]{escape(finding.title)}:[/] {escape(printable(finding.text))}"
        _print_text(text, console)
        if finding.command:
            command = escape(printable(finding.command))
            console.print(f"  {command}", highlight=False, soft_wrap=True)
    if findings:
        console.print()


def _print_text(markup: str, console: Console) -> None:
    """Print a paragraph, wrapped at words, but not between a number and its "%".

    Rich also wraps at no-break spaces, so another character takes their place meanwhile.
    """
    text = Text.from_markup(markup, emoji=False)
    text.plain = text.plain.replace(" %", _NO_BREAK + "%")
    for line in text.wrap(console, console.width):
        line.plain = line.plain.replace(_NO_BREAK, " ")
        console.print(line, highlight=False, soft_wrap=True)


def print_table(table: Table, console: Console) -> None:
    """Print one table with its title, headings and note."""
    console.print(f"[bold]{escape(printable(table.title))}[/]", highlight=False)
    if any(row.heading for row in table.rows):
        _print_grouped(table, console)
    else:
        rich_table = _rich_table(table, None)
        widths = [width - 3 for width in _widths(table)]
        for texts in table.texts:
            rich_table.add_row(*_cells(table, texts, widths))
        console.print(rich_table)
    if table.notes:
        _print_text(f"[dim]{escape(table.notes)}[/]", console)
        console.print()


def _rich_table(table: Table, widths: list[int] | None) -> RichTable:
    """Return a table without rows, with its heading or, with `widths`, with fixed columns."""
    rich_table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=widths is None)
    for i, column in enumerate(table.columns):
        justify: JustifyMethod = "left" if i in table.left else "right"
        rich_table.add_column(
            _escaped(column), justify=justify, width=None if widths is None else widths[i]
        )
    return rich_table


def _cells(table: Table, texts: list[str], widths: list[int]) -> list[Text]:
    """Return the cells of a row.

    The spaces below a star end a cell. Rich drops such spaces of cells that it aligns to the right,
    so these cells are filled up to the width of their column, and aligned to the left.
    """
    cells = []
    for i, text in enumerate(texts):
        cell = Text.from_markup(_escaped(text), emoji=False)
        if i not in table.left and text.endswith(" "):
            cell.pad_left(widths[i] - cell.cell_len)
            cell.justify = "left"
        cells.append(cell)
    return cells


def _print_grouped(table: Table, console: Console) -> None:
    """Print the rows under their headings, all with the same columns."""
    widths = [width - 3 for width in _widths(table)]
    widths[-1] -= max(0, _total(table) - console.width)
    console.print()
    console.print(Padding(_rich_table(table, widths), (0, 0, 0, 1), expand=False))
    widths[0] -= _INDENT
    rows = zip(table.rows, table.texts, strict=True)
    for heading, group in groupby(rows, key=lambda pair: pair[0].heading):
        part = _rich_table(table, widths)
        part.show_header = False
        for _, texts in group:
            part.add_row(*_cells(table, texts, widths))
        if heading:
            console.print(f" [bold]{_escaped(heading)}[/]", highlight=False, soft_wrap=True)
        console.print(Padding(part, (0, 0, 0, 1 + _INDENT), expand=False))
    console.print()


def _escaped(text: str) -> str:
    """Return a text without control characters and markup."""
    return escape(printable(text))


def show_warnings(report: Report, console: Console) -> None:
    """Print one line per warning."""
    for text in report.warnings:
        console.print(f"[yellow]warning:[/] {escape(printable(text))}", soft_wrap=True)
