"""The use cases: stores and metrics to a report; stacks to a maps store."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from uqeval.errors import UsageError
from uqeval.inputs import Given, InputOptions, Inputs, beside_reference, open_inputs
from uqeval.report.schema import Report

if TYPE_CHECKING:
    from uqeval.lockstep import Lockstep
    from uqeval.metrics import Family
    from uqeval.metrics._family import Facts
    from uqeval.metrics._plan import Plan, Section


class Progress(Protocol):
    """What is told of a run while it goes on."""

    def begin(self, what: str, items: int) -> None:
        """A pass over `items` items begins."""

    def advance(self, nbytes: int, items: int) -> None:
        """Bytes were read, items are done; called from several threads."""

    def end(self) -> None:
        """The pass is over."""


class Silent:
    """Tells nobody."""

    def begin(self, what: str, items: int) -> None: ...

    def advance(self, nbytes: int, items: int) -> None: ...

    def end(self) -> None: ...


@dataclass
class RunOptions:
    """How a run uses the machine, and what it leaves behind."""

    workers: int | None = None
    memory: int = 512 * 10**6
    states: str | Path | None = None
    progress: Progress = field(default_factory=Silent)

    def threads(self) -> int:
        """How many threads are asked for. Raises `UsageError` for less than one."""
        if self.workers is None:
            return usable_cpus()
        if self.workers < 1:
            raise UsageError(f"--workers {self.workers}; expected at least 1.")
        return self.workers


def usable_cpus() -> int:
    """CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def evaluate(
    predictions: Given | Sequence[Given],
    labels: Given | None = None,
    metrics: str | Sequence[str] | Mapping[str, Mapping[str, Any] | None] = ("pavpu",),
    *,
    workers: int | None = None,
    memory: int = 512 * 10**6,
    states: str | Path | None = None,
    progress: Progress | None = None,
    reference: Given | None = None,
    **inputs: Any,
) -> Report:
    """Evaluate saved predictions; the report is the one that the commands write.

    `predictions`: a store (Zarr group, `.npy`, `.npz`, or an array in memory [N, T, C, H, W]), or
    several, the members of one ensemble; `labels`: a store or a folder of label PNGs, where the
    predictions' store holds none. `metrics`: families ("segmentation", "pavpu"), or families with
    their options, each one value or a list (variants): `{"pavpu": {"window": [4, 8]}}`. `workers`:
    threads (default: usable CPUs); `memory`: bytes of tiles and maps; `states`: file for the
    per-item tallies; `reference`: a store to compare with, for "divergence"; further options are
    those of `InputOptions` (`names`, `ignore_index`, …).

    Raises `UqevalError` (`UsageError`, `StoreError`, `DataError`), which says what is wrong.
    """
    families = families_of(metrics)
    known = InputOptions.__dataclass_fields__
    strange = [name for name in inputs if name not in known]
    if strange:
        raise UsageError(f"unknown options {strange}; expected some of {', '.join(known)}.")
    opened = open_inputs(predictions, labels, InputOptions(**inputs))
    if reference is not None:
        opened = beside_reference(opened, reference, InputOptions(**inputs))
    options = RunOptions(workers, memory, states, progress or Silent())
    return run(opened, families, options)


def run(inputs: Inputs, families: Mapping[str, Mapping[str, Any]], options: RunOptions) -> Report:
    """Run the plans of all families over opened inputs and assemble the report."""
    from uqeval.lockstep import Lockstep

    began = time.perf_counter()
    plans, wanted = _plans(inputs.facts(), families)
    inputs.source.want(sorted(wanted))
    lockstep = Lockstep(inputs, options)
    record = _collect(lockstep.run(plans), inputs.source.names)
    states = str(options.states) if options.states else None
    return report_of(inputs, record, lockstep, time.perf_counter() - began, states)


def families_of(
    metrics: str | Sequence[str] | Mapping[str, Mapping[str, Any] | None],
) -> dict[str, Mapping[str, Any]]:
    """Families and their options, however they were given."""
    if isinstance(metrics, Mapping):
        return {name: options or {} for name, options in metrics.items()}
    return {name: {} for name in ([metrics] if isinstance(metrics, str) else metrics)}


def known_families(families: Mapping[str, Any]) -> list[Family]:
    """The families of these names. Raises `UsageError` for a name that is none, and for none."""
    from uqeval.metrics import FAMILIES

    unknown = [name for name in families if name not in FAMILIES]
    if unknown or not families:
        raise UsageError(
            f"metrics {', '.join(unknown) or 'none'}; expected some of {', '.join(FAMILIES)}."
        )
    return [FAMILIES[name] for name in families]


def _plans(
    facts: Facts, families: Mapping[str, Mapping[str, Any]]
) -> tuple[dict[str, Plan], set[str]]:
    """The plans of all variants by key, and the maps that they read."""
    known_families(families)
    given = dict(families)
    if facts.kind == "classes" and not facts.reference:
        # The segmentation scores stand beside everything that has labels: they cost nothing.
        given = {"segmentation": {}, **given}
    plans: dict[str, Plan] = {}
    wanted: set[str] = set()
    for family in known_families(given):
        if facts.kind not in family.kinds:
            raise UsageError(
                f"{facts.where} holds {facts.kind} data; {family.name} evaluates "
                f"{family.kinds[0]} only."
            )
        for key, settings in family.settings(given[family.name], facts).items():
            wanted |= family.maps(settings, facts)
            plans |= family.plans(key, settings, facts)
    return plans, wanted


def _collect(sections: Mapping[str, Section], names: Sequence[str]) -> dict[str, Any]:
    """What sections say, as the keys of a report that hold it."""
    results: dict[str, Any] = {}
    items: list[dict[str, Any]] = [{"name": name} for name in names]
    numerics: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    warnings: list[str] = []
    for key, section in sections.items():
        whole, _, part = key.partition("/")
        warnings += [f"{whole}: {text}" for text in section.warnings]
        if part:
            results[whole][part] = section.results
            continue
        results[key] = section.results
        for item, record in zip(items, section.items, strict=True):
            item[key] = record
        if section.settings:
            settings[key] = section.settings
        if section.numerics:
            numerics[key] = section.numerics
    void = [i["name"] for i in items if i.get("segmentation", {}).get("pixels") == 0]
    if void:
        shown = ", ".join(void[:5]) + (" …" if len(void) > 5 else "")
        warnings.append(f"{len(void)} of {len(items)} items have void labels only: {shown}.")
    return {
        "results": results,
        "items": items,
        "settings": settings,
        "numerics": numerics,
        "warnings": warnings,
    }


def report_of(
    inputs: Inputs,
    record: Mapping[str, Any],
    lockstep: Lockstep,
    seconds: float,
    states: str | None = None,
) -> Report:
    """A report of `record` (results, items, settings, …), with what the run itself has to say."""
    import uqeval
    from uqeval.metrics import FAMILIES

    warnings = [*inputs.warnings, *record.get("warnings", [])]
    if inputs.partial:
        warnings.append(
            f"partial: {inputs.record['evaluated']} of {inputs.record['items']} items (--limit)."
        )
    families = dict.fromkeys(key.split("[")[0] for key in record["settings"])
    known = [FAMILIES[name] for name in families if name in FAMILIES]
    return Report(
        **{
            "metrics": {m.id: m.record() for family in known for m in family.metrics},
            **record,
            "uqeval_version": uqeval.__version__,
            "inputs": inputs.record | {"options": inputs.options},
            "states": states,
            "partial": inputs.partial,
            "warnings": warnings,
            "timing": {
                "seconds": seconds,
                "bytes_read": lockstep.bytes_read,
                "passes": lockstep.passes,
                "workers": lockstep.workers,
            },
        }
    )
