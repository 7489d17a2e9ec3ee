"""The baseline of each report, and checks that the two are comparable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uqeval.errors import UsageError, cut, quoted
from uqeval.gate.rules import Rule
from uqeval.records.folder import Named
from uqeval.records.report import Report

#: What a fitted threshold was taken from; with it, `threshold` is a number that differs.
_TAKEN = "threshold_from"
#: What a model is called is no choice of how it is evaluated.
_CALLED = "model"


@dataclass(frozen=True)
class Pair:
    """A report's baseline; `difference` says how their items differ, if they do."""

    baseline: Named
    difference: str

    @property
    def paired(self) -> bool:
        """Return whether both are of the same items and ground truth."""
        return not self.difference


def compares(rule: Rule) -> bool:
    """Return whether a rule limits a change against a baseline."""
    return any("drop" in kind or "rise" in kind for kind, _ in rule.limits.given())


def refuse_unused_baseline(rules: Sequence[Rule]) -> None:
    """Raise `UsageError` for rules of which none takes a baseline."""
    if not any(map(compares, rules)):
        raise UsageError(
            "--baseline has no effect: no rule limits a change against it (max_drop, max_rise, "
            "max_drop_relative, max_rise_relative). Add such a limit, or leave --baseline out."
        )


def pairs_of(reports: Sequence[Named], baseline: Sequence[Named]) -> dict[str, Pair]:
    """Return the baseline of each report by its name: that of the same name, or one against one."""
    if len(reports) == len(baseline) == 1:
        matched = {reports[0].name: baseline[0]}
    else:
        there = {named.name: named for named in baseline}
        matched = {named.name: there[named.name] for named in reports if named.name in there}
        if baseline and not matched:
            raise UsageError(
                f"no report has a baseline of its name: {cut(', '.join(n.name for n in reports))} "
                f"against {cut(', '.join(there))}. Give a folder of reports of the same names."
            )
    now = {named.name: named.report for named in reports}
    return {name: Pair(base, _difference(now[name], base.report)) for name, base in matched.items()}


def _difference(report: Report, baseline: Report) -> str:
    """Return how the items differ: their names, or the ground truth; empty where they are
    the same.
    """
    mine = [str(item.get("name")) for item in report.items]
    theirs = [str(item.get("name")) for item in baseline.items]
    if mine != theirs:
        same = len(set(mine) & set(theirs))
        return (
            f"the baseline is of other items ({len(theirs)} of them, {len(mine)} here, {same} in "
            "both), or of another order."
        )
    if truth_of(report) != truth_of(baseline):
        return "the baseline was evaluated against other labels (their fingerprints differ)."
    return ""


def truth_of(report: Report) -> Any:
    """Return the fingerprint of what a report was evaluated against; None where it says none."""
    truth = report.inputs.get("labels") or report.inputs.get("target") or {}
    return truth.get("fingerprint") if isinstance(truth, dict) else None


def refuse_other_settings(place: str, now: Named, baseline: Named, key: str) -> None:
    """Raise `UsageError` where a metric was computed with other settings than its baseline."""
    if (other := other_setting(now.report, baseline.report, key)) is not None:
        name, mine, theirs = other
        raise UsageError(
            f"{cut(place)}: {name} is {quoted(mine)} here and {quoted(theirs)} in {baseline.path}; "
            "numbers of different settings cannot be compared. Evaluate both alike."
        )


def other_setting(report: Report, baseline: Report, key: str) -> tuple[str, Any, Any] | None:
    """Return the first setting in which a metric of two reports differs, and what it is in each."""
    mine, theirs = _settings(report, key), _settings(baseline, key)
    taken = mine.pop(_TAKEN, None) or theirs.pop(_TAKEN, None)
    theirs.pop(_TAKEN, None)
    if taken:
        mine.pop("threshold", None)
        theirs.pop("threshold", None)
    for name in sorted(mine.keys() | theirs.keys()):
        if mine.get(name) != theirs.get(name):
            return name, mine.get(name), theirs.get(name)
    return None


def _settings(report: Report, key: str) -> dict[str, Any]:
    own = report.settings.get(key)
    shared: dict[str, Any] = {
        name: report.inputs[name] for name in ("ignore_index", "classes") if name in report.inputs
    }
    own = own if isinstance(own, dict) else {}
    return shared | {name: value for name, value in own.items() if name != _CALLED}
