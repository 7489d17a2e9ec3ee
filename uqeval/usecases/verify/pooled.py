"""Compare the values that a report computes from all items: intervals with their level and units,
debiased values, slices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from uqeval.errors import UsageError, quoted
from uqeval.keys import family_of
from uqeval.records.addresses import Address, values_of
from uqeval.records.scalars import described
from uqeval.usecases.verify.comparing import (
    Comparison,
    Recomputed,
    compare,
    distance,
)  # fmt: skip
from uqeval.usecases.verify.null_intervals import is_of_earlier_rule, method_of_null
from uqeval.usecases.verify.resampled import Counted, CountedScores, Resampled, method_of
from uqeval.usecases.verify.series import units_of_pairs

if TYPE_CHECKING:
    from uqeval.records.report import Report

#: Pixels of an item: of classes or of numbers.
Part = TypeVar("Part")

#: Ends of ranked scores that differ by less are the same, whatever rounding does.
_SAME = 1e-6
#: Families whose scores follow from the pixels of any items.
_OF_SLICES = (
    "segmentation", "pavpu", "calibration", "failure", "sparsification", "regression", "nmerci",
)  # fmt: skip
#: Units that are items or groups of them; those of a video follow from a series of pairs.
_COUNTED = ("item", "group")


def compare_intervals(
    comparison: Comparison,
    keys: Iterable[str],
    counted_of_key: Callable[[str], CountedScores],
) -> None:
    """Compare intervals and debiased values of the set, from counts of all items."""
    report = comparison.report
    settings = report.settings.get("intervals") or {}
    if settings.get("unit") not in _COUNTED:
        return
    names = list(report.item_names)
    resampled = Resampled.from_settings(names, settings, sets_of(report))
    for key in keys:
        if key in comparison.why_not or comparison.settings[key].get("scope") == "item":
            continue
        counted = counted_of_key(key)
        for fields, counts in counted.items():
            _compare_interval(comparison, resampled, key, fields, counts)
    _note_draws(comparison, resampled)


def _note_draws(comparison: Comparison, resampled: Resampled) -> None:
    """Note that values follow from the draws of the settings, if some do."""
    if resampled.was_drawn:
        comparison.of_intervals |= {"draws", "seed"}


def defined_scores(
    report: Report,
) -> Iterator[tuple[str | None, str, tuple[str, ...], Any, str, Mapping[str, Any]]]:
    """Yield the slice (None: the set), family, fields, value and address of each defined score, and
    the intervals of its slice."""
    of_set = {"results": report.results, "intervals": report.intervals}
    parts: list[tuple[str | None, Mapping[str, Any]]] = [(None, of_set), *report.slices.items()]
    for name, own in parts:
        intervals = own.get("intervals") or {}
        for key, result in (own.get("results") or {}).items():
            for fields, _, value in values_of(result):
                if value is not None:
                    address = Address.of_key(key, fields).within
                    yield name, family_of(key), fields, value, address, intervals


def sets_of(report: Report) -> list[str] | None:
    """Return the set of each item, in or out of the distribution, within which units are drawn;
    None if there is one set, or if a group has items of several sets."""
    sets = report.inputs.get("sets") or ()
    counts = [own["items"] for own in sets]
    items = len(report.items)
    if not all(isinstance(count, int) and 0 <= count <= items for count in counts) or (
        counts and sum(counts) != items
    ):
        raise UsageError(
            f"{quoted(counts)} items in the sets of the report, which has {items}. uqeval does not "
            "write such a report: evaluate again."
        )
    of_items = [str(k) for k, count in enumerate(counts) for _ in range(count)]
    groups = (report.settings.get("intervals") or {}).get("groups") or report.item_names
    is_shared = len(set(zip(of_items, groups, strict=False))) > len(set(groups))
    return None if is_shared or not of_items else of_items


def _compare_interval(
    comparison: Comparison, resampled: Resampled, key: str, fields: tuple[str, ...], counts: Counted
) -> None:
    """Compare the interval of one score, and its debiased value."""
    report, address = comparison.report, Address.of_key(key, fields).within
    results, record = report.results[key], report.intervals.get(address) or {}
    metric = described(report.metrics, family_of(key), fields)

    if record:
        defined = {"units.defined": resampled.defined(counts)}
        _compare_fields(comparison, f"interval of {address}", address, record, defined)
        comparison.defined.add(address)
    if method := method_of_null(comparison, resampled, counts, record, address, results):
        record = {**record, "method": method}
    where = f"interval of {address}"
    if _compare_ends(comparison, where, key, record, metric, resampled, counts):
        comparison.intervals.add(address)
    field = f"{fields[0]}_debiased"
    if len(fields) == 1 and field in results:
        values, slack = {field: resampled.debiased(counts)}, {field: 3 * counts.slack}
        compare("the set", key, results, values, slack, comparison.tallies["intervals"])
        comparison.intervals.add(f"{address}_debiased")


def _compare_ends(
    comparison: Comparison, where: str, key: str, record: Mapping[str, Any],
    metric: Mapping[str, Any], resampled: Resampled, counts: Counted,
) -> bool:  # fmt: skip
    """Compare the ends of an interval; return whether it has ends that are recomputed."""
    if all(record.get(name) is None for name in ("method", "low", "high")):
        return False
    settings = comparison.report.settings.get("intervals") or {}
    score = float(counts.score(counts.counts.sum(axis=0)[None])[0])
    # `compare_levels` compares the method; a changed one must not spare the ends.
    kind = metric.get("interval") or ""
    method = method_of(str(settings.get("method")), kind, score, record)
    record = {**record, "method": method}
    ends = resampled.interval(counts, record, metric)
    if ends is None:
        return False
    values = dict(zip(("low", "high"), ends, strict=True))
    is_same = _are_same(record, ends)
    if is_same and is_of_earlier_rule(resampled, counts, method, ends):
        comparison.earlier_rule.append(where)
        return True
    if not is_same and method == "korn-graubard":
        by_earlier_rule = resampled.interval(counts, record, metric, earlier=True)
        if by_earlier_rule is not None and _are_same(record, by_earlier_rule):
            comparison.earlier_rule.append(where)
            return True
    spread = (0.0, 0.0) if is_same else resampled.spread(counts, record, metric)
    slack = {name: 3 * counts.slack + own for name, own in zip(values, spread, strict=True)}
    compare(where, key, record, values, slack, comparison.tallies["intervals"])
    return True


def _are_same(record: Mapping[str, Any], ends: Sequence[float]) -> bool:
    """Return whether an interval has these ends."""
    names = ("low", "high")
    return all(distance(record.get(n), end) <= _SAME for n, end in zip(names, ends, strict=True))


@dataclass(frozen=True)
class SlicePath(Generic[Part]):
    """How the values of a slice are recomputed under a key, from the parts of its items.

    `scores` and `rows` (of classes) also take the record of the slice under the key, and whether
    its ranks are bins; `counted` gives the scores whose intervals follow from counts.
    """

    scores: Callable[[str, list[Part], Mapping[str, Any], bool], Recomputed | str]
    counted: Callable[[str, list[Part]], CountedScores]
    rows: Callable[[str, list[Part], Mapping[str, Any], bool], Iterable[Recomputed]] | None = None


def compare_slices(
    comparison: Comparison, parts: Sequence[Part], keys: Iterable[str], path: SlicePath[Part]
) -> None:  # fmt: skip
    """Compare the scores of slices, with rows of classes and intervals, from `parts` of items."""
    place = {str(item["name"]): i for i, item in enumerate(comparison.report.items)}
    compared = [
        key for key in keys
        if family_of(key) in _OF_SLICES and key not in comparison.why_not
        and comparison.settings[key].get("scope") != "item"
    ]  # fmt: skip
    slices = comparison.report.slices
    for name, slice_record in slices.items():
        items = [place[item] for item in slice_record.get("names", ()) if item in place]
        own = [parts[i] for i in items]
        for key in compared if own else ():
            record = slice_record.get("results", {}).get(key)
            if not record:
                comparison.tallies["slices"].add_missing(f"slice {name}", key)
                continue
            in_bins = key in slice_record.get("approximate", ())
            recomputed = path.scores(key, own, record, in_bins)
            if isinstance(recomputed, str):
                continue
            if in_bins:
                recomputed.values.pop("adaptive_ece", None)  # its edges are those of the set
            of_set, values = comparison.report.results[key], recomputed.values
            if "uncertainty_threshold" in of_set:
                values |= {"uncertainty_threshold": of_set["uncertainty_threshold"]}
            tally = comparison.tallies["slices"]
            compare(f"slice {name}", key, record, values, recomputed.slack, tally)
            if path.rows is not None:
                comparison.hold_rows(key, path.rows(key, own, record, in_bins), name)
            comparison.slices.add(key)
            _compare_slice_intervals(comparison, name, items, key, path.counted(key, own))


def _compare_slice_intervals(
    comparison: Comparison, name: str, items: Sequence[int], key: str, counted: CountedScores
) -> None:
    """Compare the intervals of a slice under a key; its units are those of its items."""
    report = comparison.report
    settings = report.settings.get("intervals") or {}
    intervals = report.slices[name].get("intervals") or {}
    if settings.get("unit") not in _COUNTED:
        return
    names = report.item_names
    unit_of = list(settings.get("groups") or names)
    own = {"groups": [unit_of[i] for i in items]}
    resampled = Resampled.from_settings([names[i] for i in items], settings | own)
    for fields, counts in counted.items():
        address = Address.of_key(key, fields).within
        metric = described(report.metrics, family_of(key), fields)
        where = f"interval of {address} of slice {name}"
        if address in intervals:
            defined = {"units.defined": resampled.defined(counts)}
            _compare_fields(comparison, where, address, intervals[address], defined)
        # A changed level alone is one difference, and not two ends.
        record = (intervals.get(address) or {}) | {"level": settings["level"]}
        results = report.slices[name]["results"][key]
        if method := method_of_null(comparison, resampled, counts, record, address, results):
            record |= {"method": method}
        if _compare_ends(comparison, where, key, record, metric, resampled, counts):
            comparison.slice_intervals.add((name, address))
    _note_draws(comparison, resampled)


def compare_levels(comparison: Comparison) -> None:
    """Compare level, and name and number of the units, of every interval, also of slices; and the
    method of each that has ends.

    Those of a video differ by score.
    """
    report = comparison.report
    settings = report.settings.get("intervals") or {}
    is_video = settings.get("unit") not in _COUNTED
    for where, items, intervals, expected in _expected(comparison, settings) if settings else ():
        for address, record in intervals.items():
            comparison.of_intervals |= {"level", "unit", "groups"}
            own = expected
            if is_video:
                of_pairs, is_recomputed = units_of_pairs(report, items, address, record)
                own = expected | of_pairs
                if is_recomputed:
                    comparison.series.add((where, address))
            _compare_fields(comparison, f"interval of {address}{where}", address, record, own)
    _compare_methods(comparison, settings)


def _compare_methods(comparison: Comparison, settings: Mapping[str, Any]) -> None:
    """Compare the method of every interval with ends; those of a video are not compared."""
    report = comparison.report
    if "frames" in report.inputs:
        return
    for name, family, fields, score, address, intervals in defined_scores(report):
        record = intervals.get(address) or {}
        if record.get("method") is not None:
            kind = described(report.metrics, family, fields).get("interval") or ""
            expected = {"method": method_of(str(settings.get("method")), kind, score, record)}
            where = f"interval of {address}" + (f" of slice {name}" if name is not None else "")
            comparison.of_intervals.add("method")
            _compare_fields(comparison, where, address, record, expected)


def _expected(
    comparison: Comparison, settings: Mapping[str, Any]
) -> Iterator[tuple[str, list[int], Mapping[str, Any], dict[str, Any]]]:
    """Yield the items and the intervals of the set and of each slice, and the fields that these
    should have."""
    report, level = comparison.report, {"level": settings.get("level")}
    is_counted, unit_of = settings.get("unit") in _COUNTED, dict[str, str]()
    every, place = list(range(len(report.items))), {n: i for i, n in enumerate(report.item_names)}
    if is_counted:
        groups = settings.get("groups")
        names = report.item_names
        sets = sets_of(report)
        if groups and sets:  # a group is drawn within its set
            groups = [f"{own}/{group}" for own, group in zip(sets, groups, strict=True)]
        unit_of = dict(zip(names, groups or names, strict=True))
        units: dict[str, Any] = {"units.name": "group" if groups else "item"}
        drawn = {"units.drawn": len(set(unit_of.values()))}
        yield "", every, report.intervals, level | units | drawn
    else:
        yield "", every, report.intervals, level | {"units.name": settings.get("unit")}
    for name, record in report.slices.items():
        drawn = {}
        if is_counted:
            found = {unit_of[item] for item in record.get("names", ()) if item in unit_of}
            drawn = units | {"units.drawn": len(found)}
        items = [place[item] for item in record.get("names", ()) if item in place]
        yield f" of slice {name}", items, record.get("intervals") or {}, level | drawn


def _compare_fields(
    comparison: Comparison, where: str, address: str, record: Mapping[str, Any],
    expected: Mapping[str, Any],
) -> None:  # fmt: skip
    units = record.get("units") or {}
    reported = dict(record) | {f"units.{name}": value for name, value in units.items()}
    key, tally = Address.parse(address).key, comparison.tallies["units"]
    slack = {"lag1": _SAME, "effective": _SAME * (expected.get("effective") or 0.0)}
    compare(where, key, reported, expected, slack, tally)
