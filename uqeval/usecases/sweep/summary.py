"""Mean and standard deviation of results over the draws of subsets."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from uqeval.errors import is_number
from uqeval.metrics import Family
from uqeval.metrics._evaluation import Section
from uqeval.metrics._warnings import WITHOUT_INTERVAL
from uqeval.records.addresses import innermost
from uqeval.records.report import reason_at

_ONE_SAMPLE = "undefined for one sample"


def summary_of(
    sections: Mapping[str, Section],
    families: Sequence[Family],
    ms: Sequence[int],
    groups: Sequence[Sequence[int]],
) -> dict[str, Any]:
    """Return {`<family>.<field>`: {m, repeats, mean, std, values}} of every number and curve."""
    summary: dict[str, Any] = {}
    for family in families:
        results = [[_results_of_family(sections, k, family) for k in group] for group in groups]
        numbers = [[_numbers(record, family) for record in group] for group in results]
        fields = dict.fromkeys(name for group in numbers for record in group for name in record)
        for name in innermost(fields or [metric.field for metric in family.metrics]):
            values = [[record.get(name) for record in group] for group in numbers]
            reasons = [
                f"M = {m}: " + next(
                    _reason(record, name, m)
                    for record, value in zip(records, group, strict=True) if value is None
                )
                for m, records, group in zip(ms, results, values, strict=True) if None in group
            ]  # fmt: skip
            summary[f"{family.name}.{name}"] = {
                "m": list(ms),
                "repeats": [len(group) for group in groups],
                "mean": [_fold(group, statistics.fmean) for group in values],
                "std": [_fold(group, _spread) for group in values],
                "values": values,
            } | ({"mean_reason": "; ".join(reasons)} if reasons else {})
    return summary


def _results_of_family(
    sections: Mapping[str, Section], subset: int, family: Family
) -> dict[str, Any]:
    """Return the results of a subset; empty if it was not evaluated."""
    section = sections.get(f"{subset}:{family.name}")
    left_out = family.on_subsets.own_points
    results = section.results if section else {}
    return {name: value for name, value in results.items() if name not in left_out}


def _numbers(results: Mapping[str, Any], family: Family) -> dict[str, Any]:
    """Return the numbers and curves of results by dotted name; None if undefined."""
    names = _flat(results)
    for metric in family.metrics:  # the fields of an undefined record
        record = metric.field.rpartition(".")[0]
        if record in names and names[record] is None:
            names[metric.field] = None
    return {name: value for name, value in names.items() if _is_measured(name, value, results)}


def _flat(results: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in results.items():
        flat |= (
            _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
        )
    return flat


def _is_measured(name: str, value: Any, results: Mapping[str, Any]) -> bool:
    """Return whether a field is a number or a curve (or undefined), and not a setting."""
    if isinstance(value, list):
        return bool(value) and all(is_number(v) or v is None for v in value)
    choices = ("window", "stride", "accuracy_threshold", "alpha", "bins", "clip")
    if name.rpartition(".")[2] in choices:
        return False
    return is_number(value) or (value is None and reason_at(results, name.split(".")) is not None)


def _reason(results: Mapping[str, Any], name: str, m: int) -> str:
    """Return why a field is undefined. One sample has no results of some families, or only some
    fields."""
    path = name.split(".")
    lacks_field = m == 1 and path[0] not in results
    return reason_at(results, path) or (_ONE_SAMPLE if lacks_field else "undefined there")


def warnings_of(
    sections: Mapping[str, Section],
    families: Sequence[Family],
    ms: Sequence[int],
    groups: Sequence[Sequence[int]],
) -> list[str]:
    """Return the warnings about the first subset of each M."""
    return [
        f"{family.name}, {_subset_in_words(m, len(group))}: {text.removesuffix(WITHOUT_INTERVAL)}"
        for family in families
        for m, group in zip(ms, groups, strict=True)
        if (section := sections.get(f"{group[0]}:{family.name}"))
        for text in section.warnings
    ]


def _subset_in_words(m: int, repeats: int) -> str:
    return f"M = {m}" if repeats == 1 else f"the first of {repeats} subsets of M = {m}"


def numerics_of(
    sections: Mapping[str, Section], families: Sequence[Family], groups: Sequence[Sequence[int]]
) -> dict[str, dict[str, list[list[int | None]]]]:
    """Return {family: {count: [M][draw]}} of the sections; None if a family was not evaluated."""
    numerics: dict[str, dict[str, list[list[int | None]]]] = {}
    for family in families:
        counts = [
            [
                section.numerics if (section := sections.get(f"{k}:{family.name}")) else {}
                for k in group
            ]
            for group in groups
        ]
        names = dict.fromkeys(
            name for group in counts for counts_of_repeat in group for name in counts_of_repeat
        )
        if names:
            numerics[family.name] = {
                name: [
                    [counts_of_repeat.get(name) for counts_of_repeat in group] for group in counts
                ]
                for name in names
            }
    return numerics


def lost_pixels(summary: Mapping[str, Any]) -> list[str]:
    """Return a warning if NaN samples leave some subsets fewer pixels than others."""
    for name, fields in summary.items():
        counts = [n for group in fields["values"] for n in group if n is not None]
        if name.endswith(".pixels") and min(counts) < max(counts):
            return [
                f"the subsets evaluate {min(counts)} to {max(counts)} pixels ({name}): a pixel is "
                "left out if no sample of the subset is a number."
            ]
    return []


def _spread(values: Sequence[float]) -> float:
    """Return the standard deviation. Equal numbers, of which there are many, need no fractions."""
    return statistics.pstdev(values) if min(values) < max(values) else 0.0


def _fold(values: Sequence[Any], fold: Any) -> Any:
    """Apply `fold` to the draws of numbers, or of curves point by point; None if undefined."""
    if any(v is None for v in values):
        return None
    if isinstance(values[0], list):
        return [_fold(point, fold) for point in zip(*values, strict=True)]
    return float(fold(values))
