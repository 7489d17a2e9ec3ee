"""Tables of the headlines of a report: with their intervals, and over its slices."""

from __future__ import annotations

from uqeval.glossary import ARROWS, headlines, label
from uqeval.keys import family_of
from uqeval.records.intervals import interval as interval_at
from uqeval.records.intervals import units_of
from uqeval.records.report import Report
from uqeval.report.tables.cells import interval_of
from uqeval.report.tables.fields import about
from uqeval.report.tables.scores import slices, whole_of
from uqeval.report.tables.settings import resampling
from uqeval.report.tables.table import Table, format_number, text_table

_ROUGH = "≈: approximate, computed from bins."


def headline_table(report: Report, title: str) -> Table:
    """Return the scores of a report that a reader needs first, with those of variants."""
    rows = []
    for key, record in report.results.items():
        family = family_of(key)
        for name in headlines(family):
            if name in record:
                known = about(report, key, name)
                arrow = ARROWS.get(known.get("direction") or "", "")
                interval = interval_of(report.intervals, key, [name])
                held = interval_at(report.intervals, key, [name]) or {}
                score = f"{label(family, name)} {arrow}".strip()
                value = format_number(record[name])
                rows.append([key, score, value, interval, units_of(held)])
    columns, width = ["metric", "score", "value", "interval", "units"], 5
    if not any(row[3] for row in rows):
        width = 3
    return text_table(title, columns[:width], [row[:width] for row in rows], left=frozenset({0, 1}))


def interval_and_slice_tables(report: Report) -> list[Table]:
    """Return intervals and slices, where the report has them."""
    found = []
    if report.intervals and (own := _intervals(report)) is not None:
        found.append(own)
    if report.slices and (own := _slices(report)) is not None:
        found.append(own)
    return found


def _intervals(report: Report) -> Table | None:
    table = headline_table(report, "Intervals")
    rows = [row for row in table.texts if row[3]] if len(table.columns) == 5 else []
    if not rows:
        return None
    return text_table(table.title, table.columns, rows, _note(report, rows), table.left)


def _slices(report: Report) -> Table | None:
    grid = slices(report)
    if grid is None:
        return None
    rows, few = [], False
    for row in grid.rows:
        own = report.slices.get(row.name) or whole_of(report)
        few |= bool(own.get("small"))
        units = f"{units_of(own)}{' (few)' if own.get('small') else ''}".strip()
        counts = [format_number(own.get("items", 0)), units]
        rows.append([row.name, *counts, *(c.plain for c in row.cells)])
    note = _note(report, rows) if any(c.interval for row in grid.rows for c in row.cells) else ""
    if few:
        note = f"few: too few units for the scores to say much. {note}".strip()
    return text_table("Slices", ["slice", "items", "units", *grid.columns[1:]], rows, note)


def _note(report: Report, rows: list[list[str]]) -> str:
    """Return a note: the method of the intervals, and the mark of approximate ones."""
    rough = _ROUGH if any("≈" in text for row in rows for text in row[1:]) else ""
    return " ".join(text for text in (resampling(report), rough) if text)
