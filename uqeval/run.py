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
    from uqeval.metrics._plan import Plan


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
    metrics: Sequence[str] | Mapping[str, Mapping[str, Any]] = ("pavpu",),
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
    families = dict(metrics) if isinstance(metrics, Mapping) else {name: {} for name in metrics}
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
    import uqeval
    from uqeval.lockstep import Lockstep
    from uqeval.metrics import FAMILIES

    began = time.perf_counter()
    unknown = [name for name in families if name not in FAMILIES]
    if unknown or not families:
        raise UsageError(
            f"metrics {', '.join(unknown) or 'none'}; expected some of {', '.join(FAMILIES)}."
        )
    source = inputs.source
    facts = inputs.facts()
    plans: dict[str, Plan] = {}
    wanted: set[str] = set()
    # The segmentation scores stand beside everything that has labels: they cost nothing.
    given: dict[str, Mapping[str, Any]] = dict(families)
    if facts.kind == "classes" and not facts.reference:
        given = {"segmentation": {}, **given}
    for name, choices in given.items():
        family = FAMILIES[name]
        if facts.kind not in family.kinds:
            raise UsageError(
                f"{facts.where} holds {facts.kind} data; {name} evaluates {family.kinds[0]} only."
            )
        for key, settings in family.settings(choices, facts).items():
            wanted |= family.maps(settings, facts)
            plans |= family.plans(key, settings, facts)
    source.want(sorted(wanted))
    lockstep = Lockstep(inputs, options)
    sections = lockstep.run(plans)

    results: dict[str, Any] = {}
    items: list[dict[str, Any]] = [{"name": name} for name in source.names]
    numerics: dict[str, Any] = {}
    warnings = list(inputs.warnings)
    said: dict[str, Any] = {}
    for key, section in sections.items():
        whole, _, part = key.partition("/")
        if part:
            results[whole][part] = section.results
            warnings += [f"{whole}: {text}" for text in section.warnings]
            continue
        results[key] = section.results
        for item, record in zip(items, section.items, strict=True):
            item[key] = record
        if section.settings:
            said[key] = section.settings
        if section.numerics:
            numerics[key] = section.numerics
        warnings += [f"{key}: {text}" for text in section.warnings]
    void = [i["name"] for i in items if i.get("segmentation", {}).get("pixels") == 0]
    if void:
        shown = ", ".join(void[:5]) + (" …" if len(void) > 5 else "")
        warnings.append(f"{len(void)} of {len(items)} items have void labels only: {shown}.")
    if inputs.partial:
        warnings.append(
            f"partial: {inputs.record['evaluated']} of {inputs.record['items']} items (--limit)."
        )
    seconds = time.perf_counter() - began
    return Report(
        uqeval_version=uqeval.__version__,
        inputs=inputs.record,
        settings=said,
        results=results,
        items=items,
        states=str(options.states) if options.states else None,
        numerics=numerics,
        metrics={
            m.id: m.record()
            for name in dict.fromkeys(key.split("[")[0] for key in results)
            for m in FAMILIES[name].metrics
        },
        partial=inputs.partial,
        warnings=warnings,
        timing={
            "seconds": seconds,
            "bytes_read": lockstep.bytes_read,
            "passes": lockstep.passes,
            "workers": lockstep.workers,
        },
    )
