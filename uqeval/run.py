"""The use cases: stores and metrics to a report; stacks to a maps store."""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from uqeval.errors import DataError, UsageError
from uqeval.inputs import Given, InputOptions, Inputs, open_inputs
from uqeval.report.schema import Report

if TYPE_CHECKING:
    from uqeval.engine.scratch import Scratch
    from uqeval.metrics._plan import Counted, Plan, Section
    from uqeval.metrics.pavpu import PavpuSettings
    from uqeval.stores.states import StatesWriter
    from uqeval.tallies import Tally

#: Families of metrics that `evaluate` knows.
FAMILIES = ("segmentation", "pavpu")


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
    **inputs: Any,
) -> Report:
    """Evaluate saved predictions; the report is the one that the commands write.

    `predictions`: a store (Zarr group, `.npy`, `.npz`, or an array in memory [N, T, C, H, W]), or
    several, the members of one ensemble; `labels`: a store or a folder of label PNGs, where the
    predictions' store holds none. `metrics`: families ("segmentation", "pavpu"), or families with
    their options, each one value or a list (variants): `{"pavpu": {"window": [4, 8]}}`. `workers`:
    threads (default: usable CPUs); `memory`: bytes of tiles and maps; `states`: file for the
    per-item tallies; further options are those of `InputOptions` (`names`, `ignore_index`, …).

    Raises `UqevalError` (`UsageError`, `StoreError`, `DataError`), which says what is wrong.
    """
    families = dict(metrics) if isinstance(metrics, Mapping) else {name: {} for name in metrics}
    unknown = [name for name in families if name not in FAMILIES]
    if unknown or not families:
        raise UsageError(f"metrics {unknown or 'none'}; expected some of {', '.join(FAMILIES)}.")
    known = InputOptions.__dataclass_fields__
    strange = [name for name in inputs if name not in known]
    if strange:
        raise UsageError(f"unknown options {strange}; expected some of {', '.join(known)}.")
    opened = open_inputs(predictions, labels, InputOptions(**inputs))
    options = RunOptions(workers, memory, states, progress or Silent())
    return run(opened, families, options)


def run(inputs: Inputs, families: Mapping[str, Mapping[str, Any]], options: RunOptions) -> Report:
    """Run the plans of all families over opened inputs and assemble the report."""
    import uqeval
    from uqeval.metrics import METRICS, segmentation

    began = time.perf_counter()
    source, classes, names = inputs.source, inputs.source.classes, inputs.class_names
    plans: dict[str, Plan] = {"segmentation": segmentation.plan(classes, names)}
    settings = _patch_settings(families, inputs)
    for key, chosen in settings.items():
        plans |= _patch_plans(key, chosen, classes, names)
    wanted = {"label", "prediction"}
    for chosen in settings.values():
        wanted |= set(chosen.patches(classes).inputs)
    source.want(sorted(wanted))
    reader = _Reader(inputs, options)
    sections = reader.run(plans)

    results: dict[str, Any] = {}
    items: list[dict[str, Any]] = [{"name": name} for name in source.names]
    numerics: dict[str, Any] = {}
    warnings = list(inputs.warnings)
    said: dict[str, Any] = {"segmentation": {"definition": "paper"}}
    for key, section in sections.items():
        family, _, part = key.partition("/")
        if part:
            results[family][part] = section.results
            continue
        results[key] = section.results
        for item, record in zip(items, section.items, strict=True):
            item[key] = record
        if section.settings:
            said[key] = section.settings
        if section.numerics:
            numerics[key] = section.numerics
        warnings += [f"{key}: {text}" for text in section.warnings]
    void = [i["name"] for i in items if i["segmentation"]["pixels"] == 0]
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
            m.id: m.record() for m in METRICS if m.family in {k.split("[")[0] for k in results}
        },
        partial=inputs.partial,
        warnings=warnings,
        timing={
            "seconds": seconds,
            "bytes_read": reader.bytes_read,
            "passes": reader.passes,
            "workers": reader.workers,
        },
    )


def _patch_settings(
    families: Mapping[str, Mapping[str, Any]], inputs: Inputs
) -> dict[str, PavpuSettings]:
    if "pavpu" not in families:
        return {}
    from uqeval.maps.names import NO_UNCERTAINTY, UNCERTAINTIES
    from uqeval.metrics.pavpu import PavpuSettings, threshold_in, variants

    known = PavpuSettings.__dataclass_fields__
    strange = [name for name in families["pavpu"] if name not in known]
    if strange:
        raise UsageError(f"unknown pavpu options {strange}; expected some of {', '.join(known)}.")
    options = dict(families["pavpu"])
    path = options.get("threshold_from")
    if path is not None and "threshold" in options:
        raise UsageError("--threshold and --threshold-from exclude each other; give one of them.")
    found = variants(**options)
    if path is not None:
        fitted = Report.load(path).model_dump()
        found = {
            key: dataclasses.replace(
                chosen, threshold=repr(threshold_in(fitted, chosen, str(path)))
            )
            for key, chosen in found.items()
        }
    source = inputs.source
    for chosen in found.values():
        if chosen.uncertainty in NO_UNCERTAINTY:
            raise UsageError(
                f"--uncertainty {chosen.uncertainty} is no uncertainty of {source.where}; expected "
                f"{', '.join(UNCERTAINTIES)}, or the name of a map in the store."
            )
        if chosen.top_k >= source.classes:
            raise UsageError(
                f"--top-k {chosen.top_k} of {source.classes} classes: every pixel would be right."
            )
        for item in range(source.items):
            height, width = source.size(item)
            if chosen.border == "drop" and chosen.window > min(height, width):
                raise UsageError(
                    f"--window {chosen.window} is larger than item {source.names[item]} of "
                    f"{source.where}, which is {height}×{width} (height×width); give a smaller "
                    "window, or --border partial."
                )
    return found


def _patch_plans(
    key: str, settings: PavpuSettings, classes: int, names: Sequence[str]
) -> dict[str, Plan]:
    from uqeval.metrics import accuracy_by_uncertainty, pavpu

    uncertainty = settings.patches(classes).uncertainty
    return {
        key: pavpu.plan(settings, classes, names),
        f"{key}/accuracy_by_uncertainty": accuracy_by_uncertainty.plan(uncertainty, classes, names),
    }


class _Reader:
    """Advances all plans together: one pass over the items for all that they ask for next."""

    def __init__(self, inputs: Inputs, options: RunOptions) -> None:
        self.inputs = inputs
        self.options = options
        self.bytes_read = 0
        self.passes = 0
        self.workers = 0
        self._lock = threading.Lock()
        self._counted: dict[Tally, int] = {}

    def run(self, plans: Mapping[str, Plan]) -> dict[str, Section]:
        from uqeval.engine.scratch import Scratch

        finished: dict[str, Section] = {}
        asked = {key: next(plan) for key, plan in plans.items()}
        with ExitStack() as stack:
            scratch = stack.enter_context(Scratch(self.options.memory // 4))
            states = self._states(stack)
            while asked:
                tallies = list(dict.fromkeys(t for wanted in asked.values() for t in wanted))
                counted = self._pass(tallies, scratch, states)
                self._refuse_void(counted)
                for key in list(asked):
                    mine = {tally: counted[tally] for tally in asked[key]}
                    try:
                        asked[key] = plans[key].send(mine)
                    except StopIteration as stop:
                        finished[key] = stop.value
                        del asked[key]
            if states is not None:
                states.finish(self.inputs.source.names, self.inputs.fingerprint)
        return {key: finished[key] for key in plans}

    def _refuse_void(self, counted: Mapping[Tally, Counted]) -> None:
        for tally, found in counted.items():
            if tally.id == "class_counts" and not found.total["labelled"].any():
                labels = self.inputs.record["labels"]["path"]
                raise DataError(
                    f"{labels}: nothing is left to evaluate: all labels of the "
                    f"{self.inputs.source.items} items are ignore_index {self.inputs.ignore_index} "
                    "(void). Check --ignore-index and how the labels were written."
                )

    def _states(self, stack: ExitStack) -> StatesWriter | None:
        if self.options.states is None:
            return None
        from uqeval.stores.states import StatesWriter

        return stack.enter_context(StatesWriter(self.options.states))

    def _pass(
        self, tallies: Sequence[Tally], scratch: Scratch, states: StatesWriter | None
    ) -> dict[Tally, Counted]:
        """Count some tallies over all items."""
        from uqeval.engine.passes import Resources, run_pass, workers_within
        from uqeval.metrics._plan import Counted

        source, progress = self.inputs.source, self.options.progress
        workers = workers_within(source, Resources(self.options.threads(), self.options.memory))
        self.workers = max(self.workers, workers)
        before = len(self._counted)
        self._counted.update({t: before + i for i, t in enumerate(tallies)})
        items: dict[Tally, list[bytes]] = {tally: [] for tally in tallies}

        def keep(item: int, tally: Tally, data: bytes) -> None:
            # Rank counts are large and only their total is asked for; all else is a few kB an item.
            if tally.id != "ranks":
                items[tally].append(data)
            if states is not None:
                states.add(self._counted[tally], tally.parameters(), item, data)

        def advance(nbytes: int, done: int) -> None:
            with self._lock:
                self.bytes_read += nbytes
            progress.advance(nbytes, done)

        self.passes += 1
        progress.begin(f"pass {self.passes}", source.items)
        try:
            totals = run_pass(source, scratch, tallies, workers, advance, keep)
        finally:
            progress.end()
        return {tally: Counted(totals[tally], items[tally]) for tally in tallies}
