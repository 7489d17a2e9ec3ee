"""Three sentences about a report: its main finding, its weakest part, what to do next.

Each follows from a rule over the records of metrics: direction, range, chance level, advice. A
sentence claims a difference only if the interval excludes zero difference, after Bonferroni's
adjustment for the number of scores from which the sentence was chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any

from uqeval.errors import printable
from uqeval.glossary import families, metric_of
from uqeval.keys import family_of
from uqeval.records.addresses import Address
from uqeval.records.intervals import interval_record, plural
from uqeval.records.report import OF_CUT, Report
from uqeval.records.resampling import FEW
from uqeval.report.command import command_of_pictures
from uqeval.report.findings.scores import (
    Finding,
    Score,
    described,
    first_keys,
    is_large_gap,
    settings_of,
    whole_scores,
)
from uqeval.report.findings.weakest import cancelling, weakest

if TYPE_CHECKING:
    from uqeval.gate import Judgement, Verdict
    from uqeval.metrics import Metric

#: The title of the finding that depends on verdicts.
NEXT = "Next"


def findings_of(
    report: Report, judgement: Judgement | None = None, path: str | None = None,
    page: str | None = None,
) -> list[Finding]:  # fmt: skip
    """Return at most three findings.

    `judgement`: verdicts on this report alone. `path`: the file of the report, for commands.
    `page`: its page, if it is written already; no command replaces it.
    """
    heading = "Main finding"
    first, unproven = strongest(report)
    if first is None:  # no chance level: nothing says whether the score is good
        heading, first = "Main score", first_score(report)
    second, weak = weakest(report)
    if (of_slices := cancelling(report)) is not None:
        second = _joined(second, of_slices)
    third = _advice(report, judgement, unproven, weak, path, page)
    titled = ((heading, first), ("Weakest part", second), (NEXT, third))
    return [Finding(title, *sentence) for title, sentence in titled if sentence is not None]


def _joined(first: tuple[str, str] | None, more: tuple[str, str]) -> tuple[str, str]:
    """Return two sentences as one finding; its family is that of the first one."""
    return more if first is None else (f"{first[0]} {more[0]}", first[1])


def _advice(
    report: Report, judgement: Judgement | None, unproven: Metric | None,
    weak: tuple[str, Score] | None, path: str | None, page: str | None,
) -> tuple[str, ...] | None:  # fmt: skip
    """Return the first advice that the report supports, its family, and a command to paste.

    Without the `path` of the report there is no command.
    """
    if (doubtful := _doubt(report, path, page)) is not None:
        return doubtful
    failed = [v for v in judgement.verdicts if v.counts_as == "fail"] if judgement else []
    for verdict in failed:
        if (metric := _metric_of_rule(verdict)) is not None and metric.advice:
            key = verdict.address.key
            record = _record_of(report, verdict.address)
            of_slice = bool(verdict.address.where)
            advice = metric.advice_for(record, settings_of(report, key), of_slice)
            return f"{verdict.address} fails its rule. {advice}", metric.family
    if unproven is not None:
        return unproven.advice, unproven.family
    if weak is not None:
        how, command = _way_to_look(report, *weak, "" if path is None else quote(path), page)
        look = f"Look at the worst items of {printable(weak[1].part)}, and add similar data."
        return f"{look} {how}", weak[1].metric.family, command if path is not None else ""
    for score in whole_scores(report):
        proven = score.interval is not None
        if is_large_gap(score) and (proven or "part" not in report.inputs):
            doubt = "" if proven else f" {_without_interval(report, score)}"
            advice = score.metric.advice_for(score.record, settings_of(report, score.key))
            return f"{described(score)}. {advice}{doubt}", score.metric.family
    if not report.results or "sweep" in report.results:
        return None
    if "part" in report.inputs:
        return _advice_on_parts(report, path), ""
    if len(report.items) < 2:
        rows = " For the rows of a table, make each row an item: mean[:, None, None], and so on."
        text = "Evaluate more items: from a single item, no interval can be computed."
        return text + rows * _is_table(report), ""
    if not report.intervals:
        return "Add --ci 0.95: intervals show how much the scores may change on other items.", ""
    drawn = report.settings.get("intervals") or {}
    units = drawn.get("units")
    if isinstance(units, int) and units < FEW:
        unit = str(drawn.get("unit", "item"))
        request, of_pairs = (
            ("a longer video", " of pairs") if unit == "batch" else ("more items", "")
        )
        count = f"{units} {plural(unit, units)}{of_pairs}"
        return f"Evaluate {request}: intervals from {count} may be too narrow.", ""
    return "Keep this report as a baseline, and set limits in a file of rules for uqeval gate.", ""


def _without_interval(report: Report, score: Score) -> str:
    """Return that nothing shows that a score holds for other items, and why."""
    only = "this applies to these items only."
    if not report.intervals:
        return f"Without --ci, {only}"
    record = interval_record(report.intervals, score.key, [score.metric.field]) or {}
    reason = f" ({record['reason']})" if record.get("reason") else ""
    return f"{score.label} has no interval{reason}, so {only}"


def _record_of(report: Report, address: Address) -> Mapping[str, Any]:
    """Return the results at an address, of its slice if it has one; empty if there are none."""
    if not address.where:
        return report.results.get(address.key) or {}
    slices = (report.slices.get(name) for name in address.slice_keys)
    record = next((own for own in slices if isinstance(own, dict)), {})
    return (record.get("results") or {}).get(address.key) or {}


def _doubt(report: Report, path: str | None, page: str | None) -> tuple[str, ...] | None:
    """Return the advice to look at the data if predictions and ground truth may not belong
    together, its family, and a command to paste."""
    for key in first_keys(report):
        family = families().get(family_of(key))
        doubt = family.doubt(report.results[key]) if family and family.doubt else None
        if family and doubt:
            command = "" if path is None else command_of_pictures(report, path, page)
            text = f"Check the data first: {doubt.sign}. {doubt.cause}"
            return f"{text} The page shows both with --gallery.", family.in_reports, command
    return None


def _way_to_look(
    report: Report, kind: str, weak: Score, path: str, page: str | None
) -> tuple[str, str]:
    """Return how to see the worst items of a slice, class or region, and the command."""
    if kind == "region":
        address = Address.of_key(weak.key, (weak.metric.field,)).within
        command = f"uqeval select {path} --by {quote(address)}"
        return "uqeval select ranks the items by this score.", command
    if kind == "slice" or "segmentation" in report.results:
        if page is not None:
            return f"Open {printable(page)}: it filters its items by {kind}.", ""
        return f"The page of the report filters its items by {kind}.", f"uqeval report {path}"
    return "uqeval select ranks all items.", f"uqeval select {path}"


def _advice_on_parts(report: Report, path: str | None) -> str:
    """Return the next step after one part of the items: another pass, or the merge."""
    from uqeval.records.shards import ShardCommands

    part = report.inputs["part"]
    commands = ShardCommands.of(path, part.get("number") if isinstance(part, Mapping) else None)
    if report.settings.keys() <= report.results.keys() | OF_CUT:
        return f"Merge all shards: {commands.merge} also computes intervals (--ci 0.95)."
    return (
        f"Count all shards, then run: {commands.fit}. Repeat the command of each shard with "
        f"--fitted {commands.fitted}. When --fit prints done: {commands.merge}"
    )


def _is_table(report: Report) -> bool:
    """Return whether the predictions are one row of values, as arrays of rank 1 are read."""
    arrays = [
        a
        for store in report.inputs.get("predictions", ())
        for a in store.get("arrays", {}).values()
    ]
    shapes = [array["shape"] for array in arrays if isinstance(array["shape"], list)]
    return any(len(shape) >= 2 and shape[-2] == 1 < shape[-1] for shape in shapes)


def _metric_of_rule(verdict: Verdict) -> Metric | None:
    family = verdict.address.metric
    fields = verdict.address.fields
    return metric_of(family, ".".join(fields)) or metric_of(family, fields[-1])


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
