"""Settings, inputs and resampling of a report, as text of a page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from uqeval.keys import Key
from uqeval.records.intervals import in_words
from uqeval.records.report import OF_CUT, Report
from uqeval.report.tables.table import Cell, Row, Table


def settings(report: Report) -> Table:
    """Return all settings: one row per setting, one column per result.

    Settings of intervals (`resampling`) and slices are not in this table. A region with the
    settings of the whole image has no column.
    """
    columns = [
        key
        for key, own in report.settings.items()
        if key not in OF_CUT and own != _of_whole(report, key)
    ]
    columns_of_settings = [
        dict(pairs(own)) if isinstance(own := report.settings[name], dict) else {"": _as_text(own)}
        for name in columns
    ]
    rows = [
        Row(name, [Cell(own.get(name, "")) for own in columns_of_settings])
        for name in dict.fromkeys(n for own in columns_of_settings for n in own)
    ]
    return Table("Settings", ["setting", *columns], rows)


def _of_whole(report: Report, key: str) -> Any:
    """Return the settings of the whole image for a region's key; None for other keys."""
    parsed = Key.parse(key)
    return None if parsed.region is None else report.settings.get(str(parsed.of(None)))


def pairs(record: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Return a nested record of settings or inputs as pairs (`a.b`, text)."""
    flat: list[tuple[str, str]] = []
    for name, value in record.items():
        if isinstance(value, dict) and value:
            flat += pairs(value, f"{prefix}{name}.")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for i, element in enumerate(value):
                flat += pairs(element, f"{prefix}{name}[{i}].")
        else:
            flat.append((f"{prefix}{name}", _as_text(value)))
    return flat


def _as_text(value: Any) -> str:
    if value is None:
        return "–"
    if value == math.e:  # the base of natural logarithms
        return "e"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, list):
        text = ", ".join(f"[{_as_text(v)}]" if isinstance(v, list) else _as_text(v) for v in value)
        return text if len(text) <= 300 else f"{text[:299]}…"
    return str(value)


def samples(report: Report) -> str:
    """Return how many predictions a pixel has, as text; empty where the store does not say it."""
    count = report.inputs.get("samples")
    if not count:
        return ""
    return "one prediction per pixel" if count == 1 else f"{count} samples per pixel"


def resampling(report: Report) -> str:
    """Return the method of the report's intervals as text; empty without intervals."""
    return in_words(report.settings.get("intervals")) if report.settings.get("intervals") else ""
