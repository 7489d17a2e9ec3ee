"""Addresses of values: `store/metric[variant]@region.field@column=value`, parsed and printed."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from uqeval.errors import UsageError, is_number, quoted
from uqeval.keys import Key

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_STORE = re.compile(rf'({_QUOTED}|[^"/\[@]+)/', re.DOTALL)
_METRIC = re.compile(r'[^"/\[\].@\s]+')
_VARIANT = re.compile(rf'\[({_QUOTED}|[^"\[\]]+)\]', re.DOTALL)
_REGION = re.compile(rf'@({_QUOTED}|[^".=,@]+)(?=\.)', re.DOTALL)
_FIELD = re.compile(rf'\.({_QUOTED}|[^".@]+)', re.DOTALL)
_CONDITION = re.compile(rf'[@,]({_QUOTED}|[^"=,@]+)=({_QUOTED}|[^"=,@]+)', re.DOTALL)
_EXPECTED = (
    "expected store/metric[variant]@region.field@column=value, such as pavpu.pavpu or "
    "city/calibration.ece; put names with dots in quotes"
)

#: Fields with rows, each under the name of a class or of a set.
ROWS = ("per_class", "per_set")


@dataclass(frozen=True)
class Address:
    """The address of a value: its report, metric, field and slice.

    `fields`: the path from the record of the metric to the value, such as ("per_class",
    "pedestrian", "pavpu"). `region`: the region of pixels, None for all. `where`: the columns of
    the item table and their values that define the slice.
    """

    metric: str
    fields: tuple[str, ...]
    variant: str | None = None
    store: str | None = None
    where: tuple[tuple[str, str], ...] = ()
    region: str | None = None

    @classmethod
    @lru_cache(maxsize=1 << 14)  # a comparison looks up each of thousands of scores several times
    def parse(cls, text: str) -> Address:
        """Read an address. Raises `UsageError`."""
        rest, store, variant, region = text.strip(), None, None, None
        fields: list[str] = []
        where: list[tuple[str, str]] = []
        if match := _STORE.match(rest):
            store, rest = _unquoted(match[1]), rest[match.end() :]
        if not (match := _METRIC.match(rest)):
            raise UsageError(f"{quoted(text)} is not an address of a value: {_EXPECTED}.")
        metric, rest = match[0], rest[match.end() :]
        if match := _VARIANT.match(rest):
            variant, rest = _unquoted(match[1]), rest[match.end() :]
        if match := _REGION.match(rest):
            region, rest = _unquoted(match[1]), rest[match.end() :]
        while match := _FIELD.match(rest):
            fields.append(_unquoted(match[1]))
            rest = rest[match.end() :]
        while (match := _CONDITION.match(rest)) and match[0][0] == ("," if where else "@"):
            where.append((_unquoted(match[1]), _unquoted(match[2])))
            rest = rest[match.end() :]
        if rest or not fields:
            at = f", at {quoted(rest)}" if rest else ", it names no field"
            raise UsageError(f"{quoted(text)} is not an address of a value{at}: {_EXPECTED}.")
        columns = [column for column, _ in where]
        if len(set(columns)) < len(columns):
            raise UsageError(f"{quoted(text)} names a column of its slice twice.")
        return cls(metric, tuple(fields), variant, store, tuple(where), region)

    def __str__(self) -> str:
        store = "" if self.store is None else f"{_quoted(self.store, '/[@')}/"
        return store + self.within + (f"@{slice_key(self.where)}" if self.where else "")

    @property
    def key(self) -> str:
        """Return the key of the metric: `pavpu`, `pavpu[window=7]`, `calibration@boundary:8`."""
        return str(Key(self.metric, self.variant, self.region))

    @classmethod
    def of_key(cls, key: str, fields: tuple[str, ...] = ()) -> Address:
        """Return the address of the value at `fields` below a key of a report."""
        own = Key.parse(key)
        return cls(own.family, fields, own.variant, region=own.region)

    @property
    def within(self) -> str:
        """Return the address without store and slice: the key of an interval in a report."""
        variant = "" if self.variant is None else f"[{_quoted(self.variant, '[]')}]"
        region = "" if self.region is None else f"@{_quoted(self.region, './=,@')}"
        return f"{self.metric}{variant}{region}.{joined_fields(self.fields)}"

    @property
    def slice_keys(self) -> Iterator[str]:
        """Yield the possible keys of the slice: its conditions in any order, first as written."""
        for order in itertools.permutations(self.where[:6]):
            yield slice_key(order)

    def beside(self, field: str) -> Address:
        """Return the address of another field of the same record, or of the same row in it."""
        row = self.fields[:2] if self.fields[0] in ROWS else ()
        return dataclasses.replace(self, fields=(*row, field))

    def with_store(self, store: str) -> Address:
        """Return the address with a store."""
        return dataclasses.replace(self, store=store)


def joined_fields(fields: Iterable[str]) -> str:
    """Return fields as in an address, with names in quotes where they have dots."""
    return ".".join(_quoted(field, "/.@") for field in fields)


def split_fields(text: str) -> tuple[str, ...]:
    """Return the fields that `joined_fields` joined."""
    return tuple(_unquoted(field) for field in _FIELD.findall(f".{text}"))


def without_row_names(fields: Iterable[str]) -> Iterator[str]:
    """Yield the fields of an address without the names of classes and sets, which may be any."""
    remaining = iter(fields)
    for field in remaining:
        yield field
        if field in ROWS:
            next(remaining, None)


def slice_key(conditions: Iterable[tuple[str, str]]) -> str:
    """Return the key of the slice with these columns and values, as in an address."""
    return ",".join(f"{_quoted(c, '=,@')}={_quoted(v, '=,@')}" for c, v in conditions)


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL) if text[0] == '"' else text


def _quoted(text: str, special: str) -> str:
    if text and text == text.strip() and not any(c in text for c in special + '"'):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def values_of(
    record: Mapping[str, Any],
) -> Iterator[tuple[tuple[str, ...], tuple[Any, ...], int | float | None]]:
    """Yield each single value below a result: the fields of its address, its path, and itself.

    An address names the row of a class by its name, or by its id if several classes share the name;
    a path has the id. Texts, booleans and other lists are left out.
    """
    for name, value in record.items():
        if name.endswith("_reason") or isinstance(value, bool | str):
            continue
        if value is None or is_number(value):
            yield (name,), (name,), value
        elif isinstance(value, Mapping):
            for fields, path, inner in values_of(value):
                yield (name, *fields), (name, *path), inner
        elif name == "per_class" and isinstance(value, list):
            rows = [row for row in value if isinstance(row, Mapping) and "class" in row]
            names = [str(row.get("name", row["class"])) for row in rows]
            called = Counter(names)
            for row, row_name in zip(rows, names, strict=True):
                row_name = row_name if called[row_name] == 1 else str(row["class"])
                for fields, path, inner in values_of(
                    {k: v for k, v in row.items() if k != "class"}
                ):
                    yield (name, row_name, *fields), (name, row["class"], *path), inner


def number_at(results: Mapping[str, Any], path: Iterable[Any]) -> float | None:
    """Return the number at a path of results; None where there is none. Rows of classes have the id
    of the class.
    """
    found: Any = results
    for name in path:
        if isinstance(found, list):
            # Most rows are at the place of their id: a thousand are not searched for each class.
            near = found[name : name + 1] if isinstance(name, int) and name >= 0 else []
            rows = (row for row in itertools.chain(near, found) if isinstance(row, Mapping))
            found = next((row for row in rows if row.get("class") == name), None)
        else:
            found = found.get(name) if isinstance(found, Mapping) else None
    return float(found) if is_number(found) else None


def innermost(names: Collection[str]) -> list[str]:
    """Return the dotted names without those of records that have other names below them. A record
    that is undefined in some results has its fields in others."""
    parts = [name.split(".") for name in names]
    records = {".".join(p[:end]) for p in parts for end in range(1, len(p))}
    return [name for name in names if name not in records]


def addresses_of(
    results: Mapping[str, Mapping[str, Any]],
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield the address and the path of each number of a report."""
    for key, record in results.items():
        for fields, path, _ in values_of(record):
            yield Address.of_key(key, fields).within, (key, *path)
