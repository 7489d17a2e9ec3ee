"""Unit, direction, range and reference of a report's fields, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uqeval.keys import family_of
from uqeval.records.report import Report

DIRECTIONS = {"higher": "higher is better", "lower": "lower is better"}


def about(report: Report, key: str, name: str) -> dict[str, Any]:
    """Return unit, direction, range and reference of a field, or nothing."""
    family = family_of(key)
    place = name.rpartition(".")[0] or name  # coverage.95 is described under coverage
    return report.metrics.get(f"{family}.{name}") or report.metrics.get(f"{family}.{place}") or {}


def unit_of(known: Mapping[str, Any]) -> str:
    """Return the unit of a field, where it says anything."""
    unit = known.get("unit") or ""
    return {"target": "in the target's unit", "1": ""}.get(unit, unit)


def range_of(known: Mapping[str, Any]) -> str:
    """Return the range of a field, where it has one."""
    low, high = known.get("range") or (None, None)
    if low is None and high is None:
        return ""
    return f"{'−∞' if low is None else f'{low:g}'} … {'∞' if high is None else f'{high:g}'}"
