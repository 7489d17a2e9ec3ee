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
from uqeval.inputs import Given, InputOptions, Inputs, open_inputs
from uqeval.report.schema import Report
from uqeval.run import Progress, RunOptions, Silent, families_of, known_families, report_of

if TYPE_CHECKING:
    from uqeval.metrics import Family
    from uqeval.metrics._plan import Plan, Section
    from uqeval.tallies import Tally

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
    metrics: Sequence[str] | Mapping[str, Mapping[str, Any]] = ("segmentation", "pavpu"),
    *,
    samples: Sequence[int] | None = None,
    repeats: int | Sequence[int] = 8,
    seed: int = 0,
    workers: int | None = None,
    memory: int = 512 * 10**6,
    progress: Progress | None = None,
    **inputs: Any,
) -> Report:
    """Evaluate families on subsets of the samples; the report's `results` have one key, `sweep`.

    `samples`: the Ms (default 1, 2, 4, … T); `repeats`: subsets for each M, one number or one an M;
    `metrics`, `workers`, `memory` and `inputs` as in `uqeval.evaluate`, one value an option. Raises
    `UqevalError`: for more samples than stored, for a maps store, and as `evaluate` does.
    """
    from uqeval.lockstep import Lockstep
    from uqeval.maps.sources import with_samples
    from uqeval.maps.subsets import Subsets

    began = time.perf_counter()
    opened = open_inputs(predictions, labels, InputOptions(**inputs))
    stack = with_samples(opened.source, "a sweep")
    total = stack.samples or 1
    ms = _checked_samples(samples, total, stack.where)
    counts = _checked_repeats(repeats, len(ms))
    drawn = draw(total, ms, counts, seed)
    subsets = [subset for group in drawn for subset in group]
    families = families_of(metrics)
    plans, wanted, said, used = _plans(opened, families, subsets)
    source = Subsets(stack, subsets)
    source.want(sorted(wanted))
    lockstep = Lockstep(
        dataclasses.replace(opened, source=source),
        RunOptions(workers, memory, progress=progress or Silent()),
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
    record = {
        "results": {"sweep": _summary(sections, used, ms, groups)},
        "items": [{"name": name} for name in source.names],
        "settings": said,
    }
    return report_of(opened, record, lockstep, time.perf_counter() - began)


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
    subsets: Sequence[tuple[int, ...]],
) -> tuple[dict[str, Plan], set[str], dict[str, Any], list[Family]]:
    """Plans of every subset, keyed `<subset>:<family>`, and the maps that they read."""
    from uqeval.maps.names import OF_SEVERAL_SAMPLES

    facts = opened.facts()
    plans: dict[str, Plan] = {}
    wanted: set[str] = set()
    said: dict[str, Any] = {}
    used = known_families(families)
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
        for k, subset in enumerate(subsets):
            if len(subset) == 1 and maps & OF_SEVERAL_SAMPLES:
                continue
            own = dataclasses.replace(facts, samples=len(subset))
            plan = family.plans(key, chosen, own)[key]
            plans[f"{k}:{family.name}"] = _of_subset(plan, k)
    return plans, wanted, said, used


def _of_subset(plan: Plan, subset: int) -> Plan:
    """The same plan, on the maps of one subset."""
    from uqeval.tallies import OfSubset

    asked = next(plan)
    while True:
        own: dict[Tally, Tally] = {OfSubset(tally, subset): tally for tally in asked}
        counted = yield tuple(own)
        try:
            asked = plan.send({own[tally]: found for tally, found in counted.items()})
        except StopIteration as stop:
            section: Section = stop.value
            return section


def _summary(
    sections: Mapping[str, Section],
    families: Sequence[Family],
    ms: Sequence[int],
    groups: Sequence[Sequence[int]],
) -> dict[str, Any]:
    """{`<family>.<field>`: {m, repeats, mean, std, values}} for every number and curve."""
    summary: dict[str, Any] = {}
    for family in families:
        found = [
            [dict(_numbers(sections[key].results)) if (key := f"{k}:{family.name}") in sections
             else {} for k in group]
            for group in groups
        ]  # fmt: skip
        fields = dict.fromkeys(name for group in found for one in group for name in one)
        for name in fields:
            values = [[one.get(name) for one in group] for group in found]
            summary[f"{family.name}.{name}"] = {
                "m": list(ms),
                "repeats": [len(group) for group in groups],
                "mean": [_fold(group, statistics.fmean) for group in values],
                "std": [_fold(group, statistics.pstdev) for group in values],
                "values": values,
            }
            if any(None in group for group in values):
                summary[f"{family.name}.{name}"]["mean_reason"] = (
                    "null where a subset has no value: undefined there, or for one sample"
                )
    return summary


def _numbers(results: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Measured numbers and curves of a section; counts of patches are numbers, choices are not."""
    choices = ("window", "stride", "accuracy_threshold", "alpha", "bins", "clip")
    for name, value in results.items():
        if name in choices or isinstance(value, bool | str):
            continue
        if isinstance(value, int | float):
            yield prefix + name, value
        elif isinstance(value, dict):
            yield from _numbers(value, f"{prefix}{name}.")
        elif (
            isinstance(value, list)
            and value
            and all(isinstance(v, int | float) or v is None for v in value)
            and not any(isinstance(v, bool) for v in value)
        ):
            yield prefix + name, value


def _fold(values: Sequence[Any], fold: Any) -> Any:
    """`fold` over the draws of numbers, or of curves point by point; None where undefined."""
    if any(v is None for v in values):
        return None
    if isinstance(values[0], list):
        return [_fold(point, fold) for point in zip(*values, strict=True)]
    return float(fold(values))
