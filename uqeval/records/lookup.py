"""The value at an address of a report, or why there is none."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from uqeval.errors import StoreError, cut, is_number, listed, nearest, number_of, quoted
from uqeval.keys import Key
from uqeval.records.addresses import Address, values_of
from uqeval.records.intervals import plural
from uqeval.records.report import Report

#: No number of a report is as large; 1e999 reads as infinity.
_MOST = 1e300


@dataclass(frozen=True)
class Score:
    """The value at an address. `value` is None if undefined, with a `reason`.

    `address` names a class by its name, and has no store. `results` and `intervals`: those of the
    slice, or of the report. `items`: the number of items behind the value. `small`: the few
    units of a small slice, as "8 batches"; else empty. `names`: the items of the slice; None for
    all items of the report.
    """

    address: Address
    value: int | float | None
    reason: str | None
    results: dict[str, Any]
    intervals: dict[str, Any]
    items: int
    small: str = ""
    names: frozenset[str] | None = None

    def holds(self, name: str) -> bool:
        """Return whether an item belongs to the value."""
        return self.names is None or name in self.names


@dataclass(frozen=True)
class NoScore:
    """The report has no value at the address: `why`, and how many parts of it match (`depth`).
    `near`: the name that is nearest to the first one that does not match."""

    depth: int
    why: str
    near: str | None = None


def find(report: Report, address: Address) -> Score | NoScore:
    """Return the value at `address`, of any store.

    Raises `StoreError` for a damaged report.
    """
    scope = _scope(report, address)
    if isinstance(scope, NoScore):
        return scope
    if address.key not in scope.results:
        near = nearest_key(address.key, scope.results)
        return _absent(1, "metric", address.key, scope.results, near)
    found = _value_at(scope.results[address.key], address)
    if isinstance(found, NoScore):
        return found
    names, value, reason = found
    if value is None:
        reason = reason or "the report does not say why"
    elif not is_number(value):
        return _no_number(address, value)
    elif not abs(value) < _MOST:
        raise StoreError(f"{address}: {cut(value)} is not a number that a report may hold.")
    else:
        reason = None
    place = dataclasses.replace(address, store=None, fields=names)
    return Score(
        place, value, reason, scope.results, scope.intervals, scope.items, scope.small, scope.names
    )


def slice_names(report: Report, address: Address) -> frozenset[str] | None:
    """Return the names of the items in the slice of an address; None if a report lacks it."""
    part = _slice(report, address)
    return None if part is None else _texts(part, "names")


def keys_with_ranks_of_bins(report: Report, address: Address) -> frozenset[str]:
    """Return the keys of results of the slice of an address whose ranks come from saved states."""
    return _texts(_slice(report, address) or {}, "approximate")


def _slice(report: Report, address: Address) -> dict[str, Any] | None:
    """Return the record of the slice of an address; None if a report lacks it."""
    key = next((key for key in address.slice_keys if key in report.slices), None)
    part = None if key is None else report.slices[key]
    return part if isinstance(part, dict) else None


def _texts(part: Mapping[str, Any], name: str) -> frozenset[str]:
    """Return the texts of a list of a slice's record."""
    texts = part.get(name)
    return frozenset(map(str, texts if isinstance(texts, list) else ()))


@dataclass(frozen=True)
class _Scope:
    """The items to which an address refers: all of a report, or those of a slice."""

    results: dict[str, Any]
    intervals: dict[str, Any]
    items: int
    small: str = ""
    names: frozenset[str] | None = None


def _scope(report: Report, address: Address) -> _Scope | NoScore:
    if not address.where:
        return _Scope(report.results, report.intervals, len(report.items))
    key = next((key for key in address.slice_keys if key in report.slices), None)
    if key is None:
        return _absent(0, "slice", next(address.slice_keys), report.slices)
    part = report.slices[key]
    if not isinstance(part, dict) or not isinstance(part.get("results"), dict):
        raise StoreError(f"slice {quoted(key)} has no results; evaluate again.")
    count = part.get("items")
    items = count if isinstance(count, int) else 0
    return _Scope(
        part["results"],
        part.get("intervals") or {},
        items,
        _units(part, items) if part.get("small") else "",
        frozenset(map(str, part.get("names") or ())),
    )


def _value_at(record: Any, address: Address) -> tuple[tuple[str, ...], Any, str | None] | NoScore:
    """Return the value of a record at the fields of an address, with their names, as the report
    spells them, and why the value is undefined if the record says so."""
    value, reason = record, None
    names: list[str] = []
    for depth, name in enumerate(address.fields, 2):
        if isinstance(value, list):
            value, called = row_of(value, name)
            if isinstance(called, list):
                near = _joined(called, address.fields[depth - 2 :])
                return _absent(depth, _noun(address), name, called, near)
            names.append(called)
            reason = None if isinstance(value, dict) else reason
        elif isinstance(value, dict) and name in value:
            said = value.get(f"{name}_reason")
            value = value[name]
            reason = said if isinstance(said, str) else reason
            names.append(name)
        elif value is None:
            names.append(name)  # undefined further up
        elif isinstance(value, dict):
            near = _joined(value, address.fields[depth - 2 :])
            return _absent(depth, f"field of {address.key}", name, _fields(value), near)
        else:
            return NoScore(depth, f"{address.within}: there is nothing below {quoted(names[-1])}")
    return tuple(names), value, reason


def row_of(rows: list[Any], name: str) -> tuple[Any, str | list[str]]:
    """Return the row of a name, of a class id, or of a number from 0 where rows have neither."""
    named = [row for row in rows if isinstance(row, dict) and "class" in row]
    if not named:
        if name.isascii() and name.isdigit() and int(name) < len(rows):
            return rows[int(name)], name
        return None, [f"0 … {len(rows) - 1}"] if rows else []
    same = [row for row in named if str(row.get("name")) == name]
    if (
        len(same) > 1
    ):  # `values_of` names them by id, which is "mixed" for patches of several classes
        same = [row for row in same if str(row["class"]) == name] or same
    if len(same) > 1:
        ids = " and ".join(str(row["class"]) for row in same)
        return None, [f"ids: classes {ids} are all called {name}"]
    same = same or [row for row in named if str(row["class"]) == name]
    if same:
        once = [row for row in named if row.get("name") == same[0].get("name")]
        called = same[0].get("name") if len(once) == 1 else same[0]["class"]
        return same[0], str(called)
    return None, [str(row.get("name", row["class"])) for row in named]


def _joined(names: Collection[str], fields: Sequence[str]) -> str:
    """Return the name with dots that the first fields spell; empty if there is none."""
    texts = (".".join(fields[:end]) for end in range(len(fields), 1, -1))
    return next((text for text in texts if text in names), "")


def _units(part: Mapping[str, Any], items: int) -> str:
    """Return the number of units of a slice with their name; its items if it has no units."""
    units = part.get("units")
    units = units if isinstance(units, Mapping) else {}
    count = units.get("drawn")
    if not isinstance(count, int):
        return number_of(items, "item")
    return f"{count} {plural(str(units.get('name', 'item')), count)}"


def _noun(address: Address) -> str:
    return "class" if "per_class" in address.fields else f"row of {address.key}"


def _fields(record: dict[str, Any]) -> list[str]:
    return [
        name
        for name, value in record.items()
        if not name.endswith("_reason") and not isinstance(value, str | bool)
    ]


def nearest_key(text: str, keys: Iterable[str]) -> str | None:
    """Return the key of a metric that was probably meant by an unknown one; None if none is near.

    Compares families with families, variants with variants, and regions with regions.
    """
    wanted, candidates = Key.parse(text), [Key.parse(key) for key in keys]
    for part in ("family", "variant", "region"):
        value = getattr(wanted, part)
        values = dict.fromkeys(getattr(key, part) for key in candidates)
        if value not in values and value is not None:
            names = [name for name in values if name is not None]
            value = nearest(value, names) or _with_initials(value, names)
            if not value:
                return None
        candidates = [key for key in candidates if getattr(key, part) == value] or candidates
    return str(candidates[0]) if candidates else None


def _with_initials(text: str, names: Iterable[str]) -> str | None:
    """Return the name with these initials: `mutual_information` for `mi`."""
    initials = ((name, "".join(word[:1] for word in name.split("_"))) for name in names)
    return next((name for name, letters in initials if letters == text.casefold()), None)


def _absent(
    depth: int, noun: str, name: str, there: Iterable[str], near: str | None = ""
) -> NoScore:
    """Return that there is no `name`. `near`: the name that was meant; empty to look for it."""
    names = [str(n) for n in there]
    if near := nearest(name, names) if near == "" else near:
        why = f"there is no {noun} {quoted(name)}; the nearest is {quoted(near)}"
        return NoScore(depth, why, near)
    if not names:
        return NoScore(depth, f"there is no {noun} {quoted(name)}, nor any other")
    return NoScore(depth, f"there is no {noun} {quoted(name)}; there are {listed(names, 12)}")


def _no_number(address: Address, value: Any) -> NoScore:
    depth = len(address.fields) + 2
    if isinstance(value, dict):
        inner = ", ".join(f"{address.within}.{name}" for name in _fields(value)[:6])
        if not inner:
            return NoScore(depth, f"{address.within} holds no numbers")
        return NoScore(depth, f"{address.within} holds several values; name one of {inner}")
    if isinstance(value, list):
        length = f" of {len(value)}" if value else ""
        return NoScore(depth, f"{address.within} is a list{length}; name one row of it")
    return NoScore(depth, f"{address.within} is {quoted(value)}, which is not a number")


def addresses_in(key: str, record: Any) -> Iterable[str]:
    """Yield the addresses of all values of a result, also of undefined ones."""
    start = Address.of_key(key)
    for fields, _, _ in values_of(record if isinstance(record, dict) else {}):
        yield str(dataclasses.replace(start, fields=fields))
