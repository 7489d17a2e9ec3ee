"""Sentences that name every value of a report that `verify` did not compare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uqeval.errors import cut, listed, number_of
from uqeval.keys import family_of
from uqeval.records.addresses import Address
from uqeval.usecases.verify.comparing import ITEMS, OF_THE_SET, is_not_held
from uqeval.usecases.verify.presence import OF_SLICE, intervals_of
from uqeval.usecases.verify.records import records_left_out

if TYPE_CHECKING:
    from uqeval.records.report import Report
    from uqeval.usecases.verify.recomputation import Recomputation

#: The largest number of names in one sentence.
_NAMED = 60
#: What ends the names of fields that sentences of their own name.
_BESIDE = ("_reason", "_debiased")
#: The fields of intervals that are compared, or that sentences of their own name.
_OF_INTERVALS = {
    "level", "low", "high", "method", "approximate", "standard_error", "reason", "lag1",
    "effective", "units.name", "units.drawn", "units.defined",
}  # fmt: skip
#: The fields of a slice that are compared with those of other slices, or have fields themselves.
_OF_SLICES = {"names", "results", "intervals"}


def left_out(
    recomputation: Recomputation, report: Report, items: Sequence[int], pooled: bool
) -> list[str]:
    """Return sentences that name all that was not compared of these items; with `pooled` also of
    the set and its slices."""
    reasons = {key: [reason] for key, reason in recomputation.why_not.items()}
    messages = _grouped(reasons, "{}.")
    seen = set().union(*(tally.seen for tally in recomputation.tallies.values()))
    of_items: dict[str, dict[str, None]] = {}
    for i in items:
        for key, record in report.items[i].items():
            if key not in recomputation.why_not and isinstance(record, dict):
                of_items.setdefault(key, {}).update(_unseen(record, ITEMS, key, seen))
    messages += _grouped(of_items, "not recomputed of the items: {}.")
    if pooled:
        messages += _grouped(_of_set(recomputation, report, seen), "not recomputed of the set: {}.")
    messages += _intervals_left_out(recomputation, report, seen)
    if report.slices:
        messages.append(_slices_left_out(recomputation, report, seen))
    swept = [key for key, record in report.results.items() if "sweep_bins" in record]
    if swept:
        messages.append(f"{listed(swept, 4)}: sweep_bins is taken from the report.")
    curves = [key for key in recomputation.fields_of_set if family_of(key) == "failure"]
    if curves:
        messages.append(
            f"{_all(curves)}: the points and the coverages of curve are taken from the report."
        )
    return messages + records_left_out(recomputation)


def _leaves(value: Any, place: str) -> Iterator[str]:
    """Yield the places, with dots, of the values inside a value that are not null; without texts of
    reasons."""
    if isinstance(value, dict | list):
        for name, own in value.items() if isinstance(value, dict) else enumerate(value):
            if not str(name).endswith("_reason"):
                yield from _leaves(own, f"{place}.{name}")
    elif value is not None:
        yield place


def _unseen(
    record: Mapping[str, Any], where: str, key: str, seen: set[tuple[str, str]]
) -> dict[str, None]:
    """Return the names of the fields of a record that were not compared, in its order; `NAME.PART`
    where only parts of a field were not. Without rows of classes and debiased values."""
    names: dict[str, None] = {}
    for name, value in record.items():
        if is_not_held(record, name):
            names[name] = None
        if name.endswith(_BESIDE) or name == "per_class":
            continue
        places = list(_leaves(value, name))
        lost = [place for place in places if (where, f"{key}.{place}") not in seen]
        if len(lost) == len(places):
            names |= dict.fromkeys([name] if lost else [])
        else:
            names |= dict.fromkeys(map(_without_numbers, lost))
        if isinstance(value, dict):
            names |= {f"{name}.{part}": None for part in value if is_not_held(value, part)}
    return names


def _without_numbers(place: str) -> str:
    """Return a place without the numbers of rows and points."""
    return ".".join(part for part in place.split(".") if not part.isdigit())


def _of_set(
    recomputation: Recomputation, report: Report, seen: set[tuple[str, str]]
) -> dict[str, dict[str, None]]:
    """Return the fields of the set with a value that were not compared, by key."""
    omitted: dict[str, dict[str, None]] = {}
    why_not = recomputation.why_not
    for key, record in report.results.items():
        if key in why_not or key + OF_THE_SET in why_not:
            continue
        names = _unseen(record, "the set", key, seen)
        own = {name: None for name in names if f"{key}.{name}" not in why_not}
        if key in recomputation.rows:
            own |= _of_rows(record, "the set", key, seen)
        if own:
            omitted[key] = own
    return omitted


def _of_rows(
    record: Mapping[str, Any], where: str, key: str, seen: set[tuple[str, str]]
) -> dict[str, None]:
    """Return the fields of rows of classes that were not compared."""
    names: dict[str, None] = {}
    for row in record.get("per_class") or ():
        own = _unseen(row, f"{where}, class {row.get('name')}", key, seen)
        names |= {f"per_class.{name}": None for name in own}
    return names


def _grouped(fields_of: Mapping[str, Iterable[str]], sentence: str) -> list[str]:
    """Return a sentence for each list of fields, after the keys that share it."""
    keys_of: dict[tuple[str, ...], list[str]] = {}
    for key, fields in fields_of.items():
        keys_of.setdefault(tuple(fields), []).append(key)
    keys_of.pop((), None)
    return [f"{_all(keys)}: {sentence.format(_all(fields))}" for fields, keys in keys_of.items()]


def _intervals_left_out(
    recomputation: Recomputation, report: Report, seen: set[tuple[str, str]]
) -> list[str]:
    """Return sentences that name the intervals and debiased values that were not recomputed."""
    omitted = [name for name, record in report.intervals.items()
            if record.get("low") is not None and name not in recomputation.intervals]  # fmt: skip
    debiased: dict[str, list[str]] = {}
    for key, record in report.results.items():
        for name in record:
            address = Address.of_key(key, (name,)).within
            if name.endswith("_debiased") and address not in recomputation.intervals:
                debiased.setdefault(key, []).append(name)
    rows = sum(".per_class." in name for name in omitted)
    omitted_scores = [name for name in omitted if ".per_class." not in name]
    messages = []
    has_rows = [key for key, record in report.results.items() if record.get("per_class")]
    if keys := [key for key in has_rows if key not in recomputation.rows]:
        messages.append(f"{_all(keys)}: rows of classes are not recomputed.")
    if rows:
        messages.append(f"{number_of(rows, 'interval')} of rows of classes are not recomputed.")
    fields_of: dict[str, list[str]] = {}
    for score in map(Address.parse, omitted_scores):
        fields_of.setdefault(score.key, []).append(".".join(score.fields))
    messages += _grouped(fields_of, "the intervals of {} are not recomputed.")
    messages += _grouped(debiased, "{} are not recomputed.")
    if earlier := recomputation.earlier_rule:
        messages.append(f"By the rule of an earlier version, not of this one: {_all(earlier)}.")
    return messages + _fields_of_intervals_left_out(recomputation, report, seen)


def _fields_of_intervals_left_out(
    recomputation: Recomputation, report: Report, seen: set[tuple[str, str]]
) -> list[str]:
    """Return sentences that name the fields of intervals, also of slices, beside their ends, that
    were not compared."""
    every = [
        (where, address, record) for where, own in intervals_of(report)
        for address, record in own.items()
    ]  # fmt: skip
    if not every:
        return []
    further = {
        place: None for _, _, record in every for name, value in record.items()
        for place in _leaves(value, name) if place not in _OF_INTERVALS
    }  # fmt: skip
    names = ", ".join(map(cut, ("approximate", *further)))
    messages = [
        f"Of intervals, {names} {'are' if further else 'is'} taken from the report, and "
        "standard_error is not recomputed."
    ]
    omitted = [
        address for where, address, _ in every
        if (f"interval of {address}{where}", f"{Address.parse(address).key}.units.defined")
        not in seen
    ]  # fmt: skip
    if omitted:
        messages.append(
            f"units.defined is not recomputed for {len(omitted)} of "
            f"{number_of(len(every), 'interval')}."
        )
    if "lag1" in report.settings.get("intervals", {}):
        omitted = [
            address for where, address, _ in every if (where, address) not in recomputation.series
        ]
        messages.append(
            f"lag1 and effective are taken from the report, in the settings and for {len(omitted)} "
            f"of {number_of(len(every), 'interval')}."
        )
    return messages


def _slices_left_out(
    recomputation: Recomputation, report: Report, seen: set[tuple[str, str]]
) -> str:
    """Return a sentence that names the values of slices that were not compared."""
    number = sum(
        record.get("low") is not None and (name, address) not in recomputation.slice_intervals
        for name, own in report.slices.items()
        for address, record in (own.get("intervals") or {}).items()
    )
    omitted = [number_of(number, "interval")] if number else []
    keys = [key for key in report.results if key not in recomputation.slices]
    omitted += [f"all scores of {_all(keys)}"] if keys else []
    of_keys: dict[str, dict[str, None]] = {}
    fields: dict[str, None] = {}
    for name, record in report.slices.items():
        where = f"slice {name}"
        own = {field: value for field, value in record.items() if field not in _OF_SLICES}
        fields |= _unseen(own, where, OF_SLICE, seen)
        for key, result in (record.get("results") or {}).items():
            if key not in keys:
                lost = _unseen(result, where, key, seen) | _of_rows(result, where, key, seen)
                of_keys.setdefault(key, {}).update(lost)
    by_fields: dict[tuple[str, ...], list[str]] = {}
    for key, lost in of_keys.items():
        if lost:
            by_fields.setdefault(tuple(lost), []).append(key)
    omitted += [f"{_all(lost)} of {_all(own)}" for lost, own in by_fields.items()]
    omitted += [_all(list(fields))] if fields else []
    return f"Not recomputed of {number_of(len(report.slices), 'slice')}: {'; '.join(omitted)}."


def _all(names: Sequence[str]) -> str:
    """Return all names, up to as many as a report of ours can have."""
    remaining = len(names) - _NAMED
    return ", ".join(map(cut, names[:_NAMED])) + (f" and {remaining} more" if remaining > 0 else "")
