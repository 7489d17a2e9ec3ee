"""Compare level and units of intervals with the settings and the items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from uqeval.records.addresses import Address
from uqeval.usecases.verify.comparing import Comparison, compare

#: Units that are items or groups of them; those of a video follow from a series of pairs.
_COUNTED = ("item", "group")


def compare_levels(comparison: Comparison) -> None:
    """Compare level, and name and number of the units, of every interval, also of slices.

    Those of a video are compared with the settings.
    """
    settings = comparison.report.settings.get("intervals") or {}
    for where, intervals, expected in _parts(comparison, settings) if settings else ():
        for address, record in intervals.items():
            _compare(comparison, f"interval of {address}{where}", address, record, expected)


def compare_defined(
    comparison: Comparison, address: str, record: Mapping[str, Any], defined: int
) -> None:
    """Compare the number of units from which the score at an address is computed."""
    expected = {"units.defined": defined}
    _compare(comparison, f"interval of {address}", address, record, expected)
    comparison.defined.add(address)


def _parts(
    comparison: Comparison, settings: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any], dict[str, Any]]]:
    """Yield the intervals of the set and of each slice, and the fields that they should have."""
    report, level = comparison.report, {"level": settings.get("level")}
    is_counted, unit_of = settings.get("unit") in _COUNTED, dict[str, str]()
    if is_counted:
        groups = settings.get("groups")
        names = [str(item["name"]) for item in report.items]
        unit_of = dict(zip(names, groups or names, strict=True))
        units: dict[str, Any] = {"units.name": "group" if groups else "item"}
        yield "", report.intervals, level | units | {"units.drawn": len(set(unit_of.values()))}
    else:
        units = {"units.name": settings.get("unit")}
        of_series = {name: settings.get(name) for name in ("lag1", "effective")}
        drawn = {"units.drawn": settings.get("units")}
        yield "", report.intervals, level | units | drawn | of_series
    for name, record in report.slices.items():
        drawn = {}
        if is_counted:
            found = {unit_of[item] for item in record.get("names", ()) if item in unit_of}
            drawn = units | {"units.drawn": len(found)}
        yield f" of slice {name}", record.get("intervals") or {}, level | drawn


def _compare(
    comparison: Comparison, where: str, address: str, record: Mapping[str, Any],
    expected: Mapping[str, Any],
) -> None:  # fmt: skip
    units = record.get("units") or {}
    reported = dict(record) | {f"units.{name}": value for name, value in units.items()}
    key, tally = Address.parse(address).key, comparison.tallies["units"]
    # A field that is missing in the report is one that differs.
    reported = {name: reported.get(name) for name in expected}
    compare(where, key, reported, expected, {}, tally)
