"""Three sentences about a report: its main finding, its weakest part, what to do next.

Each follows from a rule over the records of metrics: direction, range, chance level, advice. A
sentence claims a difference only if the interval excludes zero difference, after Bonferroni's
adjustment for the number of scores from which the sentence was chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
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
from uqeval.report.findings.strongest import first_score, strongest
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
