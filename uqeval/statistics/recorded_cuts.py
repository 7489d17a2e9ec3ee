"""What merged reports and shards record of intervals and slices, for those of all items: groups,
draws, seed and method, slices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from uqeval.errors import UsageError, cut, listed, option_name, quoted
from uqeval.records.report import Report
from uqeval.settings import default_of
from uqeval.statistics.options import CASE, CutOptions
from uqeval.stores.states.saved import SavedStates

#: Options of intervals, each with its name in the settings of a report.
_RECORDED = {"draws": "draws", "seed": "seed", "interval_method": "method"}


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


@dataclass(frozen=True)
class RecordedRun:
    """The states of a run, its report if that is known, and its groups.

    `group_by`: the name of the groups; None without groups, and for cases, which the states know.
    `groups`: the group of each item by its name; None if only the name is known.
    """

    file: SavedStates
    report: Report | None
    group_by: str | None = None
    groups: Mapping[str, str] | None = None

    @classmethod
    def of(cls, file: SavedStates, report: Report | None) -> RecordedRun:
        """Return a run with its groups."""
        intervals = _intervals_of(report)
        groups = intervals.get("groups")
        cases = list(file.index["facts"].get("groups") or ())
        if not groups:
            group_by = file.index.get("draws", {}).get("group_by")
            is_known = group_by is None or (group_by == CASE and cases)
            return cls(file, report, None if is_known else group_by)
        if list(groups) == cases:
            return cls(file, report)
        by_name = dict(zip(file.index["items"], map(str, groups), strict=True))
        return cls(file, report, str(intervals.get("group_by")), by_name)

    @property
    def has_intervals(self) -> bool:
        """Return whether the run was evaluated with intervals. Only shards and lone states record
        that in the states alone: those of a merge also have the options of its parts."""
        if self.report is not None and not self.report.partial:
            return bool(_intervals_of(self.report))
        return bool(self.file.index.get("draws"))

    @property
    def level(self) -> Any:
        """Return the level of the intervals; the word for one if it is not known."""
        return _intervals_of(self.report).get("level", "LEVEL")


def recorded_intervals(
    runs: Sequence[RecordedRun], options: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return the options of intervals that states and reports record alike, and a warning about
    others, whose default counts. `options`: those that the user gives; a table has the groups that
    all states name, if no report has them.
    """
    records = [run.file.index["draws"] for run in runs if run.file.index.get("draws")]
    agreed: dict[str, Any] = {}
    names = {run.group_by for run in runs}
    in_no_report = all(run.groups is None for run in runs)
    if options.get("slices") is not None and in_no_report and len(names) == 1:
        agreed["group_by"] = names.pop()
    for run in runs:
        if record := _intervals_of(run.report):
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


def recorded_cut(runs: Sequence[RecordedRun], options: CutOptions) -> tuple[RecordedCut, list[str]]:
    """Return what reports record of groups and slices, as far as `options` have no others, and
    warnings about what is lost.

    Raises `UsageError` if intervals are requested, and reports have different groups, or states
    without their report have some: single items in place of groups would make the intervals too
    narrow.
    """
    warnings = _lost_intervals(runs) if options.ci is None else []
    groups = RecordedCut()
    if options.ci is not None and options.group_by is None:
        groups = _groups(runs)
    slices, lost = _slices(runs) if options.slices is None else (RecordedCut(), [])
    return replace(groups, columns=slices.columns, slices=slices.slices), [*warnings, *lost]


def _lost_intervals(runs: Sequence[RecordedRun]) -> list[str]:
    """Return a warning about the intervals of runs whose merge has none."""
    for run in runs:
        if run.group_by is not None:
            table = "" if run.groups else f" --group-by {quoted(run.group_by)} --slices FILE.csv"
            return [
                f"{cut(run.file.path)} is of a run with intervals of groups by "
                f"{quoted(run.group_by)}. This report has no intervals and does not record the "
                "groups, so a gate would resample single items. Give --ci "
                f"{run.level if run.groups else 'LEVEL'}{table}."
            ]
    return [
        f"{cut(run.file.path)} is of a run with intervals. This report has none: give --ci "
        f"{run.level}."
        for run in runs if run.has_intervals
    ][:1]  # fmt: skip


def _groups(runs: Sequence[RecordedRun]) -> RecordedCut:
    """Return the groups of all reports. Raises `UsageError` as `recorded_cut`."""
    first = next((run for run in runs if run.group_by is not None), None)
    if first is None:
        return RecordedCut()
    advice = f"Give the groups of all items: --group-by {quoted(first.group_by)} --slices FILE.csv"
    by_name: dict[str, str] = {}
    for run in runs:
        if run.group_by != first.group_by:
            by = "records no groups" if run.group_by is None else f"by {quoted(run.group_by)}"
            raise UsageError(
                f"{cut(first.file.path)} has groups by {quoted(first.group_by)}, "
                f"{cut(run.file.path)} {by}. {advice}."
            )
        if run.groups is None:
            beside = ", or put its report beside the states (NAME.json, NAME.states.zip)"
            raise UsageError(
                f"{cut(run.file.path)} is of a run with groups by {quoted(run.group_by)}, and does "
                f"not hold the group of each item. {advice}{beside if run.report is None else ''}."
            )
        by_name |= run.groups
    return RecordedCut(by_name, first.group_by)


def _intervals_of(report: Report | None) -> Mapping[str, Any]:
    """Return how the intervals of a report were computed; empty without any."""
    record = None if report is None else report.settings.get("intervals")
    return record if isinstance(record, Mapping) else {}


def _slices(runs: Sequence[RecordedRun]) -> tuple[RecordedCut, list[str]]:
    """Return the slices of all reports, or a warning that they are left out."""
    having = [(run.file, run.report) for run in runs if run.report and run.report.slices]
    if not having:
        return RecordedCut(), []
    columns = [_columns_of(report) for _, report in having]
    # An OUT item without a value belongs to the slices of all values, also those of other reports.
    has_sets = len(runs) > 1 and bool(runs[0].file.index["facts"].get("sets"))
    joined: dict[str, list[str]] = {}
    for file, report in having:
        known = set(file.index["items"])
        for key, record in report.slices.items():
            names = record.get("names")
            if not isinstance(names, list) or not known.issuperset(names):
                columns = []
                break
            joined.setdefault(key, []).extend(names)
    if len(having) < len(runs) or not columns or has_sets or len(set(columns)) > 1:
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
