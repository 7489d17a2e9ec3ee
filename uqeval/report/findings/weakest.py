"""The weakest part: the slice, class or region with the worst score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uqeval.errors import printable
from uqeval.glossary import class_field, headlines, label, metric_of
from uqeval.keys import Key, family_of
from uqeval.records.intervals import class_of, interval
from uqeval.records.report import Report
from uqeval.report.findings.scores import (
    Score,
    described,
    first_keys,
    headline_scores,
    whole_scores,
)


def weakest(report: Report) -> tuple[tuple[str, str] | None, tuple[str, Score] | None]:
    """Return the sentence and its family; and the kind and the score of the part, if it is weaker
    beyond its interval."""
    wholes = {(s.metric.family, s.metric.field): s for s in whole_scores(report)}
    lowest: tuple[str, Score, Score, int] | None = None
    for kind, of_parts in _candidates(report):
        whole = wholes.get((of_parts[0].metric.family, of_parts[0].metric.field))
        if whole is None:
            continue
        weak = _weakest_of(of_parts, whole)
        if _gap(whole, weak.value) <= 0:
            continue
        lowest = lowest or (kind, weak, whole, len(of_parts))
        if _separated(weak, whole, len(of_parts)):
            return (_weak_text(kind, weak, whole, len(of_parts)), weak.metric.family), (kind, weak)
    if lowest is None:
        return None, None
    kind, weak, whole, count = lowest
    return (_not_weaker_text(kind, weak, whole, count), weak.metric.family), None


def _candidates(report: Report) -> list[tuple[str, list[Score]]]:
    """Return the kind of part and the scores of all such parts, by score, in order of preference.

    Families that accompany all others come last: the user asked for the others.
    """
    # Imported here, as in the glossary: a report without findings needs no metrics.
    from uqeval.metrics import COMPANIONS

    kinds = {"slice": _slices(report), "class": _classes(report), "region": _regions(report)}
    candidates = [
        (kind, of_parts) for kind, scores in kinds.items() for of_parts in scores.values()
    ]
    return sorted(candidates, key=lambda candidate: candidate[1][0].metric.family in COMPANIONS)


def _weakest_of(scores: list[Score], whole: Score) -> Score:
    return max(scores, key=lambda score: _gap(whole, score.value))


def _gap(whole: Score, value: float) -> float:
    """Return how much worse a value is than that of the whole set."""
    return (whole.value - value) * (1 if whole.metric.direction == "higher" else -1)


def _separated(weak: Score, whole: Score, chosen_from: int) -> bool:
    """Return whether the widened interval of the part is worse than that of the whole set."""
    of_part, of_whole = weak.ends(chosen_from), whole.ends()
    if of_part is None or of_whole is None:
        return False
    return (
        of_part[1] < of_whole[0] if whole.metric.direction == "higher" else of_part[0] > of_whole[1]
    )


def _extreme(score: Score) -> str:
    return "lowest" if score.metric.direction == "higher" else "highest"


def _number_of(kind: str, count: int) -> str:
    plural = {"class": "classes"}.get(kind, f"{kind}s")
    return f"{count} {plural}"


def _name(kind: str, score: Score) -> str:
    """Return the name of a part after its kind: of "class 6" the number."""
    number = score.part.removeprefix(f"{kind} ")
    return number if number.isdigit() else printable(score.part)


def _weak_text(kind: str, weak: Score, whole: Score, count: int) -> str:
    name, of_all = _name(kind, weak), f"{whole.label} of the whole set is {whole.text}"
    if count == 1:
        return f"The {kind} {name} is weaker than the whole set: {described(weak)}; {of_all}."
    rank = f"{_extreme(weak)} of {_number_of(kind, count)}"
    named = f"{kind} {name}" if name.isdigit() else name
    return f"The weakest {kind} is {named}: {described(weak)}, the {rank}; {of_all}."


def _not_weaker_text(kind: str, weak: Score, whole: Score, count: int) -> str:
    name, of_all = printable(weak.part), f"the whole set has {whole.text}"
    extreme = f"the {_extreme(weak)} {weak.label} is {weak.text} ({name})"
    among, none = f"Of {_number_of(kind, count)}, {extreme}", f"No {kind} is clearly weaker"
    if count == 1:
        name = _name(kind, weak)
        extreme = f"{weak.label} is {weak.text}"
        among, none = f"In the {kind} {name}, {extreme}", f"The {kind} {name} is not clearly weaker"
    if weak.interval is None or whole.interval is None:
        return (
            f"{among}; {of_all}. Without intervals, this does not show that the {kind} is weaker."
        )
    return f"{none} than the whole set: {extreme}; {of_all}."


_Scores = dict[tuple[str, str], list[Score]]


def _add(scores: _Scores, score: Score) -> None:
    scores.setdefault((score.metric.family, score.label), []).append(score)


def _slices(report: Report) -> _Scores:
    """Return the headline scores of slices of enough units, by score."""
    by_score: _Scores = {}
    for name, slice_record in report.slices.items():
        if not isinstance(slice_record, dict) or slice_record.get("small"):
            continue
        for key, record in (slice_record.get("results") or {}).items():
            if key in first_keys(report) and isinstance(record, dict):
                intervals = slice_record.get("intervals") or {}
                for score in headline_scores(family_of(key), key, record, intervals, str(name)):
                    if score.metric.direction:
                        _add(by_score, score)
    return by_score


def _regions(report: Report) -> _Scores:
    by_score: _Scores = {}
    for key, record in report.results.items():
        parsed = Key.parse(key)
        if parsed.region is not None and str(parsed.of(None)) in first_keys(report):
            for score in headline_scores(
                parsed.family, key, record, report.intervals, parsed.region
            ):
                if score.metric.direction:
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
                if metric is None or not metric.direction or not isinstance(value, int | float):
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
