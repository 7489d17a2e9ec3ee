"""Reports and rules to verdicts. Values are compared unrounded, as the decimals of their text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from uqeval.errors import StoreError, UqevalError, UsageError, quoted
from uqeval.gate.baseline import Pair, compares, pairs_of
from uqeval.gate.case import Case
from uqeval.gate.more_units import Margin, chance_of_all
from uqeval.gate.not_evaluated import FailedStore, NotEvaluated, not_evaluated, refuse_partial
from uqeval.gate.rules import Rule
from uqeval.gate.verdict import Judgement, Status, Verdict
from uqeval.gate.waivers import today_utc
from uqeval.records.addresses import Address
from uqeval.records.folder import Named
from uqeval.records.lookup import Absent, Found, find, suggestion
from uqeval.records.resampling import Resampler

__all__ = ["Judgement", "Status", "Verdict", "judge"]


def judge(
    reports: Sequence[Named],
    rules: Sequence[Rule],
    baseline: Sequence[Named] = (),
    resampler: Resampler | None = None,
    failed: Mapping[str, FailedStore] | None = None,
    today: date | None = None,
) -> Judgement:
    """Return the verdict of every limit on every report that it holds for, waived ones first.

    `baseline`: the reports that changes are measured against, matched by name, or one against one.
    `resampler` computes values that the reports do not hold. `today`: the day that waivers are held
    against (None: today in UTC). What rules demand of stores that `failed`, and rules that cannot
    be judged, are listed as not evaluated. Raises `UsageError` or `StoreError` where nothing can be
    judged, `StoreError` for partial reports.
    """
    if not rules:
        raise UsageError("there are no rules to judge by; give at least one.")
    refuse_partial([*reports, *baseline])
    bench = _Bench(
        reports, pairs_of(reports, baseline), resampler, bool(baseline), today or today_utc(), [],
        [], [], [],
    )  # fmt: skip
    for rule in rules:
        bench.judge(rule, list(not_evaluated(rule, failed or {})))
    return bench.judgement()


@dataclass(frozen=True)
class _Bench:
    """What rules are judged with, and what has been found so far."""

    reports: Sequence[Named]
    pairs: Mapping[str, Pair]
    resampler: Resampler | None
    baseline_given: bool
    today: date
    verdicts: list[Verdict]
    warnings: list[str]
    unjudged: list[NotEvaluated]
    errors: list[UqevalError]

    def judge(self, rule: Rule, lost: list[NotEvaluated]) -> None:
        """Judge a rule for all reports; `lost`: what it demands of failed stores."""
        self.unjudged.extend(lost)
        try:
            answers = list(_answers(rule, self.reports, optional=bool(lost)))
        except UqevalError as error:
            self._give_up(rule, rule.address, error)
            return
        for named, answer in answers:
            if isinstance(answer, UqevalError):
                self._give_up(rule, rule.address.at(named.name), answer)
            else:
                self._judge(rule, named, answer)

    def _judge(self, rule: Rule, named: Named, found: Found) -> None:
        pair = self.pairs.get(named.name)
        if pair is not None and pair.difference and compares(rule):
            self.warnings.append(f"{named.name}: {pair.difference}")
        for kind, limit in rule.limits.given():
            case = Case(rule, named, found, kind, limit, pair, self.resampler, self.baseline_given,
                        self.today)  # fmt: skip
            try:
                self.verdicts.append(case.verdict())
            except UqevalError as error:
                alone = replace(rule, limits=rule.limits.only(kind))
                self._give_up(alone, found.address.at(named.name), error)

    def _give_up(self, rule: Rule, address: Address, error: UqevalError) -> None:
        why = str(error).removeprefix(f"{rule.place}: ")
        self.unjudged.append(NotEvaluated(rule, address, why))
        self.errors.append(error)

    def judgement(self) -> Judgement:
        """Return what was found. Raises the first error where there is no verdict."""
        if self.errors and not self.verdicts:
            raise self.errors[0]
        if (note := chance_of_all(list(_margins(self.verdicts)))) is not None:
            self.warnings.append(note)
        verdicts = sorted(self.verdicts, key=lambda own: own.status != "waived")
        texts = tuple(dict.fromkeys(self.warnings))
        return Judgement(tuple(verdicts), texts, tuple(self.unjudged), self.today)


def _margins(verdicts: Sequence[Verdict]) -> Iterator[Margin]:
    """Yield how far the rules with confidence pass."""
    for own in verdicts:
        if own.interval is None or own.status != "pass" or own.value is None:
            continue
        measured = own.value if own.change is None else own.change
        limit = -own.limit if "drop" in own.kind else own.limit
        yield Margin(str(own.address), abs(measured - limit), own.interval)


def _answers(
    rule: Rule, reports: Sequence[Named], *, optional: bool
) -> Iterator[tuple[Named, Found | UqevalError]]:
    """Yield the reports that a rule is about with its value in each, or why there is none.

    Raises `UsageError` where it names nothing, unless `optional`.
    """
    address = rule.address
    candidates = [named for named in reports if address.store in (None, named.name)]
    if optional and not any(address.key in named.report.results for named in candidates):
        return
    if not candidates:
        names = ", ".join(named.name for named in reports)
        raise UsageError(
            f"{rule.place}: there is no report {quoted(address.store)}; there are {names}."
        )
    answers = [(named, _find(named, address)) for named in candidates]
    held = [named for named, answer in answers if isinstance(answer, Found)]
    if not held:
        damaged = next((own for _, own in answers if isinstance(own, StoreError)), None)
        raise damaged or _names_nothing(rule, candidates, [own for _, own in answers])
    for named, answer in answers:
        if isinstance(answer, Found | StoreError):
            yield named, answer
        # A report without the metric is none of the rule's; one that has it is.
        elif address.key in named.report.results:
            yield (
                named,
                UsageError(
                    f"{rule.place}: {named.name} has the metric, but {answer.why}. A rule without "
                    f"a store holds for every report that has the metric; name the store, as "
                    f"{address.at(held[0].name)}, or evaluate {named.name} so too."
                ),
            )


def _find(named: Named, address: Address) -> Found | Absent | StoreError:
    try:
        return find(named.report, address)
    except StoreError as error:
        return error


def _names_nothing(
    rule: Rule, candidates: Sequence[Named], answers: Sequence[Found | Absent | StoreError]
) -> UsageError:
    nearest = max(
        (answer for answer in answers if isinstance(answer, Absent)),
        key=lambda answer: answer.depth,
    )
    near = suggestion((named.report for named in candidates), rule.address)
    hint = f" Did you mean {near}?" if near else ""
    return UsageError(f"{rule.place}: names nothing in the reports: {nearest.why}.{hint}")
