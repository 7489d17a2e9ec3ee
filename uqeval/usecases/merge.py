"""The use case `merge`: saved states of parts of a run, or of several, to one report.

The evaluations run over the saved states in place of the data, and give what a run of the whole
gives, to the bit. Where one asks for counts that the states do not hold (ranks inside a bin, for
which the pixels must be read again), its scores are computed from bins.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.disk.files import resolved
from uqeval.disk.json import content_of
from uqeval.errors import StoreError, UsageError, cut
from uqeval.keys import Key
from uqeval.report.schema import Report
from uqeval.settings import make_settings, takes
from uqeval.statistics.options import CutOptions
from uqeval.usecases.from_states import left_out, saved_result, sum_states

if TYPE_CHECKING:
    from uqeval.metrics import Family
    from uqeval.metrics._evaluation import Evaluation, Section
    from uqeval.statistics.merged_states import MergedStates
    from uqeval.stores.states import SavedStates

SUFFIX = ".states.zip"
_UNKNOWN = "takes another look at the pixels of all items, which saved states do not hold"


@takes(CutOptions)
def merge(
    reports: str | Path | Sequence[str | Path],
    *,
    states: str | Path | None = None,
    allow_missing: bool = False,
    threshold: str | float | None = None,
    **options: Any,
) -> Report:
    """Join the saved states of parts of a run, or of runs over different items, into one report.

    `reports`: states files, reports that they lie beside, or folders of either; of one alone the
    report is as it was, with the intervals and slices that are asked for now. `states`: file for
    the states of all. `allow_missing`: parts may be missing; the report is then partial.
    `threshold`: of uncertainty, for the PAvPU in place of that of the run, one that its curve has.

    Raises `UsageError` for what cannot be joined, `StoreError` for files that are no states.
    """
    from uqeval.stores.overlap import refuse_overlap

    began = time.perf_counter()
    (cut_options,) = make_settings(options, CutOptions, function=merge)
    paths = [reports] if isinstance(reports, str | Path) else list(reports)
    files = states_of(paths)
    if states is not None:
        report_files = [
            path for path in map(Path, paths) if path.is_file()
        ]  # not folders of states
        refuse_overlap(
            [states], [*report_files, *(file.path for file in files), cut_options.slices]
        )
    with content_of(" + ".join(str(file.path) for file in files)):
        report, merged_states = _merge_states(files, allow_missing, threshold, states)
        report.timing["seconds"] = time.perf_counter() - began
        if not cut_options.wanted:
            return report
        from uqeval.statistics.scoring import Scoring
        from uqeval.statistics.slices_and_intervals import with_slices_and_intervals

        return with_slices_and_intervals(report, Scoring(merged_states), cut_options)


def _merge_states(
    files: list[SavedStates],
    allow_missing: bool,
    threshold: str | float | None,
    states: str | Path | None,
) -> tuple[Report, MergedStates]:
    """Return the report of all files, and their states as those of one."""
    from uqeval.statistics.merged_states import MergedStates
    from uqeval.statistics.scoring import Scoring

    merged_states = MergedStates(files)
    if merged_states.missing and not allow_missing:
        numbers = ", ".join(map(str, merged_states.missing))
        raise UsageError(
            f"of {len(files) + len(merged_states.missing)} parts, {numbers} "
            f"{'is' if len(merged_states.missing) == 1 else 'are'} missing; give all, or "
            "--allow-missing for a partial report."
        )
    if len(files) == 1:
        Scoring(merged_states).check()  # nothing else reads these states here
        record = _recorded(files[0])
    else:
        record = _merged(merged_states)
    merged_states.index |= {name: record[name] for name in ("results", "numerics")} | {
        "records": record["items"], "fitted": record.pop("fitted"), "metrics": record["metrics"],
    }  # fmt: skip
    if threshold is not None:
        from uqeval.usecases.rethreshold import rethreshold

        record = rethreshold(merged_states, record, str(threshold))
    digest = None if states is None else _write(merged_states, states)
    return _report(merged_states, record, states, digest), merged_states


def states_of(paths: Sequence[str | Path]) -> list[SavedStates]:
    """Open the states files of reports, of states files and of folders of them.

    Raises `StoreError` where there are none, or where they are not those of their report;
    `UsageError` for one that is given twice.
    """
    from uqeval.statistics.from_states import states_of as states_of_report
    from uqeval.stores.states import SavedStates

    states: list[SavedStates] = []
    for path in map(Path, paths):
        if path.is_dir():
            state_files = sorted(p for p in path.glob(f"*{SUFFIX}") if not p.name.startswith("."))
            if not state_files:
                raise StoreError(f"{cut(path)}: holds no states files (*{SUFFIX}).")
            states += map(SavedStates, state_files)
        elif path.suffix == ".zip":
            states.append(SavedStates(path))
        else:
            states.append(states_of_report(path, Report.load(path)))
    if not states:
        raise UsageError("nothing to merge; give states files, or reports with states beside them.")
    first_spellings: dict[Path, Path] = {}
    for path in (file.path for file in states):
        if (same_file := resolved(path)) in first_spellings:
            raise UsageError(f"{cut(path)} is given twice.")
        first_spellings[same_file] = path
    return states


def _recorded(file: SavedStates) -> dict[str, Any]:
    """What one run found."""
    index = file.index
    return {
        "results": index["results"],
        "items": index["records"],
        "settings": {k: v for k, v in index["settings"].items() if k != "intervals"},
        "numerics": index["numerics"],
        "warnings": [],
        "fitted": index["fitted"],
        "metrics": index["metrics"],
    }


def _merged(merged_states: MergedStates) -> dict[str, Any]:
    """What a run over all items finds, as far as the states can tell."""
    from uqeval.metrics._driver import drive, groups_of, replay
    from uqeval.metrics._view import shared
    from uqeval.statistics.variants import info_of, variants_of
    from uqeval.usecases.report_of_run import collect

    info = info_of(merged_states.index["facts"])
    variants = variants_of(merged_states.index, info)
    for key in merged_states.index["settings"]:
        if key not in variants:
            raise UsageError(f"{merged_states.path}: {key} cannot be computed from saved states.")
    _refuse_other_thresholds(
        merged_states,
        {key: evaluations_of_family[key] for key, (_, evaluations_of_family) in variants.items()},
    )
    metrics = {name: dict(record) for name, record in merged_states.index["metrics"].items()}
    sections: dict[str, Section] = {}
    evaluations = {
        key: (family, evaluation)
        for family, evaluations_of_family in variants.values()
        for key, evaluation in evaluations_of_family.items()
    }
    for group in groups_of(
        shared({key: evaluation.unfitted() for key, (_, evaluation) in evaluations.items()})
    ):
        running, totals = replay(drive(group), lambda tally: saved_result(merged_states, tally))
        for key in group:
            if running:
                sections[key] = totals[key]
                continue
            family, evaluation = evaluations[key]
            sections[key] = _read_off(merged_states, key, evaluation)
            _mark(metrics, family, evaluation, sections[key].results)
    sections = {key: sections[key] for key in evaluations}
    totals = collect(sections, info.names)
    return totals | {
        "fitted": {key: section.fitted for key, section in sections.items()},
        "metrics": metrics,
    }


def _refuse_other_thresholds(
    merged_states: MergedStates, evaluations: Mapping[str, Evaluation[Any]]
) -> None:
    """Raise `UsageError` with the pooled numbers where parts fitted thresholds of their own."""
    from uqeval.metrics._driver import replay
    from uqeval.metrics.thresholds import lacks_threshold

    for key, evaluation in evaluations.items():
        differ = merged_states.differ(key)
        lacks = lacks_threshold(merged_states.index["fitted"].get(key))
        of_region = Key.parse(key).region is not None  # it has the threshold of the whole image
        if of_region or not evaluation.fits_threshold or not (differ or lacks):
            continue
        fresh = evaluation.unfitted()
        replay(fresh.fit(), lambda tally: saved_result(merged_states, tally))
        pooled = fresh.options()
        undefined = pooled is not None and pooled.get("threshold", "") is None
        if undefined and not differ:
            continue
        if undefined:
            remedy = (
                "The threshold of all items is undefined: evaluate each of them again with "
                "--threshold and one number for all"
            )
        elif pooled is None:
            remedy = (
                "The states do not hold that of all items: evaluate each of them again with "
                "--threshold and one number for all"
            )
        elif not pooled:
            remedy = (
                "Several fitted thresholds cannot be given as numbers: evaluate all items at once"
            )
        else:
            thresholds = " ".join(f"--{name.replace('_', '-')} {v}" for name, v in pooled.items())
            remedy = f"Evaluate each of them again with the numbers of all items: {thresholds}"
        raise UsageError(
            f"{key}: {cut(', '.join(str(file.path) for file in merged_states.files))} have "
            "thresholds that were fitted on their own items; what was counted at them cannot be "
            f"added. {remedy}."
        )


def _read_off(merged_states: MergedStates, key: str, evaluation: Evaluation[Any]) -> Section:
    """The scores under a key from the bins of the saved states; null is what they do not tell."""
    from uqeval.metrics._evaluation import Section

    index = merged_states.index
    warnings = []
    results: dict[str, Any] = {}
    if evaluation.can_score:
        states = {
            tally: sum_states(
                tally, merged_states, left_out(merged_states, key, evaluation, tally)
            ).total
            for tally in evaluation.tallies()
        }
        results = evaluation.scores(states)
        if evaluation.approximate:
            warnings.append(
                "ranks were computed from saved counts: averaged inside bins of a relative width "
                f"of at most {evaluation.bound:.2g}; `metrics` of the report says of which scores."
            )
    own_key = Key.parse(key)
    head, part_name = own_key.whole, own_key.part
    before = merged_states.files[0].index["results"][head]
    if evaluation.flat:
        before = {name: value for name, value in before.items() if name.startswith(part_name)}
    elif part_name:
        before = before.get(part_name, {})
    other_parts = {
        parsed.part for parsed in map(Key.parse, index["fitted"]) if parsed.whole == head
    } - {part_name, ""}
    own_fields = [
        name
        for name in before
        if not any(name == other or name.startswith(f"{other}_") for other in other_parts)
    ]
    lost = _fill(results, {name: before[name] for name in own_fields})
    if lost:
        warnings.append(f"{part_name or key} without {', '.join(lost)}: {_UNKNOWN}.")
    return Section(
        results,
        [] if part_name else [record.get(key, {}) for record in index["records"]],
        {} if part_name else index["settings"][key],
        {} if part_name else _added(index["numerics"].get(key, {})),
        warnings,
        index["fitted"].get(key, {}),
    )


def _added(numerics: Mapping[str, int]) -> dict[str, int]:
    """Return the counts that parts add up to: the ties at the cuts of the set are none of them."""
    return {name: count for name, count in numerics.items() if name != "ties_at_cuts"}


def _fill(results: dict[str, Any], before: Mapping[str, Any]) -> list[str]:
    """Put null with a reason for each field that a run has and `results` have not, in rows of
    classes too; returns what they are called.
    """
    suffixes = ("_reason", "_bound")
    lost = [name for name in before if name not in results and not name.endswith(suffixes)]
    for name in lost:
        results |= {name: None, f"{name}_reason": _UNKNOWN}
    of_classes: dict[str, None] = {}
    rows = results.get("per_class") or []
    for row, class_record in zip(rows, before.get("per_class") or [], strict=False):
        of_classes |= dict.fromkeys(f"{name} of classes" for name in _fill(row, class_record))
    return [*lost, *of_classes]


def _mark(
    metrics: dict[str, Any],
    family: Family,
    evaluation: Evaluation[Any],
    results: Mapping[str, Any],
) -> None:
    """Mark scores that were computed from bins as approximate, and the curves they come from."""
    names, bound = evaluation.approximate, evaluation.bound
    if not names or not evaluation.can_score:
        return
    for name in ("curve", "oracle", "error_curve"):
        if results.get(name) is not None:
            record = {"unit": "curve", "direction": None, "range": [None, None], "reference": ""}
            metrics[f"{family.in_reports}.{name}"] = record | {"approximate": bound}
    for metric in family.metrics:
        name = metric.field.split(".")[0]
        if "*" in names or {name, metric.field} & names:
            metrics[metric.id]["approximate"] = bound


def _report(
    merged_states: MergedStates,
    record: Mapping[str, Any],
    states: str | Path | None,
    digest: str | None,
) -> Report:
    from uqeval.usecases.report_of_run import now

    index = merged_states.index
    warnings = [*index["warnings"], *record["warnings"]]
    if index["partial"]:
        inputs = index["inputs"]
        warnings.append(f"partial: {len(index['items'])} of {inputs['items']} items.")
    return Report(
        **{
            **record,
            "uqeval_version": index["uqeval_version"],
            "inputs": index["inputs"],
            "states": None if states is None else str(states),
            "states_digest": digest,
            "partial": index["partial"],
            "warnings": warnings,
            "timing": {
                "finished": now(),
                "seconds": 0.0,
                "bytes_read": 0,
                "passes": 0,
                "workers": 1,
            },
        }
    )


def _write(merged_states: MergedStates, path: str | Path) -> str:
    """Write the states of all as one file, in the order of items; return its digest."""
    from uqeval.stores.states_writer import StatesWriter

    with StatesWriter(path) as writer:
        for item, states in _by_item(merged_states):
            for parameters, data in states:
                writer.add(parameters, item, data)
        return writer.finish(merged_states.index)


def _by_item(
    merged_states: MergedStates,
) -> Iterator[tuple[int, list[tuple[dict[str, Any], bytes]]]]:
    parameters = merged_states.parameters()
    streams = [merged_states.states(tally_parameters) for tally_parameters in parameters]
    for item in range(len(merged_states.index["items"])):
        yield (
            item,
            [
                (tally_parameters, next(stream))
                for tally_parameters, stream in zip(parameters, streams, strict=True)
            ],
        )
