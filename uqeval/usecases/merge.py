"""Merge the saved states of the parts of a run, or of several runs, into one report.

The evaluations read saved states instead of data. The results equal those of a single run, to the
bit. An exception are ranks inside a bin, which need the pixels: their scores are computed from
bins.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Any

from uqeval.argument_types import checks_types
from uqeval.disk.files import content_of, path_without_suffix, resolved
from uqeval.errors import StoreError, UsageError, cut, listed
from uqeval.records.report import Report, for_python, now
from uqeval.settings import make_settings, takes
from uqeval.statistics.merged_states import MergedStates
from uqeval.statistics.options import CutOptions
from uqeval.stores.states.entries import digest_of, tally_key
from uqeval.stores.states.saved import SavedStates
from uqeval.usecases.merged_results import add_families, merged_results
from uqeval.usecases.rethreshold import rethreshold
from uqeval.version import VERSION

SUFFIX = ".states.zip"


@takes(CutOptions)
@checks_types()
def merge(
    reports: str | Path | Sequence[str | Path],
    *,
    states: str | Path | None = None,
    allow_missing: bool = False,
    threshold: str | float | None = None,
    metrics: Mapping[str, Mapping[str, Any]] | None = None,
    **options: Any,
) -> Report:
    """Join the saved states of parts of a run, or of runs over different items, into one report.

    `reports`: states files, reports with states next to them, or folders of either. A single one
    gives the same report, with the intervals and slices of `options`. `states`: file for the states
    of all. `allow_missing`: parts may be missing; the report is then partial. `threshold`: the
    uncertainty threshold of the PAvPU, one of its curve (default: that of the run). `metrics`:
    further families with their options, if the states have the counts for them. Intervals
    (`ci`) have the draws, the seed and the method that the parts record, unless `options` has
    others; without `ci` there are none, and a warning if the parts have some.

    Raises `UsageError` for states that cannot be joined, `StoreError` for other files.
    """
    from uqeval.disk.outputs import check_output

    began = time.perf_counter()
    (cut_options,) = make_settings(options, CutOptions, function=merge)
    paths = [reports] if isinstance(reports, str | Path) else list(reports)
    opened = _opened(paths)
    files = [file for file, _ in opened]
    if states is not None:
        report_files = [
            path for path in map(Path, paths) if path.is_file()
        ]  # not folders of states
        inputs = [*report_files, *(file.path for file in files), cut_options.slices]
        check_output(states, "states=", "states", inputs)
    with content_of(" + ".join(str(file.path) for file in files)):
        further = dict(metrics or {})
        if any("sweep" in file.index for file in files):
            if cut_options.wanted or threshold is not None or further:
                raise UsageError(
                    "a sweep has means over subsets of the samples, without intervals, slices and "
                    "other thresholds: leave out --ci, --slices and --threshold."
                )
            states = None  # as of a sweep in one run
        report, merged_states = _merge_states(files, allow_missing, threshold, further)
        report.timing["seconds"] = time.perf_counter() - began
        report = _cut(report, merged_states, cut_options, options, dict(opened))
        _name_versions(report, is_recomputed=len(files) > 1 or threshold is not None)
        if states is None:
            return for_python(report)
        # Last, so that an error leaves the states of an older report as they are.
        digest = _write(merged_states, states)
        return dataclasses.replace(for_python(report), states=str(states), states_digest=digest)


def _cut(
    report: Report,
    merged_states: MergedStates,
    cut_options: CutOptions,
    options: Mapping[str, Any],
    reports: Mapping[SavedStates, Report | None],
) -> Report:
    """Return the report with the intervals and slices of the options; groups and slices that they
    do not have are those that shards and `reports` record. Raises `UsageError`."""
    from uqeval.statistics.recorded_cuts import RecordedRun, recorded_cut, recorded_intervals

    runs = [RecordedRun.of(file, reports[file]) for file in merged_states.files]
    warnings: list[str] = []
    if cut_options.ci is not None:
        agreed, warnings = recorded_intervals(runs, options)
        (cut_options,) = make_settings({**agreed, **options}, CutOptions, function=merge)
    recorded, lost = recorded_cut(runs, cut_options)
    if record := cut_options.recorded():
        record["draws"]["group_by"] = cut_options.group_by or recorded.group_by
        merged_states.index |= record
    report = dataclasses.replace(report, warnings=[*report.warnings, *warnings, *lost])
    if not cut_options.wanted and recorded.slices is None:
        return report
    from uqeval.statistics.slices_and_intervals import with_slices_and_intervals

    return with_slices_and_intervals(report, merged_states, cut_options, recorded)


def _merge_states(
    files: list[SavedStates],
    allow_missing: bool,
    threshold: str | float | None,
    further: Mapping[str, Mapping[str, Any]],
) -> tuple[Report, MergedStates]:
    """Return the report of all files, and their merged states."""
    from uqeval.statistics.scoring import Scoring

    merged_states = MergedStates(files)
    if not allow_missing:
        refuse_missing(merged_states, ", or --allow-missing for a partial report")
    if len(files) == 1 and merged_states.passes is None:
        Scoring(merged_states).check()  # nothing else reads these states here
        record = _recorded(files[0])
    else:
        record = merged_results(merged_states)
    if further:
        add_families(merged_states, record, further)
        merged_states.index["settings"] = record["settings"]
    merged_states.index |= {name: record[name] for name in ("results", "numerics")} | {
        "records": record["items"], "fitted": record.pop("fitted"), "metrics": record["metrics"],
        "result_warnings": record["warnings"],
    }  # fmt: skip
    if threshold is not None:
        record = rethreshold(merged_states, record, str(threshold))
    return _report(merged_states, record), merged_states


def _name_versions(report: Report, *, is_recomputed: bool) -> None:
    """Record what this version computed of the states of another one, whose version the report
    keeps: it counted the predictions. `is_recomputed`: this version also computed the scores."""
    if report.uqeval_version == VERSION:
        return
    parts = ["the scores"] if is_recomputed else []
    if report.settings.get("intervals"):
        report.settings["intervals"]["uqeval_version"] = VERSION
        parts.append("the intervals")
    parts += ["the slices"] if report.slices else []
    if parts:
        report.warnings.append(
            f"uqeval {VERSION} computed {' and '.join(parts)} from the counts of uqeval "
            f"{report.uqeval_version}, whose definitions may differ. To have all of one version, "
            "evaluate again."
        )


def refuse_missing(states: MergedStates, remedy: str = "") -> None:
    """Raise `UsageError` if some shards of a run are missing."""
    if states.missing:
        numbers = ", ".join(map(str, states.missing))
        word = "number" if len(states.missing) == 1 else "numbers"
        raise UsageError(
            f"of {len(states.files) + len(states.missing)} shards, {word} {numbers} "
            f"{'is' if len(states.missing) == 1 else 'are'} missing; give all{remedy}."
        )


def states_of(paths: Sequence[str | Path]) -> list[SavedStates]:
    """Open states files, given by their paths, their reports, or folders of either.

    Raises `StoreError` if there are none, or if they do not belong to their report; `UsageError`
    for a path that is given twice.
    """
    return [file for file, _ in _opened(paths)]


def _opened(paths: Sequence[str | Path]) -> list[tuple[SavedStates, Report | None]]:
    """Open states files as `states_of`; return each with its report, if it is beside."""
    from uqeval.statistics.states_of_report import states_of as states_of_report

    states: list[tuple[SavedStates, Report | None]] = []
    for path in map(Path, paths):
        if path.is_dir():
            state_files = sorted(p for p in path.glob(f"*{SUFFIX}") if not p.name.startswith("."))
            if not state_files:
                raise StoreError(f"{cut(path)} holds no states files (*{SUFFIX}){_below(path)}.")
            states += map(_with_report, map(SavedStates.of_run, state_files))
        elif path.suffix == ".zip":
            states.append(_with_report(SavedStates.of_run(path)))
        else:
            report = Report.load(path)
            states.append((states_of_report(path, report), report))
    if not states:
        raise UsageError(
            "nothing to merge; give states files, or reports with their states next to them."
        )
    first_spellings: dict[Path, Path] = {}
    for path in (file.path for file, _ in states):
        if (same_file := resolved(path)) in first_spellings:
            raise UsageError(f"{cut(path)} is given twice.")
        first_spellings[same_file] = path
    return states


def _with_report(file: SavedStates) -> tuple[SavedStates, Report | None]:
    """Return states with the report `NAME.json` beside them, if they are its states."""
    path = file.path.with_name(f"{file.path.name.removesuffix(SUFFIX)}.json")
    if file.digest is not None and path.is_file():
        with suppress(StoreError):  # such as a report of a later version; states need none
            report = Report.load(path)
            if report.states_digest == file.digest:
                return file, report
    return file, None


def _below(folder: Path) -> str:
    """Return where the states of shards of `uqeval run` are; empty for other folders."""
    names = sorted({path.name for path in folder.glob(f"*/*{SUFFIX}") if path.name[0] != "."})
    if not names:
        return ""
    stores = f", or {listed(names[1:], 3)}" if names[1:] else ""
    return (
        f" itself, but its folders do. Give the files of one store: {quote(str(folder))}/*/"
        f"{quote(names[0])}{stores}"
    )


def _recorded(file: SavedStates) -> dict[str, Any]:
    """Return the records of one run."""
    index = file.index
    return {
        "results": index["results"],
        "items": index["records"],
        "settings": {k: v for k, v in index["settings"].items() if k != "intervals"},
        "numerics": index["numerics"],
        "warnings": list(index.get("result_warnings", [])),  # earlier versions saved none
        "fitted": index["fitted"],
        "metrics": index["metrics"],
    }


def _report(merged_states: MergedStates, record: Mapping[str, Any]) -> Report:
    from uqeval.records.checks import checked

    index = merged_states.index
    warnings = [*index["warnings"], *record["warnings"]]
    if index["partial"]:
        inputs = index["inputs"]
        warnings.append(f"partial: {len(index['items'])} of {inputs['items']} items.")
    return checked(
        Report,
        {
            **record,
            "uqeval_version": index["uqeval_version"],
            "inputs": index["inputs"],
            "partial": index["partial"],
            "warnings": warnings,
            "timing": {
                "finished": now(),
                "seconds": 0.0,
                "bytes_read": 0,
                "passes": 0,
                "workers": 1,
            },
        },
    )


def _write(merged_states: MergedStates, path: str | Path) -> str:
    """Write the states of all as one file, in the order of items; return its digest."""
    from uqeval.stores.states.writer import StatesWriter

    with StatesWriter(path) as writer:
        for key, total in merged_states.packed_totals.items():
            writer.add_packed_total(digest_of(key), total)
        for parameters in merged_states.parameters():
            key, first = tally_key(parameters), 0
            if key in merged_states.packed_totals:  # saved for the rounds of shards alone
                continue
            for block in merged_states.blocks(parameters):
                writer.add(key, first, block)
                first += block.items
        return writer.finish(merged_states.index)


def files_of(parts: Sequence[str | Path]) -> list[Path]:
    """Return all input files: reports and their states, also those in folders."""
    paths: list[Path] = []
    for path in map(Path, parts):
        if path.is_dir():
            paths += path.glob(f"*{SUFFIX}")
            paths += path.glob("*.json")
        else:
            paths += [path, Path(f"{path_without_suffix(path)}{SUFFIX}")]
    return paths
