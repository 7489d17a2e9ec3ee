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

from uqeval.engine.options import MachineOptions, Progress, Silent
from uqeval.errors import UsageError, quoted
from uqeval.inputs import Given, InputOptions, Inputs, beside_reference, open_inputs
from uqeval.maps.views import Subset
from uqeval.metrics._driver import drive, renamed
from uqeval.report.schema import Report
from uqeval.settings import made, takes
from uqeval.usecases.plans import families_of, known_families
from uqeval.usecases.report_of_run import report_of
from uqeval.usecases.sweep.draws import checked_repeats, checked_samples, default_samples, draw
from uqeval.usecases.sweep.summary import lost_pixels, numerics_of, summary_of, warnings_of

if TYPE_CHECKING:
    from uqeval.maps.subsets import ClassSubsets, NumberSubsets
    from uqeval.metrics import Family
    from uqeval.metrics._evaluation import Passes

__all__ = ["DEFAULT", "default_samples", "draw", "sweep"]

#: What is evaluated by default, by kind of data, where there is ground truth.
DEFAULT = {
    "classes": ("segmentation", "pavpu"),
    "regression": ("regression", "sparsification", "nmerci"),
}
#: What is not evaluated on subsets: a temperature has a pass of its own.
_FIXED: dict[str, dict[str, Any]] = {"calibration": {"temperature": False}}
#: What a family says of one sample, which has no σ: scores of the prediction alone.
_WITHOUT_SIGMA = {"regression": ("pixels", "rmse", "mae", "nmse")}


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
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Report:
    """Evaluate families on subsets of the samples; the report's `results` have one key, `sweep`.

    `labels`: labels, or a target of predicted numbers. `metrics`: families, with their options or
    without, one value an option; by default segmentation and pavpu, or regression, sparsification
    and nmerci. `settings`: options of these families. `reference`: a store from which the
    divergence is evaluated too; it alone where there are no labels and no `metrics`. `samples`: the
    Ms (default 1, 2, 4, … T); `repeats`: subsets for each M, one number or one an M.

    Raises `UqevalError`: for more samples than stored, for a maps store, and as `evaluate` does.
    """
    from uqeval.engine.scheduler import Scheduler

    began = time.perf_counter()
    given, machine = made(options, InputOptions, MachineOptions, function=sweep)
    if given.regions:
        raise UsageError(
            f"region={given.region!r}: a sweep evaluates whole images alone. Leave it out, or use "
            "uqeval.evaluate(…, region=…)."
        )
    asked = asked_of(
        predictions, labels, metrics, reference, samples, repeats, seed, settings, given
    )
    scheduler = Scheduler(asked.inputs, machine.run(progress=progress or Silent()))
    sections = scheduler.run(asked.passes)
    place = itertools.count()
    groups = [[next(place) for _ in group] for group in asked.drawn]
    own = {
        "samples": asked.ms,
        "repeats": [len(group) for group in asked.drawn],
        "seed": seed,
        "subsets": [[list(subset) for subset in group] for group in asked.drawn],
        "definition": "paper",
    }
    summary = summary_of(sections, asked.families, asked.ms, groups)
    told = warnings_of(sections, asked.families, asked.ms, groups) + lost_pixels(summary)
    record = {
        "results": {"sweep": summary},
        "items": [{"name": name} for name in asked.inputs.source.names],
        "settings": asked.settings | {"sweep": own},
        "numerics": numerics_of(sections, asked.families, groups),
        "warnings": told,
    }
    return report_of(asked.inputs, record, scheduler, time.perf_counter() - began)


@dataclass(frozen=True)
class Asked:
    """A sweep before anything is read: Ms, the subsets drawn for each, and their passes."""

    inputs: Inputs
    ms: list[int]
    drawn: list[list[tuple[int, ...]]]
    passes: dict[str, Passes]
    settings: dict[str, Any]
    families: list[Family]


def asked_of(
    predictions: Given | Sequence[Given],
    labels: Given | None,
    metrics: str | Sequence[str] | Mapping[str, Mapping[str, Any] | None] | None,
    reference: Given | None = None,
    samples: Sequence[int] | None = None,
    repeats: int | Sequence[int] = 8,
    seed: int = 0,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    given: InputOptions | None = None,
) -> Asked:
    """What `sweep` is asked for by these arguments of its, before any data are read.

    Raises the `UqevalError` of what it would refuse.
    """
    from uqeval.maps.subsets import subsets_of

    given = given or InputOptions()
    opened = open_inputs(predictions, labels, given, reference_follows=reference is not None)
    families = _families(opened, metrics, settings or {}, reference is not None)
    total = opened.source.samples or 1
    ms = checked_samples(samples, total, opened.source.where)
    drawn = draw(total, ms, checked_repeats(repeats, len(ms)), seed)
    source = subsets_of(opened.source, [subset for group in drawn for subset in group])
    opened = dataclasses.replace(opened, source=source)
    if reference is not None:
        opened = beside_reference(opened, reference, given)
    passes, wanted, said, used = _passes(opened, families, source)
    opened.source.want(sorted(wanted))
    return Asked(opened, ms, drawn, passes, said, used)


def arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `sweep` that the options of the command are, typed or of a `uqeval.yaml`.

    Raises `UsageError` for `samples` and `repeats` that are no numbers.
    """
    rest = dict(options)
    settings = {
        family: {name: rest.pop(name)}
        for family, name in (("sparsification", "error"), ("divergence", "clip")) if name in rest
    }  # fmt: skip
    numbers = {
        name: _numbers(name, rest.pop(name)) for name in ("samples", "repeats") if name in rest
    }
    return {"metrics": rest.pop("metric", None), "settings": settings} | numbers | rest


def _numbers(option: str, given: Any) -> list[int]:
    """1, [1, 2] or "1,2" as numbers."""
    parts = given if isinstance(given, list) else str(given).split(",")
    try:
        return [int(part) for part in parts]
    except ValueError:
        raise UsageError(
            f"--{option} {quoted(given)}; expected whole numbers with commas between."
        ) from None


def _families(
    opened: Inputs,
    metrics: str | Sequence[str] | Mapping[str, Mapping[str, Any] | None] | None,
    settings: Mapping[str, Mapping[str, Any]],
    reference: bool,
) -> dict[str, Mapping[str, Any]]:
    """The families to evaluate, with their options."""
    if metrics is None:
        truth = opened.record.get("labels") or opened.record.get("target")
        metrics = () if reference and not truth else DEFAULT[opened.source.kind]
    families = families_of(metrics)
    if reference:
        families.setdefault("divergence", {})
    for name, options in settings.items():
        if options and name not in families:
            raise UsageError(
                f"--{next(iter(options)).replace('_', '-')} is an option of {name}, which is not "
                f"evaluated here, but {', '.join(families)}."
            )
    return {name: {**options, **settings.get(name, {})} for name, options in families.items()}


def _passes(
    opened: Inputs,
    families: Mapping[str, Mapping[str, Any]],
    source: ClassSubsets | NumberSubsets,
) -> tuple[dict[str, Passes], set[str], dict[str, Any], list[Family]]:
    """Return the passes of every subset, keyed `<subset>:<family>`, and the maps that they read."""
    info = opened.info()
    passes: dict[str, Passes] = {}
    wanted: set[str] = set()
    said: dict[str, Any] = {}
    used = known_families(families, info)
    for family in used:
        options = families[family.name]
        fixed = _FIXED.get(family.name, {})
        for name, value in fixed.items():
            if options.get(name, value) != value:
                raise UsageError(f"a sweep evaluates no {name} of {family.name}; leave it out.")
        settings = family.settings({**options, **fixed}, info)
        if len(settings) > 1:
            raise UsageError(
                f"a sweep evaluates one variant of {family.name}, but {len(settings)} are asked "
                f"for: {', '.join(settings)}."
            )
        ((key, chosen),) = settings.items()
        said[key] = dataclasses.asdict(chosen)
        maps = family.maps(chosen, info)
        wanted |= maps
        for k, subset in enumerate(source.subsets):
            fields = None
            if len(subset) == 1 and maps & source.of_several:
                fields = _WITHOUT_SIGMA.get(family.name)
                if not fields:
                    continue
            own = dataclasses.replace(info, samples=len(subset))
            evaluation = family.evaluations(key, chosen, own)[key]
            passes[f"{k}:{family.name}"] = _of_subset(drive({key: evaluation}), k, fields)
    return passes, wanted, said, used


def _of_subset(passes: Passes, subset: int, fields: Sequence[str] | None) -> Passes:
    """The same passes on the maps of one subset; of its results only some `fields`, or all."""
    from uqeval.metrics._evaluation import Section

    found: dict[str, Section] = yield from renamed(passes, lambda tally: tally.seen(Subset(subset)))
    (section,) = found.values()
    if fields is None:
        return section
    kept = {k: v for k, v in section.results.items() if k.removesuffix("_reason") in fields}
    return Section(kept, [])
