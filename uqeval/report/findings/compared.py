"""A sentence for each model of a comparison: in which scores it differs from the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from uqeval.errors import number_of
from uqeval.records.intervals import plural
from uqeval.records.scalars import is_below
from uqeval.report.findings.scores import Finding

if TYPE_CHECKING:
    from uqeval.compare import Comparison
    from uqeval.compare.comparison import Difference

#: Scores that a sentence names.
_NAMED = 4


def findings_of_comparison(comparison: Comparison) -> list[Finding]:
    """Return a finding for each model except the baseline, from the verdicts on its scores.

    A finding counts the scores without a verdict apart. Without p-values there are no findings.
    """
    base = comparison.names[comparison.baseline]
    findings = []
    for m, name in enumerate(comparison.names):
        changes = [
            (str(row.address), change)
            for row in comparison.rows
            if (change := row.cells[m].difference) is not None
        ]
        tested = [(at, change) for at, change in changes if change.p_adjusted is not None]
        if m == comparison.baseline or not tested:
            continue
        differing = [(at, change.better) for at, change in tested if change.verdict == "differs"]
        ways = {
            word: [at for at, better in differing if better is way]
            for word, way in (("better", True), ("worse", False), ("different", None))
        }
        missing = {
            "interval": sum(change.verdict is None for _, change in tested),
            "p-value": len(changes) - len(tested),
        }
        text = _sentences(base, ways, missing, len(changes))
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
    is_enough = not is_below(1 - (change.level or 0), least)
    after = f", {adjusted:.2g} after the adjustment" if is_enough else ""
    return f"{count} {plural(noun, count)}", f"{least:.2g}{after}"


def _sentences(
    base: str, ways: Mapping[str, Sequence[str]], missing: Mapping[str, int], scores: int
) -> str:
    """Return the sentences on all `scores`, which are so many.

    `ways`: the addresses of the scores that are better, worse, … `missing`: the numbers of scores
    without a verdict, by what they have not.
    """
    of_all = f"of {number_of(scores, 'score')}"
    sentences = []
    if claims := [(word, addresses) for word, addresses in ways.items() if addresses]:
        (word, addresses), *further_claims = claims
        than = "from" if word == "different" else "than"
        text = f"{word.capitalize()} {than} {base} in {len(addresses)} {of_all} "
        text += f"({_listed(addresses)})"
        for word, addresses in further_claims:
            text += f", {word} in {len(addresses)} ({_listed(addresses)})"
        sentences.append(text)
    unseen = scores - sum(map(len, ways.values())) - sum(missing.values())
    if unseen and claims:
        other = "" if any(missing.values()) else "the other "
        count = "one" if other and unseen == 1 else str(unseen)
        sentences.append(f"No difference is seen in {other}{count}")
    elif unseen:
        scope = f"any of the {scores} scores" if scores > 1 else "the score"
        scope = scope if unseen == scores else f"{unseen} {of_all}"
        sentences.append(f"No difference from {base} is seen in {scope}")
    lacks = [
        f"{count} {'has' if count == 1 else 'have'} no {what}"
        for what, count in missing.items()
        if count
    ]
    if lacks:
        sentences.append(f"{' and '.join(lacks)}, so no verdict")
    return ". ".join(sentences) + "."


def _listed(addresses: Sequence[str]) -> str:
    unnamed = len(addresses) - _NAMED
    named = ", ".join(addresses[:_NAMED])
    return f"{named} and {unnamed} more" if unnamed > 0 else named
