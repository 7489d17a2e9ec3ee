"""Tables that families declare, made from a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from uqeval.glossary import display_of, families, headings
from uqeval.keys import family_of
from uqeval.records.report import Report
from uqeval.report.tables.table import Cell, Row, Table, format_number

if TYPE_CHECKING:
    from uqeval.metrics import Column, Record, RowTable, ScoreTable

#: What a record has beside its values.
_BESIDE = ("_reason", "_bound")
#: Stands for a value that a record does not have.
_ABSENT = object()


def family_tables(report: Report) -> list[Table]:
    """Return the tables of all families that the report has results of."""
    tables = []
    for family in families():
        records = {key: own for key, own in report.results.items() if family_of(key) == family}
        for declared in display_of(family).tables if records else ():
            tables += _Maker(report, family, records).tables(declared)
    return tables


class _Maker:
    """Makes the tables of one family. `records`: its results by key."""

    def __init__(self, report: Report, family: str, records: Mapping[str, Record]) -> None:
        self.report, self.family, self.records = report, family, records

    def tables(self, declared: ScoreTable | RowTable) -> list[Table]:
        """Return the tables of a declaration; none where they would have no rows."""
        from uqeval.metrics import ScoreTable

        if isinstance(declared, ScoreTable):
            made = [self._of_scores(declared)]
        else:
            keys = list(self.records)[: None if declared.every else 1]
            made = [self._of_rows(declared, key) for key in keys]
        return [table for table in made if table is not None]

    def _of_scores(self, declared: ScoreTable) -> Table | None:
        rows: list[tuple[str, Record]] = []
        for key, record in self.records.items():
            heading = declared.row(key, record)
            if heading not in (name for name, _ in rows):
                rows.append((heading, record))
                rows += declared.below(record) if declared.below else ()
        return self._table(declared.title, declared, rows)

    def _of_rows(self, declared: RowTable, key: str) -> Table | None:
        entries = _entries(self.records[key].get(declared.field))
        if len(entries) < declared.least:
            return None
        rows = [(declared.row(own), own) for own in entries[: declared.most]]
        if declared.last is not None:
            heading, field = declared.last
            rows.append((heading, self.records[key].get(field) or {}))
        table = self._table(f"{declared.title} ({key})", declared, rows)
        if table is None or declared.most is None or len(entries) <= declared.most:
            return table
        count = f"{declared.most} of {len(entries)} rows; the report has all."
        return replace(table, note=f"{count} {table.note}".strip())

    def _table(
        self, title: str, declared: ScoreTable | RowTable, rows: Sequence[tuple[str, Record]]
    ) -> Table | None:
        """Return the table of the columns and rows that have values; None if there are none."""
        columns = _columns(declared.columns, [record for _, record in rows])
        values = [[self._value(column, record) for column in columns] for _, record in rows]
        made = []
        for (name, record), own in zip(rows, values, strict=True):
            cells = [_cell(*pair, record) for pair in zip(columns, own, strict=True)]
            if any(cell.text for cell in cells):
                made.append(Row(name, cells))
        if not made:
            return None
        text = [i for i, own in enumerate(zip(*values, strict=True), 1) if _is_text(own)]
        fields = headings(self.family, [column.field for column in columns])
        heads = [column.heading or field for column, field in zip(columns, fields, strict=True)]
        return Table(title, [declared.corner, *heads], made, declared.note, frozenset({0, *text}))

    def _value(self, column: Column, record: Record) -> Any:
        """Return the value in a column; `_ABSENT` where the record has no such field."""
        value = _at(record, column.field)
        if column.value is None or value is _ABSENT:
            return value
        return column.value(record, self.report)


def _at(record: Record, field: str) -> Any:
    value: Any = record
    for name in field.split("."):
        if value is None:  # an undefined part
            return None
        if not isinstance(value, Mapping) or name not in value:
            return _ABSENT
        value = value[name]
    return value


def _columns(declared: Sequence[str | Column], records: Sequence[Record]) -> list[Column]:
    """Return the columns whose field a record has; `coverage.*` as one column for each entry."""
    from uqeval.metrics import Column

    columns = []
    for own in declared:
        column = Column(own) if isinstance(own, str) else own
        part, star, _ = column.field.partition(".*")
        if not star:
            if any(_at(record, column.field) is not _ABSENT for record in records):
                columns.append(column)
            continue
        entries = dict.fromkeys(name for record in records for name in record.get(part) or ())
        columns += [
            replace(column, field=f"{part}.{name}", heading=column.heading.format(name))
            for name in entries
            if not name.endswith(_BESIDE)
        ]
    return columns


def _cell(column: Column, value: Any, record: Record) -> Cell:
    if value is _ABSENT:
        return Cell("")
    reason = "" if value is not None else str(_at_reason(record, column.field))
    if isinstance(value, int | float) and not isinstance(value, bool):
        text = f"{value:{column.form}}" if column.form else format_number(value, column.digits)
        return Cell(text, value)
    return Cell(format_number(value), None, reason)


def _at_reason(record: Record, field: str) -> Any:
    reason = _at(record, f"{field}_reason")
    return "" if reason in (_ABSENT, None) else reason


def _is_text(values: Sequence[Any]) -> bool:
    return any(isinstance(value, str) for value in values)


def _entries(value: Any) -> list[Record]:
    """Return a list of records; a record of lists, such as bins, as records."""
    if isinstance(value, Mapping):
        lists = {name: own for name, own in value.items() if isinstance(own, list)}
        return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
    return value if isinstance(value, list) else []
