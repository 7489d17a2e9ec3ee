"""Verdicts of a gate in words: titles, sentences, and the outcome of the gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from uqeval.errors import listed
from uqeval.records.intervals import plural, units_text
from uqeval.report.tables.table import format_number

if TYPE_CHECKING:
    from uqeval.gate import Judgement, Mover, NotEvaluated, Rule, Status, Units, Verdict
    from uqeval.gate.more_units import MoreUnits
    from uqeval.gate.waivers import Kind

#: Each status, and what a summary calls it.
STATUSES: tuple[tuple[Status, str], ...] = (
    ("waived", "waived"),
    ("pass", "passed"),
    ("fail", "failed"),
    ("inconclusive", "inconclusive"),
)
_MEANS = {
    "min": "at least {}",
    "max": "at most {}",
    "max_drop": "drop at most {}",
    "max_rise": "rise at most {}",
    "max_drop_relative": "drop at most {} of the baseline",
    "max_rise_relative": "rise at most {} of the baseline",
}


def title(verdict: Verdict) -> str:
    """Return the title of a verdict, unique among them: `city/calibration.ece: at most 0.02`."""
    return f"{verdict.address}: {demand(verdict)}"


def with_id(rule: Rule, text: str) -> str:
    """Return a text about a rule after the id of the rule, if it has one."""
    return f"[{rule.limits.id}] {text}" if rule.limits.id else text


def demand(verdict: Verdict) -> str:
    """Return the limit as text, such as `at most 0.02`."""
    return demand_of(verdict.kind, verdict.limit)


def demands(lost: NotEvaluated) -> str:
    """Return all limits of a rule that was not evaluated, as text."""
    return ", ".join(demand_of(kind, limit) for kind, limit in lost.rule.limits.kinds_and_values())


def demand_of(kind: Kind, limit: float) -> str:
    """Return a limit with all its digits as text; a relative one in percent."""
    if is_relative(kind):
        return _MEANS[kind].format(f"{_digits(Decimal(repr(limit)).scaleb(2))} %")
    return _MEANS[kind].format(_digits(Decimal(repr(limit))))


def _digits(number: Decimal) -> str:
    """Return a number as values are written, such as 0.00001; with an exponent if it is longer than
    floats have digits."""
    text = f"{number.normalize() + 0:f}"
    return text if len(text) <= 20 else repr(float(number))


def is_relative(kind: Kind) -> bool:
    """Return whether a limit is a fraction of the baseline. All texts have it, and what is compared
    with it, in percent."""
    return kind.endswith("relative")


def limits(judgement: Judgement) -> list[dict[str, Any]]:
    """Return the limits on scores of whole stores, to filter items: title, address, min, max.

    The score of a single item has the same address.
    """
    return [
        {
            "title": f"{address}: {demand(verdict)}",
            "address": address,
            "outcome": verdict.status,
            verdict.kind: verdict.limit,
        }
        for verdict in judgement.verdicts
        if verdict.kind in ("min", "max") and not verdict.address.where
        for address in [str(replace(verdict.address, store=None))]
    ]


def unjudged_title(lost: NotEvaluated) -> str:
    """Return the title of a rule that was not evaluated, with its id."""
    return with_id(lost.rule, f"{lost.address}: {demands(lost)}")


def outcome(verdict: Verdict) -> str:
    """Return the status as text: waived with its last day, inconclusive with its effect."""
    if verdict.status == "waived":
        waive = verdict.rule.limits.waive
        return "waived" if waive is None else f"waived, until {waive.until}"
    if verdict.status == "inconclusive":
        return f"inconclusive, counts as {verdict.counts_as}"
    return verdict.status


def sentences(verdict: Verdict) -> list[str]:
    """Return one sentence per fact, the most important first."""
    reasons = [] if verdict.waiver is None else [verdict.waiver.note]
    if verdict.value is None:
        reasons.append(f"undefined: {verdict.reason}")
    else:
        text = f"the value is {distinguishable(verdict.value, verdict.limit)}"
        if verdict.baseline is not None:
            before = format_number(float(verdict.baseline))
            if text.endswith(f" {before}") and verdict.baseline != verdict.value:
                before = format_number(float(verdict.baseline), 6)
            text += f", {before} in the baseline"
        if verdict.change is not None:
            share = " of it" if is_relative(verdict.kind) else ""
            text += f", a change of {change_text(verdict, verdict.change)}{share}"
        reasons.append(text)
        if verdict.reason:
            undefined = not verdict.inconclusive
            reasons.append(f"undefined: {verdict.reason}" if undefined else verdict.reason)
    if (interval := verdict.interval) is not None:
        of = "" if verdict.change is None else " of the change"
        rough = " (approximate)" if interval.approximate else ""
        low, high = (_end(verdict, end) for end in (interval.low, interval.high))
        reasons.append(f"interval{of} at level {interval.level!r}: {low} to {high}{rough}")
        if interval.exact:
            reasons.append(
                "all units show the same difference: the interval is exact (Clopper-Pearson)"
            )
    if verdict.inconclusive and verdict.interval is not None:
        reasons.append(_how_many_more(verdict.more_units))
    kinds = {"groups": verdict.groups, "items": verdict.items, "classes": verdict.classes}
    for noun, movers in kinds.items():
        if movers:
            reasons.append(f"{noun} that moved it most: {', '.join(map(_mover, movers))}")
    return [*reasons, *verdict.notes]


def message(verdict: Verdict) -> str:
    """Return the sentences of a verdict in one line."""
    return line(_facts(verdict))


def _facts(verdict: Verdict) -> list[str]:
    """Return the sentences of a verdict, and why its rule matters."""
    why = [f"why it matters: {verdict.rule.limits.why}"] if verdict.rule.limits.why else []
    return [*sentences(verdict), *why]


def line(facts: Sequence[str]) -> str:
    """Return facts as one sentence; the last may end with a question."""
    text = "; ".join(facts)
    return text if text.endswith("?") else f"{text}."


def summary(judgement: Judgement) -> str:
    """Return the outcome of the gate in one line.

    If no rule fails, but inconclusive ones count as fail, the line begins with these. For the
    verdicts on some stores, the line has their outcome, and that of the gate of all stores.
    """
    if judgement.whole_passed is not None:
        rules = bool(judgement.verdicts or judgement.not_evaluated)
        counts = _outcome(judgement)[1]
        of_page = f"rules of this page: {counts}" if rules else "no rules of this page"
        return f"{of_page}; whole gate: {'passed' if judgement.whole_passed else 'not passed'}"
    ended, counts = _outcome(judgement)
    return f"gate {ended}: {counts}"


def _outcome(judgement: Judgement) -> tuple[str, str]:
    """Return how the gate ended, and the number of verdicts of each status."""
    only_inconclusive = judgement.failed and not judgement.count("fail")
    counts = [
        f"{judgement.count(status)} {noun}"
        for status, noun in STATUSES
        if (judgement.count(status) or status in ("pass", "fail"))
        and not (only_inconclusive and status == "inconclusive")
    ]
    if judgement.not_evaluated:
        counts.append(f"{len(judgement.not_evaluated)} not evaluated")
    if only_inconclusive:
        return "not passed", f"{_inconclusive(judgement)} ({', '.join(counts)})"
    ended = "passed" if judgement.passed else "failed" if judgement.failed else "incomplete"
    return ended, ", ".join(counts)


def _inconclusive(judgement: Judgement) -> str:
    """Return how many verdicts are inconclusive, and how many of them count as fail."""
    total, number = len(judgement.verdicts), judgement.count("inconclusive")
    failing = sum(verdict.counts_as == "fail" for verdict in judgement.verdicts)
    of_all = f"{number} of {total} {plural('verdict', total)}"
    if number == 1:
        return f"{of_all} is inconclusive and counts as fail"
    whose = "" if failing == number else f"{failing} of these "
    verb = "counts" if failing == 1 else "count"
    return f"{of_all} are inconclusive and {whose}{verb} as fail"


def units(units_of_value: Units | None) -> str:
    """Return the units of a value as text: `12 items`, `3 of 5 groups`, `3 batches`."""
    if units_of_value is None or not (units_of_value.drawn or units_of_value.defined):
        return "–"
    return units_text(
        units_of_value.name,
        units_of_value.drawn or units_of_value.defined or 0,
        units_of_value.defined,
        units_of_value.effective,
    )


def findings(judgement: Judgement) -> list[tuple[str, list[str]]]:
    """Return titles and facts of all verdicts that are not a plain pass, waived ones first; then
    the notes on passing verdicts.

    A note or a reason that several rules share appears once, with their titles.
    """
    listed_verdicts = [
        entry
        for entry in judgement.verdicts
        if entry.status != "pass" or entry.reason or entry.waiver
    ]
    named = [
        (_status_text(verdict), _facts(verdict))
        for verdict in sorted(listed_verdicts, key=order_of)
    ]
    waived = sum(verdict.status == "waived" for verdict in listed_verdicts)
    titles_of: dict[str, list[str]] = {}
    for entry in judgement.not_evaluated:
        titles_of.setdefault(entry.why, []).append(unjudged_title(entry))
    lost = [
        (f"{listed(titles)}: not evaluated:", [why.removesuffix(".")])
        for why, titles in titles_of.items()
    ]
    return [*named[:waived], *lost, *named[waived:], *_shared_notes(judgement, listed_verdicts)]


def _shared_notes(
    judgement: Judgement, listed_verdicts: Sequence[Verdict]
) -> list[tuple[str, list[str]]]:
    """Return the notes on passing verdicts that are not listed, those of the same verdicts
    together.
    """
    noted: dict[str, list[str]] = {}
    for verdict in judgement.verdicts:
        for note in verdict.notes if verdict not in listed_verdicts else ():
            noted.setdefault(note, []).append(title(verdict))
    notes_by_titles: dict[str, list[str]] = {}
    for note, titles in noted.items():
        notes_by_titles.setdefault(listed(titles, 3), []).append(note)
    return [
        (f"{titles}: pass, but:", notes_of_titles)
        for titles, notes_of_titles in notes_by_titles.items()
    ]


def _status_text(verdict: Verdict) -> str:
    status = verdict.status if verdict.status == "waived" else outcome(verdict)
    return with_id(verdict.rule, f"{title(verdict)}: {status}:")


def order_of(verdict: Verdict) -> tuple[bool, bool, int]:
    """Return the place of a verdict among others: waived first, then what fails."""
    ranks = ("waived", "fail", "inconclusive", "pass")
    passes = verdict.counts_as == "pass"
    return (verdict.status != "waived", passes, ranks.index(verdict.status))


def distinguishable(value: float, limit: float, least: int = 4) -> str:
    """Return a value with enough digits, at `least` so many, to show on which side of the limit it
    is."""
    if isinstance(value, int):
        return f"{value:,}"
    for digits in range(least, 17):
        text = format_number(value, digits)
        rounded = float(text)
        if (rounded < limit, rounded > limit) == (value < limit, value > limit):
            return text
    return repr(value)


def signed(change: float, limit: float, least: int = 4) -> str:
    """Return a change with its sign, and as many digits as `distinguishable` gives it."""
    return f"{'+' if change > 0 else ''}{distinguishable(float(change), limit, least)}"


def change_text(verdict: Verdict, change: float, digits: int = 1) -> str:
    """Return a change with its sign, in percent of the baseline for a relative limit; `digits`: the
    least number of these of a percentage."""
    against = -verdict.limit if "drop" in verdict.kind else verdict.limit
    if not is_relative(verdict.kind):
        return signed(change, against)
    percent, limit = (round(100 * share, 12) for share in (change, against))  # 7, not 7.0…01
    return f"{signed(percent, limit, digits)} %"


def _end(verdict: Verdict, end: float) -> str:
    """Return an end of an interval, with many digits; of a relative change in percent."""
    if verdict.change is None or not is_relative(verdict.kind):
        return format_number(end, 6)
    return change_text(verdict, end, 4)


def _how_many_more(units_to_add: MoreUnits | None) -> str:
    """Return the estimated number of units that would decide, with its range, as text."""
    if units_to_add is None or units_to_add.count is None:
        return "too close to call by adding items"
    high = f"{units_to_add.high:,}" if units_to_add.high is not None else "far more"
    return (
        f"about {units_to_add.count:,} more {plural(units_to_add.unit, units_to_add.count)} would "
        f"decide with a power of 80 % ({units_to_add.low or 1:,} to {high})"
    )


def _mover(mover: Mover) -> str:
    parts = [] if mover.value is None else [format_number(mover.value)]
    if mover.change is not None:
        parts.append(f"{mover.change + 0.0:+.4g} since the baseline")
    if mover.influence is not None:
        parts.append(f"{0.0 - mover.influence:+.4g} if removed")
    return f"{mover.name} ({', '.join(parts)})" if parts else mover.name


def by_store(judgement: Judgement) -> dict[str, Sequence[Verdict]]:
    """Return the verdicts of each report."""
    verdicts_of_store: dict[str, list[Verdict]] = {}
    for verdict in judgement.verdicts:
        verdicts_of_store.setdefault(str(verdict.address.store), []).append(verdict)
    return {name: tuple(verdicts) for name, verdicts in verdicts_of_store.items()}
