"""Compare recomputed values with those of a report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from uqeval.errors import is_number
from uqeval.keys import family_of
from uqeval.records.report import NOT_HELD, OF_CUT
from uqeval.records.scalars import BESIDE, described

if TYPE_CHECKING:
    from uqeval.records.report import Report

#: In place of a value that a report lacks.
_MISSING = object()
#: Tolerances by family, relative to the larger of 1 and the value. Maps of classes are float32,
#: whose last bit depends on the library's logarithm; other values are float64.
TOLERANCE = {
    "calibration": 1e-6, "failure": 1e-5, "sparsification": 1e-5, "divergence": 1e-6, "ood": 1e-5,
    "image_failure": 1e-6, "conformal": 1e-6, "annotators": 1e-6,
}  # fmt: skip
DEFAULT = 1e-9
#: What follows a key of which the scores of the set alone are not recomputed.
OF_THE_SET = " of the set"
#: Names beside the keys of results, in records of items and in settings.
_NO_KEYS = {"name", *OF_CUT}
#: By family, what is of the set alone: an item's record has no curves and tables.
_OF_SET = {
    "calibration": {"brier_decomposition", "reliability"},
    "failure": {"coverage_at_risk", "risk_at_coverage"},
    "regression": {"calibration", "coverage", "interval_score"},
    "sparsification": {"curve", "error_curve", "fractions", "normalisation", "oracle"},
}
#: The place of all values of items.
ITEMS = "items"
#: What is compared and counted: `units` are the levels and units of intervals, `records` what a
#: report says of metrics, inputs and settings.
_COMPARED = ("items", "set", "intervals", "units", "slices", "records")


class ReadSettings(dict[str, Any]):
    """Settings of a key of results that note which of them are `read`."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a setting, or the default."""
        self.read.add(name)
        return super().get(name, default)


@dataclass(frozen=True)
class Difference:
    """A value of a report that differs from the recomputed one, or is missing."""

    where: str
    field: str
    reported: Any
    recomputed: Any
    is_missing: bool = False

    def __str__(self) -> str:
        reported = "missing" if self.is_missing else repr(self.reported)
        text = f"{self.where}: {self.field} is {reported}"
        if self.is_missing and self.recomputed is None:
            return text
        return f"{text}, recomputed {self.recomputed!r}"


@dataclass
class Tally:
    """The number of compared values, and those that differ.

    `seen`: the place and the field of each compared value; `place`: that of all of them, of items.
    """

    compared: int
    differences: list[Difference]
    largest: float = 0.0
    place: str = ""
    seen: set[tuple[str, str]] = field(default_factory=set)

    def see(self, where: str, field: str) -> None:
        """Note that a value of the report is compared."""
        self.compared += 1
        self.seen.add((self.place or where, field))

    def add_missing(self, where: str, field: str, recomputed: Any = None) -> None:
        """Add a difference for what a report lacks."""
        self.compared += 1
        self.differences.append(Difference(where, field, None, recomputed, is_missing=True))


@dataclass(frozen=True)
class Recomputed:
    """Recomputed fields of one record; `slack`: the allowed difference of a field."""

    values: dict[str, Any]
    slack: dict[str, float] = field(default_factory=dict)


class Comparison:
    """Comparison of a report with recomputed values; `why_not`: why a key is not recomputed.

    `unmet`: the same of keys that no run over these stores can have written, such as one with a map
    that the stores lack; `of_all_items`: the keys of which single items are not recomputed.

    `fields`: the compared fields by key, and `fields_of_set` those of the set; `intervals`: the
    addresses of compared intervals and debiased values, and `defined` those whose number of units
    was; `slices` and `rows`: the keys of which slices, or rows of classes, were compared;
    `slice_intervals`: the slice and the address of compared intervals; `series`: the same of those
    of a video whose independent pairs were recomputed. `earlier_rule`: the intervals that follow
    by the rule of an earlier version only; `of_intervals`: the settings of intervals that were
    compared, or that a compared value follows from.
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        self.settings: dict[str, Mapping[str, Any]] = {
            key: ReadSettings(settings)
            for key, settings in report.settings.items()
            if key in report.results
        }
        for key in report.results:  # a family without choices may have no settings
            self.settings.setdefault(key, {})
        self.why_not: dict[str, str] = {}
        self.unmet: dict[str, str] = {}
        self.of_all_items: set[str] = set()
        self.tallies = {name: Tally(0, []) for name in _COMPARED}
        self.tallies["items"].place = ITEMS
        self.fields: dict[str, set[str]] = {}
        self.fields_of_set: dict[str, set[str]] = {}
        self.intervals: set[str] = set()
        self.earlier_rule: list[str] = []
        self.of_intervals: set[str] = set()
        self.defined: set[str] = set()
        self.slices: set[str] = set()
        self.slice_intervals: set[tuple[str, str]] = set()
        self.series: set[tuple[str, str]] = set()
        self.rows: set[str] = set()

    @property
    def keys(self) -> list[str]:
        """Return the keys that are recomputed."""
        return [key for key in self.settings if key not in self.why_not]

    def scores_of(self, key: str) -> list[str]:
        """Return the fields of a key's results that are scores of the whole set."""
        return [
            name for name, value in self.report.results[key].items()
            if is_number(value) and described(self.report.metrics, family_of(key), (name,))
        ]  # fmt: skip

    def refuse(self, key: str, reason: str) -> None:
        """Note why no run over these stores can have written the scores under a key."""
        self.unmet.setdefault(key, reason)
        self.why_not[key] = reason

    def compare_keys(self) -> None:
        """Compare the keys of the set with those of the settings and the items."""
        found = {key for item in self.report.items for key in item} | set(self.report.settings)
        for key in sorted(found - set(self.report.results) - _NO_KEYS):
            self.tallies["set"].add_missing("the set", key)

    def hold_rows(
        self, key: str, rows: Iterable[Recomputed], of_slice: str | None = None
    ) -> None:  # fmt: skip
        """Compare the rows of classes of the set, or of a slice."""
        results, place, tally = self.report.results, "the set", self.tallies["set"]
        if of_slice is not None:
            results = self.report.slices[of_slice]["results"]
            place, tally = f"slice {of_slice}", self.tallies["slices"]
        recomputed = list(rows)
        if not recomputed:
            return
        reported = results[key].get("per_class")
        if reported is None:
            tally.add_missing(place, f"{key}.per_class")
            return
        if of_slice is None:
            self.rows.add(key)
        number, expected = {"per_class": len(reported)}, {"per_class": len(recomputed)}
        compare(place, key, number, expected, {}, tally)
        for row, scores in zip(reported, recomputed, strict=False):
            where = f"{place}, class {row.get('name')}"
            compare(where, key, row, scores.values, scores.slack, tally)

    def hold(self, key: str, item: int | None, scores: Recomputed | str) -> None:
        """Compare the scores of an item (None: of the set); a text is why the stores give none."""
        if isinstance(scores, str):
            self.refuse(key, scores)
            return
        record = self.report.results[key] if item is None else self.report.items[item].get(key, {})
        where = "the set" if item is None else f"item {self.report.items[item]['name']}"
        tally = self.tallies["set" if item is None else "items"]
        of_set = _OF_SET.get(family_of(key), ()) if item is not None else ()
        values = {name: own for name, own in scores.values.items() if name not in of_set}
        compare(where, key, record, values, scores.slack, tally)
        names = set(values) & set(record)
        self.fields.setdefault(key, set()).update(names)
        if item is None:
            self.fields_of_set.setdefault(key, set()).update(names)


def compare(
    where: str, key: str, reported: Mapping[str, Any], recomputed: Mapping[str, Any],
    slack: Mapping[str, float], tally: Tally,
) -> None:  # fmt: skip
    """Compare recomputed fields; `slack`: additional absolute tolerance of a field.

    A run writes null for an undefined score, so a field that is missing was removed.
    """
    tolerance = TOLERANCE.get(family_of(key), DEFAULT)
    for name, first, second in _values(reported, recomputed):
        if first is _MISSING:
            tally.add_missing(where, f"{key}.{name}", second)
            continue
        tally.see(where, f"{key}.{name}")
        difference = distance(first, second)
        size = max(1.0, abs(second)) if is_number(second) else 1.0
        if math.isfinite(difference):
            tally.largest = max(tally.largest, difference / size)
        are_integers = isinstance(first, int) and isinstance(second, int)
        limit = 0.0 if are_integers else tolerance * size
        if not difference <= slack.get(name, 0.0) + limit:
            tally.differences.append(Difference(where, f"{key}.{name}", first, second))


def is_not_held(record: Mapping[str, Any], name: str) -> bool:
    """Return whether a record lacks a field because its threshold was changed after the run."""
    return record.get(name) is None and record.get(f"{name}_reason") == NOT_HELD


def numbers_of(values: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield all defined fractions of a record, with dots into its parts and lists."""
    for name, value in values.items():
        if isinstance(value, float):
            yield name, value
        elif isinstance(value, dict | list):
            parts = value if isinstance(value, dict) else {str(i): v for i, v in enumerate(value)}
            yield from ((f"{name}.{at}", number) for at, number in numbers_of(parts))


def _values(
    reported: Mapping[str, Any], recomputed: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield the recomputed fields, with dots into their parts and lists, and both values.

    The reported value is `_MISSING` if the report lacks the field. A part that is not recomputed is
    compared with None.
    """
    for name, second in recomputed.items():
        first = reported.get(name, _MISSING)
        if isinstance(second, float) and not math.isfinite(second):
            second = None  # undefined, as in reports
        if isinstance(second, list) and isinstance(first, list):
            if len(first) == len(second) and not any(isinstance(v, dict | list) for v in second):
                for i, (a, b) in enumerate(zip(first, second, strict=True)):
                    is_undefined = isinstance(b, float) and not math.isfinite(b)
                    yield f"{name}.{i}", a, None if is_undefined else b
                continue
            first, second = ({str(i): v for i, v in enumerate(own)} for own in (first, second))
        if isinstance(second, dict) and isinstance(first, dict):
            for part in dict.fromkeys((*first, *second)):
                if part in second or not part.endswith(BESIDE):
                    both = first, {part: second.get(part)}
                    yield from ((f"{name}.{at}", a, b) for at, a, b in _values(*both))
        else:
            yield name, first, second


def distance(first: Any, second: Any) -> float:
    """Return the distance of two values: 0 if both are undefined, ∞ if one is."""
    if first is None and second is None:
        return 0.0
    if not (is_number(first) and is_number(second)):
        return 0.0 if first == second else math.inf
    return abs(float(first) - float(second))
