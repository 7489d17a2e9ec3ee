"""The use case `sweep`: metrics as functions of the number of samples M, from one read.

Gustafsson et al. 2020, §4: for each M, several subsets of the T samples drawn without replacement,
no subset twice; mean and population standard deviation over the draws.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uqeval.errors import UsageError
from uqeval.inputs import Given, Inputs, beside_reference, open_inputs
from uqeval.report.schema import Report
from uqeval.run import (
    Progress,
    RunOptions,
    Silent,
    families_of,
    input_options,
    known_families,
    report_of,
)
from uqeval.sizes import parse_memory

if TYPE_CHECKING:
    from uqeval.maps.subsets import ClassSubsets, NumberSubsets
    from uqeval.metrics import Family
    from uqeval.metrics._plan import Plan, Section
    from uqeval.tallies import Tally

#: What is evaluated by default, by kind of data, where there is ground truth.
DEFAULT = {
    "classes": ("segmentation", "pavpu"),
    "regression": ("regression", "sparsification", "nmerci"),
}
#: What a family says of one sample, which has no σ: scores of the prediction alone.
_WITHOUT_SIGMA = {"regression": ("pixels", "rmse", "mae", "nmse")}
_ONE_SAMPLE = "undefined for one sample"


def default_samples(total: int) -> list[int]:
    """M = 1, 2, 4, … below T, and T."""
    return [2**k for k in range(total.bit_length()) if 2**k < total] + [total]


def draw(
    total: int, samples: Sequence[int], repeats: Sequence[int], seed: int
) -> list[list[tuple[int, ...]]]:
    """For each M, R different subsets of M of `total` samples, each ascending.

    R is at most the number of subsets that there are. Seeded; the same for any platform.
    """
    import numpy as np

    if seed < 0:
        raise UsageError(f"--seed {seed}; expected a whole number from 0 on.")
    rng = np.random.Generator(np.random.PCG64(seed))
    drawn: list[list[tuple[int, ...]]] = []
    for m, wanted in zip(samples, repeats, strict=True):
        possible = math.comb(total, m)
        if possible <= 4 * wanted:
            every = list(itertools.combinations(range(total), m))
            chosen = rng.permutation(len(every))[:wanted]
            drawn.append([every[int(i)] for i in sorted(chosen)])
            continue
        subsets: dict[tuple[int, ...], None] = {}
        while len(subsets) < wanted:
            subset = sorted(rng.permutation(total)[:m].tolist())
            subsets[tuple(subset)] = None
        drawn.append(list(subsets))
    return drawn


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
    workers: int | None = None,
    memory: int | str = 512 * 10**6,
    progress: Progress | None = None,
    **inputs: Any,
) -> Report:
    """Evaluate families on subsets of the samples; the report's `results` have one key, `sweep`.

    `labels`: labels, or a target of predicted numbers. `metrics`: families, with their options or
    without, one value an option; by default segmentation and pavpu, or regression, sparsification
    and nmerci. `settings`: options of these families. `reference`: a store from which the
    divergence is evaluated too; it alone where there are no labels and no `metrics`. `samples`: the
    Ms (default 1, 2, 4, … T); `repeats`: subsets for each M, one number or one an M; `workers`,
    `memory` and `inputs` as in `uqeval.evaluate`. Raises `UqevalError`: for more samples than
    stored, for a maps store, and as `evaluate` does.
    """
    from uqeval.lockstep import Lockstep
    from uqeval.maps.subsets import subsets_of

    began = time.perf_counter()
    given = input_options(inputs)
    opened = open_inputs(predictions, labels, given)
    families = _families(opened, metrics, settings or {}, reference is not None)
    total = opened.source.samples or 1
    ms = _checked_samples(samples, total, opened.source.where)
    counts = _checked_repeats(repeats, len(ms))
    drawn = draw(total, ms, counts, seed)
    subsets = [subset for group in drawn for subset in group]
    source = subsets_of(opened.source, subsets)
    opened = dataclasses.replace(opened, source=source)
    if reference is not None:
        opened = beside_reference(opened, reference, given)
    plans, wanted, said, used = _plans(opened, families, source)
    opened.source.want(sorted(wanted))
    lockstep = Lockstep(
        opened, RunOptions(workers, parse_memory(memory), progress=progress or Silent())
    )
    sections = lockstep.run(plans)
    place = itertools.count()
    groups = [[next(place) for _ in group] for group in drawn]
    said["sweep"] = {
        "samples": ms,
        "repeats": [len(group) for group in drawn],
        "seed": seed,
        "subsets": [[list(subset) for subset in group] for group in drawn],
        "definition": "paper",
    }
    summary = _summary(sections, used, ms, groups)
    record = {
        "results": {"sweep": summary},
        "items": [{"name": name} for name in source.names],
        "settings": said,
        "warnings": _warnings(sections, used, ms, groups) + _lost(summary),
    }
    return report_of(opened, record, lockstep, time.perf_counter() - began)


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


def _checked_samples(samples: Sequence[int] | None, total: int, where: str) -> list[int]:
    if samples is None:
        return default_samples(total)
    ms = list(samples)
    if not ms or sorted(set(ms)) != ms or ms[0] < 1:
        raise UsageError(f"--samples {ms}; expected different numbers from 1 on, ascending.")
    if ms[-1] > total:
        raise UsageError(f"--samples {ms[-1]}, but {where} holds {total} samples an item.")
    return ms


def _checked_repeats(repeats: int | Sequence[int], count: int) -> list[int]:
    found = [repeats] * count if isinstance(repeats, int) else list(repeats)
    if len(found) == 1:
        found *= count
    if len(found) != count or min(found, default=0) < 1:
        raise UsageError(
            f"--repeats {found}; expected one number from 1 on, or one for each of the {count} Ms."
        )
    return found


def _plans(
    opened: Inputs,
    families: Mapping[str, Mapping[str, Any]],
    source: ClassSubsets | NumberSubsets,
) -> tuple[dict[str, Plan], set[str], dict[str, Any], list[Family]]:
    """Plans of every subset, keyed `<subset>:<family>`, and the maps that they read."""
    facts = opened.facts()
    plans: dict[str, Plan] = {}
    wanted: set[str] = set()
    said: dict[str, Any] = {}
    used = known_families(families, facts)
    for family in used:
        settings = family.settings(families[family.name], facts)
        if len(settings) > 1:
            raise UsageError(
                f"a sweep evaluates one variant of {family.name}, but {len(settings)} are asked "
                f"for: {', '.join(settings)}."
            )
        ((key, chosen),) = settings.items()
        said[key] = dataclasses.asdict(chosen)
        maps = family.maps(chosen, facts)
        wanted |= maps
        for k, subset in enumerate(source.subsets):
            fields = None
            if len(subset) == 1 and maps & source.of_several:
                fields = _WITHOUT_SIGMA.get(family.name)
                if not fields:
                    continue
            own = dataclasses.replace(facts, samples=len(subset))
            plan = family.plans(key, chosen, own)[key]
            plans[f"{k}:{family.name}"] = _of_subset(plan, k, fields)
    return plans, wanted, said, used


def _of_subset(plan: Plan, subset: int, fields: Sequence[str] | None) -> Plan:
    """The same plan, on the maps of one subset; of its results only some `fields`, or all."""
    from uqeval.metrics._plan import Section
    from uqeval.tallies import OfSubset

    asked = next(plan)
    while True:
        own: dict[Tally, Tally] = {OfSubset(tally, subset): tally for tally in asked}
        counted = yield tuple(own)
        try:
            asked = plan.send({own[tally]: found for tally, found in counted.items()})
        except StopIteration as stop:
            section: Section = stop.value
            if fields is None:
                return section
            kept = {
                name: value
                for name, value in section.results.items()
                if name.removesuffix("_reason") in fields
            }
            return Section(kept, [])


def _summary(
    sections: Mapping[str, Section],
    families: Sequence[Family],
    ms: Sequence[int],
    groups: Sequence[Sequence[int]],
) -> dict[str, Any]:
    """{`<family>.<field>`: {m, repeats, mean, std, values}} for every number and curve."""
    summary: dict[str, Any] = {}
    for family in families:
        found = [[_said(sections, k, family) for k in group] for group in groups]
        fields = dict.fromkeys(
            name for group in found for one in group for name in one if _is_measured(name, one)
        ) or dict.fromkeys(metric.field for metric in family.metrics)
        for name in fields:
            values = [[one.get(name) for one in group] for group in found]
            reasons = [
                f"M = {m}: " + next(
                    one.get(f"{name}_reason", _ONE_SAMPLE if m == 1 else "undefined there")
                    for one, value in zip(own, group, strict=True) if value is None
                )
                for m, own, group in zip(ms, found, values, strict=True) if None in group
            ]  # fmt: skip
            summary[f"{family.name}.{name}"] = {
                "m": list(ms),
                "repeats": [len(group) for group in groups],
                "mean": [_fold(group, statistics.fmean) for group in values],
                "std": [_fold(group, statistics.pstdev) for group in values],
                "values": values,
            } | ({"mean_reason": "; ".join(reasons)} if reasons else {})
    return summary


def _said(sections: Mapping[str, Section], subset: int, family: Family) -> dict[str, Any]:
    """All that a section says of a subset, by dotted name; nothing where it was not evaluated."""
    section = sections.get(f"{subset}:{family.name}")
    return dict(_flat(section.results)) if section else {}


def _flat(results: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in results.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _is_measured(name: str, said: Mapping[str, Any]) -> bool:
    """Whether a name is of a number, or of a curve, or would be; choices are none."""
    value = said[name]
    if isinstance(value, list):
        return bool(value) and all(_is_number(v) or v is None for v in value)
    choices = ("window", "stride", "accuracy_threshold", "alpha", "bins", "clip")
    if name.rpartition(".")[2] in choices:
        return False
    return _is_number(value) or (value is None and f"{name}_reason" in said)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _warnings(
    sections: Mapping[str, Section],
    families: Sequence[Family],
    ms: Sequence[int],
    groups: Sequence[Sequence[int]],
) -> list[str]:
    """What there is to say of the first subset of each M."""
    return [
        f"{family.name}, M = {m}: {text}"
        for family in families
        for m, group in zip(ms, groups, strict=True)
        if (section := sections.get(f"{group[0]}:{family.name}"))
        for text in section.warnings
    ]


def _lost(summary: Mapping[str, Any]) -> list[str]:
    """A warning where samples that are NaN leave some subsets fewer pixels than others."""
    for name, found in summary.items():
        counts = [n for group in found["values"] for n in group if n is not None]
        if name.endswith(".pixels") and min(counts) < max(counts):
            return [
                f"the subsets evaluate {min(counts)} to {max(counts)} pixels ({name}): one is left "
                "out where no sample of the subset is a number."
            ]
    return []


def _fold(values: Sequence[Any], fold: Any) -> Any:
    """`fold` over the draws of numbers, or of curves point by point; None where undefined."""
    if any(v is None for v in values):
        return None
    if isinstance(values[0], list):
        return [_fold(point, fold) for point in zip(*values, strict=True)]
    return float(fold(values))
