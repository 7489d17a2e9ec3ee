"""The use case `evaluate`: stores and metrics to a report."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.engine.options import Progress, RunOptions, Silent
from uqeval.engine.sizes import parse_memory
from uqeval.inputs import Given, Inputs, beside_reference, open_inputs
from uqeval.inputs.effects import refuse_flow_without_effect
from uqeval.report.schema import Report
from uqeval.usecases.plans import (
    evaluations_of,
    everything,
    families_of,
    input_options,
    wants_tracks,
)
from uqeval.usecases.report_of_run import collect, report_of
from uqeval.usecases.saved_states import map_cache_of, stamps_of, states_index, states_of_run

if TYPE_CHECKING:
    from uqeval.statistics.options import CutOptions


def evaluate(
    predictions: Given | Sequence[Given] | None = None,
    labels: Given | None = None,
    metrics: str | Sequence[str] | Mapping[str, Mapping[str, Any] | None] = ("pavpu",),
    *,
    workers: int | None = None,
    memory: int | str = 512 * 10**6,
    states: str | Path | None = None,
    progress: Progress | None = None,
    reference: Given | None = None,
    resume: bool = False,
    ci: float | None = None,
    draws: int = 2000,
    seed: int = 0,
    slices: str | Path | None = None,
    slice_by: Sequence[str] = (),
    group_by: str | None = None,
    interval_method: str = "auto",
    **inputs: Any,
) -> Report:
    """Evaluate saved predictions; the report is the one that the commands write.

    `predictions`: a store (Zarr group, `.npy`, `.npz`, an array in memory [N, T, C, H, W] or
    [N, C], or a mapping of arrays: {"probs": …, "labels": …}, {"mean": …, "std": …}), or
    several, the members of one ensemble; arrays and tensors of any framework may stand for both,
    whatever has DLPack or `__array__`; `labels`: a store or a folder of label PNGs, where the
    predictions' store holds none. `metrics`: families ("segmentation", "pavpu"), or families with
    their options, each one value or a list (variants): `{"pavpu": {"window": [4, 8]}}`; or "all",
    everything that applies to the data. `workers`:
    threads (default: usable CPUs); `memory`: bytes of tiles and maps, or "2GB"; `states`: file for
    the per-item tallies; `reference`: a store to compare with, for "divergence"; further options
    are those of `InputOptions` (`names`, `ignore_index`, …; `part="2/3"` for one of three parts,
    which `uqeval.merge` joins).

    Raises `UqevalError` (`UsageError`, `StoreError`, `DataError`), which says what is wrong.
    """
    families = families_of(metrics)
    given = input_options(inputs, evaluate)
    if wants_tracks(families):
        given = dataclasses.replace(given, whole_sequences=True)
    _check_states(states, [predictions, labels, reference, slices, *given.paths()], families)
    opened = open_inputs(predictions, labels, given, reference_follows=reference is not None)
    if reference is not None:
        opened = beside_reference(opened, reference, given)
    if metrics == "all":
        families, told = everything(opened)
        opened = dataclasses.replace(opened, warnings=[*opened.warnings, *told])
    read_off = cut_options(
        ci=ci,
        draws=draws,
        seed=seed,
        slices=slices,
        slice_by=tuple(slice_by),
        group_by=group_by,
        interval_method=interval_method,
    )
    options = RunOptions(
        workers, parse_memory(memory), states, progress or Silent(), resume, read_off
    )
    return run(opened, families, options)


def _check_states(
    states: str | Path | None, inputs: Sequence[Any], families: Mapping[str, Any]
) -> None:
    """Raise `UsageError` where the states would be written over, or into, what is read."""
    if states is None:
        return
    from uqeval.stores.overlap import paths_in, refuse_overlap
    from uqeval.stores.states_writer import partial_path

    told = [own.get(name) for own in families.values() for name in ("threshold_from", "fit_on")]
    refuse_overlap([states, partial_path(states)], paths_in([*inputs, *told]))


def run(inputs: Inputs, families: Mapping[str, Mapping[str, Any]], options: RunOptions) -> Report:
    """Evaluate families on opened inputs; return the report."""
    from uqeval.engine.scheduler import Scheduler
    from uqeval.metrics._driver import drive, groups_of
    from uqeval.stores.resuming import resume_warnings

    began = time.perf_counter()
    if options.cut is not None and options.states is None:
        with tempfile.TemporaryDirectory(prefix="uqeval-") as folder:
            kept = dataclasses.replace(options, states=Path(folder) / "run.states.zip")
            report = run(inputs, families, kept)
            return report.model_copy(update={"states": None, "states_digest": None})
    if options.cut is not None:
        from uqeval.statistics.cut import check_cut

        check_cut(options.cut, inputs.source.names, inputs.groups)
    facts = inputs.facts()
    evaluations, wanted = evaluations_of(facts, families, inputs.regions)
    inputs.source.want(sorted(wanted))
    refuse_flow_without_effect(inputs, wanted)
    with ExitStack() as stack:
        states = None
        leaves = options.states is not None or inputs.map_cache is not None
        stamps = stamps_of(inputs) if leaves else []
        cache = map_cache_of(inputs, stamps)
        if options.states is not None:
            states = stack.enter_context(
                states_of_run(inputs, families, options.states, options.resume, stamps)
            )
        scheduler = Scheduler(inputs, options, states, cache)
        stack.enter_context(inputs.session())
        groups = groups_of(evaluations)
        found = scheduler.run({next(iter(group)): drive(group) for group in groups})
        sections = {key: own for several in found.values() for key, own in several.items()}
        sections = {key: sections[key] for key in evaluations}
        record = collect(sections, inputs.source.names)
        record["warnings"] += cache.warnings() if cache is not None else []
        if states is not None:
            record["warnings"] += resume_warnings(states.recounted, len(facts.names))
        path = str(options.states) if options.states else None
        report = report_of(inputs, record, scheduler, time.perf_counter() - began, path)
        if states is not None:
            fitted = {key: section.fitted for key, section in sections.items()}
            index = states_index(report, facts, fitted, inputs.fingerprint)
            digest = states.seal(index | {"warnings": list(inputs.warnings)})
            report = report.model_copy(update={"states_digest": digest})
            if options.cut is not None:
                report = _cut(report, states.partial, options.cut)
            states.put()  # last, so that they lie beside an older report for a moment only
    return report


def cut_options(**given: Any) -> CutOptions | None:
    """What is to be read off the states, if anything. Raises `UsageError`."""
    defaults = {"draws": 2000, "seed": 0, "interval_method": "auto"}
    drawn = any(given.get(name, own) != own for name, own in defaults.items())
    if given["ci"] is None and not (
        given["slices"] or given["slice_by"] or given["group_by"] or drawn
    ):
        return None  # NumPy and the rest of `statistics` are not needed
    from uqeval.statistics.options import CutOptions

    return CutOptions(**given)


def _cut(report: Report, states: str | Path, options: CutOptions) -> Report:
    """The report with what is read off the states that it leaves."""
    from uqeval.statistics.cut import cut
    from uqeval.statistics.scoring import Scoring
    from uqeval.stores.states import SavedStates

    return cut(report, Scoring(SavedStates(states)), options)
