"""Verdicts as GitHub annotations: lines that a workflow's log turns into marks at the rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from uqeval.report.safe import printable
from uqeval.report.verdicts import message, outcome, title

if TYPE_CHECKING:
    from uqeval.gate import Judgement, Verdict

#: GitHub shows ten errors and ten warnings of a step; the last line counts the rest.
_MOST = 9


def to_annotations(judgement: Judgement) -> list[str]:
    """One line for every verdict that fails, then for those that are left open."""
    failed = [v for v in judgement.verdicts if v.counts_as == "fail"]
    doubtful = [v for v in judgement.verdicts if v.status == "inconclusive" and v not in failed]
    return [*_lines("error", failed), *_lines("warning", doubtful)]


def _lines(level: str, verdicts: list[Verdict]) -> Iterator[str]:
    for verdict in verdicts[:_MOST]:
        limits, rule = verdict.rule.limits, verdict.rule
        name = f"[{limits.id}] {title(verdict)}" if limits.id else title(verdict)
        place = f"file={_property(rule.file)},line={rule.line},title={_property(name)}"
        yield f"::{level} {place}::{_data(f'{outcome(verdict)}: {message(verdict)}')}"
    if len(verdicts) > _MOST:
        yield f"::{level} title=uqeval gate::and {len(verdicts) - _MOST} more"


def _data(text: str) -> str:
    """Text after the second `::`; line ends and other controls are spelled out first."""
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
