"""The weakest part: the slice, class or region with the worst score.

Slices are compared with the other slices of the same columns, classes with the other classes: of
many scores, such as an area under a curve of ranks, all slices can be worse than the whole set.
So can those of a calibration error, if it is too high in one slice and too low in another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from uqeval.errors import UsageError, printable
from uqeval.glossary import class_field, headlines, label, metric_of
from uqeval.keys import Key, family_of
from uqeval.records.addresses import Address
from uqeval.records.intervals import class_of, interval
from uqeval.records.report import Report
from uqeval.report.findings.scores import (
    Score,
    described,
    first_keys,
    headline_scores,
    number,
    settings_of,
    whole_scores,
)

#: The order of preference: what a score of a part shows.
_ORDER = ("error", "calibration", "ranking")


def weakest(report: Report) -> tuple[tuple[str, str] | None, tuple[str, Score] | None]:
    """Return the sentence and its family; and the kind and the score of the part, if it is weaker
    beyond its interval."""
    if (weak := _weakest(report)) is None:
        return None, None
    family = weak.score.metric.family
    if weak.is_separated:
        return (_weak_text(weak), family), (weak.kind, weak.score)
    return (_not_weaker_text(weak), family), None


def weakest_slice_score(report: Report) -> tuple[str, str] | None:
    """Return the family and the field of the score by which the sentence names a slice; None if it
    names none."""
    weak = _weakest(report)
    if weak is None or weak.kind != "slice":
        return None
    return weak.score.metric.family, weak.score.metric.field


def _weakest(report: Report) -> _Weak | None:
    """Return the first part that is weaker beyond its interval, else the first weaker one."""
    wholes = {(s.metric.family, s.metric.field): s for s in whole_scores(report)}
    first: _Weak | None = None
    for kind, of_parts in _candidates(report):
        metric = of_parts[0].metric
        found = _weak_of(kind, of_parts, wholes.get((metric.family, metric.field)))
        if found is not None and found.is_separated:
            return found
        first = first or found
    return first


def cancelling(report: Report) -> tuple[str, str] | None:
    """Return a sentence and its family if opposite errors of slices cancel in the whole set: a
    calibration error of each slice of the same columns is far larger than that of the whole set.

    If each item is in a slice, the gaps of the whole set are means of those of the slices. Only
    opposite gaps make it smaller than all of them, or chance: gaps of few pixels are larger. So all
    lower ends of the intervals have to be above twice the value of the whole set, and large.
    """
    wholes = {(s.metric.family, s.metric.field): s for s in whole_scores(report)}
    groups = [
        of_columns for of_columns in _slices(report).values()
        if of_columns[0].metric.interval == "gaps" and _are_all_items(report, of_columns)
    ]  # fmt: skip
    for scores in groups:
        metric = scores[0].metric
        whole = wholes.get((metric.family, metric.field))
        if whole is None or metric.large is None or (ends := whole.ends(len(groups))) is None:
            continue
        most = max(2 * whole.value, ends[1], metric.large)
        if all((own.ends(len(groups)) or (0.0,))[0] > most for own in scores):
            return _cancelling_text(report, whole, scores), metric.family
    return None


def _are_all_items(report: Report, slices: list[Score]) -> bool:
    names = (report.slices[score.part].get("names") or () for score in slices)
    return {str(name) for own in names for name in own} >= set(report.item_names)


def _cancelling_text(report: Report, whole: Score, scores: list[Score]) -> str:
    """Return the sentence; it names the worst slice, and the worst of those on another side."""

    def side(score: Score) -> str:
        settings = settings_of(report, score.key)
        return score.metric.side_of(score.record, settings, of_slice=True).split(" (")[0]

    worst, *others = sorted(scores, key=lambda score: -score.value)
    opposite = next((own for own in others if side(own) != side(worst)), others[0])
    named = " and ".join(
        f"{number(own.value)} in {printable(own.part)}" + (f" ({side(own)})" if side(own) else "")
        for own in (worst, opposite)
    )
    if len(scores) > 2:
        least = number(min(score.value for score in scores))
        named = f"at least {least} in each of {len(scores)} slices, such as {named}"
    return (
        f"Opposite errors of the slices cancel in the whole set: {whole.label} {whole.verb} "
        f"{number(whole.value)} there, and {named}. Judge the slices."
    )


@dataclass(frozen=True)
class _Weak:
    """The worst of `count` parts of a kind, and the score that it is compared with.

    `other`: the score of the whole set, or of the middle of the other parts: half of them are at
    least as good. `is_next`: whether no other part lies between.
    """

    kind: str
    score: Score
    other: Score
    count: int
    is_next: bool

    @property
    def is_separated(self) -> bool:
        """Return whether the intervals, widened for the choice, do not overlap."""
        own = self.score.ends(self.count)
        other = self.other.ends(self.count if self.other.part else 1)
        if own is None or other is None:
            return False
        is_high_better = self.score.metric.direction == "higher"
        return own[1] < other[0] if is_high_better else own[0] > other[1]


def _weak_of(kind: str, scores: list[Score], whole: Score | None) -> _Weak | None:
    """Return the worst part; None if it is no worse than what it is compared with."""
    metric = scores[0].metric
    sign = 1 if metric.direction == "higher" else -1
    worst, *others = sorted(scores, key=lambda score: sign * score.value)
    middle = (len(others) - 1) // 2
    if kind == "region" or not others:
        # A rank of the pixels of a part says nothing about their rank among all pixels.
        other = None if metric.of_part == "ranking" else whole
    else:
        other = others[middle]
    if other is None or sign * (other.value - worst.value) <= 0:
        return None
    return _Weak(kind, worst, other, len(scores), middle == 0)


def _candidates(report: Report) -> Iterator[tuple[str, list[Score]]]:
    """Yield the kind of part and the scores of all such parts, by score, in order of preference.

    Errors come first. Families that accompany all others come last among equals: the user asked
    for the others.
    """
    # Imported here, as in the glossary: a report without findings needs no metrics.
    from uqeval.metrics import COMPANIONS

    def order(scores: list[Score]) -> tuple[int, bool]:
        metric = scores[0].metric
        return _ORDER.index(metric.of_part or "ranking"), metric.family in COMPANIONS

    kinds = {"slice": _slices(report), "class": _classes(report), "region": _regions(report)}
    for kind, scores in kinds.items():
        for of_parts in sorted(scores.values(), key=order):
            yield kind, of_parts


def _extreme(score: Score) -> str:
    return "lowest" if score.metric.direction == "higher" else "highest"


def _number_of(kind: str, count: int) -> str:
    plural = {"class": "classes"}.get(kind, f"{kind}s")
    return f"{count} {plural}"


def _name(kind: str, score: Score) -> str:
    """Return the name of a part after its kind: of "class 6" the number."""
    number = score.part.removeprefix(f"{kind} ")
    return number if number.isdigit() else printable(score.part)


def _weak_text(weak: _Weak) -> str:
    score, kind = weak.score, weak.kind
    name = _name(kind, score)
    if not weak.other.part:
        than = f"weaker than the whole set: {described(score)}"
        if weak.count == 1:
            return f"The {kind} {name} is {than}; {_compared(weak)}."
    rank = f"{_extreme(score)} of {_number_of(kind, weak.count)}"
    named = f"{kind} {name}" if name.isdigit() else name
    return f"The weakest {kind} is {named}: {described(score)}, the {rank}; {_compared(weak)}."


def _compared(weak: _Weak) -> str:
    """Return the score that the worst part is compared with, as a clause."""
    other = weak.other
    if not other.part:
        return f"{other.label} of the whole set {other.verb} {other.text}"
    if weak.is_next:
        return f"the next is {printable(other.part)} with {other.text}"
    least = "at least" if other.metric.direction == "higher" else "at most"
    return f"half of the others have {least} {other.text}"


def _not_weaker_text(weak: _Weak) -> str:
    score, kind = weak.score, weak.kind
    name = printable(score.part)
    extreme = f"the {_extreme(score)} {score.label} {score.verb} {score.text} ({name})"
    among, none = f"Of {_number_of(kind, weak.count)}, {extreme}", f"No {kind} is clearly weaker"
    if weak.count == 1:
        name = _name(kind, score)
        extreme = f"{score.label} {score.verb} {score.text}"
        among, none = f"In the {kind} {name}, {extreme}", f"The {kind} {name} is not clearly weaker"
    if score.interval is None or weak.other.interval is None:
        return (
            f"{among}; {_compared(weak)}. Without intervals, this does not show that the {kind} is "
            "weaker."
        )
    than = "the others" if weak.other.part else "the whole set"
    return f"{none} than {than}: {extreme}; {_compared(weak)}."


_Scores = dict[tuple[str, ...], list[Score]]


def _add(scores: _Scores, score: Score, *columns: str) -> None:
    """Add a score that shows which part is weak; `columns`: those of its slice."""
    if score.metric.direction and score.metric.of_part:
        scores.setdefault((*columns, score.metric.family, score.label), []).append(score)


def _slices(report: Report) -> _Scores:
    """Return the headline scores of slices of enough units, by score."""
    by_score: _Scores = {}
    for name, slice_record in report.slices.items():
        if not isinstance(slice_record, dict) or slice_record.get("small"):
            continue
        columns = _columns(name)
        for key, record in (slice_record.get("results") or {}).items():
            if key in first_keys(report) and isinstance(record, dict):
                intervals = slice_record.get("intervals") or {}
                for score in headline_scores(family_of(key), key, record, intervals, str(name)):
                    _add(by_score, score, *columns)
    return by_score


def _columns(name: str) -> tuple[str, ...]:
    """Return the columns of a slice; none for a name that is not from a table of items."""
    try:
        return tuple(column for column, _ in Address.parse(f"_._@{name}").where)
    except UsageError:
        return ()


def _regions(report: Report) -> _Scores:
    by_score: _Scores = {}
    for key, record in report.results.items():
        parsed = Key.parse(key)
        if parsed.region is not None and str(parsed.of(None)) in first_keys(report):
            for score in headline_scores(
                parsed.family, key, record, report.intervals, parsed.region
            ):
                _add(by_score, score)
    return by_score


def _classes(report: Report) -> _Scores:
    """Return the first headline of each family by class."""
    by_score: _Scores = {}
    for key in first_keys(report):
        family, per_class = family_of(key), report.results[key].get("per_class")
        rows: list[Mapping[str, Any]] = per_class if isinstance(per_class, list) else []
        for field in headlines(family)[:1]:
            metric, of_class = metric_of(family, field), class_field(family, field)
            for row in rows:
                value = row.get(of_class)
                if metric is None or not isinstance(value, int | float):
                    continue
                # The calibration error of a class rises with the number of its pixels.
                if metric.of_part == "calibration":
                    continue
                if not isinstance(row.get("class"), int):  # patches of several classes
                    continue
                ends = None
                if report.intervals:
                    place = ("per_class", class_of(rows, row), of_class)
                    ends = interval(report.intervals, key, place)
                name = str(row.get("name", row["class"]))
                name = f"class {name}" if name == str(row["class"]) else name
                text = label(family, of_class)
                _add(by_score, Score(metric, text, float(value), ends, row, name, key))
    return by_score
