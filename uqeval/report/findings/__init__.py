"""Three sentences about a report: its strongest finding, its weakest part, what to do next.

Each follows from a rule over the records of metrics: direction, range, chance level, advice. A
sentence claims a difference only if the interval excludes zero difference, after Bonferroni's
adjustment for the number of scores from which the sentence was chosen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uqeval.records.report import Report
from uqeval.report.findings.advice import advice
from uqeval.report.findings.scores import Finding
from uqeval.report.findings.strongest import strongest
from uqeval.report.findings.weakest import weakest

if TYPE_CHECKING:
    from uqeval.gate import Judgement


def findings_of(
    report: Report, judgement: Judgement | None = None, path: str | None = None
) -> list[Finding]:
    """Return at most three findings.

    `judgement`: verdicts on this report alone. `path`: the file of the report, for commands.
    """
    first, unproven = strongest(report)
    second, weak = weakest(report)
    third = advice(report, judgement, unproven, weak, path)
    titled = (("Strongest finding", first), ("Weakest part", second), ("Next", third))
    return [Finding(title, *sentence) for title, sentence in titled if sentence is not None]
