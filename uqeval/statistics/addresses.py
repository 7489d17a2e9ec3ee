"""Read and write numbers of results by their addresses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from uqeval.records.addresses import Address, values_of


def addresses_of(
    results: Mapping[str, Mapping[str, Any]],
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield the address and the path of each number of a report."""
    for key, record in results.items():
        for fields, path, _ in values_of(record):
            yield Address.of_key(key, fields).within, (key, *path)


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
