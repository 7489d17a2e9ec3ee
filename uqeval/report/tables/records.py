"""Rows and curves of a record as tables of a page."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from uqeval.glossary import headlines, label
from uqeval.keys import Key, family_of
from uqeval.records.intervals import class_of
from uqeval.records.report import Report
from uqeval.records.scalars import BESIDE
from uqeval.report.page.items_behind_cell import anchor, percentiles
from uqeval.report.tables.cells import cell, interval_of
from uqeval.report.tables.table import Cell, Row, Table, format_number

#: Points of a curve that a table shows, its first and last ones among them; the report has all.
MOST_POINTS = 51


def tables(report: Report, key: str, targets: Collection[str] = ()) -> list[Table]:
    """Return tables of the rows of a record (by class, by depth, …) and of its curves, folded.

    Cells and bins link to their items if the page's `targets` have them.
    """

    def link(*cell: int) -> str:
        target = anchor(report, key, *cell)
        return target if target in targets else ""

    result: list[Table] = []
    family = family_of(key)
    for name, value in report.results[key].items():
        text = label(family, name)
        title = f"{text[:1].upper()}{text[1:]} ({key})"
        if isinstance(value, list) and value and isinstance(value[0], dict):
            result.append(_of_rows(title, value, report, key, name))
        elif isinstance(value, dict) and family != "sweep":
            rows = value.get("rows")
            columns = {
                n: v for n, v in value.items()
                if isinstance(v, list) and v and not isinstance(v[0], dict | list)
            }  # fmt: skip
            if isinstance(rows, list) and rows and isinstance(rows[0], dict):
                result.append(_of_lists(title, rows, percentiles(value), link))
            elif columns and len({len(v) for v in columns.values()}) == 1:
                is_curve = name != "reliability"  # its bins are links to their items
                own = (lambda *cell: "") if is_curve else link
                result.append(_of_columns(title, family, columns, value, own, is_curve))
    return result


def _of_rows(
    title: str, rows: Sequence[Mapping[str, Any]], report: Report, key: str, place: str
) -> Table:
    names = [
        n
        for n in dict.fromkeys(n for row in rows for n in row)
        if not n.endswith(BESIDE)
        and n not in ("class", "name")
        and not isinstance(rows[0].get(n), list)
    ]
    flat = [(row, {n: row.get(n) for n in names if isinstance(row.get(n), dict)}) for row in rows]
    names = [n for n in names if not any(n in nested for _, nested in flat)]
    head = names.pop(0) if "name" not in rows[0] and "lower" not in rows[0] else ""
    if "lower" in names and "upper" in names:
        names = [n for n in names if n not in ("lower", "upper")]
    family = family_of(key)
    first = headlines(key)  # headlines before their components
    names = [*(n for n in first if n in names), *(n for n in names if n not in first)]
    table_rows = []
    for row in rows:
        if "name" in row:
            title_of = str(row["name"])
        elif head:
            title_of = format_number(row.get(head))
        else:
            title_of = f"{row['lower']:g} – {row['upper']:g}"
        of = class_of(rows, row)
        cells = [cell(row, n, interval_of(report.intervals, key, (place, of, n))) for n in names]
        table_rows.append(Row(title_of, cells))
    corner = "class" if "class" in rows[0] else label(family, head) if head else "interval"
    # A page with regions has many of these tables, so fold those of regions.
    folded = Key.parse(key).region is not None
    return Table(title, [corner, *(label(family, n) for n in names)], table_rows, folded=folded)


def _of_lists(
    title: str, rows: Sequence[Mapping[str, Any]], columns: list[str], link: Callable[..., str]
) -> Table:
    """Return a table of rows that contain lists, such as a heat map; a cell has all values of its
    column, separated by slashes."""
    names = [n for n, v in rows[0].items() if isinstance(v, list)]
    table_rows = []
    for y, row in enumerate(rows):
        cells = [
            Cell(" / ".join(format_number(row[n][x], 3) for n in names), link=link(y, x))
            for x in range(len(columns))
        ]
        table_rows.append(Row(str(row.get("name")), cells))
    return Table(f"{title}: {' / '.join(names)}", ["class", *columns], table_rows, folded=True)


def _of_columns(
    title: str, family: str, columns: Mapping[str, Sequence[Any]], record: Mapping[str, Any],
    link: Callable[..., str], is_curve: bool,
) -> Table:  # fmt: skip
    names = list(columns)
    points = list(zip(*columns.values(), strict=True))
    shown: Sequence[int] = range(len(points))
    if is_curve and len(points) > MOST_POINTS:
        last = MOST_POINTS - 1
        shown = [round(i * (len(points) - 1) / last) for i in range(MOST_POINTS)]
        title += f": {MOST_POINTS} of {len(points)} points"
    rows = []
    for i in shown:
        first, *values = points[i]
        cells = [
            Cell("–", None, str(record.get(f"{n}_reason") or "nothing there")) if v is None
            else Cell(format_number(v), v if isinstance(v, int | float) else None)
            for n, v in zip(names[1:], values, strict=True)
        ]  # fmt: skip
        rows.append(Row(format_number(first), cells, link=link(i)))
    return Table(title, [label(family, n) for n in names], rows, folded=True)
