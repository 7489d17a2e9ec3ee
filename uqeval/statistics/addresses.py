"""Read and write numbers of results by their addresses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from uqeval.records.addresses import Address


def addresses_of(
    results: Mapping[str, Mapping[str, Any]],
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield the address and the path of each number of a report; rows of classes by their
    name, or by their id where several have it.
    """
    for key, record in results.items():
        for fields, path in _numbers(record):
            yield Address.of_key(key, fields).within, (key, *path)


def _numbers(record: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], tuple[Any, ...]]]:
    for name, value in record.items():
        if name.endswith("_reason") or isinstance(value, bool | str):
            continue
        if value is None or isinstance(value, int | float):
            yield (name,), (name,)
        elif isinstance(value, Mapping):
            for fields, path in _numbers(value):
                yield (name, *fields), (name, *path)
        elif name == "per_class" and isinstance(value, list):
            called = Counter(str(row.get("name")) for row in value)
            for row in value:
                is_unique = called[str(row.get("name"))] == 1
                row_name = str(row["name"] if is_unique else row["class"])
                for fields, path in _numbers(row):
                    if fields != ("class",):
                        yield (name, row_name, *fields), (name, row["class"], *path)


def number_at(results: Mapping[str, Any], path: tuple[Any, ...]) -> float | None:
    """Return the number at a path of results; None where there is none. Rows of classes have the id
    of the class.
    """
    found: Any = results
    for name in path:
        if isinstance(found, list):
            found = next((row for row in found if row.get("class") == name), None)
        else:
            found = found.get(name) if isinstance(found, Mapping) else None
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    return float(found) if is_number else None


def set_score(record: dict[str, Any], name: str, value: float) -> None:
    """Set a field, `a.b` inside the record `a`; NaN is undefined."""
    *parents, last = name.split(".")
    for parent in parents:
        record = record.setdefault(parent, {})
    if math.isfinite(value):
        record[last] = value
        record.pop(f"{last}_reason", None)
    else:
        record[last] = None
        record.setdefault(f"{last}_reason", "undefined for these items")
