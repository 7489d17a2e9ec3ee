"""Verdicts as GitHub annotations: log lines that GitHub shows at the lines of the rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from uqeval.errors import printable
from uqeval.report.verdicts import message, outcome, title, unjudged_title, with_id

if TYPE_CHECKING:
    from uqeval.gate import Judgement, Rule, Verdict

#: GitHub shows ten errors and ten warnings of a step; the last line counts the rest.
_MOST = 9


def to_annotations(judgement: Judgement) -> list[str]:
    """Return one line for each rule that is waived, not evaluated, failed or inconclusive."""
    lost = [
        (unjudged.rule, unjudged_title(unjudged), f"not evaluated: {unjudged.why}")
        for unjudged in judgement.not_evaluated
    ]
    failed = [v for v in judgement.verdicts if v.counts_as == "fail"]
    doubtful = [v for v in judgement.verdicts if v.status == "inconclusive" and v not in failed]
    waived = [_finding_of(v) for v in judgement.verdicts if v.status == "waived"]
    errors = [*lost, *map(_finding_of, failed)]
    return [
        *_lines("notice", waived),
        *_lines("error", errors),
        *_lines("warning", list(map(_finding_of, doubtful))),
    ]


def _finding_of(verdict: Verdict) -> tuple[Rule, str, str]:
    """Return the rule of a verdict, its title, and the finding."""
    name = with_id(verdict.rule, title(verdict))
    return verdict.rule, name, f"{outcome(verdict)}: {message(verdict)}"


def _lines(level: str, findings: list[tuple[Rule, str, str]]) -> Iterator[str]:
    for rule, name, text in findings[:_MOST]:
        place = f"file={_property(rule.file)},line={rule.line},title={_property(name)}"
        yield f"::{level} {place}::{_data(text)}"
    if len(findings) > _MOST:
        yield f"::{level} title=uqeval gate::and {len(findings) - _MOST} more"


def _data(text: str) -> str:
    """Return text for the part after the second `::`, with control characters escaped."""
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
