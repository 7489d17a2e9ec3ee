"""Questions of a gate about saved tallies, and the answers, which `uqeval.statistics` computes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from uqeval.errors import StoreError
from uqeval.records.addresses import Address

#: Below so many units an interval may be too narrow.
FEW = 30
#: Below so many independent pairs of a video an interval says little.
FEW_EFFECTIVE = 10


@dataclass(frozen=True)
class Units:
    """What a value is computed from: items, groups, pairs, sequences or batches of a video.

    `drawn`: how many there are; `defined`: those in which the value is defined, None where
    they were not counted. Of a video, `lag1` is the autocorrelation of neighbouring pairs and
    `effective` the number of independent pairs that carry as much information.
    """

    name: str = "item"
    drawn: int = 0
    defined: int | None = 0
    lag1: float | None = None
    effective: float | None = None


@dataclass(frozen=True)
class Interval:
    """A two-sided interval of a value, or of its change; `approximate` and `method` as the report
    has them. `error`: the standard error, None or 0 where it is not known."""

    level: float
    low: float
    high: float
    approximate: bool = False
    method: str = "percentile"
    units: Units = Units()
    error: float | None = None

    @property
    def unit(self) -> str:
        """Return what one unit is."""
        return self.units.name

    @property
    def count(self) -> int:
        """Return the number of units in which the value is defined; 0 where it is not known."""
        return self.units.defined or 0

    @property
    def exact(self) -> bool:
        """Return whether these are the exact bounds of two shares without events."""
        return self.method == "clopper-pearson"

    @property
    def negated(self) -> Interval:
        """Return the interval of the number's negative."""
        return replace(self, low=-self.high, high=-self.low)


@dataclass(frozen=True)
class Mover:
    """An item or a class that moved a value, worst first.

    `value` is its own; `change` the difference to its own value in the baseline; `influence` the
    whole value less the value without it.
    """

    name: str
    value: float | None = None
    change: float | None = None
    influence: float | None = None


class NoInterval(StoreError):
    """A score has no interval, such as one from draws of fewer than 6 units; says why."""


class Resampler(Protocol):
    """Answers from the tallies beside the reports.

    `address` has no store and calls a class as the report does. Each raises `StoreError` where
    there are no tallies.
    """

    def units(self, report: Path, address: Address) -> Units:
        """Return the items, pairs or groups that the value is computed from."""

    def interval(self, report: Path, address: Address, level: float) -> Interval:
        """Return the interval of the value."""

    def change(
        self, report: Path, baseline: Path, address: Address, level: float, relative: bool
    ) -> Interval:
        """Return the interval of the value less the baseline's, from pairs of the same items.

        `relative`: as a fraction of the absolute value of the baseline's.
        """

    def movers(
        self, report: Path, baseline: Path | None, address: Address, count: int, sign: int
    ) -> list[Mover]:
        """Return the items that moved the value, or with a baseline its change, most towards
        failing.

        By leaving each out, worst first. `sign`: 1 where high values pass, -1 where low ones do.
        """

    def group_movers(
        self, report: Path, baseline: Path | None, address: Address, count: int, sign: int
    ) -> list[Mover]:
        """Return the groups, or sequences of a video, likewise; none of a report that has items
        alone.
        """
