"""Choose the scores to compare, the requested ones or those of any report, and compute the score of
a model over its trainings.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterator, Mapping, Sequence

from uqeval import glossary
from uqeval.compare.comparison import Cell, Choice
from uqeval.errors import is_number
from uqeval.records.addresses import Address
from uqeval.records.folder import Named
from uqeval.records.lookup import NoScore, Score, addresses_in, keys_with_ranks_of_bins
from uqeval.records.resampling import Interval, Units
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


def is_from_states(reports: Sequence[Named], address: Address) -> bool:
    """Return whether a report computed a score from saved states: a merged report, or the ranks of
    slices that were added later."""
    return any(
        address.key in keys_with_ranks_of_bins(named.report, address)
        or "approximate" in description([named], address)
        for named in reports
    )


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


def cell_of(
    lookups: Sequence[Score | NoScore], values: Sequence[float | None], level: float | None
) -> Cell:
    """Return the cell of a model from the values of its trainings.

    For n > 1 trainings: the mean and the interval mean ± t·s/√n, where s is the sample standard
    deviation and t the quantile of Student's t with n − 1 degrees of freedom at `level` (None: no
    interval). Undefined if the value of a training is undefined.
    """
    defined = tuple(value for value in values if value is not None)
    if len(defined) < len(values):
        return Cell(None, _reason(lookups, values))
    if len(values) == 1:
        return Cell(defined[0])
    mean, std = statistics.fmean(defined), statistics.stdev(defined)
    interval = None if level is None else mean_interval(mean, std, len(defined), level)
    return Cell(mean, None, defined, std, over_trainings=interval)


def mean_interval(mean: float, std: float, count: int, level: float) -> Interval:
    """Return mean ± t·std/√count over trainings; t has count − 1 degrees of freedom."""
    from uqeval.statistics.methods import student

    error = std / count**0.5
    reach = student((1 + level) / 2, count - 1) * error
    units = Units("training", count, count)
    return Interval(level, mean - reach, mean + reach, False, "student-t", units, error)


def with_mark(cell: Cell) -> Cell:
    """Return the cell with its interval over trainings marked as approximate."""
    if cell.over_trainings is None:
        return cell
    mean = dataclasses.replace(cell.over_trainings, approximate=True)
    return dataclasses.replace(cell, over_trainings=mean)


def inside_range(cell: Cell, limits: object) -> Cell:
    """Return the cell with its interval over trainings inside the range of the score, which is two
    numbers or None where it is infinite."""
    if cell.over_trainings is None or not isinstance(limits, Sequence) or len(limits) != 2:
        return cell
    interval, (least, most) = cell.over_trainings, limits
    low = max(interval.low, least) if is_number(least) else interval.low
    high = min(interval.high, most) if is_number(most) else interval.high
    return dataclasses.replace(
        cell, over_trainings=dataclasses.replace(interval, low=low, high=high)
    )


def _reason(lookups: Sequence[Score | NoScore], values: Sequence[float | None]) -> str:
    """Return why the score of a model is undefined."""
    reason = "the report has no such score"
    for lookup, value in zip(lookups, values, strict=True):
        if isinstance(lookup, Score) and value is None:
            reason = lookup.reason or "undefined over the shared items"
    missing = sum(value is None for value in values)
    return reason if len(values) == 1 else f"in {missing} of {len(values)}: {reason}"
