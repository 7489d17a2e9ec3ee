"""The tables of a report: the same on a terminal and in Markdown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from uqeval.records.report import Report
from uqeval.report.tables.families import family_tables
from uqeval.report.tables.headlines import interval_and_slice_tables
from uqeval.report.tables.table import Table, format_number, text_table


def tables_of(report: Report) -> list[Table]:
    """Return the tables of a report: of its families, of a sweep, of intervals and slices."""
    tables = family_tables(report)
    if "sweep" in report.results:
        tables.append(_sweep(report))
    tables += interval_and_slice_tables(report)
    return [_explained(table) for table in tables]


def _explained(table: Table) -> Table:
    """Return the table; a note explains its dashes, if it has any."""
    if not any(text == format_number(None) for row in table.texts for text in row):
        return table
    return replace(table, note=f"{table.note} –: undefined; the report says why.".strip())


def _sweep(report: Report) -> Table:
    sweep = report.results["sweep"]
    first: dict[str, Any] = next(iter(sweep.values()), {"m": [], "repeats": []})
    rows = [
        [name, *map(_plus_minus, record["mean"], record["std"])]
        for name, record in sweep.items()
        if name in report.metrics
    ]
    repeats = first["repeats"]
    return text_table(
        "Over the number of samples M",
        ["", *(f"M = {m}" for m in first["m"])],
        rows,
        f"mean ± std over {', '.join(map(str, repeats))} subset{'s' * (set(repeats) != {1})} "
        "of the samples.",
    )


def _plus_minus(mean: float | None, std: float | None) -> str:
    if mean is None or std is None:
        return format_number(None)
    return f"{format_number(mean)} ± {std:.4f}"
