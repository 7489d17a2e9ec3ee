"""Options of inputs, metric families and evaluations of a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from uqeval.argument_types import python_value
from uqeval.errors import (
    NegativeSigma,
    UqevalError,
    UsageError,
    all_listed,
    check_numbers,
    data_of_kind,
    did_you_mean,
    listed,
    option_name,
    quoted,
)
from uqeval.inputs import InputOptions, Inputs
from uqeval.keys import COMMANDS_BY_KEY
from uqeval.maps.names import lambda_of, sigma_of
from uqeval.maps.region_text import region_of
from uqeval.settings import default_of, make_settings, options_of
from uqeval.spelling import for_caller

if TYPE_CHECKING:
    from uqeval.metrics import Family
    from uqeval.metrics._dataset_info import DatasetInfo
    from uqeval.metrics._evaluation import Evaluation


def input_options(options_given: Mapping[str, Any]) -> InputOptions:
    """Return options of inputs by name. Raises `UsageError` for an unknown name."""
    options: InputOptions
    (options,) = make_settings(options_given, InputOptions)
    return options


def families_of(
    metrics: str | Sequence[str] | Mapping[str, Mapping[str, Any] | None],
) -> dict[str, Mapping[str, Any]]:
    """Return families and their options from any accepted form; `temporal` is `tc`."""
    if isinstance(metrics, str):
        metrics = [metrics]
    requested = metrics if isinstance(metrics, Mapping) else dict.fromkeys(metrics)
    families: dict[str, Mapping[str, Any]] = {}
    for name, options in requested.items():
        command = COMMANDS_BY_KEY.get(name, name)
        if command in families:
            raise UsageError(f"{name} is another name of {command}, also given; leave one out.")
        families[command] = {name: python_value(value) for name, value in (options or {}).items()}
    return families


def place_of_option(options: Mapping[str, Any], families: Collection[str]) -> Callable[[str], str]:
    """Return a function that says how to give an option of `options` that is one of a family:
    of `families`, if one of these has it. It returns an empty text for other options."""
    from uqeval.metrics import FAMILIES

    def place(name: str) -> str:
        having = [f.name for f in FAMILIES.values() if name in options_of(f.settings_type)]
        if not having:
            return ""
        chosen = next((family for family in having if family in families), having[0])
        return (
            f"{name} is an option of {listed(having)}. Give it with the metric: "
            f"metrics={{{chosen!r}: {{{name!r}: {quoted(options[name])}}}}}."
        )

    return place


def inputs_for(
    families: Mapping[str, Mapping[str, Any]],
    options: InputOptions,
    uncertainty: Sequence[str] = (),
) -> InputOptions:
    """Return options of inputs with what these families read: whole sequences for tracks, and the
    maps that options name.

    `uncertainty`: maps for all families with this option.
    """
    named = [*_values("uncertainty", families), *uncertainty]
    return dataclasses.replace(
        options,
        whole_sequences=options.whole_sequences
        or any(value is True for value in _values("tracks", families)),
        read_maps=tuple(sorted({name for name in named if isinstance(name, str)})),
    )


def _values(option: str, families: Mapping[str, Mapping[str, Any]]) -> list[Any]:
    """Return the values of an option in all families and variants."""
    choices = [options[option] for options in families.values() if option in options]
    return [v for one in choices for v in (one if isinstance(one, list | tuple) else [one])]


def everything(
    inputs: Inputs, uncertainty: Sequence[str] = ()
) -> tuple[dict[str, Mapping[str, Any]], list[str]]:
    """Return all families that apply to opened inputs, and warnings about the others.

    `uncertainty`: replaces the default of families with this option. Raises `UqevalError` if no
    family applies, or none has the option.
    """
    from uqeval.metrics import FAMILIES

    info = inputs.info()
    families: dict[str, Any] = {"uncertainty": list(uncertainty)} if uncertainty else {}
    refused: list[str] = []
    options_by_family: dict[str, Mapping[str, Any]] = {}
    lost: dict[str, list[str]] = {}
    for family in FAMILIES.values():
        if family.on_request or info.kind not in family.kinds:
            continue
        if family.needs_reference and not info.reference:
            continue
        if family.needs_annotators and not info.annotators:
            continue
        ranks = "uncertainty" in family.settings_type.__dataclass_fields__
        options = families if ranks else {}
        try:
            check_family(inputs, family.name, options)
        except UqevalError as error:
            lost.setdefault(str(error), []).append(family.name)
            refused += [str(error)] if options else []
        else:
            options_by_family[family.name] = options
    if not options_by_family:
        raise UsageError(next(iter(lost)))
    if uncertainty and not any(options_by_family.values()):
        data = data_of_kind(info.kind)
        none = f"--uncertainty: no metric of {data} has this option; leave it out."
        raise UsageError(next(iter(refused), none))
    return options_by_family, [
        f"{', '.join(names)} left out: {text}" for text, names in lost.items()
    ]


def without_sigma(
    inputs: Inputs, families: Mapping[str, Mapping[str, Any]], error: NegativeSigma
) -> tuple[dict[str, Mapping[str, Any]], Inputs]:
    """Return the families that do not use the negative map as σ, and inputs with a warning.

    Raises the `error` again if all families use it.
    """
    info = inputs.info()
    required = {sigma_of(error.map), lambda_of(error.map)}
    remaining: dict[str, Mapping[str, Any]] = {}
    lost: list[str] = []
    for family in known_families(families, info):
        options = families[family.name]
        measures = options.get("uncertainty", ())
        other_measures = [name for name in measures if name != error.map]
        if len(other_measures) < len(measures):
            variants = family.settings({"uncertainty": error.map}, info).values()
            if any(family.maps(settings, info) & required for settings in variants):
                lost.append(family.name if not other_measures else f"{family.name}[{error.map}]")
                options = {**options, "uncertainty": other_measures}
        if options.get("uncertainty", True):
            remaining[family.name] = options
    if not lost or not remaining:
        raise error
    message = f"{', '.join(lost)} left out: {error}"
    return remaining, dataclasses.replace(inputs, warnings=[*inputs.warnings, message])


def check_family(inputs: Inputs, name: str, options: Mapping[str, Any]) -> None:
    """Raise `UqevalError` if opened inputs lack the kind of data or the maps of a family."""
    check_maps(inputs, evaluations_of_family(inputs, name, options))


def evaluations_of_family(
    inputs: Inputs, name: str, options: Mapping[str, Any]
) -> dict[str, Evaluation[Any]]:
    """Return the evaluations of the variants and parts of a family by key, of whole images.

    Raises `UsageError` if opened inputs lack the kind of data, and for options they cannot have.
    """
    info = inputs.info()
    (family,) = known_families({name: options}, info)
    evaluations: dict[str, Evaluation[Any]] = {}
    for key, settings in family.settings(options, info).items():
        evaluations |= family.evaluations(key, settings, info)
    return evaluations


def check_maps(inputs: Inputs, evaluations: Mapping[str, Evaluation[Any]]) -> None:
    """Raise `UqevalError` if opened inputs lack the maps of evaluations."""
    for evaluation in evaluations.values():
        inputs.source.want(sorted(evaluation.maps()))


def check_regions(inputs: Inputs, families: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise `UqevalError` if opened inputs lack regions that are requested, or their maps."""
    regions = inputs.region_names()
    if regions and families:
        _, names = evaluations_of(inputs.info(), families, regions)
        inputs.source.want(sorted(names))


#: Kinds of data that an option makes of others: these, and the end of a message about the option.
_NEEDED = {
    "ood": (("classes",), "out-of-distribution data: give --out, a list of stores with other "
            "items, or --ood-mask, the ids of the pixels inside these items."),
    "video": (("classes",), "video only: give --video, the frames of these predictions."),
}  # fmt: skip


def known_families(families: Mapping[str, Any], info: DatasetInfo) -> list[Family]:
    """Return the families of these names.

    Raises `UsageError` for an unknown name, for no name, and for another kind of data.
    """
    from uqeval.metrics import COMPANIONS, FAMILIES, families_with

    unknown = [name for name in families if name not in FAMILIES]
    if unknown or not families:
        expected = f"expected some of {', '.join(FAMILIES)}."
        if not unknown:
            raise UsageError(f"no metrics are given; {expected}")
        if having := families_with(unknown[0]):
            metric = for_caller(
                f"--metric {having[0]}", f"metrics={having[0]!r}", f"`metric: {having[0]}`"
            )
            hint = f"{quoted(unknown[0])} is a score of {having[0]}. Give {metric}."
        else:
            hint = did_you_mean(unknown[0], FAMILIES, expected)
        option = for_caller("--metric", "metrics", "metric")
        raise UsageError(f"{option} {all_listed(unknown)}; {hint}")
    families_known = [FAMILIES[name] for name in families]
    for options in families.values():
        check_numbers(options)
    for family in families_known:
        if info.kind not in family.kinds:
            data = data_of_kind(info.kind)
            if (needed := _NEEDED.get(family.kinds[0])) is not None and info.kind in needed[0]:
                raise UsageError(f"{info.where} holds {data}; {family.name} evaluates {needed[1]}")
            fit = [
                name for name, fitting in FAMILIES.items()
                if info.kind in fitting.kinds and name not in (*COMPANIONS, "image_failure")
            ]  # fmt: skip
            command = f" Try uqeval {fit[0]} {quote(info.where)} with the same other paths."
            example = for_caller(
                command if Path(info.where).exists() else "",
                f" Try metrics={fit[0]!r} with the same other arguments.",
                f" Try `{fit[0]}:` in its place.",
            )
            raise UsageError(
                f"{info.where} holds {data}; {family.name} evaluates "
                f"{data_of_kind(family.kinds[0])} only. {data.capitalize()} are for "
                f"{', '.join(fit)}.{example}"
            )
    return families_known


def refuse_other_kinds(metrics: Any) -> None:
    """Raise `UsageError` for metrics of other data than classes, for an Evaluator."""
    from uqeval.metrics import FAMILIES

    for name in () if metrics == "all" else families_of(metrics):
        if name in FAMILIES and "classes" not in FAMILIES[name].kinds:
            instead = {
                "regression": 'uqeval.evaluate({"mean": …, "std": …, "target": …}, '
                f"metrics={name!r})",
                "video": f"uqeval.evaluate(predictions, metrics={name!r}, video=…)",
                "ood": f"uqeval.evaluate(predictions, metrics={name!r}, out=[…])",
            }.get(FAMILIES[name].kinds[0], f"uqeval.evaluate(…, metrics={name!r})")
            raise UsageError(
                f"metrics={name!r} evaluates {data_of_kind(FAMILIES[name].kinds[0])}, but "
                f"Evaluator takes class predictions only. Use {instead}."
            )


def with_companions(
    families: Mapping[str, Mapping[str, Any]], info: DatasetInfo
) -> dict[str, Mapping[str, Any]]:
    """Return the families after those that accompany all others of their kind of data, except those
    that only compare with a reference."""
    from uqeval.metrics import FAMILIES

    of_labels = any(not FAMILIES[name].needs_reference for name in families)
    return (companions(info.kind) if of_labels else {}) | dict(families)


def uses_reference(families: Iterable[str]) -> bool:
    """Return whether a family compares the predictions with a reference."""
    from uqeval.metrics import FAMILIES

    return any(FAMILIES[name].needs_reference for name in families)


def companions(kind: str) -> dict[str, Mapping[str, Any]]:
    """Return the families that accompany all others of a kind of data."""
    from uqeval.metrics import COMPANIONS, FAMILIES

    return {name: {} for name in COMPANIONS if kind in FAMILIES[name].kinds}


def evaluations_of(
    info: DatasetInfo, families: Mapping[str, Mapping[str, Any]], regions: Sequence[str] | None = ()
) -> tuple[dict[str, Evaluation[Any]], set[str]]:
    """Return the evaluations of all variants, parts and regions by key, and the maps they read.

    `regions`: None if they are chosen later. Raises `UsageError` for data that have no regions, and
    for settings of regions without one.
    """
    known_families(families, info)
    options_by_family = with_companions(families, info)
    evaluations: dict[str, Evaluation[Any]] = {}
    for family in known_families(options_by_family, info):
        for key, settings in family.settings(options_by_family[family.name], info).items():
            evaluations |= family.evaluations(key, settings, info)
            if regions is not None and not regions:
                _refuse_without_regions(settings)
            for region in _regions(regions or (), families, info):
                evaluations |= family.evaluations(f"{key}@{region}", settings, info)
    for evaluation in evaluations.values():
        evaluation.use_evaluations(evaluations)
    if regions:
        from uqeval.metrics._view import shared

        evaluations = shared(evaluations)
    return evaluations, set().union(*(evaluation.maps() for evaluation in evaluations.values()))


def _refuse_without_regions(settings: Any) -> None:
    """Raise `UsageError` for settings that have an effect in regions only."""
    names = settings.unused(in_region=False) - settings.unused()
    name = next((n for n in sorted(names) if getattr(settings, n) != default_of(settings, n)), None)
    if name is not None:
        value = getattr(settings, name)
        text = value if isinstance(value, str) else f"{value:g}"
        raise UsageError(
            f"{option_name(name)} {text} has no effect without a region: give --region, such as "
            "--region boundary:8, or leave it out."
        )


def _regions(regions: Sequence[str], families: Iterable[str], info: DatasetInfo) -> list[str]:
    """Return the names of the regions, each once. Raises `UsageError`."""
    regions_by_text = {
        region.text: region for region in (region_of(t, info.labelled) for t in regions)
    }
    if regions_by_text and info.reference:
        of_reference = [name for name in families if uses_reference([name])]
        raise UsageError(
            f"--region {next(iter(regions_by_text))}: {listed(of_reference)} compares whole images "
            "with those of a reference. Leave --region out."
        )
    lies = [name for name, region in regions_by_text.items() if region.of_neighbours]
    if lies and info.is_of_single_pixels:
        raise UsageError(
            f"--region {lies[0]}: {info.where} holds items of one pixel (image classification), "
            "which have no neighbours and no place. Leave this region out."
        )
    return list(regions_by_text)
