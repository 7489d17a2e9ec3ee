"""The interface between a gate and saved states; `uqeval.statistics.from_states` implements it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from uqeval.errors import StoreError
from uqeval.records.addresses import Address

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
        """Return whether the bounds are exact: two shares without events."""
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
