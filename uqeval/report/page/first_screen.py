"""The first screen of a page: the verdict with its reasons, findings, and four key numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from uqeval.gate.verdict import Judgement
from uqeval.records.report import Report
from uqeval.report import verdicts
from uqeval.report.findings import findings_of
from uqeval.report.findings.scores import Finding
from uqeval.report.page.cards import Card, cards
from uqeval.report.tables.comparison import difference, meaning_of_p

if TYPE_CHECKING:
    from uqeval.compare import Comparison

#: The largest number of key numbers on the first screen.
MOST_NUMBERS = 4
#: Marks around the first screen of a page, which a run replaces when it has verdicts.
BEGIN, END = "<!-- first screen -->", "<!-- end of the first screen -->"


@dataclass(frozen=True)
class FirstScreen:
    """The content of the first screen. `judgement`: None without verdicts on the report. `verdict`:
    the outcome of the gate, empty without one. `released`: whether the gate of all stores passes.
    """

    judgement: Judgement | None
    verdict: str
    released: bool
    reasons: list[tuple[str, str]]
    findings: list[Finding]
    numbers: list[Card]
    changes: Mapping[str, str]
    change_note: str


def first_screen(
    report: Report, judgement: Judgement | None, comparison: Comparison | None = None
) -> FirstScreen:
    """Return the first screen; `comparison`: of the report with its baseline, the first model."""
    summary = verdicts.summary(judgement) if judgement else ""
    released = judgement is None or judgement.released
    if judgement is not None and not (judgement.verdicts or judgement.not_evaluated):
        summary = "" if judgement.whole_passed is None else summary
        judgement = None
    return FirstScreen(
        judgement,
        summary,
        released,
        reasons_of(judgement) if judgement else [],
        findings_of(report, judgement),
        key_numbers(cards(report)),
        _changes(comparison),
        _change_note(comparison),
    )


def reasons_of(judgement: Judgement) -> list[tuple[str, str]]:
    """Return the titles and findings of the first rules that decide the verdict."""
    reasons = [
        (verdicts.unjudged_title(lost), f"not evaluated: {lost.why}")
        for lost in judgement.not_evaluated
    ]
    for status in ("fail", "inconclusive", "waived"):
        for verdict in judgement.verdicts:
            if verdict.status == status:
                name = f"{verdict.rule.limits.id} " if verdict.rule.limits.id else ""
                facts = f"{verdicts.outcome(verdict)}: {verdicts.sentences(verdict)[0]}"
                reasons.append((f"{name}{verdicts.title(verdict)}", facts))
    return reasons


def key_numbers(all_cards: list[Card]) -> list[Card]:
    """Return the first headline of each family, then the second ones: at most four."""
    ranked: list[tuple[int, Card]] = []
    counts: dict[str, int] = {}
    for card in all_cards:
        place = counts[card.key] = counts.get(card.key, -1) + 1
        ranked.append((place, card))
    return [card for _, card in sorted(ranked, key=lambda entry: entry[0])][:MOST_NUMBERS]


def addresses_of(report: Report) -> tuple[str, ...]:
    """Return the addresses of the key numbers, for a comparison with a baseline."""
    chosen = key_numbers(cards(report))
    return tuple(card.address for card in chosen)


def _changes(comparison: Comparison | None) -> dict[str, str]:
    """Return the change of each score from the baseline as text, by address."""
    if comparison is None:
        return {}
    model = next(m for m in range(len(comparison.names)) if m != comparison.baseline)
    return {str(row.address): difference(row.cells[model]).plain for row in comparison.rows}


def _change_note(comparison: Comparison | None) -> str:
    """Return from which model the changes are, and what their p-values mean."""
    if comparison is None:
        return ""
    texts = (f"Change from {comparison.names[comparison.baseline]}.", meaning_of_p(comparison))
    return " ".join(filter(None, texts))


def replaced(page: str, first: str) -> str:
    """Return a page with another first screen."""
    before, begin, after_begin = page.partition(BEGIN)
    _, end, after = after_begin.partition(END)
    if not begin or not end:
        raise ValueError("the page has no first screen")
    return f"{before}{BEGIN}{first}{END}{after}"
