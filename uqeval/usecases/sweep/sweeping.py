"""The use case `sweep`: metrics as functions of the number of samples M, from one read.

Gustafsson et al. 2020, §4: for each M, several subsets of the T samples drawn without replacement,
no subset twice; mean and population standard deviation over the draws.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uqeval.argument_types import checks_types
from uqeval.disk.outputs import check_output, paths_in
from uqeval.engine.options import Progress, ResumableOptions, RunOptions, Silent
from uqeval.errors import UsageError, option_name, quoted
from uqeval.inputs import Given, InputOptions, Inputs, beside_reference, open_inputs
from uqeval.metrics import FAMILIES
from uqeval.records.report import Report, for_python
from uqeval.settings import make_settings, takes
from uqeval.usecases.plans import families_of, place_of_option
from uqeval.usecases.records_of_run import report_of, states_index, states_of_run
from uqeval.usecases.sweep.plan import (
    SweepPlan,
    checked_repeats,
    checked_samples,
    draw,
    families_of_passes,
    variants_of,
)


def default_families(kind: str) -> list[str]:
    """Return the families that are evaluated for a kind of data if none is named."""
    return [family.name for family in FAMILIES.values() if kind in family.on_subsets.default]


@takes(InputOptions, ResumableOptions)
@checks_types(
    "metrics", "samples", "repeats", "seed", "error", "clip", "settings", "states", "progress"
)
def sweep(
    predictions: Given | Sequence[Given],
    labels: Given | None = None,
    metrics: str | Sequence[str] | Mapping[str, Mapping[str, Any] | None] | None = None,
    *,
    reference: Given | None = None,
    samples: Sequence[int] | None = None,
    repeats: int | Sequence[int] = 8,
    seed: int = 0,
    error: str | None = None,
    clip: float | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    states: str | Path | None = None,
    progress: Progress | None = None,
    executor: Any = None,
    **options: Any,
) -> Report:
    """Evaluate families on subsets of the samples; the report's `results` have one key, `sweep`.

    `labels`: labels, or a target of predicted numbers. `metrics`: families, with or without
    options, one value per option; by default segmentation and pavpu, or regression, sparsification
    and nmerci. `error`: of sparsification; `clip`: of divergence; `settings`: options of these
    families, by family. `reference`: a store for the divergence, which is the only family without
    labels and `metrics`. `samples`: the Ms (default 1, 2, 4, … T); `repeats`: subsets for each M,
    one number, or one per M. `states`: file for the states of a shard (`part`), which `merge`
    joins.

    Raises `UqevalError`: for more samples than stored, for a maps store, and as `evaluate` does.
    """
    from uqeval.engine.scheduler import cluster_of

    input_options, machine = make_settings(
        options, InputOptions, ResumableOptions, function=sweep,
        elsewhere=place_of_option(options, families_of(metrics or ())),
    )  # fmt: skip
    if input_options.map_cache is not None:
        raise UsageError("--map-cache has no effect on a sweep, which keeps no maps. Leave it out.")
    if input_options.part is None and (states is not None or machine.resume):
        given = "--states" if states is not None else "--resume"
        raise UsageError(f"{given} works only for a shard of a sweep (--part K/N). Leave it out.")
    if states is not None:
        inputs = [predictions, labels, reference, *input_options.paths()]
        check_output(states, "states=", "states", paths_in(inputs))
    planned = plan_sweep(
        predictions, labels, metrics, reference, samples, repeats, seed, error, clip, settings,
        input_options,
    )  # fmt: skip
    with cluster_of(machine, executor) as cluster:
        run_options = machine.run(progress=progress or Silent(), cluster=cluster, states=states)
        return for_python(run_sweep(planned, run_options))


def run_sweep(planned: PlannedSweep, options: RunOptions) -> Report:
    """Evaluate all subsets of a planned sweep in one read; return the report.

    For a shard of the items, count the next pass and save it.
    """
    from uqeval.engine.scheduler import Scheduler

    if "part" in planned.inputs.record:
        return _run_shard(planned, options)
    began = time.perf_counter()
    inputs, plan = planned.inputs, planned.plan
    scheduler = Scheduler(inputs, dataclasses.replace(options, states=None), maps=plan.maps())
    record = plan.record(scheduler.run(plan.passes()), inputs.source.names)
    return report_of(inputs, record, scheduler, time.perf_counter() - began)


def _run_shard(planned: PlannedSweep, options: RunOptions) -> Report:
    """Count the next pass of a sweep over a shard; return the record of the shard."""
    from uqeval.engine.scheduler import Scheduler
    from uqeval.inputs.opened import stamps_of
    from uqeval.usecases.rounds.shard import ShardRound

    began = time.perf_counter()
    inputs, plan = planned.inputs, planned.plan
    if options.states is None:
        raise UsageError("--part saves the counts of a pass for `uqeval merge`; give -o FILE.")
    info, settings = plan.info, plan.settings()
    shard = ShardRound.of_inputs(inputs, info, settings, options.states)
    assert shard is not None
    stamps = stamps_of(inputs)
    with states_of_run(
        inputs, {"sweep": settings}, options.states, options.resume, stamps, shard.identity()
    ) as states:
        scheduler = Scheduler(inputs, options, states, maps=plan.maps(), saves_all=True)
        sections = shard.count(scheduler, plan.passes, states)
        shard.unfinished = families_of_passes(shard.unfinished)
        record = {"results": {}, "items": [{"name": name} for name in info.names]}
        if not shard.unfinished:
            record = plan.record(sections, info.names)
        record = shard.completed(
            {"settings": {}, "numerics": {}, "warnings": [], **record}, has_cut=False
        )
        took = time.perf_counter() - began
        report = report_of(inputs, record, scheduler, took, str(options.states))
        index = states_index(report, info, {}, inputs.fingerprint, scheduler.last_digits)
        index |= shard.index(index["last_digits"]) | plan.index()
        # A sweep's counts of subsets have another form; `merge` counts them from the states.
        digest = states.seal(index | {"warnings": list(inputs.warnings), "numerics": {}})
        states.put()
    return dataclasses.replace(report, states_digest=digest)


@dataclass(frozen=True)
class PlannedSweep:
    """A sweep before data are read: the opened stores and the plan."""

    inputs: Inputs
    plan: SweepPlan


def plan_sweep(
    predictions: Given | Sequence[Given],
    labels: Given | None,
    metrics: str | Sequence[str] | Mapping[str, Mapping[str, Any] | None] | None = None,
    reference: Given | None = None,
    samples: Sequence[int] | None = None,
    repeats: int | Sequence[int] = 8,
    seed: int = 0,
    error: str | None = None,
    clip: float | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    input_options: InputOptions | None = None,
) -> PlannedSweep:
    """Open the stores and draw the subsets of a sweep; the arguments are those of `sweep`.

    Raises `UqevalError`.
    """
    from uqeval.maps.subsets import subsets_of

    input_options = input_options or InputOptions()
    if input_options.converts:
        raise UsageError(
            "a sweep takes predicted numbers as they are stored, without baseline_focal and "
            "median_scaling. Leave them out, or convert the store."
        )
    if input_options.regions:
        raise UsageError(
            f"region={input_options.region!r}: a sweep evaluates only whole images. Leave it out, "
            "or use uqeval.evaluate(…, region=…)."
        )
    inputs = open_inputs(
        predictions, labels, input_options, reference_follows=reference is not None
    )
    options = dict(settings or {})
    for family, option, value in (("sparsification", "error", error), ("divergence", "clip", clip)):
        if value is not None:
            options[family] = {**options.get(family, {}), option: value}
    families = _families(inputs, metrics, options, reference is not None)
    total = inputs.source.samples or 1
    ms = checked_samples(samples, total, inputs.source.where)
    subsets = draw(total, ms, checked_repeats(repeats, len(ms)), seed)
    all_subsets = tuple(subset for group in subsets for subset in group)
    source = subsets_of(inputs.source, all_subsets)
    recipe = inputs.recipe and dataclasses.replace(inputs.recipe, subsets=all_subsets)
    inputs = dataclasses.replace(inputs, source=source, recipe=recipe)
    if reference is not None:
        inputs = beside_reference(inputs, reference, input_options)
    info = inputs.info()
    plan = SweepPlan(
        info, variants_of(families, info), ms, subsets, seed, frozenset(source.of_several)
    )
    inputs.source.want(sorted(plan.maps()))
    return PlannedSweep(inputs, plan)


def arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords of `sweep` for options of the command, typed or of a `uqeval.yaml`.

    Raises `UsageError` for `samples` and `repeats` that are not numbers.
    """
    numbers = {
        name: _numbers(name, options[name]) for name in ("samples", "repeats") if name in options
    }
    keywords = {"metrics" if name == "metric" else name: value for name, value in options.items()}
    return keywords | numbers


def _numbers(option: str, value: Any) -> list[int]:
    """Return 1, [1, 2] or "1,2" as numbers."""
    parts = value if isinstance(value, list) else str(value).split(",")
    try:
        if any("_" in str(number) for number in parts):  # Python reads 1_0 as 10
            raise ValueError
        return [int(number) for number in parts]
    except ValueError:
        raise UsageError(
            f"--{option} {quoted(value)}; expected whole numbers with commas between."
        ) from None


def _families(
    inputs: Inputs,
    metrics: str | Sequence[str] | Mapping[str, Mapping[str, Any] | None] | None,
    settings: Mapping[str, Mapping[str, Any]],
    reference: bool,
) -> dict[str, Mapping[str, Any]]:
    """Return the families to evaluate, with their options."""
    if metrics is None:
        truth = inputs.record.get("labels") or inputs.record.get("target")
        metrics = () if reference and not truth else default_families(inputs.source.kind)
    families = families_of(metrics)
    if reference:
        families |= {f.name: {} for f in FAMILIES.values() if f.needs_reference} | families
    for name, options in settings.items():
        if options and name not in families:
            raise UsageError(
                f"{option_name(next(iter(options)))} is an option of {name}, which this "
                f"sweep does not evaluate; it evaluates {', '.join(families)}. Leave it out."
            )
        if twice := sorted(options.keys() & families.get(name, {}).keys()):
            raise UsageError(
                f"{option_name(twice[0])} of {name} is given in metrics and in settings; leave one "
                "out."
            )
    return {name: {**options, **settings.get(name, {})} for name, options in families.items()}
