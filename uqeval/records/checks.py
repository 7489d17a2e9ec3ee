"""Checks of the values of a report from a file, which may come from anyone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from uqeval.disk.forms import Draws, Inputs, Interval, Level, Method, Metric, Seed, formed
from uqeval.errors import FormError, cut, is_number, quoted
from uqeval.keys import family_of


@dataclass
class Slice:
    """The record of a slice."""

    names: list[str] = field(default_factory=list)
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    intervals: dict[str, Interval] | None = None


@dataclass
class Resampling:
    """How intervals were computed."""

    draws: Draws | None = None
    seed: Seed | None = None
    level: Level | None = None
    method: Method | None = None
    group_by: str | None = None
    groups: list[str] | None = None


@dataclass
class RequestedSlices:
    """The columns of each kind of slice."""

    columns: list[list[str]] | None = None


@dataclass
class Item:
    """The record of an item."""

    name: str


#: The forms of the parts of a report that commands read; `Report` has only their kinds.
_FORMS: Mapping[str, Any] = {
    "inputs": Inputs, "items": list[Item], "slices": dict[str, Slice],
    "metrics": dict[str, Metric], "intervals": dict[str, Interval],
}  # fmt: skip


def checked(kind: type, record: Any) -> Any:
    """Return the report, of the class `kind`, with these keys and values. Raises `FormError` for
    unexpected ones, with the key.
    """
    report = formed(kind, record)
    for key, form in _FORMS.items():
        with _inside(key):
            formed(form, getattr(report, key))
    with _inside("settings.intervals"):
        groups = formed(Resampling, report.settings.get("intervals", {})).groups
        if groups and len(groups) != len(report.items):
            raise FormError(f"`groups` has {len(groups)} entries for {len(report.items)} items")
    with _inside("settings.slices"):
        formed(RequestedSlices, report.settings.get("slices", {}))
    for key, result in report.results.items():
        with _inside(f"results.{key}"):
            _check_result(key, result, report)
    return report


@contextmanager
def _inside(place: str) -> Iterator[None]:
    """Put the place of a record before the messages about it."""
    try:
        yield
    except FormError as error:
        raise FormError(f"{cut(place)}: {error}") from None


def _check_result(key: str, result: Mapping[str, Any], report: Any) -> None:
    """Raise `FormError` for a score that is not a number or null."""
    rows = result.get("per_class") or []
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise FormError(f"`per_class` is {quoted(rows)}; expected a list of records")
    for field_name in _fields(key, report):
        value: Any = result
        for step in field_name.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        _check_number(field_name, value)
    for i, row in enumerate(rows):
        for name, value in row.items():
            if name not in ("class", "name") and not name.endswith("_reason"):
                _check_number(f"per_class.{i}.{name}", value)


def _check_number(name: str, value: Any) -> None:
    """Raise `FormError` unless a value is a number, null, or a record of these."""
    # Some fields have one number for each level: {"80": 0.7, "95": 0.75}.
    numbers = value if isinstance(value, dict) else {"": value}
    for level, number in numbers.items():
        if not (level.endswith("_reason") or number is None or is_number(number)):
            raise FormError(f"`{cut(name)}` is {quoted(value)}; expected a number or null")


def _fields(key: str, report: Any) -> Iterator[str]:
    """Yield the fields of a result that are single numbers, by the report's `metrics`."""
    for address, metric in report.metrics.items():
        family, _, name = address.partition(".")
        if family == family_of(key) and metric.get("unit") != "curve":
            yield name
