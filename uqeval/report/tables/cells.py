"""Cells of a report's values, with reason, interval, unit, direction and range as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from uqeval.errors import is_number, listed, number_of
from uqeval.glossary import headlines, metric_of
from uqeval.keys import family_of
from uqeval.records.addresses import Address
from uqeval.records.intervals import RARER, interval, units_of
from uqeval.records.report import Report
from uqeval.report.tables.table import Cell, format_number

#: An end that is smaller than this fraction of the other is shown as 0: no score is known as well.
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


def explained(known: Mapping[str, Any], address: str) -> tuple[tuple[str, str], ...]:
    """Return headings and texts about a score: meaning, how to read it, what to do, source."""
    reading = (DIRECTIONS.get(known.get("direction") or "", ""), range_of(known), unit_of(known))
    pairs = (
        ("Meaning", known.get("meaning")),
        ("How to read", ", ".join(filter(None, reading))),
        ("If it is bad", known.get("advice")),
        ("Source", known.get("reference")),
        ("Address", address),
    )
    return tuple((title, str(text)) for title, text in pairs if text)


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
    part = f" ({some_units(record, key, fields)})" if some else ""
    least = _SMALLEST * max(abs(record["low"]), abs(record["high"]))
    low, high = (_end(0.0 if abs(end) < least else end) for end in (record["low"], record["high"]))
    return f"{level_text}{about}[{low}, {high}]{part}"


def without_interval(
    reasons: Iterable[tuple[str, str | None]], where: str, what: str = "interval"
) -> str:
    """Return the reasons why scores have no interval, or no `what`, each with its scores; at most
    three.

    `reasons`: of each address, None without one. `where`: the place of the others.
    """
    scores_by_reason: dict[str, dict[str, None]] = {}
    for address, reason in reasons:
        if reason is not None:
            scores_by_reason.setdefault(reason, {})[address] = None
    texts = [f"{listed(names, 3)}: {reason}" for reason, names in scores_by_reason.items()]
    if not texts:
        return ""
    more = f"; {number_of(len(texts) - 3, 'other reason')} ({where})" if len(texts) > 3 else ""
    return f"No {what} of {'; '.join(texts[:3])}{more}."


def headlines_without_interval(report: Report) -> str:
    """Return the reasons why headlines of a report have no interval; empty without intervals."""
    addresses = (
        Address.of_key(key, (name,))
        for key, record in report.results.items() for name in headlines(key)
        if record.get(name) is not None
    )  # fmt: skip
    return without_interval(
        ((str(a), (report.intervals.get(a.within) or {}).get("reason")) for a in addresses),
        "in the report",
    )


def some_units(record: Mapping[str, Any], key: str, fields: Sequence[str]) -> str:
    """Return the units of the interval of a score as text. A score that compares several kinds of
    units rests on the rarest, of which the record has the number."""
    metric, counts = metric_of(family_of(key), ".".join(fields)), record.get("units") or {}
    is_part = counts.get("defined") not in (None, counts.get("drawn"))
    of_rarer = is_part and metric is not None and len(metric.units_with) > 1
    return f"{units_of(record)} {RARER}" if of_rarer else units_of(record)


def _end(value: float) -> str:
    """Return an end of an interval as text. Unlike a score, it may be rounded to 1."""
    return f"{value:.4f}" if abs(value) > 0.5 else format_number(value)
