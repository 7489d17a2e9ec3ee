"""The confidence intervals of a report, by where their values stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from uqeval.gate.addresses import Address


def interval(
    intervals: Mapping[str, Any], key: str, fields: Sequence[str]
) -> dict[str, Any] | None:
    """The interval of the value at `fields` below a result, where there is one with both ends.

    `intervals` are those of a report or of a slice, which keys them as addresses.
    """
    metric, bracket, variant = key.partition("[")
    address = Address(metric, tuple(fields), variant.removesuffix("]") if bracket else None)
    found = intervals.get(address.within)
    if not isinstance(found, dict) or found.get("low") is None or found.get("high") is None:
        return None
    return found


def class_of(rows: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> str:
    """What an address calls the class of a row: its name, or its id where several have the name."""
    once = sum(str(own.get("name")) == str(row.get("name")) for own in rows) == 1
    return str(row["name"] if once and "name" in row else row.get("class"))


def in_words(settings: Mapping[str, Any] | None) -> str:
    """How the intervals of a report were drawn, as its settings say."""
    if not settings:
        return ""
    unit, units = settings.get("unit", "item"), settings.get("units")
    drawn = f"{'all' if units is None else f'{units:,}'} {unit}{'' if units == 1 else 's'}"
    by = f" by {settings['group_by']}" if settings.get("group_by") else ""
    fixed = f" Held fixed: {settings['held_fixed']}." if settings.get("held_fixed") else ""
    return (
        f"Intervals hold {100 * settings.get('level', 0):g} % of {settings.get('draws', 0):,} "
        f"resamples of {drawn}{by} (seed {settings.get('seed')}).{fixed}"
    )
