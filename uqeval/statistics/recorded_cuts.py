"""What merged reports and shards record of intervals and slices, for those of all items: groups,
draws, seed and method, slices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from uqeval.errors import StoreError, UsageError, cut, listed, option_name, quoted
from uqeval.records.report import Report
from uqeval.settings import default_of
from uqeval.statistics.options import CASE, CutOptions
from uqeval.stores.states.saved import SavedStates

#: Options of intervals, each with its name in the settings of a report.
_RECORDED = {"draws": "draws", "seed": "seed", "interval_method": "method"}
#: A states file and its report; None for states whose report is unknown.
OfReport = tuple[SavedStates, Report | None]


@dataclass(frozen=True)
class RecordedCut:
    """The groups and slices of merged reports.

    `groups`: the group of each item by its name, and `group_by`, the name of the groups; None if
    the reports record none. `columns`: of the slices. `slices`: the names of the items of each, by
    its key.
    """

    groups: Mapping[str, str] | None = None
    group_by: str | None = None
    columns: tuple[tuple[str, ...], ...] = ()
    slices: Mapping[str, Sequence[str]] | None = None


def recorded_intervals(
    reports: Sequence[OfReport], options: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return the options of intervals that states and reports record alike, and a warning about
    others, whose default counts. `options`: those that the user gives; a table has the groups that
    all states name, if no report has them.
    """
    records = [file.index["draws"] for file, _ in reports if file.index.get("draws")]
    agreed: dict[str, Any] = {}
    groups = [_groups_of(*own) or ("", {}) for own in reports]
    names = {name for name, group_of in groups if group_of is None}
    in_no_report = all(group_of is None for _, group_of in groups)
    if options.get("slices") is not None and in_no_report and len(names) == 1:
        agreed["group_by"] = names.pop()
    for _, report in reports:
        record = None if report is None else report.settings.get("intervals")
        if isinstance(record, Mapping):
            records.append({name: record.get(key) for name, key in _RECORDED.items()})
    warnings = []
    for name in _RECORDED:
        values = dict.fromkeys(own[name] for own in records if own.get(name) is not None)
        if len(values) == 1:
            agreed[name] = next(iter(values))
        elif values and name not in options:
            warnings.append(
                f"the reports have intervals with {option_name(name)} {listed(values)}; the "
                f"default, {default_of(CutOptions, name)}, counts. To choose, give "
                f"{option_name(name)}."
            )
    return agreed, warnings


def recorded_cut(reports: Sequence[OfReport], options: CutOptions) -> tuple[RecordedCut, list[str]]:
    """Return what reports record of groups and slices, as far as `options` have no others, and
    warnings about what is lost.

    Raises `UsageError` if intervals are requested, and reports have different groups, or states
    without their report have some: single items in place of groups would make the intervals too
    narrow.
    """
    groups, warnings = _groups(reports, options)
    slices, lost = _slices(reports) if options.slices is None else (RecordedCut(), [])
    return replace(groups, columns=slices.columns, slices=slices.slices), [*warnings, *lost]


def _groups(reports: Sequence[OfReport], options: CutOptions) -> tuple[RecordedCut, list[str]]:
    """Return the groups of all reports. Raises `UsageError` as `recorded_cut`."""
    none = RecordedCut()
    if options.group_by is not None:
        return none, []
    recorded = [_groups_of(*own) for own in reports]
    having = [(*own, *of_one) for own, of_one in zip(reports, recorded, strict=True) if of_one]
    if not having:
        return none, []
    file, report, group_by, groups = having[0]
    if options.ci is None:
        level, table = "LEVEL", f" --group-by {quoted(group_by)} --slices FILE.csv"
        if report is not None and groups is not None:
            level, table = report.settings["intervals"].get("level", level), ""
        return none, [
            f"{cut(file.path)} is of a run with intervals of groups by {quoted(group_by)}. This "
            "report has no intervals and does not record the groups, so a gate would resample "
            f"single items. Give --ci {level}{table}."
        ]
    advice = f"Give the groups of all items: --group-by {quoted(group_by)} --slices FILE.csv"
    by_name: dict[str, str] = {}
    for (other, other_report), of_one in zip(reports, recorded, strict=True):
        if of_one is None or of_one[0] != group_by:
            has = "records no groups" if of_one is None else f"by {quoted(of_one[0])}"
            raise UsageError(
                f"{cut(file.path)} has groups by {quoted(group_by)}, {cut(other.path)} {has}. "
                f"{advice}."
            )
        if of_one[1] is None:
            beside = ", or put its report beside the states (NAME.json, NAME.states.zip)"
            raise UsageError(
                f"{cut(other.path)} is of a run with groups by {quoted(group_by)}, and does not "
                f"hold the group of each item. {advice}{beside if other_report is None else ''}."
            )
        by_name |= of_one[1]
    return RecordedCut(by_name, group_by), []


def _groups_of(
    file: SavedStates, report: Report | None
) -> tuple[str, dict[str, str] | None] | None:
    """Return the name of the groups of a run, and the group of each item, or None if only the
    states are known; None without groups, and for cases, which the states know. Raises
    `StoreError`."""
    record = None if report is None else report.settings.get("intervals")
    groups = record.get("groups") if isinstance(record, Mapping) else None
    cases = list(file.index["facts"].get("groups") or ())
    if not groups:
        group_by = file.index.get("draws", {}).get("group_by")
        return None if group_by is None or (group_by == CASE and cases) else (str(group_by), None)
    if list(groups) == cases:
        return None
    names = file.index["items"]
    if len(groups) != len(names):
        raise StoreError(
            f"{cut(file.path)}: its report names {len(groups)} groups for {len(names)} items. "
            "Evaluate again."
        )
    assert isinstance(record, Mapping)
    return str(record.get("group_by")), dict(zip(names, map(str, groups), strict=True))


def _slices(reports: Sequence[OfReport]) -> tuple[RecordedCut, list[str]]:
    """Return the slices of all reports, or a warning that they are left out."""
    having = [(file, report) for file, report in reports if report is not None and report.slices]
    if not having:
        return RecordedCut(), []
    columns = [_columns_of(report) for _, report in having]
    # An OUT item without a value belongs to the slices of all values, also those of other reports.
    has_sets = len(reports) > 1 and bool(reports[0][0].index["facts"].get("sets"))
    joined: dict[str, list[str]] = {}
    for file, report in having:
        known = set(file.index["items"])
        for key, record in report.slices.items():
            names = record.get("names")
            if not isinstance(names, list) or not known.issuperset(names):
                columns = []
                break
            joined.setdefault(key, []).extend(names)
    if len(having) < len(reports) or not columns or has_sets or len(set(columns)) > 1:
        by = "".join(f" --slice-by {quoted(','.join(own))}" for own in (columns or [()])[0])
        return RecordedCut(), [
            f"the slices of {cut(having[0][0].path)} are left out: they are not slices of all "
            "items. "
            f"To have them, give --slices FILE.csv{by}."
        ]
    return RecordedCut(columns=columns[0], slices=dict(sorted(joined.items()))), []


def _columns_of(report: Report) -> tuple[tuple[str, ...], ...]:
    record: Any = report.settings.get("slices")
    columns = record.get("columns") if isinstance(record, Mapping) else None
    return tuple(tuple(map(str, own)) for own in columns or ())
