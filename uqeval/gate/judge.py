"""Reports and rules to verdicts. Values are compared unrounded, as the decimals of their text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from uqeval.errors import StoreError, UsageError, number_of
from uqeval.gate.addresses import Address
from uqeval.gate.baseline import Pair, pairs_of, refuse_other_settings
from uqeval.gate.enough import MoreUnits, chance_of_all, more_units
from uqeval.gate.lookup import Absent, Found, find, suggestion
from uqeval.gate.movers import moved_by
from uqeval.gate.notes import notes_on, notes_on_value
from uqeval.gate.resampling import Interval, Mover, NoInterval, Resampler
from uqeval.gate.rules import Kind, Rule
from uqeval.gate.unjudged import FailedStore, NotEvaluated, not_evaluated, refuse_partial
from uqeval.report.folder import Named

Status = Literal["pass", "fail", "inconclusive"]


@dataclass(frozen=True)
class Verdict:
    """Whether one limit of a rule holds for one report.

    `value` is None where it is undefined, for a `reason`; `change` is its rise above `baseline`, as
    a fraction for relative limits. `counts_as` is what it does to the gate. `more_units`: how many
    more units would likely decide what is inconclusive.
    """

    rule: Rule
    address: Address
    kind: Kind
    limit: float
    value: float | None
    status: Status
    counts_as: Literal["pass", "fail"]
    reason: str | None = None
    baseline: float | None = None
    change: float | None = None
    interval: Interval | None = None
    more_units: MoreUnits | None = None
    items: tuple[Mover, ...] = ()
    classes: tuple[Mover, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judgement:
    """All verdicts, in the order of the rules, what to know about them, and what has none."""

    verdicts: tuple[Verdict, ...]
    warnings: tuple[str, ...] = field(default=())
    not_evaluated: tuple[NotEvaluated, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the gate is passed: by all rules, those of failed stores too."""
        return not self.not_evaluated and not self.failed

    @property
    def failed(self) -> bool:
        """Whether some limit does not hold."""
        return any(verdict.counts_as == "fail" for verdict in self.verdicts)

    def count(self, status: Status) -> int:
        """How many verdicts there are of a status."""
        return sum(verdict.status == status for verdict in self.verdicts)


def judge(
    reports: Sequence[Named],
    rules: Sequence[Rule],
    baseline: Sequence[Named] = (),
    resampler: Resampler | None = None,
    failed: Mapping[str, FailedStore] | None = None,
) -> Judgement:
    """The verdict of every limit on every report that it holds for.

    `baseline`: the reports that changes are measured against, matched by name, or one against one.
    `resampler` is asked for what the reports do not hold. What rules demand of stores that `failed`
    is listed as not evaluated. Raises `UsageError` for rules that name
    nothing or cannot be judged, `StoreError` for partial reports.
    """
    if not rules:
        raise UsageError("there are no rules to judge by; give at least one.")
    refuse_partial([*reports, *baseline])
    pairs = pairs_of(reports, baseline)
    verdicts, warnings, unjudged = [], [], []
    for rule in rules:
        lost = list(not_evaluated(rule, failed or {}))
        unjudged += lost
        for named, found in _held_by(rule, reports, optional=bool(lost)):
            pair = pairs.get(named.name)
            if pair is not None and pair.difference and _compares(rule):
                warnings.append(f"{named.name}: {pair.difference}")
            for kind, limit in rule.limits.given():
                case = _Case(rule, named, found, kind, limit, pair, resampler, bool(baseline))
                verdicts.append(case.verdict())
    if (note := chance_of_all(verdicts)) is not None:
        warnings.append(note)
    return Judgement(tuple(verdicts), tuple(dict.fromkeys(warnings)), tuple(unjudged))


def _compares(rule: Rule) -> bool:
    return any("drop" in kind or "rise" in kind for kind, _ in rule.limits.given())


def _held_by(rule: Rule, reports: Sequence[Named], *, optional: bool) -> list[tuple[Named, Found]]:
    """The reports that a rule is about, with its value in each.

    Raises `UsageError` for none, unless `optional`.
    """
    address = rule.address
    asked = [named for named in reports if address.store in (None, named.name)]
    if optional and not any(address.key in named.report.results for named in asked):
        return []
    if not asked:
        names = ", ".join(named.name for named in reports)
        raise UsageError(f"{rule.place}: there is no report {address.store!r}; there are {names}.")
    answers = [(named, find(named.report, address)) for named in asked]
    held = [(named, answer) for named, answer in answers if isinstance(answer, Found)]
    if held:
        for named, answer in answers:
            # A report without the metric is none of the rule's; one that has it is.
            if isinstance(answer, Absent) and address.key in named.report.results:
                raise UsageError(
                    f"{rule.place}: {named.name} has the metric, but {answer.why}. A rule without "
                    f"a store holds for every report that has the metric; name the store, as "
                    f"{address.at(held[0][0].name)}, or evaluate {named.name} so too."
                )
        return held
    nearest = max(
        (answer for _, answer in answers if isinstance(answer, Absent)),
        key=lambda answer: answer.depth,
    )
    near = suggestion((named.report for named in asked), address)
    hint = f" Did you mean {near}?" if near else ""
    raise UsageError(f"{rule.place}: names nothing: {nearest.why}.{hint}")


@dataclass(frozen=True)
class _Case:
    """One limit of a rule for one report."""

    rule: Rule
    named: Named
    found: Found
    kind: Kind
    limit: float
    pair: Pair | None
    resampler: Resampler | None
    baseline_given: bool

    def verdict(self) -> Verdict:
        found, limits = self.found, self.rule.limits
        base = self._base() if self._of_change else None
        told: dict[str, Any] = {
            "rule": self.rule, "address": found.address.at(self.named.name), "kind": self.kind,
            "limit": self.limit, "value": found.value,
            "baseline": None if base is None else base.value, "notes": tuple(self._notes()),
        }  # fmt: skip
        measured, why = self._measured(base)
        if measured is None:
            counts = limits.undefined
            return Verdict(**told, status=counts, counts_as=counts, reason=why)
        if self._of_change:
            told["change"] = float(-measured if "drop" in self.kind else measured)
        interval, status = None, self._status(measured, measured)
        if limits.confidence is not None:
            try:
                interval = self._interval(limits.confidence)
            except NoInterval as error:
                return Verdict(**told, status="inconclusive", counts_as=limits.inconclusive,
                               reason=str(error))  # fmt: skip
            told["notes"] = (*told["notes"], *notes_on(interval))
            status = self._status(_exact(interval.low), _exact(interval.high))
            told["interval"] = interval.negated if "drop" in self.kind else interval
        if status == "pass":
            return Verdict(**told, status=status, counts_as="pass")
        if status == "inconclusive" and interval is not None:
            told["more_units"] = more_units(interval, measured, _exact(self.limit), found.items)
        items, classes = moved_by(
            self.named, found, None if base is None else self._other, base,
            highest=self.kind not in ("min", "max_drop", "max_drop_relative"),
            resampler=self.resampler,
        )  # fmt: skip
        counts = "fail" if status == "fail" else limits.inconclusive
        return Verdict(**told, status=status, counts_as=counts, items=items, classes=classes)

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
            raise UsageError(f"{where}: the baseline has no report {self.named.name!r}.")
        return self.pair.baseline

    def _base(self) -> Found:
        """The same value in the baseline."""
        other = self._other
        base = find(other.report, self.found.address)
        if isinstance(base, Absent):
            raise UsageError(f"{self.rule.place}: {other.path} lacks it: {base.why}.")
        refuse_other_settings(self.rule.place, self.named, other, self.rule.address.key)
        return base

    def _measured(self, base: Found | None) -> tuple[Fraction | None, str | None]:
        """What is held against the limit: the value, or how far it fell or rose."""
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
        """All of the interval inside the limit, all outside, or neither."""
        limit = _exact(self.limit)
        if self.kind == "min":
            return "pass" if low >= limit else "fail" if high < limit else "inconclusive"
        return "pass" if high <= limit else "fail" if low > limit else "inconclusive"

    def _interval(self, level: float) -> Interval:
        """The interval of what is measured."""
        found = self.found
        if not self._of_change:
            kept = _kept(found, level)
            if kept is not None:
                return kept
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
        """That the baseline's slice of this name is of other items; empty where it is not."""
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
    """The names of the items of a slice's record."""
    names = part.get("names") if isinstance(part, dict) else None
    return {str(name) for name in names} if isinstance(names, list) else set()


def _kept(found: Found, level: float) -> Interval | None:
    """The interval that the report holds at a level."""
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
    units, error = record.get("units"), record.get("standard_error")
    units = units if isinstance(units, dict) else {}
    name, defined = str(units.get("name", "item")), units.get("defined", 0)
    count = defined if isinstance(defined, int) else 0
    known = isinstance(error, float) and math.isfinite(error)
    return Interval(level, low, high, bool(record.get("approximate")), method, name, count,
                    error if known else None)  # fmt: skip


def _exact(value: float) -> Fraction:
    """The decimal that a number is written as: 0.8 − 0.79 is 0.01, not a little more."""
    return Fraction(repr(value))
