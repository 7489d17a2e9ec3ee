"""Verdicts of a gate, and all of them together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date
from typing import Literal

from uqeval.gate.kinds import Kind
from uqeval.gate.more_units import MoreUnits
from uqeval.gate.not_evaluated import NotEvaluated
from uqeval.gate.rules import Rule
from uqeval.gate.waivers import WaiverUse
from uqeval.records.addresses import Address
from uqeval.records.resampling import Interval, Mover, Units

Status = Literal["waived", "pass", "fail", "inconclusive"]


@dataclass(frozen=True)
class Verdict:
    """Whether one limit of a rule holds for one report.

    `value` is None where it is undefined, for a `reason`; `change` is its rise above `baseline`, as
    a fraction for relative limits. `counts_as` is what it does to the gate. `more_units`: how many
    more units would likely decide what is inconclusive. `units`: what the value is computed from,
    or what its interval rests on. `waiver`: what a waiver does to it, None without one.
    """

    rule: Rule
    address: Address
    kind: Kind
    limit: float
    value: int | float | None
    status: Status
    counts_as: Literal["pass", "fail"]
    reason: str | None = None
    baseline: float | None = None
    change: float | None = None
    interval: Interval | None = None
    units: Units | None = None
    waiver: WaiverUse | None = None
    more_units: MoreUnits | None = None
    items: tuple[Mover, ...] = ()
    groups: tuple[Mover, ...] = ()
    classes: tuple[Mover, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def inconclusive(self) -> bool:
        """Return whether the interval contains the limit, or there is none; also where that is
        waived.
        """
        waived = self.waiver is not None and self.waiver.instead_of == "inconclusive"
        return self.status == "inconclusive" or waived


@dataclass(frozen=True)
class Judgement:
    """All verdicts, what to know about them, and what has none.

    Verdicts are in the order of the rules, those that are waived first. `today`: the day (UTC) that
    waivers were held against.
    """

    verdicts: tuple[Verdict, ...]
    warnings: tuple[str, ...] = field(default=())
    not_evaluated: tuple[NotEvaluated, ...] = ()
    today: date | None = None

    @property
    def passed(self) -> bool:
        """Return whether the gate is passed: by all rules, those of failed stores too."""
        return not self.not_evaluated and not self.failed

    @property
    def failed(self) -> bool:
        """Return whether some limit does not hold."""
        return any(verdict.counts_as == "fail" for verdict in self.verdicts)

    def count(self, status: Status) -> int:
        """Return how many verdicts there are of a status."""
        return sum(verdict.status == status for verdict in self.verdicts)

    def dated(self, today: date | None) -> Judgement:
        """Return the same with a warning of the day, where one was given."""
        if today is None:
            return self
        text = f"judged as of {today} (--today), not of the present day."
        return replace(self, warnings=(text, *self.warnings))
