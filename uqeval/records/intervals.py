"""The confidence intervals of a report, by the address of their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from uqeval.errors import listed

#: Follows the units of a score that compares several kinds, such as right and wrong pixels.
RARER = "have the rarer kind"
#: Intervals of a mean over classes do not show how a class varies that fewer units have.
FEW_WITH_CLASS = 5


def interval_record(
    intervals: Mapping[str, Any], key: str, fields: Sequence[str]
) -> dict[str, Any] | None:
    """Return the record of the interval of the value at `fields` below a result; it may have a
    reason in place of its ends.

    `intervals` are those of a report or of a slice, which keys them as addresses: a region with a
    dot, or the name of a class, stands there in quotes.
    """
    if not intervals:
        return None
    from uqeval.records.addresses import Address

    found = intervals.get(Address.of_key(key, tuple(fields)).within)
    return found if isinstance(found, dict) else None


def interval(
    intervals: Mapping[str, Any], key: str, fields: Sequence[str]
) -> dict[str, Any] | None:
    """Return the interval of the value at `fields` below a result, where there is one with both
    ends.
    """
    found = interval_record(intervals, key, fields)
    if found is None or found.get("low") is None or found.get("high") is None:
        return None
    return found


def class_of(rows: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> str:
    """Return the name of a row's class in addresses: its name, or its id if several classes have
    that name.
    """
    once = sum(str(own.get("name")) == str(row.get("name")) for own in rows) == 1
    return str(row["name"] if once and "name" in row else row.get("class"))


def in_words(settings: Mapping[str, Any] | None) -> str:
    """Return in words from how many units the intervals of a report are computed; of a video, whose
    scores have units of their own, those of its headline."""
    if not settings:
        return ""
    unit, units = settings.get("unit", "item"), settings.get("units")
    effective = settings.get("effective")
    drawn = "all items" if units is None else units_text(unit, units, None, effective)
    if effective is not None:
        drawn += " (of mTC; other scores have other numbers)"
    by = f" by {settings['group_by']}" if settings.get("group_by") else ""
    fixed = f" Not resampled: {settings['held_fixed']}." if settings.get("held_fixed") else ""
    few = " Below 30 they may be too narrow." if _few(units, effective) else ""
    if few and effective is not None:
        few = " Below 30 independent pairs they may be too narrow, below 10 they are unreliable."
    return (
        f"Intervals at level {100 * settings.get('level', 0):g} % from {drawn}{by}.{few} Draws, "
        f"where a method needs them: {settings.get('draws', 0):,} (seed {settings.get('seed')})."
        f"{fixed}"
    )


def _few(units: Any, effective: Any) -> bool:
    counts = [own for own in (units, effective) if isinstance(own, int | float)]
    return bool(counts) and (effective if effective is not None else counts[0]) < 30


def units_text(name: str, drawn: int, defined: int | None, effective: float | None) -> str:
    """Return units in words: `3 of 5 groups`, `3 batches, about 6 independent pairs`."""
    share = f"{drawn:,}" if defined in (None, drawn) else f"{defined:,} of {drawn:,}"
    pairs = "" if effective is None else f", about {effective:.0f} independent pairs"
    return f"{share} {plural(name, drawn)}{pairs}"


def units_of(record: Mapping[str, Any]) -> str:
    """Return the units of an interval or a slice in words; empty where it has none."""
    own = record.get("units")
    if not isinstance(own, Mapping) or not isinstance(own.get("drawn"), int):
        return ""
    effective = record.get("effective", own.get("effective"))
    return units_text(str(own.get("name", "item")), own["drawn"], own.get("defined"), effective)


def plural(noun: str, count: int) -> str:
    """Return the noun of units for a count."""
    return noun if count == 1 else {"batch": "batches"}.get(noun, f"{noun}s")


def rare_classes(
    rows: Sequence[Mapping[str, Any]], field: str, unit: str, drawn: int,
    having: Callable[[str], int | None],
) -> str:  # fmt: skip
    """Return in words which classes have labels in few of the units, with the number of these;
    empty for none. `field`: of a class's row, defined if a unit has labels of the class; `having`:
    the number of such units by the name of a class in addresses, None if it is not known."""
    few = []
    for row in rows:
        name = class_of(rows, row)
        count = 0 if row.get(field) is None else having(name)
        if count is not None and count < min(FEW_WITH_CLASS, drawn):
            few.append((count, name))
    if not few:
        return ""
    names = listed([f"{name} ({count})" for count, name in sorted(few, key=lambda own: own[0])])
    have = "class has" if len(few) == 1 else "classes have"
    return f"{len(few)} {have} labels in fewer than {FEW_WITH_CLASS} {plural(unit, 2)}: {names}"
