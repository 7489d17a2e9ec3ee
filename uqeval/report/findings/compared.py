"""A sentence for each model of a comparison: in which scores it differs from the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from uqeval.errors import number_of
from uqeval.report.findings.scores import Finding

if TYPE_CHECKING:
    from uqeval.compare import Comparison

#: Scores that a sentence names.
_NAMED = 4


def findings_of_comparison(comparison: Comparison) -> list[Finding]:
    """Return a finding for each model except the baseline, from its scores that have a verdict.

    The verdict comes from the adjusted p-value. Without p-values there are no findings.
    """
    base = comparison.names[comparison.baseline]
    findings = []
    for m, name in enumerate(comparison.names):
        changes = [(str(row.address), row.cells[m].difference) for row in comparison.rows]
        tested = [
            (at, change)
            for at, change in changes
            if change is not None and change.verdict is not None
        ]
        if m == comparison.baseline or not tested:
            continue
        differing = [(at, change.better) for at, change in tested if change.verdict == "differs"]
        ways = {
            word: [at for at, better in differing if better is way]
            for word, way in (("better", True), ("worse", False), ("different", None))
        }
        findings.append(Finding(name, _sentence(base, ways, len(tested))))
    return findings


def _sentence(base: str, ways: dict[str, list[str]], scores: int) -> str:
    """Return the sentence; `ways`: the addresses of the scores that are better, worse, …"""
    claims = [
        (word, f"in {len(addresses)}", f"({_listed(addresses)})")
        for word, addresses in ways.items()
        if addresses
    ]  # fmt: skip
    if not claims:
        scope = f"any of the {scores} scores" if scores > 1 else "the score"
        return f"No difference from {base} is seen in {scope}."
    (word, count, named), *further_claims = claims
    than = "from" if word == "different" else "than"
    text = f"{word.capitalize()} {than} {base} {count} of {number_of(scores, 'score')} {named}"
    text += "".join(f", {' '.join(claim)}" for claim in further_claims)
    undecided = scores - sum(map(len, ways.values()))
    others = str(undecided) if undecided > 1 else "one"
    return f"{text}." + (f" No difference is seen in the other {others}." if undecided else "")


def _listed(addresses: Sequence[str]) -> str:
    unnamed = len(addresses) - _NAMED
    named = ", ".join(addresses[:_NAMED])
    return f"{named} and {unnamed} more" if unnamed > 0 else named
