"""A report with intervals and slices, computed from its states."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from uqeval.errors import StoreError, UsageError, all_listed, cut, listed, number_of, quoted
from uqeval.metrics._contract import set_value
from uqeval.metrics._warnings import with_intervals
from uqeval.records.addresses import Address, slice_key
from uqeval.records.intervals import plural
from uqeval.records.report import Report
from uqeval.statistics.draws import GENERATOR, Resampling
from uqeval.statistics.exact_slices import ExactSlices
from uqeval.statistics.intervals import debiased, intervals
from uqeval.statistics.kinds import metric_at
from uqeval.statistics.lost_scores import put_lost
from uqeval.statistics.methods import LEAST_DRAWN
from uqeval.statistics.no_interval import few_defined, few_pairs, few_units, few_with_class
from uqeval.statistics.options import CASE, CutOptions
from uqeval.statistics.recorded_cuts import RecordedCut
from uqeval.statistics.samples import Samples
from uqeval.statistics.scoring import Scoring
from uqeval.statistics.units import HEADLINE, cases_of, resampling_for
from uqeval.stores.item_table import ItemTable, has_rows, read_table

if TYPE_CHECKING:
    from uqeval.statistics.merged_states import MergedStates

#: A function that returns a context for the errors of an option, by its name.
ErrorsOf: TypeAlias = Callable[[str], AbstractContextManager[None]]
_NONE = RecordedCut()
#: Slices of fewer units are marked as small.
SMALL = 10
#: The largest number of slices.
_MOST = 256
_UNKNOWN = "needs the pixels of the slice, which saved states do not contain"
_OF_SET = "is a value of the whole set, not of a slice"


def check_cut(
    options: CutOptions,
    names: Sequence[str],
    cases: Sequence[str] | None,
    sets: Sequence[int],
    errors_of: ErrorsOf = lambda option: nullcontext(),
) -> dict[str, list[int]]:
    """Read the table of the items `names`, so that errors appear before the evaluation. Return the
    numbers of the items of each slice, by its key in a report.

    `cases`: the case of each item, if items are slices of cases. `sets`: the set of each item, if
    there are several. `errors_of` returns a context for the errors of an option, by its name.
    Raises `StoreError` or `UsageError`.
    """
    if options.slices is None:
        _groups(options, names, None, cases)
        return {}
    with errors_of("slices"):
        table = read_table(options.slices, names, sets)
    with errors_of("group_by"):
        _groups(options, names, table, cases)
    with errors_of("slice_by"):
        return slice_items(table, cuts_of(options, table))


def cut_of_store(
    options: CutOptions, names: Sequence[str], cases: Sequence[str] | None,
    all_names: Sequence[str], names_in_table: Collection[str], sets: Sequence[int],
    errors_of: ErrorsOf = lambda option: nullcontext(),
) -> tuple[CutOptions | None, list[str]]:  # fmt: skip
    """Return the slices and intervals of one of several stores that share a table, and a warning if
    the table has no row for any item of the store: it is evaluated without slices then.

    `all_names`: of the items of all shards, of which `names` may be one. Raises `StoreError` if the
    table has only some of the items, `UsageError` for missing columns.
    """
    if has_rows(names_in_table, all_names):
        check_cut(options, names, cases, sets, errors_of)
        return options, []
    groups = f", and intervals without groups by {options.group_by}" if options.group_by else ""
    message = f"{options.slices} has no row for any of its items: evaluated without slices{groups}."
    without_slices = dataclasses.replace(options, slices=None, slice_by=(), group_by=None)
    return without_slices if without_slices.wanted else None, [message]


def with_slices_and_intervals(
    report: Report, states: MergedStates, options: CutOptions, recorded: RecordedCut = _NONE
) -> Report:
    """Return the report with `intervals` and `slices`, from the states of its items.

    `recorded`: groups and slices of earlier reports of the items, where `options` have no others.
    Raises `StoreError` or `UsageError`."""
    began = time.perf_counter()
    scoring = Scoring(states)
    timing = dict(report.timing)
    table = None
    if options.slices is not None:
        sets = scoring.index["facts"].get("sets") or ()
        table = read_table(options.slices, scoring.names, sets)
    groups, group_name = _groups(options, scoring.names, table, cases_of(scoring))
    if recorded.groups is not None:
        group_name = recorded.group_by
        groups = [recorded.groups[name] for name in scoring.names]
    columns, items_by_slice = list(recorded.columns), _items_of(recorded, scoring.names)
    if table is not None:
        columns = cuts_of(options, table, group_name)
        items_by_slice = slice_items(table, columns)
    changes: dict[str, Any] = {}
    warnings = list(report.warnings)
    if table is not None:
        used = {*chain(*columns), *(c for c in table.columns if c == group_name)}
        warnings += table.look_alikes(sorted(used))
    settings = dict(report.settings)
    if options.ci is not None:
        resampling = resampling_for(scoring, options.draws, options.seed, groups)
        samples = Samples.of_run(scoring, resampling)
        changes["intervals"] = intervals(samples, options.ci, options.interval_method)
        changes["results"] = with_debiased(report.results, samples)
        warnings = with_intervals(warnings, report.results, changes["intervals"])
        settings["intervals"] = _settings(options, resampling, groups, group_name)
        warnings += [
            *few_units(resampling, HEADLINE),
            *few_pairs(changes["intervals"], resampling, HEADLINE),
            *few_defined(changes["intervals"]),
            *few_with_class(report.results, changes["intervals"]),
        ]
        timing["intervals_seconds"] = time.perf_counter() - began
    if items_by_slice is not None:
        began = time.perf_counter()
        exact = ExactSlices(states, scoring.evaluations)
        changes["slices"] = slices(scoring, items_by_slice, options, groups, exact.results)
        settings["slices"] = {"columns": [list(names) for names in columns]}
        timing["slices_seconds"] = time.perf_counter() - began
        small = [key for key, slice_record in changes["slices"].items() if slice_record["small"]]
        if small:
            small_slices = ", ".join(small[:5]) + (" …" if len(small) > 5 else "")
            count = number_of(len(small), "slice")
            has = "has" if len(small) == 1 else "have"
            unit = plural(changes["slices"][small[0]]["units"]["name"], SMALL)
            of_a_set = " of a set" if scoring.index["facts"].get("sets") else ""
            warnings.append(
                f"{count} {has} fewer than {SMALL} {unit}{of_a_set}, too few for reliable scores: "
                f"{small_slices}."
            )
    changes |= {"settings": settings, "warnings": warnings, "timing": timing}
    return dataclasses.replace(report, **changes)


def _items_of(recorded: RecordedCut, names: Sequence[str]) -> dict[str, list[int]] | None:
    """Return the numbers of the items of each recorded slice; None without slices."""
    if recorded.slices is None:
        return None
    numbers = {name: i for i, name in enumerate(names)}
    return {key: sorted(numbers[name] for name in own) for key, own in recorded.slices.items()}


def _groups(
    options: CutOptions,
    names: Sequence[str],
    table: ItemTable | None,
    cases: Sequence[str] | None,
) -> tuple[Sequence[str] | None, str | None]:
    """Return the group of each item, and the name of the groups; None for single items.

    Raises `StoreError` for items without a group: they are neither one group nor independent;
    `UsageError` for cases if the items are no slices of cases.
    """
    column = options.group_by
    if column == CASE and table is None and cases is None:
        raise UsageError(
            "--group-by case: the items are not slices of cases. Give the groups as a column "
            "of --slices FILE.csv."
        )
    if table is None or column is None or (column == CASE and CASE not in table.columns and cases):
        return cases, None if cases is None else CASE
    groups = table.column(column)
    without = [name for name, group in zip(names, groups, strict=True) if not group.strip()]
    if without:
        rows = ", with rows for out-of-distribution items" if table.out else ""
        raise StoreError(
            f"{cut(table.path)}: {len(without)} of {len(names)} items have no value in the column "
            f"{quoted(column)} of --group-by: {listed(without, 3)}. Fill it in{rows}; an item "
            "without relatives takes its own name."
        )
    return groups, column


def with_debiased(
    results: Mapping[str, Mapping[str, Any]], samples: Samples
) -> dict[str, dict[str, Any]]:
    """Return the results with `<field>_debiased` for each calibration error of the set."""
    with_bias = {key: dict(record) for key, record in results.items()}
    for text, (key, *place) in samples.runs[0].addresses.items():
        field = debiased_field(key, place[0]) if len(place) == 1 else None
        if field is not None and key in with_bias and np.isfinite(samples.value(text)):
            reason = f"it needs draws of at least {LEAST_DRAWN} units"
            set_value(with_bias[key], field, debiased(samples, text), reason)
    return with_bias


def debiased_field(key: str, field: str) -> str | None:
    """Return the field that draws add next to a field of the results `key`; None if they add none:
    they correct calibration errors of the set."""
    metric = metric_at(Address.of_key(key, (field,)).within)
    return f"{field}_debiased" if metric is not None and metric.interval == "gaps" else None


def _settings(
    options: CutOptions,
    resampling: Resampling,
    groups: Sequence[str] | None,
    group_name: str | None,
) -> dict[str, Any]:
    record: dict[str, Any] = {
        "level": options.ci,
        "method": options.interval_method,
        "draws": options.draws,
        "seed": options.seed,
        "generator": GENERATOR,
        "numpy": np.__version__,
        "unit": resampling.unit,
        "units": resampling.units,
        "group_by": group_name,
        "groups": list(groups) if groups else None,
        "held_fixed": (
            "thresholds, temperatures and edges of bins. Scores are optimistic if these were "
            "fitted on the evaluated items. The variance of training is not included"
        ),
    }
    return record | resampling.correlation


def cuts_of(
    options: CutOptions, table: ItemTable, group_by: str | None = None
) -> list[tuple[str, ...]]:
    """Return the columns of each kind of slice; empty if the table has no column but the groups.

    `group_by`: the name of groups that a report records.
    """
    if options.slice_by:
        return [
            (text,) if text in table.columns else tuple(text.split(","))
            for text in options.slice_by
        ]
    return default_cuts(table, options.group_by or group_by)


def slice_items(table: ItemTable, keys: Sequence[Sequence[str]]) -> dict[str, list[int]]:
    """Return the items of each slice, by `column=value` or `column=value,column=value`, as
    addresses have it.

    `keys`: the columns of each cut. An out-of-distribution item without a value belongs to the
    slices of all values. Raises `UsageError` for a column that is not there or named
    twice, and for more than 256 slices: a column of names or numbers.
    """
    items_by_slice: dict[str, list[int]] = {}
    by_columns: dict[tuple[str, ...], tuple[str, ...]] = {}
    for columns in dict.fromkeys(map(tuple, keys)):
        if (first := by_columns.setdefault(tuple(sorted(columns)), columns)) != columns:
            raise UsageError(
                f"--slice-by {cut(','.join(columns))} makes the slices of --slice-by "
                f"{cut(','.join(first))} again. Give one of them."
            )
        if len(set(columns)) < len(columns):
            raise UsageError(
                f"--slice-by {cut(','.join(columns))} names a column twice. Name it once."
            )
        items_by_values = _items_by_values(table, columns)
        items_by_slice |= {
            slice_key(zip(columns, values, strict=True)): items
            for values, items in items_by_values.items()
        }
        if len(items_by_slice) > _MOST:
            raise UsageError(
                f"{table.path}: the column {cut(' and '.join(columns))} makes more than {_MOST} "
                "slices; name columns of few values with --slice-by."
            )
    return dict(sorted(items_by_slice.items()))


def _items_by_values(table: ItemTable, columns: Sequence[str]) -> dict[tuple[str, ...], list[int]]:
    """Return the items of each combination of values, in ascending order."""
    items_by_values: dict[tuple[str, ...], list[int]] = {}
    of_all = []
    for item, values in enumerate(zip(*map(table.column, columns), strict=True)):
        if item in table.out and not all(map(str.strip, values)):
            of_all.append((item, values))
        else:
            items_by_values.setdefault(values, []).append(item)
    for own, items in items_by_values.items():
        items += [
            item
            for item, values in of_all
            if all(v == known or not v.strip() for v, known in zip(values, own, strict=True))
        ]
        items.sort()
    return items_by_values


def default_cuts(table: ItemTable, groups: str | None = None) -> list[tuple[str, ...]]:
    """Return the default columns: those with at least two values, and at most half the items.

    Together they define at most 256 slices. The column of the `groups` is none of them: its slices
    would be single groups, without intervals."""
    selected: list[tuple[str, ...]] = []
    remaining = _MOST
    for column, cells in table.columns.items():
        if column == groups:
            continue
        values = [value for i, value in enumerate(cells) if value.strip() or i not in table.out]
        count = len(set(values))
        if 2 <= count <= min(max(len(values) // 2, 2), remaining):
            selected.append((column,))
            remaining -= count
    if not selected and groups not in table.columns:
        raise UsageError(
            f"{table.path}: no column divides the items into slices; its columns are "
            f"{all_listed(table.columns) or 'none'}. Name some with --slice-by."
        )
    return selected


def _units(scoring: Scoring, items: Sequence[int], resampling: Resampling) -> dict[str, Any]:
    """Return the units of a slice; `defined`: those in which some score of an item is defined."""
    codes = resampling.codes.tolist()
    scored = {c for c, i in zip(codes, items, strict=True) if _scored(scoring.records[i])}
    unit = {"name": resampling.unit, "drawn": resampling.units, "defined": len(scored)}
    return unit | resampling.correlation


def _scored(record: Mapping[str, Any]) -> bool:
    """Return whether an item has a score, not only counts."""
    families = [own for own in record.values() if isinstance(own, Mapping)]
    return any(isinstance(value, float) for own in families for value in own.values())


def slices(
    scoring: Scoring,
    items_by_slice: Mapping[str, Sequence[int]],
    options: CutOptions,
    groups: Sequence[str] | None = None,
    exact_results: Callable[[Sequence[int]], Mapping[str, Any]] = lambda items: {},
) -> dict[str, dict[str, Any]]:
    """Return the results of every slice, with the fit of the whole set; with intervals if `options`
    has a level.

    `items_by_slice`: the numbers of its items. `exact_results` returns the results of
    `Evaluation.of_slice` for some items, by key, as far as they are known.
    """
    slice_records: dict[str, dict[str, Any]] = {}
    for key, items in items_by_slice.items():
        resampling = resampling_for(scoring, options.draws, options.seed, groups, items)
        exact = exact_results(items)
        results = scoring.whole(items, exact)
        for own_key, own in results.items():
            of_run = scoring.index["results"].get(own_key, {})
            only_of_set = scoring.evaluations[own_key].only_of_set
            put_lost(own, {name: of_run[name] for name in of_run if name in only_of_set}, _OF_SET)
            put_lost(own, of_run, _UNKNOWN)
        record: dict[str, Any] = {
            "items": len(items),
            "names": [scoring.names[i] for i in items],
            "units": _units(scoring, items, resampling),
            # All OUT items may belong to each slice: the smallest set counts.
            "small": resampling.least(np.ones(resampling.units, np.bool_)) < SMALL,
            "results": results,
            "approximate": sorted(
                key
                for key, evaluation in scoring.evaluations.items()
                if evaluation.ranks_slices and key not in exact
            ),
            "intervals": {},
        }
        if options.ci is not None:
            samples = Samples([scoring], [tuple(items)], resampling, results=results)
            record["intervals"] = intervals(samples, options.ci, options.interval_method)
        slice_records[key] = record
    return slice_records
