"""The address that was probably meant by one that matches nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from uqeval.errors import is_number, nearest
from uqeval.records.addresses import Address
from uqeval.records.lookup import NoScore, addresses_in, find, nearest_key, row_of
from uqeval.records.report import Report

#: Why no address of a slice matches.
NO_SLICES = (
    "no report has slices; add them with `uqeval merge REPORT --slices FILE.csv -o NEW.json`"
)


class Addresses:
    """The addresses of the values of results, found once for many addresses that match nothing."""

    def __init__(self) -> None:
        #: With the record of a result, so that no other one gets its `id`.
        self._known: dict[tuple[str, int], tuple[Any, Sequence[str]]] = {}

    def of(self, key: str, record: Any) -> Sequence[str]:
        """Return the addresses of all values of a result (`addresses_in`)."""
        place = key, id(record)
        if place not in self._known:
            self._known[place] = record, tuple(addresses_in(key, record))
        return self._known[place][1]


def no_such_value(reports: Sequence[Report], address: Address) -> str | None:
    """Return why none of these reports has a value at an address, with the nearest valid address;
    None if one has it.

    The reports are of no pixels (`foreseen_report`): rows, points of curves, and fields below
    undefined values depend on the data, so that an address of one of them is valid.
    """
    lookups = [find(report, address) for report in reports]
    no_scores = [lookup for lookup in lookups if isinstance(lookup, NoScore)]
    if len(no_scores) < len(lookups) or any(_names_a_row(report, address) for report in reports):
        return None
    closest = max(no_scores, key=lambda lookup: lookup.depth)
    suggested = suggestion(reports, address, closest)
    return f"{closest.why}." + (f" Did you mean {suggested}?" if suggested else "")


def _names_a_row(report: Report, address: Address) -> bool:
    """Return whether an address leads into a list of a report."""
    if address.where and not any(key in report.slices for key in address.slice_keys):
        return False
    value: Any = report.results.get(address.key)
    for name in address.fields:
        if isinstance(value, list):
            return True
        value = value.get(name) if isinstance(value, dict) else None
    return False


def suggestion(
    reports: Iterable[Report],
    address: Address,
    lookup: NoScore | None = None,
    known: Addresses | None = None,
) -> str | None:
    """Return the valid address nearest to one that matches nothing, with the store of that one.

    `lookup`: why it matches nothing. The result has the name that this suggests, if it can.
    `known`: the addresses found for other ones that match nothing in the reports.
    """
    known = Addresses() if known is None else known
    text = _suggested(list(reports), dataclasses.replace(address, store=None), lookup, known)
    if text is None or address.store is None:
        return text
    return str(Address.parse(text).with_store(address.store))


def _suggested(
    reports: Sequence[Report], address: Address, lookup: NoScore | None, known: Addresses
) -> str | None:
    """Return the nearest valid address to one without a store."""
    keys = list(dict.fromkeys(key for report in reports for key in report.results))
    if address.key not in keys:
        near_key = nearest_key(address.key, keys)
        if near_key is None and address.key != address.metric:
            return None  # another variant or region would be another metric
        if near_key is not None:
            of_key = Address.of_key(near_key, address.fields)
            address = dataclasses.replace(of_key, where=address.where)
    for report in reports:
        fields = _with_quotes(report.results.get(address.key), address.fields)
        if fields is not None and not address.where:
            return str(dataclasses.replace(address, fields=fields))
    valid: dict[str, None] = {}
    for report in reports:
        parts = [("", report.results)]
        parts += [
            (f"@{key}", part.get("results") or {})
            for key, part in report.slices.items()
            if address.where and isinstance(part, dict)
        ]
        for end, results in parts:
            for key, record in results.items():
                if address.key in keys and key != address.key:
                    continue
                valid |= dict.fromkeys(f"{name}{end}" for name in known.of(key, record))
    if (wanted := str(address)) in valid:  # of the key that was meant
        return wanted
    if continued := [text for text in valid if text.startswith(f"{wanted}.")]:
        scores = [text for text in continued if any(_is_score(report, text) for report in reports)]
        return nearest(wanted, scores[:3000], 0.5) or next(iter(scores), None)
    if nested := _with_all_fields(address, valid):
        return nested
    if lookup is not None and lookup.near is not None and (at := lookup.depth - 2) >= 0:
        start, rest = (*address.fields[:at], lookup.near), address.fields[at + 1 :]
        for fields in ((*start, *rest), start):
            text = str(dataclasses.replace(address, fields=fields))
            if text in valid:
                return text
    in_class = address.fields[0] == "per_class"
    same_class = _of_nearest_class(address, valid) if in_class else []
    if in_class and same_class is None:
        return None
    same_class = same_class or [text for text in valid if ".per_class." not in text]
    for candidates in (same_class, list(valid)):
        if near := nearest(wanted, candidates[:3000], 0.5):
            return near
    return None


def _is_score(report: Report, text: str) -> bool:
    return not isinstance(find(report, Address.parse(text)), NoScore)


def _with_all_fields(address: Address, valid: Iterable[str]) -> str | None:
    """Return the shortest valid address that has all fields of an address at other places:
    `per_class.road.iou` for `iou.road`. Addresses that only continue it do not count."""
    fields, start = set(address.fields), len(address.fields)
    places = [
        place for place in map(Address.parse, valid)
        if fields.issubset(place.fields) and place.fields[:start] != address.fields
        and (place.key, place.where) == (address.key, address.where)
    ]  # fmt: skip
    return str(min(places, key=lambda place: len(place.fields))) if places else None


def _of_nearest_class(address: Address, valid: Iterable[str]) -> list[str] | None:
    """Return the addresses of the class whose name is nearest; None if no name is near."""
    by_class: dict[str, list[str]] = {}
    for text in valid:
        fields = Address.parse(text).fields
        if fields[0] == "per_class" and len(fields) > 1:
            by_class.setdefault(fields[1], []).append(text)
    if not by_class or len(address.fields) < 2:
        return []
    near = nearest(address.fields[1], list(by_class)[:3000], 0.5)
    return by_class[near] if near else None


def with_slash(address: Address, stores: Iterable[str]) -> str | None:
    """Return an address whose metric is a store, `city.pavpu.pavpu`, as it was probably meant:
    `city/pavpu.pavpu`. None for any other."""
    text, start = str(address), f"{address.metric}."
    is_store = address.store is None and address.metric in stores and len(address.fields) > 1
    return f"{address.metric}/{text.removeprefix(start)}" if is_store else None


def _with_quotes(value: Any, fields: Sequence[str]) -> tuple[str, ...] | None:
    """Return the fields of a number, for fields that are names with dots without their quotes; None
    if they lead to none. Of a sweep without its last fields: the mean of the most samples."""
    if not fields:
        if isinstance(value, dict) and isinstance(value.get("mean"), list):
            inner = _with_quotes(value["mean"], ())
            return None if inner is None else ("mean", *inner)
        if isinstance(value, list) and value and is_number(value[-1]):
            return (str(len(value) - 1),)
        return () if is_number(value) else None
    for end in range(1, len(fields) + 1):
        name, inner_value = ".".join(fields[:end]), None
        if isinstance(value, list):
            inner_value = row_of(value, name)[0]
        elif isinstance(value, dict):
            inner_value = value.get(name)
        if inner_value is not None:
            inner = _with_quotes(inner_value, fields[end:])
            if inner is not None:
                return name, *inner
    return None
