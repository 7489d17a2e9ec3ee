"""Scores for findings, with their intervals, as text; a sentence for each model of a
comparison; and the first advice that a report and its verdicts support.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from uqeval.errors import number_of, printable
from uqeval.glossary import headlines, metric_of
from uqeval.keys import Key, family_of
from uqeval.records.intervals import interval, plural
from uqeval.records.report import Report
from uqeval.records.resampling import FEW
from uqeval.report.tables.table import format_number

if TYPE_CHECKING:
    from uqeval.compare import Comparison
    from uqeval.gate import Judgement, Verdict
    from uqeval.metrics import Metric


@dataclass(frozen=True)
class Finding:
    """One sentence, its heading, the family of the score for a link, and a command to paste; empty
    without one."""

    title: str
    text: str
    family: str = ""
    command: str = ""


@dataclass(frozen=True)
class Score:
    """A value of a report, its label and its interval.

    `part`: the name of its class, slice or region; empty for the whole set.
    """

    metric: Metric
    label: str
    value: float
    interval: Mapping[str, Any] | None
    record: Mapping[str, Any]
    part: str = ""

    @property
    def text(self) -> str:
        """Return the value with its interval: `0.904 (95 % interval 0.890 to 0.917)`."""
        if self.interval is None:
            return number(self.value)
        low, high = number(self.interval["low"]), number(self.interval["high"])
        about = "about " if self.interval.get("approximate") else ""
        level = f"{100 * (self.interval.get('level') or 0.95):.4g} %"
        return f"{number(self.value)} ({level} interval {about}{low} to {high})"

    def ends(self, chosen_from: int = 1) -> tuple[float, float] | None:
        """Return the interval, widened for a score that is chosen from several."""
        if self.interval is None:
            return None
        level = self.interval.get("level") or 0.95
        normal = NormalDist()
        factor = normal.inv_cdf(1 - (1 - level) / 2 / chosen_from)
        factor /= normal.inv_cdf((1 + level) / 2)
        low, high = self.interval["low"], self.interval["high"]
        return self.value - factor * (self.value - low), self.value + factor * (high - self.value)


def number(value: float) -> str:
    """Return a number for a sentence: three digits after the point, or four significant ones."""
    return format_number(float(value), 3) if abs(value) < 10 else f"{value:.4g}"


def described(score: Score) -> str:
    """Return a score as text: `AUROC is 0.904 (95 % interval 0.890 to 0.917)`."""
    return f"{score.label} is {score.text}"


def whole_scores(report: Report) -> Iterator[Score]:
    """Yield the headline scores of the first variant of each family, of whole images."""
    families = set()
    for key, record in report.results.items():
        family = family_of(key)
        if family in families or Key.parse(key).region is not None:
            continue
        families.add(family)
        yield from headline_scores(family, key, record, report.intervals)


def headline_scores(
    family: str, key: str, record: Mapping[str, Any], intervals: Mapping[str, Any], part: str = ""
) -> Iterator[Score]:
    """Yield the defined headline scores of a family in a `record` of results, in their order.

    `part`: the name of the class, slice or region of the record; empty for the whole set.
    """
    for field in headlines(family):
        metric, value = metric_of(family, field), record.get(field)
        if metric is not None and isinstance(value, int | float):
            recorded_interval = interval(intervals, key, [field])
            yield Score(metric, metric.label, float(value), recorded_interval, record, part)


def first_keys(report: Report) -> list[str]:
    """Return the key of the first variant of each family, of whole images."""
    keys: dict[str, str] = {}
    for key in report.results:
        if Key.parse(key).region is None:
            keys.setdefault(family_of(key), key)
    return list(keys.values())


#: A gap between confidence and accuracy, or between nominal and observed coverage, worth acting on.
_GAP = 0.02


def advice(
    report: Report, judgement: Judgement | None, unproven: Metric | None, weak: Score | None,
    path: str | None = None,
) -> tuple[str, ...] | None:  # fmt: skip
    """Return the first advice that the report supports, its family, and a command to paste.

    Without the `path` of the report there is no command.
    """
    failed = [v for v in judgement.verdicts if v.counts_as == "fail"] if judgement else []
    for verdict in failed:
        if (metric := _metric_of_rule(verdict)) is not None and metric.advice:
            return f"{verdict.address} fails its rule. {metric.advice}", metric.family
    if unproven is not None:
        return unproven.advice, unproven.family
    if weak is not None:
        look = f"Look at the worst items of {printable(weak.part)}, and add similar data."
        command = f"uqeval select {quote(path)}" if path is not None else ""
        return f"{look} uqeval select ranks the items to label.", weak.metric.family, command
    for score in whole_scores(report):
        if score.metric.interval == "gaps" and (score.ends() or (0.0,))[0] > _GAP:
            return f"{described(score)}. {score.metric.advice}", score.metric.family
    if not report.results or "sweep" in report.results:
        return None
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


#: Scores that a sentence names.
_NAMED = 4


def findings_of_comparison(comparison: Comparison) -> list[Finding]:
    """Return a finding for each model except the baseline, from its scores that have a verdict.

    The verdict comes from the adjusted p-value, or from the interval over trainings. Without
    intervals there are no verdicts, and so no findings.
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
    return f"{text}." + (f" No difference is seen in the other {undecided}." if undecided else "")


def _listed(addresses: Sequence[str]) -> str:
    unnamed = len(addresses) - _NAMED
    named = ", ".join(addresses[:_NAMED])
    return f"{named} and {unnamed} more" if unnamed > 0 else named
