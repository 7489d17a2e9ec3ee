"""What a report must have beside the values that are recomputed: intervals of scores, debiased
values, the fields of intervals and of slices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from uqeval.records.addresses import Address
from uqeval.records.report import Report
from uqeval.records.scalars import described
from uqeval.usecases.verify.comparing import Comparison, Difference, Tally, compare
from uqeval.usecases.verify.pooled import defined_scores, sets_of

_UNDETECTED = "undetected_error_rate"
#: Fitted numbers that have the kind of an interval, and none.
_FITTED = {("regression", "sigma_scale", "value")}
#: The fields of every interval, and of its units.
_OF_INTERVAL = ("level", "low", "high", "method", "approximate")
_OF_UNITS = ("name", "drawn", "defined")
#: What the fields of a slice itself begin with.
OF_SLICE = "slice"
#: A slice with fewer units of a set is small.
_SMALL = 10


def compare_presence(comparison: Comparison) -> None:
    """Add a difference for each defined score without a record of its interval, also of slices; for
    calibration errors without a debiased value; and for fields that intervals and slices lack.

    A run writes an interval that is undefined as null, with the reason.
    """
    report, tally = comparison.report, comparison.tallies["intervals"]
    compare_slice_fields(comparison)
    if "intervals" not in report.settings:
        if any(intervals for _, intervals in intervals_of(report)):
            comparison.tallies["records"].add_missing("the settings", "intervals")
        return
    for name, family, fields, _, address, intervals in defined_scores(report):
        where = "the set" if name is None else f"slice {name}"
        if address not in intervals and _has_interval(report, family, fields):
            tally.add_missing(where, f"interval of {address}")
    for key, field in _debiased_fields(report):
        if field not in report.results[key]:
            tally.add_missing("the set", f"{key}.{field}")
    for where, intervals in intervals_of(report):
        for address, record in intervals.items():
            units = record.get("units") or {}
            lost = [name for name in _OF_INTERVAL if name not in record]
            lost += [f"units.{name}" for name in _OF_UNITS if name not in units]
            place = f"interval of {address}{where}"
            for name in lost:
                comparison.tallies["units"].add_missing(place, name)
            _compare_nulls(place, record, comparison.tallies["units"])


def _compare_nulls(where: str, record: Mapping[str, Any], tally: Tally) -> None:
    """Add a difference for an interval with a null beside a value: a run writes both ends and the
    method, or none of them."""
    ends = {name: record[name] for name in ("low", "high", "method") if name in record}
    is_defined = {name: own is not None for name, own in ends.items()}
    if len(set(is_defined.values())) > 1:
        tally.compared += 1
        name = next(own for own, defined in is_defined.items() if not defined)
        tally.differences.append(Difference(where, name, None, "a value, as the others have one"))


def intervals_of(report: Report) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the intervals of the set and of each slice, and what their places end with."""
    yield "", report.intervals
    for name, own in report.slices.items():
        yield f" of slice {name}", own.get("intervals") or {}


def _debiased_fields(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the key and the name of each debiased value that draws give."""
    for name, family, fields, _, address, _ in defined_scores(report):
        is_error = described(report.metrics, family, fields).get("interval") == "gaps"
        if name is None and len(fields) == 1 and is_error:
            yield Address.parse(address).key, f"{fields[0]}_debiased"


def _has_interval(report: Report, family: str, fields: tuple[str, ...]) -> bool:
    """Return whether a run gives an interval of a defined score, or null with the reason."""
    if family == "failure" and fields[0] == "per_class" and fields[-1] != _UNDETECTED:
        return False  # saved states do not hold the ranks of a class
    if (family, *fields) in _FITTED:
        return False  # draws hold it fixed
    return described(report.metrics, family, fields).get("interval") is not None


def compare_slice_fields(comparison: Comparison) -> None:
    """Compare the number of items and the units of each slice, and whether it is small; add a
    difference for each result of the set that a slice lacks."""
    report, tally = comparison.report, comparison.tallies["slices"]
    units, settings = _units_of(report), report.settings.get("intervals") or {}
    found = {(own.where, own.field) for own in tally.differences}
    for slice_name, record in report.slices.items():
        where, names = f"slice {slice_name}", [str(name) for name in record.get("names", ())]
        of_units = {f"units.{n}": own for n, own in (record.get("units") or {}).items()}
        expected: dict[str, Any] = {"items": len(names)}
        is_known = "intervals" in report.settings or of_units.get("units.name") == "item"
        if units is not None and is_known:
            drawn = {units[name] for name in names if name in units}
            least = min(Counter(of_set for of_set, _ in drawn).values(), default=0)
            unit = "group" if settings.get("groups") else "item"
            expected |= {
                "units.name": unit, "units.drawn": len(drawn), "small": least < _SMALL,
            }  # fmt: skip
        for name in ("names", "approximate", "intervals", "units.name", "units.defined"):
            if name not in {**record, **of_units}:
                tally.add_missing(where, f"{OF_SLICE}.{name}")
        compare(where, OF_SLICE, {**record, **of_units}, expected, {}, tally)
        results = record.get("results") or {}
        for key, of_set in report.results.items():
            own = results.get(key)
            if own is None:
                if (where, key) not in found:
                    tally.add_missing(where, key)
                continue
            for name in of_set:
                is_beside = name.endswith(("_reason", "_debiased"))
                is_found = (where, f"{key}.{name}") in found
                if name not in own and not is_beside and not is_found:
                    tally.add_missing(where, f"{key}.{name}")


def _units_of(report: Report) -> dict[str, tuple[str, str]] | None:
    """Return the set and the unit of each item; None where units are not items or groups of
    them."""
    settings = report.settings.get("intervals") or {}
    if "frames" in report.inputs:
        return None
    sets = sets_of(report) or [""] * len(report.items)
    groups = settings.get("groups") or report.item_names
    return {
        name: (of_set, str(group))
        for name, of_set, group in zip(report.item_names, sets, groups, strict=True)
    }
