"""The units that a value of a report is computed from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from uqeval.records.lookup import Score
from uqeval.records.report import Report
from uqeval.records.resampling import Units


def recorded_units(record: Any) -> Units | None:
    """Return the units in the record of an interval; None if it has none."""
    units = record.get("units") if isinstance(record, Mapping) else None
    if not isinstance(units, Mapping):
        return None
    return Units(
        str(units.get("name", "item")),
        _count(units.get("drawn")) or 0,
        _count(units.get("defined")),
        _number(record.get("lag1")),
        _number(record.get("effective")),
    )


def units_of(report: Report, score: Score) -> Units:
    """Return the units of a value: those of its interval, or else groups or items of the report.

    An item counts as defined if its record has the score; None if no record has such a score.
    """
    recorded = recorded_units(score.intervals.get(score.address.within))
    if recorded is not None:
        return recorded
    items = [item for item in report.items if score.holds(str(item.get("name")))]
    settings = report.settings.get("intervals")
    groups = settings.get("groups") if isinstance(settings, Mapping) else None
    name = "pair" if "frames" in report.inputs else "item"
    units: list[str] = [str(item.get("name")) for item in items]
    if isinstance(groups, list) and len(groups) == len(report.items):
        name = "group"
        every = zip(report.items, groups, strict=True)
        units = [str(group) for item, group in every if score.holds(str(item.get("name")))]
    path = (score.address.key, *score.address.fields)
    values = [_value(item, path) for item in items]
    if not any(known for known, _ in values):
        return Units(name, len(set(units)), None)
    defined = {unit for unit, (_, value) in zip(units, values, strict=True) if value is not None}
    return Units(name, len(set(units)), len(defined))


def _value(record: Any, path: Sequence[str]) -> tuple[bool, Any]:
    """Return whether a record holds a value at a path, and the value."""
    for name in path:
        if not isinstance(record, Mapping) or name not in record:
            return False, None
        record = record[name]
    return True, record


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if known and math.isfinite(value) else None
