"""The names that a report gives its classes, so that a report without names can be compared."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from uqeval.records.addresses import addresses_of
from uqeval.records.report import Report


def class_names(results: Mapping[str, Any]) -> dict[int, str]:
    """Return the names of classes in the rows of results, by id; empty if all are ids."""
    names = {row["class"]: str(row.get("name", row["class"])) for row in _rows(results)}
    return {} if all(name == str(own) for own, name in names.items()) else names


def called(results: dict[str, Any], names: Mapping[int, str]) -> dict[str, Any]:
    """Return results whose classes have these names, by id (empty: their ids), if either the
    results or `names` have none.

    Results with other names stay as they are: names match classes, also of different ids.
    """
    if bool(class_names(results)) == bool(names):
        return results
    return {key: _called(value, names) for key, value in results.items()}


def report_called(report: Report, names: Mapping[int, str]) -> Report:
    """Return a report whose results, slices and intervals have the class names of `called`."""
    slices = {
        key: part | _parts(part["results"], part.get("intervals") or {}, names)
        for key, part in report.slices.items()
        if isinstance(part.get("results"), dict)
    }
    parts = _parts(report.results, report.intervals, names)
    return dataclasses.replace(report, **parts, slices=report.slices | slices)


def _parts(
    results: dict[str, Any], intervals: Mapping[str, Any], names: Mapping[int, str]
) -> dict[str, Any]:
    renamed = called(results, names)
    pairs = zip(addresses_of(results), addresses_of(renamed), strict=True)
    addresses = {before: after for (before, _), (after, _) in pairs}
    return {
        "results": renamed,
        "intervals": {addresses.get(text, text): own for text, own in intervals.items()},
    }


def _rows(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of classes at any depth."""
    for name, inner in value.items() if isinstance(value, Mapping) else ():
        if name == "per_class" and isinstance(inner, list):
            yield from (row for row in inner if isinstance(row, Mapping) and "class" in row)
        else:
            yield from _rows(inner)


def _called(value: Any, names: Mapping[int, str]) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {
        key: [_row_called(row, names) for row in inner]
        if key == "per_class" and isinstance(inner, list)
        else _called(inner, names)
        for key, inner in value.items()
    }


def _row_called(row: Any, names: Mapping[int, str]) -> Any:
    if not isinstance(row, Mapping) or "class" not in row:
        return row
    return {**row, "name": names.get(row["class"], str(row["class"]))}
