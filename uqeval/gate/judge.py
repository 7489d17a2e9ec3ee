"""Judge reports by rules. Values are compared unrounded, as decimals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

from uqeval.errors import StoreError, UqevalError, UsageError, cut, joined, listed, quoted
from uqeval.gate.baseline import Pair, compares, pair_of_result, pairs_of, without_report
from uqeval.gate.bounds import bounds_of
from uqeval.gate.case import Case
from uqeval.gate.more_units import Margin, chance_of_all
from uqeval.gate.other_versions import other_versions
from uqeval.gate.rules import Rule
from uqeval.gate.senseless import flaw_of
from uqeval.gate.verdict import (
    FailedStore,
    Judgement,
    NotEvaluated,
    Verdict,
    by_reason,
    not_evaluated,
    refuse_partial,
    with_needs,
)
from uqeval.glossary import how_to_evaluate
from uqeval.keys import family_of
from uqeval.records.addresses import Address
from uqeval.records.folder import Named
from uqeval.records.lookup import NoScore, Score, find
from uqeval.records.resampling import Resampler
from uqeval.records.suggestions import NO_SLICES, Addresses, suggestion, with_slash


def judge(
    reports: Sequence[Named],
    rules: Sequence[Rule],
    baseline: Sequence[Named] = (),
    resampler: Resampler | None = None,
    failed_stores: Mapping[str, FailedStore] | None = None,
    today: date | None = None,
) -> Judgement:
    """Return a verdict for each limit and each report to which the rule applies, waived ones first.

    `baseline`: the earlier reports, for limits on changes; see `pairs_of`.
    `resampler` computes values that are not in the reports. `today`: the day for which
    waivers are checked (None: today in UTC). Rules on `failed_stores`, and rules that cannot be
    judged, are listed as not evaluated. Raises `UsageError` or `StoreError` if nothing can be
    judged, and `StoreError` for partial reports.
    """
    if not rules:
        raise UsageError("there are no rules; give at least one.")
    refuse_partial([*reports, *baseline])
    judging = _Judging(
        reports, pairs_of(reports, baseline), resampler, bool(baseline),
        today or datetime.now(UTC).date(), [], [], [], [], {}, Addresses(),
    )  # fmt: skip
    if text := without_report(baseline, judging.pairs, failed_stores or {}):
        judging.warnings.append(text)
    judged = [named for named in reports if named.name in judging.pairs]
    if text := other_versions([*judged, *(pair.baseline for pair in judging.pairs.values())]):
        judging.warnings.append(f"{text}.")
    for rule in rules:
        judging.judge(rule, list(not_evaluated(rule, failed_stores or {})))
    judging.warn_of_equal_results()
    return judging.judgement()


@dataclass(frozen=True)
class _Judging:
    """The inputs of the gate, and the verdicts so far."""

    reports: Sequence[Named]
    pairs: Mapping[str, Pair]
    resampler: Resampler | None
    baseline_given: bool
    today: date
    verdicts: list[Verdict]
    warnings: list[str]
    unjudged: list[NotEvaluated]
    errors: list[tuple[NotEvaluated, UqevalError]]
    pairs_of_results: dict[tuple[str, str], Pair]
    addresses: Addresses

    def judge(self, rule: Rule, lost: list[NotEvaluated]) -> None:
        """Judge a rule for all reports. `lost`: its records for stores that failed."""
        if rule.limits.inconclusive == "pass" and rule.limits.confidence is None:
            self.warnings.append(
                f"{cut(rule.place)}: `inconclusive: pass` has no effect without `confidence`: only "
                "an interval can be inconclusive. Add a level, such as `confidence: 0.95`, or "
                "remove `inconclusive`."
            )
        self.unjudged.extend(lost)
        judged, unjudged = len(self.verdicts), len(self.unjudged) - len(lost)
        self._judge_all(rule, optional=bool(lost))
        self.verdicts[judged:] = with_needs(self.verdicts[judged:], self.unjudged[unjudged:])

    def _judge_all(self, rule: Rule, *, optional: bool) -> None:
        try:
            lookups = list(_lookups(rule, self.reports, self.addresses, optional=optional))
        except UqevalError as error:
            self._give_up(rule, rule.address, error)
            return
        for named, lookup in lookups:
            if isinstance(lookup, UqevalError):
                self._give_up(rule, rule.address.with_store(named.name), lookup)
            else:
                self._judge(rule, named, lookup)

    def _judge(self, rule: Rule, named: Named, score: Score) -> None:
        metric = bounds_of(named.report.metrics, score.address)
        if (flaw := flaw_of(rule.limits, metric, score.address)) is not None:
            address = score.address.with_store(named.name)
            self._give_up(rule, address, UsageError(flaw))
            return
        pair = self.pairs.get(named.name)
        if pair is not None and compares(rule):
            key = rule.address.key
            if (pair_here := self.pairs_of_results.get((named.name, key))) is None:
                pair_here = pair_of_result(pair, named.report, key)
                self.pairs_of_results[named.name, key] = pair_here
            pair = pair_here
            texts = filter(None, (pair.difference, pair.unknown))
            self.warnings.extend(f"{named.name}: {text}" for text in texts)
        for kind, limit in rule.limits.kinds_and_values():
            case = Case(rule, named, score, kind, limit, pair, self.resampler, self.baseline_given,
                        self.today)  # fmt: skip
            try:
                self.verdicts.append(case.verdict())
            except UqevalError as error:
                single = replace(rule, limits=rule.limits.only(kind))
                self._give_up(single, score.address.with_store(named.name), error)

    def warn_of_equal_results(self) -> None:
        """Warn about reports that have the results of their baselines, of the same data, if a rule
        limits their change."""
        names = []
        for named in self.reports:
            pairs = [
                pair for (name, _), pair in self.pairs_of_results.items() if name == named.name
            ]
            if any(pair.difference or pair.unknown for pair in pairs):
                continue
            if any(pair.baseline.report.results == named.report.results for pair in pairs):
                names.append(named.name)
        if names:
            self.warnings.append(
                f"{listed(names)}: the baseline has the same results, so each change is 0. Is it "
                "a copy of the report, or another run of the same model?"
            )

    def _give_up(self, rule: Rule, address: Address, error: UqevalError) -> None:
        self.unjudged.append(NotEvaluated(rule, address, str(error)))
        self.errors.append((self.unjudged[-1], error))

    def judgement(self) -> Judgement:
        """Return all verdicts. Raises one error with all messages if there is no verdict."""
        if self.errors and not self.verdicts:
            rules = (replace(entry, address=entry.rule.address) for entry, _ in self.errors)
            reasons = (f"{place}: {why}" for place, why in by_reason(rules))
            raise type(self.errors[0][1])(joined(reasons))
        if (note := chance_of_all(list(_margins(self.verdicts)))) is not None:
            self.warnings.append(note)
        verdicts = sorted(self.verdicts, key=lambda verdict: verdict.status != "waived")
        texts = tuple(dict.fromkeys(self.warnings))
        return Judgement(tuple(verdicts), texts, tuple(self.unjudged), self.today)


def _margins(verdicts: Sequence[Verdict]) -> Iterator[Margin]:
    """Yield the margins of the rules with confidence that pass."""
    for verdict in verdicts:
        if verdict.interval is None or verdict.status != "pass" or verdict.value is None:
            continue
        measured = verdict.value if verdict.change is None else verdict.change
        limit = -verdict.limit if "drop" in verdict.kind else verdict.limit
        yield Margin(str(verdict.address), abs(measured - limit), verdict.interval)


def _lookups(
    rule: Rule, reports: Sequence[Named], addresses: Addresses, *, optional: bool
) -> Iterator[tuple[Named, Score | UqevalError]]:
    """Yield each report to which a rule applies, and its value or the error.

    Raises `UsageError` if the rule matches nothing, unless `optional`.
    """
    address = rule.address
    candidates = [named for named in reports if address.store in (None, named.name)]
    if optional and not any(address.key in named.report.results for named in candidates):
        return
    if not candidates:
        names = ", ".join(named.name for named in reports)
        raise UsageError(f"there is no report {quoted(address.store)}; the reports are {names}.")
    lookups = [(named, _find(named, address)) for named in candidates]
    with_value = [named for named, lookup in lookups if isinstance(lookup, Score)]
    if not with_value:
        damaged = next((lookup for _, lookup in lookups if isinstance(lookup, StoreError)), None)
        found = [lookup for _, lookup in lookups]
        raise damaged or _names_nothing(rule, candidates, found, addresses)
    for named, lookup in lookups:
        if isinstance(lookup, Score | StoreError):
            yield named, lookup
        # The rule applies to a report only if it has the metric.
        elif address.key in named.report.results:
            yield (
                named,
                UsageError(
                    f"{named.name} has the metric, but {lookup.why}. A rule without "
                    f"a store applies to every report that has the metric; name the store, as "
                    f"{address.with_store(with_value[0].name)}, or evaluate {named.name} in the "
                    f"same way."
                ),
            )


def _find(named: Named, address: Address) -> Score | NoScore | StoreError:
    try:
        return find(named.report, address)
    except StoreError as error:
        return error


def _names_nothing(
    rule: Rule,
    candidates: Sequence[Named],
    lookups: Sequence[Score | NoScore | StoreError],
    addresses: Addresses,
) -> UsageError:
    nearest = max(
        (lookup for lookup in lookups if isinstance(lookup, NoScore)),
        key=lambda lookup: lookup.depth,
    )
    names, reports = [named.name for named in candidates], [named.report for named in candidates]
    if rule.address.where and not any(report.slices for report in reports):
        return UsageError(f"the address matches nothing in the reports: {NO_SLICES}.")
    families = {family_of(key) for report in reports for key in report.results}
    keys = {key for report in reports for key in report.results}
    command = "" if rule.address.key in keys else how_to_evaluate(rule.address.key)
    suggested = with_slash(rule.address, names)
    if not suggested and (not command or rule.address.metric in families):
        suggested = suggestion(reports, rule.address, nearest, addresses)
    hint = f" Did you mean {suggested}?" if suggested else ""
    if command and not suggested:
        hint = f" Evaluate it with `{command}`."
    return UsageError(f"the address matches nothing in the reports: {nearest.why}.{hint}")
