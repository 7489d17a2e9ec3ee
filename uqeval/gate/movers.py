"""Items and classes that moved a value most, to inspect when a rule fails."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from uqeval.errors import StoreError
from uqeval.glossary import class_field
from uqeval.records.addresses import Address
from uqeval.records.folder import Named
from uqeval.records.lookup import Found
from uqeval.records.resampling import Mover, Resampler

#: So many are named.
COUNT = 5


def moved_by(
    named: Named,
    found: Found,
    other: Named | None,
    base: Found | None,
    *,
    highest: bool,
    resampler: Resampler | None,
) -> dict[str, tuple[Mover, ...]]:
    """Return `items`, `groups` and `classes`, worst first. `highest`: high values are the worst.

    Items and groups by what leaving each out changes, as saved states say; only harmful ones, and
    none without states. Classes by their change where there is a baseline `other`, else by their
    value.
    """
    address = found.address
    items: list[Mover] = []
    groups: list[Mover] = []
    if resampler is not None:
        baseline = None if other is None else other.path
        with suppress(StoreError):
            sign = -1 if highest else 1
            items = resampler.movers(named.path, baseline, address, COUNT, sign)
            groups = resampler.group_movers(named.path, baseline, address, COUNT, sign)
    classes = _of_classes(found.results, address)
    earlier = {} if base is None else _of_classes(base.results, address)
    ranked = _ranked(classes, earlier, highest)[:COUNT]
    return {"items": tuple(items), "groups": tuple(groups), "classes": tuple(ranked)}


def _ranked(now: dict[str, float], before: dict[str, float], highest: bool) -> list[Mover]:
    sign = -1 if highest else 1
    if before:
        both = [Mover(n, v, change=v - before[n]) for n, v in now.items() if n in before]
        moved = [mover for mover in both if sign * (mover.change or 0) < 0]
        return sorted(moved, key=lambda mover: sign * (mover.change or 0))
    return [Mover(n, v) for n, v in sorted(now.items(), key=lambda entry: sign * entry[1])]


def _of_classes(results: dict[str, Any], address: Address) -> dict[str, float]:
    """Return the value of every class on its own."""
    record = results.get(address.key)
    rows = record.get("per_class") if isinstance(record, dict) else None
    if not isinstance(rows, list) or address.fields[0] == "per_class":
        return {}
    path = (class_field(address.metric, address.fields[0]), *address.fields[1:])
    found = {}
    for row in rows:
        value: Any = row
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if _is_number(value):
            found[str(row.get("name", row.get("class")))] = float(value)
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
