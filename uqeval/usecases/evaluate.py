"""The use case `evaluate`: compute a report from stores and metrics."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.argument_types import checks_types
from uqeval.disk.locks import temporary
from uqeval.disk.outputs import check_output, paths_in, refuse_overlap
from uqeval.engine.options import Progress, ResumableOptions, RunOptions, Silent
from uqeval.errors import UsageError
from uqeval.inputs import Given, InputOptions, Inputs, beside_reference, open_inputs
from uqeval.inputs.opened import map_cache_of, stamps_of
from uqeval.inputs.opening import refuse_flow_without_effect, warned_of_flow
from uqeval.records.report import Report, for_python
from uqeval.settings import make_settings, takes
from uqeval.statistics.options import CutOptions
from uqeval.usecases.compiling import compiling_ahead, evaluations_on
from uqeval.usecases.plans import (
    evaluations_of,
    everything,
    families_of,
    inputs_for,
    known_families,
    place_of_option,
    uses_reference,
)
from uqeval.usecases.records_of_run import collect, report_of, states_index, states_of_run

if TYPE_CHECKING:
    from uqeval.engine.scheduler import Scheduler
    from uqeval.metrics._dataset_info import DatasetInfo
    from uqeval.metrics._evaluation import Evaluation, Passes, Section
    from uqeval.usecases.rounds.shard import ShardRound


@takes(InputOptions, CutOptions, ResumableOptions)
@checks_types("metrics", "states", "progress")
def evaluate(
    predictions: Given | Sequence[Given] | None = None,
    labels: Given | None = None,
    metrics: str | Sequence[str] | Mapping[str, Mapping[str, Any] | None] = ("pavpu",),
    *,
    states: str | Path | None = None,
    progress: Progress | None = None,
    reference: Given | None = None,
    executor: Any = None,
    **options: Any,
) -> Report:
    """Evaluate saved predictions, and return the report that the commands write.

    `predictions`: a store, or several stores, the members of one ensemble. A store is a path, a
    URL, an array of class probabilities [N, T, C, H, W], [N, C, H, W] or [N, C] (items, samples,
    classes), or a mapping of arrays: {"probs": …, "labels": …}, {"mean": …, "std": …, "target": …}.
    Arrays and tensors with DLPack or `__array__` are accepted. `docs/stores.md` lists all shapes
    and dtypes.

    `labels`: the ground truth, if the store of predictions does not have it: class ids (integers
    [N, H, W], or a folder of PNGs), or a target (numbers [N, H, W]).

    Options that name a store take arrays, too: `video` (frames uint8 [N, H, W, 3], or a mapping
    {"frames": …, "predictions": …}), `flow_path`, `depth_map`, `ood_mask`, `pseudo_labels`, and
    `out` a list of them. The workers of a cluster need paths.

    `metrics`: families ("segmentation", "pavpu"), or families with their options, each one value or
    a list (variants): `{"pavpu": {"window": [4, 8]}}`; or "all" that apply to the data.

    `states`: file for the states of each item; `progress`: listener to the progress of the run;
    `reference`: a store to compare with, for "divergence". `executor`: a `distributed.Client` whose
    workers read and count the items; by default threads of this process (or `dask`).

    Raises `UqevalError` (`UsageError`, `StoreError`, `DataError`) with a message that explains it.
    """
    report = evaluate_store(
        predictions, labels, metrics, states=states, progress=progress, reference=reference,
        executor=executor, **options,
    )  # fmt: skip
    return for_python(report)


def evaluate_store(
    predictions: Given | Sequence[Given] | None = None,
    labels: Given | None = None,
    metrics: str | Sequence[str] | Mapping[str, Mapping[str, Any] | None] = ("pavpu",),
    *,
    states: str | Path | None = None,
    progress: Progress | None = None,
    reference: Given | None = None,
    executor: Any = None,
    shares_table: bool = False,
    **options: Any,
) -> Report:
    """Evaluate as `evaluate` does. `shares_table`: the table of slices is of several stores, and
    may have no row for the items of this one."""
    from uqeval.engine.scheduler import cluster_of

    _refuse_metrics(labels)
    families = families_of(metrics)
    declared = (InputOptions, CutOptions, ResumableOptions)
    input_options, cut, machine = make_settings(
        options, *declared, function=evaluate, elsewhere=place_of_option(options, families)
    )
    input_options = inputs_for(families, input_options)
    if machine.resume and states is None:
        raise UsageError("--resume needs the states of the earlier run; give -o FILE.")
    _check_states(
        states, [predictions, labels, reference, cut.slices, *input_options.paths()], families
    )
    opened = open_inputs(
        predictions, labels, input_options, reference_follows=reference is not None
    )
    if reference is not None:
        if metrics != "all":
            _refuse_unused_reference(families, opened.info())
        opened = beside_reference(opened, reference, input_options)
    notes: list[str] = []
    if metrics == "all":
        families, notes = everything(opened)
    cut_wanted = cut if cut.wanted else None
    if shares_table and cut.slices is not None:
        from uqeval.statistics.slices_and_intervals import cut_of_store
        from uqeval.stores.item_table import names_in

        cut_wanted, messages = cut_of_store(
            cut,
            opened.source.names,
            opened.groups,
            opened.all_item_names,
            names_in(cut.slices),
            opened.sets,
        )
        notes += messages
    opened = dataclasses.replace(opened, warnings=[*opened.warnings, *notes])
    with cluster_of(machine, executor) as cluster:
        run_options = machine.run(
            states=states, progress=progress or Silent(), cut=cut_wanted,
            cluster=cluster,
        )  # fmt: skip
        return run(opened, families, run_options)


def _refuse_metrics(labels: Any) -> None:
    """Raise `UsageError` if `labels` has the names of metrics."""
    from uqeval.metrics import FAMILIES

    if not isinstance(labels, Mapping | list | tuple) or not labels:
        return
    if all(isinstance(name, str) and name in FAMILIES for name in labels):
        raise UsageError(
            f"labels: found the metrics {', '.join(labels)}; expected labels. Write "
            "uqeval.evaluate(predictions, metrics=…) if the predictions have labels."
        )


def _refuse_unused_reference(families: Mapping[str, Any], info: DatasetInfo) -> None:
    """Raise `UsageError` if no family compares with the reference."""
    known_families(families, info)
    if not uses_reference(families):
        raise UsageError(
            "reference: no metric compares with it. Add 'divergence' to metrics, or leave the "
            "reference out."
        )


def _check_states(
    states: str | Path | None, inputs: Sequence[Any], families: Mapping[str, Any]
) -> None:
    """Raise `UsageError` if the states would overwrite an input or a file of another kind."""
    if states is None:
        return
    from uqeval.stores.states.writer import partial_path

    files = paths_in([*inputs, *_files_of(families)])
    check_output(states, "states=", "states", files)
    refuse_overlap([partial_path(states)], files)


def _files_of(families: Mapping[str, Mapping[str, Any]]) -> list[Any]:
    """Return the files that the options of families name."""
    names = ("threshold_from", "fit_on", "item_table")
    files = (options.get(name) for options in families.values() for name in names)
    return [file for file in paths_in(files) if file is not None]


def run(inputs: Inputs, families: Mapping[str, Mapping[str, Any]], options: RunOptions) -> Report:
    """Evaluate families on opened inputs; return the report."""
    from uqeval.engine.scheduler import Scheduler

    if options.cut is not None and options.states is None:
        return _with_temporary_states(inputs, families, options)
    began = time.perf_counter()
    table = options.cut.slices if options.cut is not None else None
    for file in (*_files_of(families), *([] if table is None else [table])):
        inputs.watch.add(str(file))
    slices: dict[str, list[int]] = {}
    if options.cut is not None:
        from uqeval.statistics.slices_and_intervals import check_cut

        slices = check_cut(options.cut, inputs.source.names, inputs.groups, inputs.sets)
    command = next(iter(families)) if len(families) == 1 else "run"
    info = dataclasses.replace(inputs.info(), command=command)
    evaluations, map_names = evaluations_of(info, families, inputs.region_names())
    inputs.source.want(sorted(map_names))
    refuse_flow_without_effect(inputs, map_names)
    inputs = warned_of_flow(inputs, families)
    with ExitStack() as stack:
        states = None
        leaves = options.states is not None or inputs.map_cache is not None
        stamps = stamps_of(inputs) if leaves else []
        cache = map_cache_of(inputs, stamps)
        shard = _shard_of(inputs, info, evaluations, options)
        if options.states is not None:
            identity = {} if shard is None else shard.identity()
            states = stack.enter_context(
                states_of_run(inputs, families, options.states, options.resume, stamps, identity)
            )
        saves_all = shard is not None
        scheduler = Scheduler(inputs, options, states, cache, map_names, saves_all=saves_all)
        stack.enter_context(inputs.session())
        if options.cluster is None:
            own = evaluations_on(inputs, families)
            stack.enter_context(compiling_ahead(own, options.threads()))
        sections, record = _counted(scheduler, evaluations, shard, slices)
        result_warnings = list(record["warnings"])  # those that a merge of these states repeats
        record["warnings"] += cache.warnings() if cache is not None else []
        if states is not None and states.recounted:
            from uqeval.stores.states.earlier import resume_warning

            record["warnings"].append(resume_warning(len(states.recounted), len(info.names)))
        path = str(options.states) if options.states else None
        report = report_of(inputs, record, scheduler, time.perf_counter() - began, path)
        if states is not None:
            fitted = {key: sections[key].fitted if key in sections else {} for key in evaluations}
            index = states_index(report, info, fitted, inputs.fingerprint, scheduler.last_digits)
            index |= {} if shard is None else shard.index(index["last_digits"])
            index |= {} if options.cut is None else options.cut.recorded()
            index |= {"warnings": list(inputs.warnings), "result_warnings": result_warnings}
            digest = states.seal(index)
            report = dataclasses.replace(report, states_digest=digest)
            if options.cut is not None and (shard is None or not shard.unfinished):
                report = _with_slices(report, states.partial, options.cut)
                inputs.watch.check_files()  # the table of slices is read again
            states.put()  # last, so that they are next to an older report only briefly
    return report


def _with_temporary_states(
    inputs: Inputs, families: Mapping[str, Mapping[str, Any]], options: RunOptions
) -> Report:
    """Evaluate with intervals or slices, from states that are deleted afterwards."""
    if "part" in inputs.record:
        raise UsageError(
            "--part with intervals or slices, which come from saved states: give -o FILE. Those of "
            "all items are computed by `uqeval merge SHARDS --ci LEVEL --slices CSV`."
        )
    with temporary() as folder:
        report = run(
            inputs, families, dataclasses.replace(options, states=folder / "run.states.zip")
        )
    return dataclasses.replace(report, states=None, states_digest=None)


def _shard_of(
    inputs: Inputs,
    info: DatasetInfo,
    evaluations: Mapping[str, Evaluation[Any]],
    options: RunOptions,
) -> ShardRound | None:
    """Return the round of inputs that are a shard; None for all items."""
    if inputs.record.get("part") is None:
        return None
    from uqeval.usecases.rounds.shard import ShardRound, settings_of_evaluations

    settings = settings_of_evaluations(evaluations)
    return ShardRound.of_inputs(inputs, info, settings, options.states)


def _counted(
    scheduler: Scheduler,
    evaluations: Mapping[str, Evaluation[Any]],
    shard: ShardRound | None,
    slices: Mapping[str, Sequence[int]],
) -> tuple[dict[str, Section], dict[str, Any]]:
    """Count all passes, or the next one of a shard; return the sections and their record.

    A run also ranks the pixels of each slice, and saves the counts with its states. A shard does
    not: its slices belong to the report of all shards.
    """
    from uqeval.metrics._driver import drive

    def passes(sectioned: bool = True) -> dict[str, Passes]:
        return {key: drive({key: own}, sectioned) for key, own in evaluations.items()}

    if shard is None:
        names = scheduler.inputs.source.names
        of_slices = {
            f"slices of {key}": _of_slices(evaluation, list(slices.values()), names)
            for key, evaluation in evaluations.items() if slices and evaluation.ranks_slices
        }  # fmt: skip
        results = scheduler.run(passes() | of_slices)
    else:
        results = shard.count(scheduler, passes, scheduler.states)
    sections = {key: section for of_key in results.values() for key, section in of_key.items()}
    if shard is not None:
        sections = shard.complete_sections(sections, evaluations)
    sections = {key: sections[key] for key in evaluations if key in sections}
    record = collect(sections, scheduler.inputs.source.names)
    if shard is not None:
        record = shard.completed(record, scheduler.options.cut is not None)
    return sections, record


def _of_slices(
    evaluation: Evaluation[Any], slices: Sequence[Sequence[int]], names: Sequence[str]
) -> Passes:
    """Rank the pixels of each slice; the counts stay in the states, from which scores are read.

    Few slices at once: the bins of a slice may take as much memory as those of the set.
    """
    from uqeval.metrics._driver import of_items, run_jointly

    at_once = evaluation.slices_at_once
    for first in range(0, len(slices), at_once):
        together = slices[first : first + at_once]
        yield from run_jointly(*(of_items(evaluation.of_slice(), own, names) for own in together))
    return {}  # no sections


def _with_slices(report: Report, states: str | Path, options: CutOptions) -> Report:
    """Return the report with intervals and slices from its states."""
    from uqeval.statistics.merged_states import MergedStates
    from uqeval.statistics.slices_and_intervals import with_slices_and_intervals
    from uqeval.stores.states.saved import SavedStates

    return with_slices_and_intervals(report, MergedStates([SavedStates(states)]), options)
