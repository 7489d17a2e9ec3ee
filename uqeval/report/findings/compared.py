"""A sentence for each model of a comparison: in which scores it differs from the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from uqeval.errors import number_of
from uqeval.records.intervals import plural
from uqeval.report.findings.scores import Finding

if TYPE_CHECKING:
    from uqeval.compare import Comparison
    from uqeval.compare.comparison import Difference

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
        text = _sentence(base, ways, len(tested))
        if all(change.has_too_few_units for _, change in tested):
            text += f" {too_few_units(tested)}"
        findings.append(Finding(name, text))
    return findings


def too_few_units(changes: Sequence[tuple[str, Difference]]) -> str:
    """Return which scores, by address, have too few units to show a difference; empty if none."""
    tested = [(at, change) for at, change in changes if change.p is not None]
    reasons = {at: _few(change) for at, change in tested if change.has_too_few_units}
    if not reasons:
        return ""
    if len(set(reasons.values())) == 1 and all(change.has_too_few_units for _, change in tested):
        units, least = next(iter(reasons.values()))
        return f"{units} cannot show a difference (the smallest p is {least})."
    at, (units, least) = next(iter(reasons.items()))
    scores, such_as = number_of(len(reasons), "score"), "" if len(reasons) == 1 else "such as "
    return (
        f"Too few units to show a difference in {scores}: {such_as}{at} ({units}, the smallest p "
        f"is {least})."
    )


def _few(change: Difference) -> tuple[str, str]:
    """Return the number of units that a test swaps, and its smallest p-value, as text."""
    count = 0 if change.swapped is None else change.swapped.defined or 0
    noun = "unit" if change.swapped is None else change.swapped.name
    least, adjusted = change.p_least or 0.0, change.p_least_adjusted or 0.0
    is_enough = least <= 1 - (change.level or 0)
    after = f", {adjusted:.2g} after the adjustment" if is_enough else ""
    return f"{count} {plural(noun, count)}", f"{least:.2g}{after}"


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
