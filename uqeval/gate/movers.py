"""The items, groups and classes that harm a value most. Outputs show them if a rule fails."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from uqeval.errors import StoreError
from uqeval.glossary import class_field
from uqeval.records.addresses import Address, number_at
from uqeval.records.folder import Named
from uqeval.records.lookup import Score
from uqeval.records.resampling import Mover, Resampler

#: The number of items, of groups and of classes in a verdict.
COUNT = 5


def moved_by(
    named: Named,
    score: Score,
    baseline_report: Named | None,
    base: Score | None,
    *,
    highest: bool,
    resampler: Resampler | None,
) -> dict[str, tuple[Mover, ...]]:
    """Return the `items`, `groups` and `classes` that harm a value most, worst first.

    `highest`: high values are the worst. Items and groups are ordered by the change of the value
    without them, computed from the saved states. Only harmful ones are returned, and none without
    states. Classes are ordered by their change since the baseline, or by their value without one.
    """
    address = score.address
    items: list[Mover] = []
    groups: list[Mover] = []
    if resampler is not None:
        baseline = None if baseline_report is None else baseline_report.path
        with suppress(StoreError):
            sign = -1 if highest else 1
            items = resampler.movers(named.path, baseline, address, COUNT, sign)
            groups = resampler.group_movers(named.path, baseline, address, COUNT, sign)
    classes = _of_classes(score.results, address)
    earlier = {} if base is None else _of_classes(base.results, address)
    classes_by_harm = _worst_classes(classes, earlier, highest)[:COUNT]
    return {"items": tuple(items), "groups": tuple(groups), "classes": tuple(classes_by_harm)}


def _worst_classes(now: dict[str, float], baseline: dict[str, float], highest: bool) -> list[Mover]:
    sign = -1 if highest else 1
    if baseline:
        changes = [Mover(n, v, change=v - baseline[n]) for n, v in now.items() if n in baseline]
        harmful = [mover for mover in changes if sign * (mover.change or 0) < 0]
        return sorted(harmful, key=lambda mover: sign * (mover.change or 0))
    return [Mover(n, v) for n, v in sorted(now.items(), key=lambda entry: sign * entry[1])]


def _of_classes(results: dict[str, Any], address: Address) -> dict[str, float]:
    """Return the value of each class by its name."""
    record = results.get(address.key)
    rows = record.get("per_class") if isinstance(record, dict) else None
    if not isinstance(rows, list) or address.fields[0] == "per_class":
        return {}
    path = (class_field(address.metric, address.fields[0]), *address.fields[1:])
    values = {}
    for row in rows:
        value = number_at(row, path)
        if value is not None and abs(value) < 1e300:
            values[str(row.get("name", row.get("class")))] = value
    return values
