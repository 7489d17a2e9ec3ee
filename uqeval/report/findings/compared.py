"""A sentence for each model of a comparison: in which scores it differs from the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from uqeval.errors import number_of
from uqeval.report.findings.finding import Finding

if TYPE_CHECKING:
    from uqeval.compare import Comparison

#: Scores that a sentence names.
_NAMED = 4


def findings_of_comparison(comparison: Comparison) -> list[Finding]:
    """Return a finding for each model but the baseline, of the scores that have a verdict.

    A verdict is by the p-value that is adjusted for all comparisons, or by the interval over
    trainings. A model without a verdict, as without intervals, has no finding.
    """
    base = comparison.names[comparison.baseline]
    findings = []
    for m, name in enumerate(comparison.names):
        changes = [(str(row.address), row.cells[m].difference) for row in comparison.rows]
        tested = [(at, own) for at, own in changes if own is not None and own.verdict is not None]
        if m == comparison.baseline or not tested:
            continue
        differing = [(at, own.better) for at, own in tested if own.verdict == "differs"]
        ways = {
            word: [at for at, better in differing if better is way]
            for word, way in (("better", True), ("worse", False), ("different", None))
        }
        findings.append(Finding(name, _sentence(base, ways, len(tested))))
    return findings


def _sentence(base: str, ways: dict[str, list[str]], scores: int) -> str:
    """Return the sentence; `ways`: the addresses of the scores that are better, worse, …"""
    claims = [
        (word, f"in {len(own)}", f"({_listed(own)})") for word, own in ways.items() if own
    ]  # fmt: skip
    if not claims:
        seen = f"any of the {scores} scores" if scores > 1 else "the score"
        return f"No difference from {base} is seen in {seen}."
    (word, count, named), *others = claims
    than = "from" if word == "different" else "than"
    text = f"{word.capitalize()} {than} {base} {count} of {number_of(scores, 'score')} {named}"
    text += "".join(f", {' '.join(claim)}" for claim in others)
    rest = scores - sum(map(len, ways.values()))
    return f"{text}." + (f" No difference is seen in the other {rest}." if rest else "")


def _listed(addresses: Sequence[str]) -> str:
    more = len(addresses) - _NAMED
    named = ", ".join(addresses[:_NAMED])
    return f"{named} and {more} more" if more > 0 else named
