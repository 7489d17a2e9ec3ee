"""One limit of a rule, judged for one report."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from typing import Any

from uqeval.errors import StoreError, UsageError, number_of, quoted
from uqeval.gate.baseline import Pair, refuse_other_settings
from uqeval.gate.kinds import Kind
from uqeval.gate.more_units import more_units
from uqeval.gate.movers import moved_by
from uqeval.gate.notes import notes_on, notes_on_value
from uqeval.gate.rules import Rule
from uqeval.gate.verdict import Status, Verdict
from uqeval.gate.waivers import use_of
from uqeval.records.folder import Named
from uqeval.records.lookup import Absent, Found, find
from uqeval.records.resampling import Interval, NoInterval, Resampler, Units
from uqeval.records.units import recorded_units, units_of

#: The end of the names of values that draws have corrected: `calibration.ece_debiased`.
_DEBIASED = "_debiased"


@dataclass(frozen=True)
class Case:
    """One limit of a rule for one report."""

    rule: Rule
    named: Named
    found: Found
    kind: Kind
    limit: float
    pair: Pair | None
    resampler: Resampler | None
    baseline_given: bool
    today: date

    def verdict(self) -> Verdict:
        """Return the verdict, waived if a waiver holds.

        Raises `UsageError` or `StoreError` where it cannot be judged.
        """
        verdict = self._unwaived()
        waiver = self.rule.limits.waive
        if waiver is None:
            return verdict
        undefined = verdict.reason is not None and verdict.status != "inconclusive"
        status: Any = verdict.status
        use = use_of(
            waiver,
            self.kind,
            status,
            verdict.counts_as,
            None if undefined else verdict.value,
            self.today,
        )
        if use.outcome == "waived":
            return replace(verdict, waiver=use, status="waived", counts_as="pass")
        return replace(verdict, waiver=use)

    def _unwaived(self) -> Verdict:
        found, limits = self.found, self.rule.limits
        base = self._base() if self._of_change else None
        record: dict[str, Any] = {
            "rule": self.rule, "address": found.address.at(self.named.name), "kind": self.kind,
            "limit": self.limit, "value": found.value,
            "baseline": None if base is None else base.value, "notes": tuple(self._notes()),
            "units": self._units(),
        }  # fmt: skip
        measured, why = self._measured(base)
        if measured is None:
            counts = limits.undefined
            return Verdict(**record, status=counts, counts_as=counts, reason=why)
        if self._of_change:
            record["change"] = float(-measured if "drop" in self.kind else measured)
        interval, status = None, self._status(measured, measured)
        if limits.confidence is not None:
            try:
                interval = self._interval(limits.confidence)
            except NoInterval as error:
                return Verdict(
                    **record,
                    status="inconclusive",
                    counts_as=limits.inconclusive,
                    reason=str(error),
                )
            record["notes"] = (*record["notes"], *notes_on(interval.units))
            status = self._status(_exact(interval.low), _exact(interval.high))
            record["units"] = interval.units
            record["interval"] = interval.negated if "drop" in self.kind else interval
        if status == "pass":
            return Verdict(**record, status=status, counts_as="pass")
        if status == "inconclusive" and interval is not None:
            record["more_units"] = more_units(interval, measured, _exact(self.limit), found.items)
        moved: dict[str, Any] = moved_by(
            self.named, found, None if base is None else self._other, base,
            highest=self.kind not in ("min", "max_drop", "max_drop_relative"),
            resampler=self.resampler,
        )  # fmt: skip
        counts = "fail" if status == "fail" else limits.inconclusive
        return Verdict(**record, status=status, counts_as=counts, **moved)

    def _units(self) -> Units:
        """Return the units of the value; of a class, they are counted from the states."""
        found = units_of(self.named.report, self.found)
        if found.defined is None and self.resampler is not None and self.found.value is not None:
            with suppress(StoreError):  # the report has no states
                return self.resampler.units(self.named.path, self.found.address)
        return found

    @property
    def _of_change(self) -> bool:
        return self.kind not in ("min", "max")

    @property
    def _relative(self) -> bool:
        return self.kind.endswith("relative")

    @property
    def _other(self) -> Named:
        if self.pair is None:
            where = self.rule.place
            if not self.baseline_given:
                raise UsageError(f"{where}: {self.kind} needs a baseline; give --baseline REPORT.")
            raise UsageError(f"{where}: the baseline has no report {quoted(self.named.name)}.")
        return self.pair.baseline

    def _base(self) -> Found:
        """Return the same value in the baseline."""
        other = self._other
        base = find(other.report, self.found.address)
        if isinstance(base, Absent):
            raise UsageError(f"{self.rule.place}: {other.path} lacks it: {base.why}.")
        refuse_other_settings(self.rule.place, self.named, other, self.rule.address.key)
        return base

    def _measured(self, base: Found | None) -> tuple[Fraction | None, str | None]:
        """Return the number to compare with the limit: the value, its drop or its rise."""
        if self.found.value is None:
            return None, self.found.reason
        value = _exact(self.found.value)
        if base is None:
            return value, None
        if base.value is None:
            return None, f"in the baseline: {base.reason}"
        change = value - _exact(base.value)
        if self._relative:
            if base.value == 0:
                return None, "the baseline's value is 0, of which nothing is a fraction"
            change /= abs(_exact(base.value))
        return (-change if "drop" in self.kind else change), None

    def _status(self, low: Fraction, high: Fraction) -> Status:
        """Return all of the interval inside the limit, all outside, or neither."""
        limit = _exact(self.limit)
        if self.kind == "min":
            return "pass" if low >= limit else "fail" if high < limit else "inconclusive"
        return "pass" if high <= limit else "fail" if low > limit else "inconclusive"

    def _interval(self, level: float) -> Interval:
        """Return the interval of what is measured."""
        found = self.found
        if not self._of_change:
            kept = _kept(found, level)
            if kept is not None:
                return kept
        if found.address.fields[-1].endswith(_DEBIASED):
            raise UsageError(
                f"{self.rule.place}: {found.address} has no interval: it is corrected by draws. "
                "Leave out confidence, or judge "
                f"{str(found.address).replace(_DEBIASED, '', 1)} with it."
            )
        if self.resampler is None:
            raise UsageError(self._needs_states(level, "nothing here can resample them"))
        try:
            if not self._of_change:
                return self.resampler.interval(self.named.path, found.address, level)
            assert self.pair is not None
            if difference := self.pair.difference or self._other_slice:
                raise UsageError(
                    f"{self.rule.place}: confidence in a change compares the same items one by "
                    f"one: {difference} Evaluate both on the same, or leave confidence."
                )
            interval = self.resampler.change(
                self.named.path, self._other.path, found.address, level, self._relative
            )
            return interval.negated if "drop" in self.kind else interval
        except NoInterval:
            raise
        except StoreError as error:
            raise StoreError(self._needs_states(level, str(error).rstrip("."))) from None

    def _needs_states(self, level: float, why: str) -> str:
        if self._of_change:
            return (
                f"{self.rule.place}: the interval of a change is resampled from the tallies beside "
                f"both reports: {why}. Evaluate again with --states, or leave confidence."
            )
        return (
            f"{self.rule.place}: {self.named.path} holds no interval at level {level!r}, and from "
            f"the tallies beside it there is none: {why}. Evaluate again with --ci {level!r}, or "
            "with --states."
        )

    def _notes(self) -> list[str]:
        notes = []
        if self.found.small:
            notes.append(f"a small slice: {number_of(self.found.items, 'item')}")
        if self._of_change and self._other_slice:
            notes.append(self._other_slice)
        return [*notes, *notes_on_value(self.named.report, self.found)]

    @property
    def _other_slice(self) -> str:
        """Return how the items of the baseline's slice differ; empty if they do not."""
        address, mine, theirs = self.found.address, set(), set()
        for key in address.slice_keys if address.where else ():
            mine |= _names(self.named.report.slices.get(key))
            theirs |= _names(self._other.report.slices.get(key))
        if mine == theirs:
            return ""
        return (
            f"the baseline's slice is of other items ({len(theirs)} of them, {len(mine)} here, "
            f"{len(mine & theirs)} in both)."
        )


def _names(part: Any) -> set[str]:
    """Return the names of the items of a slice's record."""
    names = part.get("names") if isinstance(part, dict) else None
    return {str(name) for name in names} if isinstance(names, list) else set()


def _kept(found: Found, level: float) -> Interval | None:
    """Return the interval that the report holds at a level."""
    record = found.intervals.get(found.address.within)
    if not isinstance(record, dict) or found.value is None:
        return None
    try:
        low, high = float(record["low"]), float(record["high"])
        if not math.isclose(float(record["level"]), level, rel_tol=0, abs_tol=1e-12):
            return None
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise StoreError(f"{found.address}: its interval [{low}, {high}] is none.")
    method = str(record.get("method", Interval.method))
    error = record.get("standard_error")
    known = isinstance(error, float) and math.isfinite(error)
    return Interval(level, low, high, bool(record.get("approximate")), method,
                    recorded_units(record) or Units(), error if known else None)  # fmt: skip


def _exact(value: float) -> Fraction:
    """Return the decimal that a number is written as: 0.8 − 0.79 is 0.01, not a little more."""
    return Fraction(repr(value))
