"""The interface between a gate and saved states, and the units that a report records.

`uqeval.statistics.from_states` implements the interface.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from uqeval.errors import StoreError, is_number
from uqeval.records.addresses import Address
from uqeval.records.lookup import Score
from uqeval.records.report import Report

#: With fewer units an interval may be too narrow.
FEW = 30
#: With fewer independent pairs of a video an interval says little.
FEW_EFFECTIVE = 10


@dataclass(frozen=True)
class Units:
    """The units from which a value is computed: items, groups, pairs, sequences or batches.

    `drawn`: their number. `defined`: the number in which the value is defined; None if not counted.
    For a video, `lag1` is the autocorrelation of neighbouring pairs, and `effective` the number of
    independent pairs with the same information.
    """

    name: str = "item"
    drawn: int = 0
    defined: int | None = 0
    lag1: float | None = None
    effective: float | None = None


#: The method of the difference of two runs on the same predictions, which is 0 in any sample.
IDENTICAL = "identical"


@dataclass(frozen=True)
class Interval:
    """A two-sided interval of a value or of its change.

    `approximate` and `method` as in the report. `error`: the standard error; None or 0 if unknown.
    """

    level: float
    low: float
    high: float
    approximate: bool = False
    method: str = "percentile"
    units: Units = Units()
    error: float | None = None

    @property
    def unit(self) -> str:
        """Return the name of a unit."""
        return self.units.name

    @property
    def count(self) -> int:
        """Return the number of units in which the value is defined; 0 if unknown."""
        return self.units.defined or 0

    @property
    def exact(self) -> bool:
        """Return whether the bounds are exact: no unit shows an event, or another difference."""
        return self.method == "clopper-pearson"

    @property
    def negated(self) -> Interval:
        """Return the interval of the negative value."""
        return replace(self, low=-self.high, high=-self.low)


@dataclass(frozen=True)
class Mover:
    """An item, group or class that harms a value.

    `value`: its own score. `change`: the difference to its score in the baseline. `influence`: the
    score of all items minus the score without it.
    """

    name: str
    value: float | None = None
    change: float | None = None
    influence: float | None = None


class NoInterval(StoreError):
    """A score has no interval, for example with fewer than 6 units. The message says why."""


class Resampler(Protocol):
    """Computes units, intervals and influences from the saved states of reports.

    Addresses have no store, and name classes as the report does. All methods raise `StoreError` if
    there are no states.
    """

    def units(self, report: Path, address: Address) -> Units:
        """Return the units from which the value is computed."""

    def interval(self, report: Path, address: Address, level: float) -> Interval:
        """Return the interval of the value at a level."""

    def change(
        self, report: Path, baseline: Path, address: Address, level: float, relative: bool
    ) -> Interval:
        """Return the interval of the value minus that of the baseline, over the same items.

        `relative`: as a fraction of the absolute value of the baseline.
        """

    def movers(
        self, report: Path, baseline: Path | None, address: Address, count: int, sign: int
    ) -> list[Mover]:
        """Return the items that harm the value, or with a baseline its change, worst first.

        Each is left out once. `sign`: 1 if high values pass, -1 if low values pass.
        """

    def group_movers(
        self, report: Path, baseline: Path | None, address: Address, count: int, sign: int
    ) -> list[Mover]:
        """Return the groups, or sequences of a video, that harm the value; see `movers`.

        Empty for a report that has only items.
        """


def recorded_units(record: Any) -> Units | None:
    """Return the units in the record of an interval; None if it has none."""
    units = record.get("units") if isinstance(record, Mapping) else None
    if not isinstance(units, Mapping):
        return None
    return Units(
        str(units.get("name", "item")),
        _count(units.get("drawn")) or 0,
        _count(units.get("defined")),
        _number(record.get("lag1")),
        _number(record.get("effective")),
    )


def units_of(report: Report, score: Score) -> Units:
    """Return the units of a value: those of its interval, or else groups or items of the report.

    An item counts as defined if its record has the score; None if no record has such a score.
    """
    recorded = recorded_units(score.intervals.get(score.address.within))
    if recorded is not None:
        return recorded
    items = [item for item in report.items if score.holds(str(item.get("name")))]
    settings = report.settings.get("intervals")
    groups = settings.get("groups") if isinstance(settings, Mapping) else None
    name = "pair" if "frames" in report.inputs else "item"
    units: list[str] = [str(item.get("name")) for item in items]
    if isinstance(groups, list) and len(groups) == len(report.items):
        name = "group"
        every = zip(report.items, groups, strict=True)
        units = [str(group) for item, group in every if score.holds(str(item.get("name")))]
    path = (score.address.key, *score.address.fields)
    values = [_value(item, path) for item in items]
    if not any(known for known, _ in values):
        return Units(name, len(set(units)), None)
    defined = {unit for unit, (_, value) in zip(units, values, strict=True) if value is not None}
    return Units(name, len(set(units)), len(defined))


def _value(record: Any, path: Sequence[str]) -> tuple[bool, Any]:
    """Return whether a record holds a value at a path, and the value."""
    for name in path:
        if not isinstance(record, Mapping) or name not in record:
            return False, None
        record = record[name]
    return True, record


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    return float(value) if is_number(value) and math.isfinite(value) else None
