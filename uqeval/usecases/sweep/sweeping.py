"""The use case `sweep`: metrics as functions of the number of samples M, from one read.

Gustafsson et al. 2020, §4: for each M, several subsets of the T samples drawn without replacement,
no subset twice; mean and population standard deviation over the draws.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uqeval.engine.clusters import cluster_of
from uqeval.engine.options import MachineOptions, Progress, RunOptions, Silent
from uqeval.errors import UsageError, quoted
from uqeval.inputs import Given, InputOptions, Inputs, beside_reference, open_inputs
from uqeval.maps.views import Subset
from uqeval.metrics import FAMILIES
from uqeval.metrics._driver import drive, renamed
from uqeval.records.report import Report
from uqeval.settings import make_settings, takes
from uqeval.usecases.plans import families_of, known_families
from uqeval.usecases.report_of_run import report_of
from uqeval.usecases.sweep.draws import checked_repeats, checked_samples, draw
from uqeval.usecases.sweep.summary import lost_pixels, numerics_of, summary_of, warnings_of

if TYPE_CHECKING:
    from uqeval.maps.subsets import ClassSubsets, NumberSubsets
    from uqeval.metrics import Family
    from uqeval.metrics._evaluation import Passes


def default_families(kind: str) -> list[str]:
    """Return the families that are evaluated for a kind of data if none is named."""
    return [family.name for family in FAMILIES.values() if kind in family.on_subsets.default]


@takes(InputOptions, MachineOptions)
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
    progress: Progress | None = None,
    executor: Any = None,
    **options: Any,
) -> Report:
    """Evaluate families on subsets of the samples; the report's `results` have one key, `sweep`.

    `labels`: labels, or a target of predicted numbers. `metrics`: families, with their options or
    without, one value an option; by default segmentation and pavpu, or regression, sparsification
    and nmerci. `error`: of sparsification; `clip`: of divergence; `settings`: options of these
    families, by family. `reference`: a store from which the
    divergence is evaluated too; it alone where there are no labels and no `metrics`. `samples`: the
    Ms (default 1, 2, 4, … T); `repeats`: subsets for each M, one number or one an M.

    Raises `UqevalError`: for more samples than stored, for a maps store, and as `evaluate` does.
    """
    input_options, machine = make_settings(options, InputOptions, MachineOptions, function=sweep)
    planned = plan_sweep(
        predictions, labels, metrics, reference, samples, repeats, seed, error, clip, settings,
        input_options,
    )  # fmt: skip
    with cluster_of(machine, executor) as cluster:
        return run_sweep(planned, machine.run(progress=progress or Silent(), cluster=cluster))


def run_sweep(planned: PlannedSweep, options: RunOptions) -> Report:
    """Evaluate all subsets of a planned sweep in one read; return the report."""
    from uqeval.engine.scheduler import Scheduler

    began = time.perf_counter()
    inputs, families, ms = planned.inputs, planned.families, planned.ms
    scheduler = Scheduler(inputs, options, maps=planned.maps)
    sections = scheduler.run(planned.passes)
    place = itertools.count()
    groups = [[next(place) for _ in group] for group in planned.drawn]
    sweep_settings = {
        "samples": ms,
        "repeats": [len(group) for group in planned.drawn],
        "seed": planned.seed,
        "subsets": [[list(subset) for subset in group] for group in planned.drawn],
        "definition": "paper",
    }
    summary = summary_of(sections, families, ms, groups)
    record = {
        "results": {"sweep": summary},
        "items": [{"name": name} for name in inputs.source.names],
        "settings": planned.settings | {"sweep": sweep_settings},
        "numerics": numerics_of(sections, families, groups),
        "warnings": warnings_of(sections, families, ms, groups) + lost_pixels(summary),
    }
    return report_of(inputs, record, scheduler, time.perf_counter() - began)


@dataclass(frozen=True)
class PlannedSweep:
    """A sweep before data are read: Ms, the subsets drawn for each, and their passes."""

    inputs: Inputs
    ms: list[int]
    drawn: list[list[tuple[int, ...]]]
    seed: int
    passes: dict[str, Passes]
    maps: set[str]
    settings: dict[str, Any]
    families: list[Family]


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
    if input_options.regions:
        raise UsageError(
            f"region={input_options.region!r}: a sweep evaluates whole images alone. Leave it "
            "out, or use uqeval.evaluate(…, region=…)."
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
    passes, map_names, settings_by_key, used = _passes(inputs, families, source)
    inputs.source.want(sorted(map_names))
    return PlannedSweep(inputs, ms, subsets, seed, passes, map_names, settings_by_key, used)


def arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords of `sweep` for options of the command, typed or of a `uqeval.yaml`.

    Raises `UsageError` for `samples` and `repeats` that are no numbers.
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
                f"--{next(iter(options)).replace('_', '-')} is an option of {name}, which is not "
                f"evaluated here, but {', '.join(families)}."
            )
    return {name: {**options, **settings.get(name, {})} for name, options in families.items()}


def _passes(
    inputs: Inputs,
    families: Mapping[str, Mapping[str, Any]],
    source: ClassSubsets | NumberSubsets,
) -> tuple[dict[str, Passes], set[str], dict[str, Any], list[Family]]:
    """Return the passes of every subset, keyed `<subset>:<family>`, and the maps that they read."""
    info = inputs.info()
    passes: dict[str, Passes] = {}
    map_names: set[str] = set()
    settings_by_key: dict[str, Any] = {}
    used = known_families(families, info)
    for family in used:
        options = families[family.name]
        fixed = family.on_subsets.fixed
        for name, value in fixed.items():
            if options.get(name, value) != value:
                raise UsageError(f"a sweep evaluates no {name} of {family.name}; leave it out.")
        settings = family.settings({**options, **fixed}, info)
        if len(settings) > 1:
            raise UsageError(
                f"a sweep evaluates one variant of {family.name}, but {len(settings)} are asked "
                f"for: {', '.join(settings)}."
            )
        ((key, variant),) = settings.items()
        settings_by_key[key] = dataclasses.asdict(variant)
        maps = family.maps(variant, info)
        map_names |= maps
        for k, subset in enumerate(source.subsets):
            fields = None
            if len(subset) == 1 and maps & source.of_several:
                fields = family.on_subsets.of_one_sample
                if not fields:
                    continue
            subset_info = dataclasses.replace(info, samples=len(subset))
            evaluations = family.evaluations(key, variant, subset_info)
            # Parts with a record of their own hold curves, which are of the whole set.
            flat = {name: own for name, own in evaluations.items() if name == key or own.flat}
            passes[f"{k}:{family.name}"] = _of_subset(drive(flat), k, fields)
    return passes, map_names, settings_by_key, used


def _of_subset(passes: Passes, subset: int, fields: Sequence[str] | None) -> Passes:
    """Run the passes on the maps of one subset; return the results in `fields`, or all (None)."""
    from uqeval.metrics._evaluation import Section

    sections: dict[str, Section] = yield from renamed(
        passes, lambda tally: tally.in_view(Subset(subset))
    )
    section, *parts = sections.values()
    for part in parts:
        section.results.update(part.results)
    if fields is None:
        return section
    results = {k: v for k, v in section.results.items() if k.removesuffix("_reason") in fields}
    return Section(results, [])
