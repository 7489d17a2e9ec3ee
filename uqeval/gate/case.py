"""One limit of a rule, judged for one report."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from typing import Any

from uqeval.errors import StoreError, UsageError, number_of, quoted
from uqeval.gate.baseline import Pair
from uqeval.gate.bounds import DEBIASED, bounds_of
from uqeval.gate.more_units import more_units
from uqeval.gate.notes import (
    debiased_of,
    moved_by,
    note_on_bias,
    note_on_classes,
    notes_on,
    notes_on_value,
)
from uqeval.gate.other_settings import other_threshold, refuse_other_settings
from uqeval.gate.rules import Rule
from uqeval.gate.senseless import notes_on_limit
from uqeval.gate.verdict import Status, Verdict
from uqeval.gate.waivers import Kind, use_of
from uqeval.keys import family_of
from uqeval.records.folder import Named
from uqeval.records.lookup import NoScore, Score, find, slice_names
from uqeval.records.resampling import (
    IDENTICAL,
    Interval,
    NoInterval,
    Resampler,
    Units,
    recorded_units,
    units_of,
)
from uqeval.records.scalars import described, is_below, is_rounding

_MOST = Fraction(sys.float_info.max)
#: What else helps where a value inside the limit has no interval; the reason says what it lacks.
_WITHOUT_INTERVAL = (
    "without an interval, a rule without `confidence` checks the value alone, and with "
    "`inconclusive: pass` this rule passes"
)


@dataclass(frozen=True)
class Case:
    """One limit of a rule for one report."""

    rule: Rule
    named: Named
    score: Score
    kind: Kind
    limit: float
    pair: Pair | None
    resampler: Resampler | None
    baseline_given: bool
    today: date

    def verdict(self) -> Verdict:
        """Return the verdict; its status is "waived" if a waiver applies.

        Raises `UsageError` or `StoreError` if the rule cannot be judged.
        """
        verdict = self._unwaived()
        verdict = replace(verdict, notes=(*verdict.notes, *self._note_on_bias()))
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
        score, limits = self.score, self.rule.limits
        base = self._baseline_value() if self._of_change else None
        record: dict[str, Any] = {
            "rule": self.rule, "address": score.address.with_store(self.named.name),
            "kind": self.kind, "limit": self.limit, "value": score.value,
            "baseline": None if base is None else base.value, "notes": tuple(self._notes()),
            "units": self._units(),
        }  # fmt: skip
        measured, undefined_reason = self._measured(base)
        if measured is None:
            counts = limits.undefined
            return Verdict(**record, status=counts, counts_as=counts, reason=undefined_reason)
        if self._of_change and math.isfinite(measured):
            record["change"] = float(-measured if "drop" in self.kind else measured)
        has_no_size = measured != 0 and self._is_relative_to_0(base)
        if base is not None and has_no_size and limits.confidence is None:
            record["notes"] = (*record["notes"], self._no_size(base))
        size = self._size_of_numbers(base)
        interval, status = None, self._status(measured, measured, size)
        if limits.confidence is not None:
            try:
                interval = self._interval(limits.confidence, base)
            except NoInterval as error:
                if status == "pass":
                    counts = limits.inconclusive
                    reason = str(error)
                    if counts == "fail":
                        record["notes"] = (*record["notes"], _WITHOUT_INTERVAL)
                    return Verdict(**record, status="inconclusive", counts_as=counts, reason=reason)
                record["notes"] = (*record["notes"], str(error))
            else:
                if interval.method != IDENTICAL:
                    of_classes = note_on_classes(score, interval.units, self._having)
                    record["notes"] = (*record["notes"], *notes_on(interval.units), *of_classes)
                status = self._status(_exact(interval.low), _exact(interval.high), size)
                record["units"] = interval.units
                record["interval"] = interval.negated if "drop" in self.kind else interval
        if status == "pass":
            return Verdict(**record, status=status, counts_as="pass")
        if interval is not None and status == "inconclusive" and isinstance(measured, Fraction):
            record["more_units"] = more_units(interval, measured, _exact(self.limit), score.items)
        movers: dict[str, Any] = moved_by(
            self.named, score, None if base is None else self._baseline, base,
            highest=self.kind not in ("min", "max_drop", "max_drop_relative"),
            resampler=self.resampler,
        )  # fmt: skip
        counts = "fail" if status == "fail" else limits.inconclusive
        return Verdict(**record, status=status, counts_as=counts, **movers)

    def _units(self) -> Units:
        """Return the units of the value."""
        return self._units_of(self.score)

    def _units_of(self, score: Score) -> Units:
        """Return the units of a value. If the report does not count them, the states do."""
        units = units_of(self.named.report, score)
        if units.defined is None and self.resampler is not None and score.value is not None:
            with suppress(StoreError):  # the report has no states
                return self.resampler.units(self.named.path, score.address)
        return units

    def _having(self, fields: tuple[str, ...]) -> int | None:
        """Return in how many units another value under the same key and of the same slice is
        defined; None if this is not known."""
        return self._units_of(
            replace(self.score, address=replace(self.score.address, fields=fields))
        ).defined

    @property
    def _of_change(self) -> bool:
        return self.kind not in ("min", "max")

    @property
    def _relative(self) -> bool:
        return self.kind.endswith("relative")

    @property
    def _baseline(self) -> Named:
        if self.pair is None:
            if not self.baseline_given:
                raise UsageError(f"{self.kind} needs a baseline; give --baseline REPORT.")
            raise UsageError(f"the baseline has no report {quoted(self.named.name)}.")
        return self.pair.baseline

    def _baseline_value(self) -> Score:
        """Return the same value in the baseline."""
        baseline = self._baseline
        base = find(baseline.report, self.score.address)
        if isinstance(base, NoScore):
            raise UsageError(f"{baseline.path} has no such value: {base.why}.")
        fields = self.score.address.fields
        refuse_other_settings(self.named, baseline, self.rule.address.key, fields)
        return base

    def _is_relative_to_0(self, base: Score | None) -> bool:
        """Return whether the change has no relative size: the baseline is 0, or as small."""
        if not self._relative or base is None or base.value is None or self.score.value is None:
            return False
        before = _exact(base.value)
        return before == 0 or abs(_exact(self.score.value) - before) > _MOST * abs(before)

    def _no_size(self, base: Score) -> str:
        """Return how a limit of a relative change applies to a change without relative size."""
        kind = self.kind.removesuffix("_relative")
        change = kind.removeprefix("max_")
        return (
            f"the baseline's value is {base.value or 0.0:g}, so its change has no relative size: "
            f"any {change} breaks {self.kind}; {kind} limits the {change} itself"
        )

    def _measured(self, base: Score | None) -> tuple[Fraction | float | None, str | None]:
        """Return the value, drop or rise that the limit applies to, infinite as a fraction of 0; or
        None and the reason."""
        if self.score.value is None:
            return None, self.score.reason
        value = _exact(self.score.value)
        if base is None:
            return value, None
        if base.value is None:
            return None, f"in the baseline: {base.reason}"
        is_equal = is_rounding(self.score.value, base.value)
        change = Fraction(0) if is_equal else value - _exact(base.value)
        if "drop" in self.kind:
            change = -change
        if self._is_relative_to_0(base):
            return (math.copysign(math.inf, change) if change else change), None
        return (change / abs(_exact(base.value)) if self._relative else change), None

    def _size_of_numbers(self, base: Score | None) -> Fraction:
        """Return the size of the numbers whose difference the limit applies to; 0 for none."""
        values = [None if score is None else score.value for score in (base, self.score)]
        numbers = [abs(_exact(value)) for value in values if value is not None]
        if base is None or len(numbers) < 2:
            return Fraction(0)
        return max(numbers) / numbers[0] if self._relative and numbers[0] else max(numbers)

    def _status(self, low: Fraction | float, high: Fraction | float, size: Fraction) -> Status:
        """Return pass or fail if [low, high] lies on one side of the limit, else inconclusive. A
        number that only rounding separates from the limit is equal to it: from 0.8 to 0.7 is a drop
        of 0.1, and the mean of 0.1, 0.2 and 0.3 is 0.2. `size`: that of numbers in a difference."""
        limit = _exact(self.limit)
        if self.kind == "min":
            good, bad = not is_below(low, limit), is_below(high, limit)
        else:
            good, bad = not is_below(limit, high, size), is_below(limit, low, size)
        return "pass" if good else "fail" if bad else "inconclusive"

    def _interval(self, level: float, base: Score | None) -> Interval:
        """Return the interval of the value or of its change."""
        score = self.score
        if not self._of_change:
            interval_of_report = _recorded_interval(score, level)
            if interval_of_report is not None:
                return interval_of_report
        if score.address.fields[-1].endswith(DEBIASED):
            raise UsageError(
                f"{score.address} has no interval, because bootstrap draws "
                "correct it. Remove confidence, or write the rule for "
                f"{str(score.address).replace(DEBIASED, '', 1)}."
            )
        if (reason := self._without_interval()) is not None:
            raise UsageError(
                f"{score.address} has no interval, because {reason}. Remove "
                f"confidence: {self.kind} without it compares the number itself."
            )
        if self.resampler is None:
            raise UsageError(self._needs_states(level, "there is no resampler"))
        try:
            if not self._of_change:
                return self.resampler.interval(self.named.path, score.address, level)
            assert self.pair is not None
            if difference := self.pair.difference or self._other_slice:
                raise UsageError(
                    f"confidence in a change needs the same items, data and "
                    f"pixels in both reports: {difference} Remove confidence, or evaluate again."
                )
            is_relative_to_0 = self._is_relative_to_0(base)
            interval = self.resampler.change(
                self.named.path, self._baseline.path, score.address, level,
                self._relative and not is_relative_to_0,
            )  # fmt: skip
            interval = interval.negated if "drop" in self.kind else interval
            is_worse = (self._measured(base)[0] or 0) > 0
            if base is not None and is_relative_to_0 and (is_worse or interval.high > 0):
                raise NoInterval(self._no_size(base))
            return interval
        except NoInterval:
            raise
        except StoreError as error:
            raise StoreError(self._needs_states(level, str(error).rstrip("."))) from None

    def _without_interval(self) -> str | None:
        """Return why a number never has an interval; None for a score, and for a report that does
        not say what its scores are."""
        fields, metrics = self.score.address.fields, self.named.report.metrics
        if not metrics or described(metrics, family_of(self.score.address.key), fields):
            return None
        if fields[-1].endswith("_bound"):
            return "it is the bound of the error of a score"
        return "it is none of the scores that `metrics` in the report lists"

    def _needs_states(self, level: float, reason: str) -> str:
        if self._of_change:
            return (
                f"the interval of a change is computed from the saved states of "
                f"both reports: {reason}. Without states, remove confidence."
            )
        return (
            f"{self.named.path} has no interval at level {level!r}: evaluate again with "
            f"--ci {level!r}. Its saved states give none either: {reason}."
        )

    def _note_on_bias(self) -> Iterator[str]:
        """Yield a note if the debiased value is on the other side of the limit. Intervals are
        corrected for the bias."""
        debiased = debiased_of(self.score)
        if debiased is None or self.rule.limits.confidence is not None:
            return
        is_biased = (debiased.value or 0.0) < (self.score.value or 0.0)
        if self.kind in ("min", "max") and not is_biased:
            return
        with suppress(UsageError):  # the baseline has no debiased value
            cases = (replace(self, score=score) for score in (self.score, debiased))
            yield from note_on_bias(*(case._unwaived() for case in cases))

    def _notes(self) -> list[str]:
        notes = []
        if self.score.small:
            notes.append(f"a small slice: {self.score.small}")
        if self._of_change:
            notes += filter(None, (self._other_slice, self._other_threshold))
        metric = bounds_of(self.named.report.metrics, self.score.address)
        notes += notes_on_limit(self.rule.limits, self.kind, metric)
        return [*notes, *notes_on_value(self.named.report, self.score)]

    @property
    def _other_threshold(self) -> str:
        """Return how the threshold of the baseline differs; empty if it does not."""
        key, now = self.score.address.key, self.named.report
        if (values := other_threshold(now, self._baseline.report, key)) is None:
            return ""
        return (
            f"the threshold is {values[0]} in this report and {values[1]} in the baseline "
            "(--threshold-from)"
        )

    @property
    def _other_slice(self) -> str:
        """Return how the items of the baseline's slice differ; empty if they do not."""
        if not (address := self.score.address).where:
            return ""
        names = slice_names(self.named.report, address) or frozenset()
        baseline_names = slice_names(self._baseline.report, address) or frozenset()
        if names == baseline_names:
            return ""
        return (
            f"the slice of the baseline has other items: {number_of(len(baseline_names), 'item')}, "
            f"{len(names)} in this report, {len(names & baseline_names)} in both."
        )


def _recorded_interval(score: Score, level: float) -> Interval | None:
    """Return the interval of the report at a level; None if it has none."""
    record = score.intervals.get(score.address.within)
    if not isinstance(record, dict) or score.value is None:
        return None
    try:
        low, high = float(record["low"]), float(record["high"])
        if not math.isclose(float(record["level"]), level, rel_tol=0, abs_tol=1e-12):
            return None
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise StoreError(f"{score.address}: [{low}, {high}] is not an interval; evaluate again.")
    method = str(record.get("method", Interval.method))
    error = record.get("standard_error")
    is_finite = isinstance(error, float) and math.isfinite(error)
    return Interval(level, low, high, bool(record.get("approximate")), method,
                    recorded_units(record) or Units(), error if is_finite else None)  # fmt: skip


def _exact(value: float) -> Fraction:
    """Return the shortest decimal of a float as a fraction, so that 0.8 − 0.79 is exactly 0.01."""
    return Fraction(repr(value))
