"""The verdict on one limit, all verdicts of a gate, and rules that could not be judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Literal

from uqeval.errors import StoreError, listed
from uqeval.gate.more_units import MoreUnits
from uqeval.gate.rules import Rule
from uqeval.gate.waivers import Kind, WaiverUse
from uqeval.records.addresses import Address
from uqeval.records.folder import Named
from uqeval.records.report import Report
from uqeval.records.resampling import Interval, Mover, Units


@dataclass(frozen=True)
class FailedStore:
    """Why a store has no scores, and which metrics the run requested; None: unknown."""

    why: str
    metrics: frozenset[str] | None = None


@dataclass(frozen=True)
class NotEvaluated:
    """A rule that was not evaluated: its address in the store, and the reason."""

    rule: Rule
    address: Address
    why: str


def not_evaluated(rule: Rule, failed_stores: Mapping[str, FailedStore]) -> Iterator[NotEvaluated]:
    """Yield a record for each failed store to which a rule applies."""
    address = rule.address
    for name, store in failed_stores.items():
        is_requested = store.metrics is None or address.metric in store.metrics
        if is_requested and address.store in (None, name):
            yield NotEvaluated(rule, address.with_store(name), store.why)


def by_reason(unjudged: Iterable[NotEvaluated]) -> Iterator[tuple[str, str]]:
    """Yield each reason once, after the place of its first rule and the lines of the others."""
    rules: dict[str, list[NotEvaluated]] = {}
    for entry in unjudged:
        rules.setdefault(entry.why, []).append(entry)
    for why, (first, *others) in rules.items():
        place = f"{first.rule.file}:{first.rule.line}: {first.address}"
        if others:
            lines = dict.fromkeys(str(entry.rule.line) for entry in others)
            noun = "line" if len(lines) == 1 else "lines"
            place += f" and {len(others)} more ({noun} {', '.join(lines)})"
        yield place, why


def refuse_partial(reports: Sequence[Named]) -> None:
    """Raise `StoreError` if not all items of a report were evaluated."""
    for named in reports:
        if named.report.partial:
            raise StoreError(f"{named.path} {_why_partial(named.report)}")


def _why_partial(report: Report) -> str:
    """Return why a report is partial, and what to do, to follow its path."""
    if part := report.inputs.get("part"):
        return (
            f"is shard {part['number']} of {part['of']}: not all items were evaluated. The gate "
            "needs all shards: join them with `uqeval merge`."
        )
    if report.inputs.get("missing_parts"):
        return (
            "was merged from shards, and some are missing. The gate needs all shards: merge "
            "them with `uqeval merge`."
        )
    return (
        "is partial (--limit): not all items were evaluated. The gate needs all items: evaluate "
        "without --limit."
    )


Status = Literal["waived", "pass", "fail", "inconclusive"]


@dataclass(frozen=True)
class Verdict:
    """Whether one limit of a rule holds for one report.

    `value`: None if undefined, with a `reason`. `change`: value minus `baseline`, as a fraction of
    the baseline for relative limits. `counts_as`: the effect on the gate. `more_units`: how many
    more units would decide an inconclusive verdict. `units`: those of the value or its interval.
    `waiver`: the effect of a waiver, None without one.
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
        """Return whether the interval contains the limit, or there is no interval.

        Also true if a waiver covers this verdict.
        """
        waived = self.waiver is not None and self.waiver.instead_of == "inconclusive"
        return self.status == "inconclusive" or waived


@dataclass(frozen=True)
class Judgement:
    """All verdicts of a gate, its warnings, and the rules that were not evaluated.

    Verdicts are in the order of the rules, waived ones first. `today`: the day (UTC) for which
    waivers were checked. `whole_passed`: for the verdicts on some of the stores, whether the gate
    of all stores passes; else None.
    """

    verdicts: tuple[Verdict, ...]
    warnings: tuple[str, ...] = field(default=())
    not_evaluated: tuple[NotEvaluated, ...] = ()
    today: date | None = None
    whole_passed: bool | None = None

    @property
    def passed(self) -> bool:
        """Return whether the gate passes: no rule fails, and all rules were evaluated."""
        return not self.not_evaluated and not self.failed

    @property
    def released(self) -> bool:
        """Return whether the gate of all stores passes, also for the verdicts on some of them."""
        return self.passed if self.whole_passed is None else self.whole_passed

    @property
    def failed(self) -> bool:
        """Return whether a limit is broken."""
        return any(verdict.counts_as == "fail" for verdict in self.verdicts)

    def count(self, status: Status) -> int:
        """Return the number of verdicts with a status."""
        return sum(verdict.status == status for verdict in self.verdicts)

    def dated(self, today: date | None) -> Judgement:
        """Return the judgement with a warning that names the day of --today, if it was used."""
        if today is None:
            return self
        text = f"waivers were checked for {today} (--today), not for today."
        return replace(self, warnings=(text, *self.warnings))


def with_needs(verdicts: Sequence[Verdict], unjudged: Sequence[NotEvaluated]) -> list[Verdict]:
    """Return the verdicts on one rule. If its waiver is needed elsewhere, or may be (`unjudged`),
    the notes of verdicts that do not need it say where, in place of advice to remove it."""
    needing = [v for v in verdicts if v.waiver is not None and v.waiver.outcome != "unneeded"]
    stores = dict.fromkeys(str(entry.address.store) for entry in unjudged)
    if not needing and not stores:
        return list(verdicts)
    several_limits = len({v.kind for v in verdicts}) > 1

    def place(verdict: Verdict) -> str:
        store = str(verdict.address.store)
        return f"{store} ({verdict.kind})" if several_limits else store

    needed = f"{listed(map(place, needing))} {'needs' if len(needing) == 1 else 'need'} it"
    unknown = f"the rule was not evaluated for {listed(stores)}"
    elsewhere = needed if needing else unknown

    def noted(verdict: Verdict) -> Verdict:
        use = verdict.waiver
        if use is None or use.outcome != "unneeded":
            return verdict
        note = f"the waiver is not needed for {place(verdict)}; {elsewhere}"
        return replace(verdict, waiver=replace(use, note=note))

    return [noted(verdict) for verdict in verdicts]
