"""The use cases: stores and metrics to a report; stacks to a maps store."""

from __future__ import annotations

import dataclasses
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from uqeval.errors import UqevalError, UsageError
from uqeval.inputs import Given, InputOptions, Inputs, beside_reference, open_inputs
from uqeval.report.schema import Report
from uqeval.saving import states_index, states_of_run
from uqeval.sizes import parse_memory

if TYPE_CHECKING:
    from uqeval.lockstep import Lockstep
    from uqeval.metrics import Family
    from uqeval.metrics._family import Facts
    from uqeval.metrics._plan import Plan, Section
    from uqeval.statistics.cut import CutOptions


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
    resume: bool = False
    cut: CutOptions | None = None

    def threads(self) -> int:
        """How many threads are asked for. Raises `UsageError` for less than one."""
        if self.workers is None:
            return usable_cpus()
        if type(self.workers) is not int or self.workers < 1:
            raise UsageError(
                f"--workers {self.workers!r}; expected a whole number of threads, at least 1."
            )
        return self.workers


def usable_cpus() -> int:
    """CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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
    **inputs: Any,
) -> Report:
    """Evaluate saved predictions; the report is the one that the commands write.

    `predictions`: a store (Zarr group, `.npy`, `.npz`, or an array in memory [N, T, C, H, W]), or
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
    given = input_options(inputs)
    if _wants_tracks(families):
        given = dataclasses.replace(given, whole_sequences=True)
    opened = open_inputs(predictions, labels, given)
    if reference is not None:
        opened = beside_reference(opened, reference, given)
    if metrics == "all":
        families, told = everything(opened)
        opened = dataclasses.replace(opened, warnings=[*opened.warnings, *told])
    read_off = cut_options(
        ci=ci, draws=draws, seed=seed, slices=slices, slice_by=tuple(slice_by), group_by=group_by
    )
    options = RunOptions(
        workers, parse_memory(memory), states, progress or Silent(), resume, read_off
    )
    return run(opened, families, options)


def run(inputs: Inputs, families: Mapping[str, Mapping[str, Any]], options: RunOptions) -> Report:
    """Run the plans of all families over opened inputs and assemble the report."""
    from uqeval.lockstep import Lockstep

    began = time.perf_counter()
    if options.cut is not None and options.states is None:
        with tempfile.TemporaryDirectory(prefix="uqeval-") as folder:
            kept = dataclasses.replace(options, states=Path(folder) / "run.states.zip")
            return run(inputs, families, kept).model_copy(update={"states": None})
    if options.cut is not None:
        options.cut.check(inputs.source.names)
    facts = inputs.facts()
    plans, wanted = _plans(facts, families)
    inputs.source.want(sorted(wanted))
    with ExitStack() as stack:
        states = None
        if options.states is not None:
            states = stack.enter_context(
                states_of_run(inputs, families, options.states, options.resume)
            )
        lockstep = Lockstep(inputs, options, states)
        stack.enter_context(inputs.session())
        sections = lockstep.run(plans)
        record = collect(sections, inputs.source.names)
        path = str(options.states) if options.states else None
        report = report_of(inputs, record, lockstep, time.perf_counter() - began, path)
        if states is not None:
            fitted = {key: section.fitted for key, section in sections.items()}
            index = states_index(report, facts, fitted, inputs.fingerprint)
            states.finish(index | {"warnings": list(inputs.warnings)})
    if options.cut is not None and options.states is not None:
        return _cut(report, options.states, options.cut)
    return report


def _fitted_alone(settings: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The variants whose threshold, or whose curve's ends, are no given numbers."""
    from uqeval.metrics.thresholds import Rule

    return [
        key
        for key, own in settings.items()
        if "threshold" in own and own.get("threshold_scope") != "item"
        and (Rule.parse(own["threshold"]).kind != "value" or own.get("curve_range", "") is None)
    ]  # fmt: skip


def _wants_tracks(families: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a metric follows tracks through whole sequences."""
    tracks = families.get("tc", {}).get("tracks", False)
    return any(tracks) if isinstance(tracks, list | tuple) else bool(tracks)


def cut_options(**given: Any) -> CutOptions | None:
    """What is to be read off the states, if anything. Raises `UsageError`."""
    if given["ci"] is None and not (given["slices"] or given["slice_by"] or given["group_by"]):
        return None  # NumPy and the rest of `statistics` are not needed
    from uqeval.statistics.cut import CutOptions

    return CutOptions(**given)


def _cut(report: Report, states: str | Path, options: CutOptions) -> Report:
    """The report with what is read off the states that it has left."""
    from uqeval.statistics.cut import cut
    from uqeval.statistics.scoring import Scoring
    from uqeval.stores.states import SavedStates

    return cut(report, Scoring(SavedStates(states)), options)


def input_options(given: Mapping[str, Any]) -> InputOptions:
    """Options of inputs by name. Raises `UsageError` for a name that is none."""
    known = InputOptions.__dataclass_fields__
    strange = [name for name in given if name not in known]
    if strange:
        raise UsageError(f"unknown options {strange}; expected some of {', '.join(known)}.")
    return InputOptions(**given)


def families_of(
    metrics: str | Sequence[str] | Mapping[str, Mapping[str, Any] | None],
) -> dict[str, Mapping[str, Any]]:
    """Families and their options, however they were given."""
    if isinstance(metrics, Mapping):
        return {name: options or {} for name, options in metrics.items()}
    return {name: {} for name in ([metrics] if isinstance(metrics, str) else metrics)}


def everything(inputs: Inputs) -> tuple[dict[str, Mapping[str, Any]], list[str]]:
    """All families that apply to opened inputs, and warnings of those that lack something.

    Raises `UqevalError` where all of them do.
    """
    from uqeval.metrics import FAMILIES

    facts = inputs.facts()
    found: dict[str, Mapping[str, Any]] = {}
    lost: dict[str, list[str]] = {}
    for family in FAMILIES.values():
        if facts.kind not in family.kinds or (family.name == "divergence" and not facts.reference):
            continue
        try:
            check_family(inputs, family.name, {})
        except UqevalError as error:
            lost.setdefault(str(error), []).append(family.name)
        else:
            found[family.name] = {}
    if not found:
        raise UsageError(next(iter(lost)))
    return found, [f"{', '.join(names)} left out: {text}" for text, names in lost.items()]


def check_family(inputs: Inputs, name: str, options: Mapping[str, Any]) -> None:
    """Raise `UqevalError` where opened inputs are of another kind, or lack what a family reads."""
    facts = inputs.facts()
    (family,) = known_families({name: options}, facts)
    for settings in family.settings(options, facts).values():
        inputs.source.want(sorted(family.maps(settings, facts)))


def known_families(families: Mapping[str, Any], facts: Facts) -> list[Family]:
    """The families of these names.

    Raises `UsageError` for a name that is none, for none, and for other data than these.
    """
    from uqeval.metrics import FAMILIES

    unknown = [name for name in families if name not in FAMILIES]
    if unknown or not families:
        raise UsageError(
            f"metrics {', '.join(unknown) or 'none'}; expected some of {', '.join(FAMILIES)}."
        )
    known = [FAMILIES[name] for name in families]
    for family in known:
        if facts.kind not in family.kinds:
            raise UsageError(
                f"{facts.where} holds {facts.kind} data; {family.name} evaluates "
                f"{family.kinds[0]} only."
            )
    return known


def _plans(
    facts: Facts, families: Mapping[str, Mapping[str, Any]]
) -> tuple[dict[str, Plan], set[str]]:
    """The plans of all variants by key, and the maps that they read."""
    known_families(families, facts)
    given = dict(families)
    if facts.kind == "classes" and not facts.reference:
        # The segmentation scores stand beside everything that has labels: they cost nothing.
        given = {"segmentation": {}, **given}
    plans: dict[str, Plan] = {}
    wanted: set[str] = set()
    for family in known_families(given, facts):
        for key, settings in family.settings(given[family.name], facts).items():
            wanted |= family.maps(settings, facts)
            plans |= family.plans(key, settings, facts)
    return plans, wanted


def collect(sections: Mapping[str, Section], names: Sequence[str]) -> dict[str, Any]:
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
        part = inputs.record.get("part")
        how = (
            f"part {part['number']} of {part['of']}; `uqeval merge` joins the parts"
            if part else "--limit"
        )  # fmt: skip
        warnings.append(
            f"partial: {inputs.record['evaluated']} of {inputs.record['items']} items ({how})."
        )
        if part and (own := _fitted_alone(record["settings"])):
            warnings.append(
                f"{', '.join(own)}: fitted on this part alone, which cannot be merged; give all "
                "parts --threshold NUMBER, and for PAvPU --curve-range LOW:HIGH."
            )
    families = dict.fromkeys(key.split("[")[0] for key in record["settings"])
    by_key = {family.key or family.name: family for family in FAMILIES.values()}
    known = [by_key[name] for name in families if name in by_key]
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
                "items_reused": lockstep.items_reused,
                "workers": lockstep.workers,
                **inputs.timing(),
            },
        }
    )
