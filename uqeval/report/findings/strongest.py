"""The strongest finding: whether scores are better than chance, close to it, or worse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from uqeval.glossary import families
from uqeval.records.report import Report
from uqeval.report.findings.scores import (
    Score,
    described,
    is_large_gap,
    settings_of,
    whole_scores,
)

if TYPE_CHECKING:
    from uqeval.metrics import Metric

#: A score is close to chance if its skill (0: chance, 1: best) is below this.
_CLOSE = 0.1


def strongest(report: Report) -> tuple[tuple[str, str] | None, Metric | None]:
    """Return the sentence and its family, None if no score has a chance level; and the metric that
    is not better than chance, if any."""
    scores = [score for score in whole_scores(report) if _best(score) is not None]
    if not scores:
        return None, None
    count = len(scores)
    better = [s for s in scores if (_skill(s, count)[0] or 0) > 0 and _skill(s)[1] > _CLOSE]
    worse = [s for s in scores if (_skill(s, count)[2] or 0) < 0 and _skill(s)[1] < -_CLOSE]
    if better and (not worse or _clearest(better) >= _clearest(worse)):
        best = _leading(max(better, key=lambda s: _skill(s)[0] or 0), better)
        return (_certain_text(best, "better"), best.metric.family), None
    if worse:
        worst = _leading(min(worse, key=lambda s: _skill(s)[2] or 0), worse)
        return (_certain_text(worst, "worse"), worst.metric.family), worst.metric
    first = max(scores, key=lambda s: (s.interval is None, abs(_skill(s)[1])))
    if first.interval is not None or abs(_skill(first)[1]) <= _CLOSE:
        close = [s for s in scores if abs(_skill(s)[1]) <= _CLOSE]
        if close:
            first = next((s for s in close if _covers_chance(s)), close[0])
            return (_close_text(first), first.metric.family), first.metric
        first = max(scores, key=lambda s: abs(_skill(s)[1]))
    is_better = _skill(first)[1] > 0
    first = _leading(first, [s for s in scores if (_skill(s)[1] > 0) == is_better])
    unproven = first.metric if first.interval is not None or _skill(first)[1] < 0 else None
    return (_unproven_text(first), first.metric.family), unproven


def _leading(chosen: Score, scores: Sequence[Score]) -> Score:
    """Return the first headline among `scores` that makes the same claim as a chosen score: readers
    expect AUROC where FPR95 says the same."""
    claim = (chosen.metric.family, _claim(chosen))
    return next(s for s in scores if (s.metric.family, _claim(s)) == claim)


def _best(score: Score) -> float | None:
    """Return the best possible value; None if the score has no chance level."""
    chance = score.metric.chance
    if chance is None:
        return None
    if chance.best is not None:
        best = chance.best(score.record)
    else:
        best = score.metric.range[score.metric.direction == "higher"]
    return None if best is None or best == chance.value else best


def _skill(score: Score, chosen_from: int = 1) -> tuple[float | None, float, float | None]:
    """Return lower end, value and upper end on a scale of 0 (chance) to 1 (best).

    Values below -1 become -1, because some scores have no worst value.
    """
    best, chance = _best(score), score.metric.chance
    assert best is not None and chance is not None
    value, *ends = (
        max((number - chance.value) / (best - chance.value), -1.0)
        for number in (score.value, *(score.ends(chosen_from) or ()))
    )
    return (min(ends), value, max(ends)) if ends else (None, value, None)


def _covers_chance(score: Score) -> bool:
    """Return whether the interval does not exclude chance."""
    low, _, high = _skill(score)
    return low is None or high is None or low <= 0 <= high


def _clearest(scores: Sequence[Score]) -> float:
    return max(min(abs(_skill(s)[0] or 0), abs(_skill(s)[2] or 0)) for s in scores)


def _claim(score: Score) -> str:
    return score.metric.chance.claim if score.metric.chance else ""


def _level(score: Score) -> str:
    """Return the name of the input that scores as chance, such as "chance"."""
    return score.metric.chance.of if score.metric.chance else ""


def _and_chance(score: Score) -> str:
    if score.metric.chance is None:
        return ""
    has = "is" if _level(score) == "chance" else "would give"
    return f"and {_level(score)} {has} {score.metric.chance.value:g}"


def _certain_text(score: Score, way: str) -> str:
    """Return the sentence about a score whose interval excludes chance."""
    claim = _claim(score)
    return (
        f"{claim[:1].upper()}{claim[1:]} {way} than {_level(score)}: {described(score)}, "
        f"{_and_chance(score)}."
    )


def _score_of_level(score: Score) -> str:
    return _level(score) if _level(score) == "chance" else f"that of {_level(score)}"


def _close_text(score: Score) -> str:
    level = _score_of_level(score)
    text = f"{score.label} is close to {level}: it is {score.text}, {_and_chance(score)}."
    if _covers_chance(score):
        return f"{text} This does not show that {_claim(score)}."
    return f"{text} The difference is too small to rely on."


def _unproven_text(score: Score) -> str:
    """Return the sentence about a score that differs from chance, but not beyond its interval."""
    text = f"{described(score)}, {_and_chance(score)}."
    if score.interval is not None:
        return f"{text} The interval is too wide to tell it from {_level(score)}."
    if _skill(score)[1] > 0:
        text = f"On these items, {_claim(score)}: {text}"
    else:
        text = f"On these items, {score.label} is worse than {_score_of_level(score)}: {text}"
    return f"{text} Without an interval, this may not hold for other items."


def first_score(report: Report) -> tuple[str, str] | None:
    """Return a sentence with the first score that ranks items, for scores without a chance level.

    A score of the uncertainty comes before an error in units of the target, such as the RMSE. A
    score without a best value, such as a coverage, has the next headline beside it.
    """
    scores = list(whole_scores(report))
    if not scores:
        return None
    ranked = [s for s in scores if families()[s.metric.family].display.ranks_items] or scores
    score = next((s for s in ranked if s.metric.unit != "target"), ranked[0])
    best, family = score.metric.best_value, score.metric.family
    beside = f", where {best:g} is best" if best is not None else ""
    if score.metric.best is None:
        others = (s for s in scores if s.metric.family == family and s is not score)
        beside = "".join(f"; {described(other)}" for other in list(others)[:1])
    side = score.metric.side_of(score.record, settings_of(report, score.key))
    large = " This gap is large" + (f": {side}." if side else ".") if is_large_gap(score) else ""
    meaning = score.metric.meaning
    text = f"{described(score)}{beside}. {score.label}: {meaning[:1].lower()}{meaning[1:]}{large}"
    return text, family
