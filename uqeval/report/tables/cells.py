"""Cells of a report's values, with reason, interval, unit, direction and range as text; the table
of items; settings, inputs and resampling as text; the command that recomputes a result.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from uqeval.errors import is_number, option_name
from uqeval.glossary import families, headlines, label_of, of_items
from uqeval.keys import COMMANDS_BY_KEY, Key, family_of
from uqeval.records.intervals import in_words, interval, units_of
from uqeval.records.report import Report
from uqeval.records.scalars import with_arrow
from uqeval.report.tables.table import Cell, Row, Table, format_number

#: Smaller ends of an interval are shown as 0: no score is known as well.
_SMALLEST = 1e-12

DIRECTIONS = {"higher": "higher is better", "lower": "lower is better"}


def about(report: Report, key: str, name: str) -> dict[str, Any]:
    """Return unit, direction, range and reference of a field; empty if the report has none."""
    family = family_of(key)
    place = name.rpartition(".")[0] or name  # coverage.95 is described under coverage
    return report.metrics.get(f"{family}.{name}") or report.metrics.get(f"{family}.{place}") or {}


def unit_of(known: Mapping[str, Any]) -> str:
    """Return the unit of a field as text; empty for numbers without a unit."""
    unit = known.get("unit") or ""
    return {"target": "in the target's unit", "1": ""}.get(unit, unit)


def range_of(known: Mapping[str, Any]) -> str:
    """Return the range of a field as text; empty if it has none."""
    low, high = known.get("range") or (None, None)
    if low is None and high is None:
        return ""
    return f"{'−∞' if low is None else f'{low:g}'} … {'∞' if high is None else f'{high:g}'}"


def cell(record: Mapping[str, Any], name: str, interval: str = "") -> Cell:
    """Return the cell of a record's field, with the reason if it is undefined."""
    value = record.get(name)
    if value is None and name in record:
        return Cell("–", None, str(record.get(f"{name}_reason") or "the report gives no reason"))
    if not is_number(value):
        return Cell("" if name not in record else str(value))
    return Cell(format_number(value), value, "", interval)


def interval_of(
    intervals: Mapping[str, Any],
    key: str,
    fields: Sequence[str],
    level: bool = False,
    units: bool = True,
) -> str:
    """Return the interval of a value as text; empty if the report has none.

    The text has both ends, a mark if the interval is approximate, its level if `level`, and, if
    `units`, the number of units with a defined value unless that is all.
    """
    record = interval(intervals, key, fields)
    if record is None:
        return ""
    about = "≈ " if record.get("approximate") else ""
    level_text = f"{100 * record['level']:.4g} %: " if level and record.get("level") else ""
    counts = record.get("units") or {}
    some = units and counts.get("defined") != counts.get("drawn")
    part = f" ({units_of(record)})" if some else ""
    return f"{level_text}{about}[{_end(record['low'])}, {_end(record['high'])}]{part}"


def _end(value: float) -> str:
    """Return an end of an interval as text. Unlike a score, it may be rounded to 1.

    A limit of the smallest numbers is 0 for a reader.
    """
    return f"{value:.4f}" if abs(value) > 0.5 or abs(value) < _SMALLEST else format_number(value)


def settings(report: Report) -> Table:
    """Return all settings: one row per setting, one column per result.

    Settings of intervals are not in this table (`resampling`). A region with the settings of the
    whole image has no column.
    """
    columns = [
        key
        for key, own in report.settings.items()
        if key != "intervals" and own != _of_whole(report, key)
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


def resampling(report: Report) -> str:
    """Return the method of the report's intervals as text; empty without intervals."""
    return in_words(report.settings.get("intervals")) if report.settings.get("intervals") else ""


def command_of(report: Report, key: str) -> str:
    """Return `uqeval failure preds.zarr labels/ --threshold p90` for a result; empty for others."""
    parsed = Key.parse(key)
    family = families().get(parsed.family)
    if family is None:
        return ""
    words = ["uqeval", COMMANDS_BY_KEY.get(parsed.family, parsed.family), *_paths(report)]
    words += _options(family.settings_type, report.settings.get(key) or {})
    if parsed.region is not None:
        words += ["--region", parsed.region]
    if not family.on_request and parsed.family == "segmentation":  # it has no command
        words[1] = "run"
    return shlex.join(words)


def _paths(report: Report) -> Iterator[str]:
    """Yield the paths of a report's inputs, each once."""
    paths = [report.inputs.get("frames")]
    if paths == [None]:
        stores = report.inputs.get("predictions")
        paths = [_path(store) for store in stores] if isinstance(stores, list) else []
        paths += [_path(report.inputs.get(name)) for name in ("labels", "target", "reference")]
    yield from dict.fromkeys(str(path) for path in paths if path)


def _path(store: Any) -> Any:
    return store.get("path") if isinstance(store, Mapping) else store


def _options(settings: Any, record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options that differ from their defaults."""
    for name, field in getattr(settings, "__dataclass_fields__", {}).items():
        value = record.get(name)
        if "option" not in field.metadata or value is None or value == field.default:
            continue
        flag = option_name(name)
        if isinstance(value, bool):
            yield flag if value else f"--no-{flag[2:]}"
        elif isinstance(value, str | int | float):
            yield from (flag, str(value))


@dataclass(frozen=True)
class Column:
    """A score of every item: its key and field, its title, and its direction."""

    key: str
    name: str
    title: str
    direction: str


def columns_of(report: Report) -> list[Column]:
    """Return the columns of the table of items: the headlines of each result that items have."""
    tables = []
    for key in report.results:
        family = family_of(key)
        for name in (*headlines(family), *of_items(family)):
            if any(isinstance(item.get(key), dict) and name in item[key] for item in report.items):
                direction = about(report, key, name).get("direction") or (
                    "higher" if of_items(family) else ""
                )
                tables.append(Column(key, name, label_of(key, name), direction))
    return tables


def worst_first(report: Report, column: Column) -> list[int]:
    """Return the indices of the items with a defined score, the worst first."""
    defined = [
        (item[column.key][column.name], i)
        for i, item in enumerate(report.items)
        if isinstance(item.get(column.key), dict)
        and isinstance(item[column.key].get(column.name), int | float)
    ]
    sign = -1 if column.direction == "lower" else 1
    return [i for _, i in sorted(defined, key=lambda pair: (sign * pair[0], pair[1]))]


def items(report: Report, order: Sequence[int], columns: Sequence[Column]) -> Table:
    """Return rows of these items."""
    rows = [
        Row(
            str(report.items[i]["name"]),
            [
                cell(record, c.name)
                if isinstance(record := report.items[i].get(c.key), dict)
                else Cell("")
                for c in columns
            ],
            anchor=f"item-{i}",
        )
        for i in order
    ]
    titles = [with_arrow(c.title, c.direction) for c in columns]
    return Table("Items", ["item", *titles], rows)
