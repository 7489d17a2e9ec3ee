"""Choose the scores to compare: the requested ones, or those of any report."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from uqeval import glossary
from uqeval.compare.comparison import Choice
from uqeval.records.addresses import Address
from uqeval.records.folder import Named
from uqeval.records.lookup import addresses_in
from uqeval.records.scalars import described


def addresses_to_compare(choice: Choice, store: str, reports: Sequence[Named]) -> list[Address]:
    """Return the addresses to compare in the reports of a store."""
    if choice.metrics:
        requested = [Address.parse(text) for text in choice.metrics]
        requested_here = [
            dataclasses.replace(address, store=None)
            for address in requested
            if address.store in (None, store)
        ]
        of_classes = (
            [
                a
                for requested_address in requested_here
                for a in _of_classes(requested_address, reports)
            ]
            if choice.per_class
            else []
        )
        return list(dict.fromkeys([*requested_here, *of_classes]))
    addresses: dict[Address, None] = {}
    for address in _addresses(reports):
        if _is_selected(choice, address) and description(reports, address).get("direction"):
            addresses[address] = None
    order = list(dict.fromkeys(key for named in reports for key in named.report.results))
    return sorted(addresses, key=lambda a: (order.index(a.key), *_place(a)))


def description(reports: Sequence[Named], address: Address) -> Mapping[str, object]:
    """Return the record of an address's metric from the reports; empty if none has it."""
    for named in reports:
        if record := described(named.report.metrics, address.metric, address.fields):
            return record
    return {}


def _addresses(reports: Sequence[Named]) -> Iterator[Address]:
    for named in reports:
        for key, record in named.report.results.items():
            yield from map(Address.parse, addresses_in(key, record))


def _of_classes(address: Address, reports: Sequence[Named]) -> Iterator[Address]:
    """Yield the address of the same score for each class."""
    for candidate in _addresses(reports):
        is_same = (candidate.key, candidate.fields[0], candidate.fields[2:]) == (
            address.key, "per_class", address.fields,
        )  # fmt: skip
        if is_same:
            yield dataclasses.replace(candidate, where=address.where)


def _is_selected(choice: Choice, address: Address) -> bool:
    of_class = address.fields[0] == "per_class"
    if of_class and not choice.per_class:
        return False
    fields = address.fields[2:] if of_class else address.fields
    first = glossary.class_headlines if of_class else glossary.headlines
    return choice.every or ".".join(fields) in first(address.metric)


def _place(address: Address) -> tuple[bool, int]:
    """Return the sort key of a score: headlines first, classes last."""
    headlines = glossary.headlines(address.metric)
    field = ".".join(address.fields)
    position = headlines.index(field) if field in headlines else len(headlines)
    return address.fields[0] == "per_class", position
