"""Cells of a report's values: with the reason where undefined, and with their interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from uqeval.records.intervals import interval, units_of
from uqeval.report.tables.table import Cell, format_number


def cell(record: Mapping[str, Any], name: str, interval: str = "") -> Cell:
    """Return the cell of a record's field, with its reason where it is undefined."""
    value = record.get(name)
    if value is None and name in record:
        return Cell("–", None, str(record.get(f"{name}_reason") or "the report gives no reason"))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Cell("" if name not in record else str(value))
    return Cell(format_number(value), value, "", interval)


def interval_of(
    intervals: Mapping[str, Any], key: str, fields: Sequence[str], level: bool = False
) -> str:
    """Return the interval of a value for the eye: its ends, whether it is approximate, its level if
    asked for, and in how many units the value is defined if not in all.
    """
    found = interval(intervals, key, fields)
    if found is None:
        return ""
    about = "≈ " if found.get("approximate") else ""
    at = f"{100 * found['level']:.4g} %: " if level and found.get("level") else ""
    units = found.get("units") or {}
    part = f" ({units_of(found)})" if units.get("defined") != units.get("drawn") else ""
    return f"{at}{about}[{_end(found['low'])}, {_end(found['high'])}]{part}"


def _end(value: float) -> str:
    """Return an end of an interval; it is an estimate, so it may be rounded to 1."""
    return f"{value:.4f}" if abs(value) > 0.5 else format_number(value)
