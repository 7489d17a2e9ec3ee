"""The tables of a report, the same on a terminal and in Markdown: headlines, then families."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from uqeval.errors import is_number, listed
from uqeval.glossary import display_of, families, headings, headlines, label, no_meaning
from uqeval.keys import Key, family_of
from uqeval.records.intervals import interval as interval_at
from uqeval.records.intervals import units_of
from uqeval.records.report import Report, model_of, reason_at
from uqeval.records.scalars import BESIDE, with_arrow
from uqeval.report.tables.cells import (
    about,
    headlines_without_interval,
    interval_of,
    some_units,
)
from uqeval.report.tables.scores import slices, whole_of
from uqeval.report.tables.settings import resampling
from uqeval.report.tables.table import (
    Cell,
    Row,
    Table,
    by_address,
    by_columns,
    format_number,
    text_table,
)

if TYPE_CHECKING:
    from uqeval.metrics import Column, Record, RowTable, ScoreTable

#: Stands for a value that a record does not have.
_ABSENT = object()


def family_tables(report: Report) -> list[Table]:
    """Return the tables of all families that the report has results of."""
    tables = []
    for family in families():
        records = {
            key: record for key, record in report.results.items() if family_of(key) == family
        }
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
            tables_of_family = [self._of_scores(declared)]
        elif declared.variant is not None and len(self.records) > 1:
            tables_of_family = [self._of_variants(declared, declared.variant)]
        else:
            keys = list(self.records)[: None if declared.every else 1]
            tables_of_family = [self._of_rows(declared, key) for key in keys]
        return [table for table in tables_of_family if table is not None]

    def _of_scores(self, declared: ScoreTable) -> Table | None:
        rows: list[tuple[str, Record]] = []
        for key, record in self.records.items():
            heading = declared.row(key, record)
            if heading not in (name for name, _ in rows):
                rows.append((heading, record))
                rows += declared.below(record) if declared.below else ()
        table = self._table(declared.title, declared, rows)
        if table is None:
            return None
        notes = (table.note, without_meaning(self.records))
        return replace(table, note=" ".join(filter(None, notes)))

    def _of_variants(self, declared: RowTable, heading_of: Callable[[Record], str]) -> Table | None:
        """Return one table with the rows of all variants, those of the same place together."""
        by_variant = [
            (heading_of(record), _entries(record.get(declared.field))[: declared.most])
            for record in self.records.values()
        ]
        longest = max(len(entries) for _, entries in by_variant)
        if longest < declared.least:
            return None
        rows = [
            (f"{declared.row(entries[i])} · {heading}", entries[i])
            for i in range(longest)
            for heading, entries in by_variant
            if i < len(entries)
        ]
        return self._table(declared.title, declared, rows)

    def _of_rows(self, declared: RowTable, key: str) -> Table | None:
        entries = _entries(self.records[key].get(declared.field))
        if len(entries) < declared.least:
            return None
        rows = [(declared.row(entry), entry) for entry in entries[: declared.most]]
        if declared.last is not None:
            heading, field = declared.last
            rows.append((heading, self.records[key].get(field) or {}))
        model = model_of(self.report, key)
        name = f"{key}: {model}" if model not in (Key.parse(key).variant or "") else key
        table = self._table(f"{declared.title} ({name})", declared, rows)
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
        table_rows = []
        for (name, record), row_values in zip(rows, values, strict=True):
            cells = [_cell(*pair, record) for pair in zip(columns, row_values, strict=True)]
            if any(cell.text for cell in cells):
                table_rows.append(Row(name, cells))
        if not table_rows:
            return None
        text = [
            i
            for i, column_values in enumerate(zip(*values, strict=True), 1)
            if any(isinstance(value, str) for value in column_values)
        ]
        fields = headings(self.family, [column.field for column in columns])
        heads = [column.heading or field for column, field in zip(columns, fields, strict=True)]
        return Table(
            title, [declared.corner, *heads], table_rows, declared.note, frozenset({0, *text})
        )

    def _value(self, column: Column, record: Record) -> Any:
        """Return the value in a column; `_ABSENT` where the record has no such field."""
        value = _field_at(record, column.field)
        if column.value is None or value is _ABSENT:
            return value
        return column.value(record, self.report)


def _field_at(record: Record, field: str) -> Any:
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
    for field_or_column in declared:
        column = Column(field_or_column) if isinstance(field_or_column, str) else field_or_column
        part, star, _ = column.field.partition(".*")
        if not star:
            if any(_field_at(record, column.field) is not _ABSENT for record in records):
                columns.append(column)
            continue
        entries = dict.fromkeys(name for record in records for name in record.get(part) or ())
        columns += [
            replace(column, field=f"{part}.{name}", heading=column.heading.format(name))
            for name in entries
            if not name.endswith(BESIDE)
        ]
    return columns


def _cell(column: Column, value: Any, record: Record) -> Cell:
    if value is _ABSENT:
        return Cell("")
    if is_number(value):
        text = f"{value:{column.form}}" if column.form else format_number(value, column.digits)
        return Cell(text, value)
    reason = reason_at(record, column.field.split(".")) if value is None else None
    return Cell(format_number(value), None, reason or "")


def _entries(value: Any) -> list[Record]:
    """Return a list of records; a record of lists, such as bins, as records."""
    if isinstance(value, Mapping):
        lists = {name: items for name, items in value.items() if isinstance(items, list)}
        return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
    return value if isinstance(value, list) else []


def headline_table(report: Report, title: str) -> Table:
    """Return the table of headlines of a report, with those of variants."""
    rows = []
    for key, record in report.results.items():
        family = family_of(key)
        for name in headlines(key):
            if name in record:
                description = about(report, key, name)
                interval = interval_of(report.intervals, key, [name], units=False)
                interval_record = interval_at(report.intervals, key, [name]) or {}
                score = with_arrow(label(family, name), description.get("direction"))
                value = format_number(record[name])
                rows.append([key, score, value, interval, some_units(interval_record, key, [name])])
    columns, width = ["metric", "score", "value", "interval", "units"], 5
    if not any(row[3] for row in rows):
        width = 3
    notes = (headlines_without_interval(report), without_meaning(report.results))
    return text_table(
        title, columns[:width], [row[:width] for row in rows], " ".join(filter(None, notes)),
        left=frozenset({0, 1}), grouping=by_columns(1),
    )  # fmt: skip


def without_meaning(results: Mapping[str, Record]) -> str:
    """Return a note on headlines that say nothing in the regions of some results, with the
    reasons; or nothing."""
    keys: dict[tuple[str, str], list[str]] = {}
    for key, record in results.items():
        family = family_of(key)
        for name in headlines(family):
            if name in record and (reason := no_meaning(key, name)):
                keys.setdefault((label(family, name), reason), []).append(key)
    return " ".join(
        f"{name} is not meaningful in {listed(places, 3)}: {reason}."
        for (name, reason), places in keys.items()
    )


def _intervals(report: Report) -> Table | None:
    if not report.intervals:
        return None
    table = headline_table(report, "Intervals")
    rows = [row for row in table.texts if row[3]] if len(table.columns) == 5 else []
    if not rows:
        return None
    note = f"{resampling(report)} {table.note}".strip()
    return text_table(table.title, table.columns, rows, note, table.left, table.grouping)


def _slices(report: Report) -> Table | None:
    if not report.slices or (grid := slices(report)) is None:
        return None
    rows, has_few = [], False
    for row in grid.rows:
        slice_record = report.slices.get(row.name) or whole_of(report)
        has_few |= bool(slice_record.get("small"))
        units = f"{units_of(slice_record)}{' (few)' if slice_record.get('small') else ''}".strip()
        counts = [format_number(slice_record.get("items", 0)), units]
        rows.append([row.name, *counts, *(c.plain for c in row.cells)])
    has_intervals = any(c.interval for row in grid.rows for c in row.cells)
    note = resampling(report) if has_intervals else ""
    few = "few: the slice has too few units for reliable scores." if has_few else ""
    note = " ".join(filter(None, (few, grid.note, note)))
    return text_table("Slices", ["slice", "items", "units", *grid.columns[1:]], rows, note)


def tables_of(report: Report) -> list[Table]:
    """Return the tables of a report: of its families, of a sweep, of intervals and slices."""
    tables = family_tables(report)
    if "sweep" in report.results:
        tables.append(_sweep(report))
    tables += filter(None, (_intervals(report), _slices(report)))
    return [_explained(table) for table in tables]


def _explained(table: Table) -> Table:
    """Return the table; a note explains its dashes, if it has any."""
    if not any(text == format_number(None) for row in table.texts for text in row):
        return table
    return replace(table, note=f"{table.note} –: undefined; the report has the reason.".strip())


def _sweep(report: Report) -> Table:
    sweep = report.results["sweep"]
    first: dict[str, Any] = next(iter(sweep.values()), {"m": [], "repeats": []})
    rows = []
    for name, record in sweep.items():
        if name in report.metrics:
            family, _, field = name.partition(".")
            score = label(family, field)
            is_same = field.replace("_", " ").casefold() == score.casefold()
            heading = name if is_same else f"{name}: {score}"  # not "pavpu.phi: phi"
            values = map(_plus_minus, record["mean"], record["std"], record["repeats"])
            rows.append([with_arrow(heading, report.metrics[name].get("direction")), *values])
    counts = ", ".join(map(str, first["repeats"]))
    return text_table(
        "Over the number of samples M",
        ["", *(f"M = {m}" for m in first["m"])],
        rows,
        f"mean ± std over subsets of the samples; numbers of subsets: {counts}.",
        grouping=by_address,
    )


def _plus_minus(mean: float | None, std: float | None, repeats: int) -> str:
    """Return mean ± std as text; of a single subset only its value, which varies over nothing."""
    if mean is None or std is None:
        return format_number(None)
    if repeats == 1:
        return format_number(mean)
    return f"{format_number(mean)} ± {format_number(std)}"
