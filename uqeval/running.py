"""The use case `run`: everything that a file asks for, each store read once, one verdict.

All stores are opened and checked before any is read. A store that fails is told of and leaves the
others alone. `uqeval sweep`, where a file asks for it, draws its subsets from a read of its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.config import FILE, Config, Store, load_config, load_rules
from uqeval.errors import OutputError, UqevalError, UsageError
from uqeval.foretold import (
    check_metrics,
    check_rules,
    metric_keys,
    refuse_same_folder,
    table_of,
)
from uqeval.inputs import Inputs, beside_reference, open_inputs
from uqeval.report.files import check_writable, write
from uqeval.report.schema import Report
from uqeval.run import (
    Progress,
    RunOptions,
    Silent,
    check_family,
    cut_options,
    everything,
    input_options,
    run,
)
from uqeval.sizes import parse_memory

if TYPE_CHECKING:
    from uqeval.gate import Judgement
    from uqeval.report.folder import Named
    from uqeval.statistics.cut import CutOptions

#: Where reports go if nobody says.
FOLDER = "uqeval-report"
#: What a run leaves of each store; and of all of them: the page, and the gate's verdicts.
_ENDINGS = ("json", "states.zip", "csv", "html")
PAGE, VERDICTS = "index.html", "verdicts.json"
#: Pictures of the gallery are shown unasked where they take no more than so many bytes to read.
_CHEAP, _EXHIBITS = 256 * 10**6, 3


@dataclass
class Outcome:
    """What a run has left: `reports` by store, `failed` stores and why, the gate's `judgement`.

    `ungated` says why the gate could not judge, if it could not; `files` is all that was written.
    """

    folder: Path
    reports: dict[str, Report] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    judgement: Judgement | None = None
    ungated: str | None = None
    files: list[Path] = field(default_factory=list)

    @property
    def status(self) -> int:
        """The exit status: 0 done; 1 the gate failed; 2 something could not be done."""
        if self.failed or self.ungated:
            return 2
        return int(self.judgement is not None and not self.judgement.passed)


class Listener:
    """Is told of stores as they come; this one tells nobody."""

    def done(self, name: str, report: Report) -> None:
        """A store has been evaluated, its files written."""

    def failed(self, name: str, why: str) -> None:
        """A store could not be evaluated."""


@dataclass(frozen=True)
class RunSettings:
    """How a run differs from what its file says; None is as the file says.

    `stores`: only these; `gallery`: pictures of so many of the worst items of each store (None:
    3, where that is cheap); `slice_by`: columns, several of one cut joined by commas.
    """

    stores: Sequence[str] = ()
    output: str | Path | None = None
    gate: bool = True
    baseline: str | Path | None = None
    gallery: int | None = None
    limit: int | None = None
    ci: float | None = None
    draws: int = 2000
    seed: int = 0
    slices: str | Path | None = None
    slice_by: Sequence[str] = ()
    group_by: str | None = None
    workers: int | None = None
    memory: int | str | None = None
    resume: bool = False
    progress: Progress = field(default_factory=Silent)
    listener: Listener = field(default_factory=Listener)


@dataclass(frozen=True)
class _Task:
    """One store, opened and checked, and what is asked of it."""

    name: str
    store: Store
    inputs: Inputs
    families: dict[str, Mapping[str, Any]]
    sweep: dict[str, Any] | None
    cut: CutOptions | None = None

    def keys(self) -> set[str]:
        """What its report will hold."""
        return metric_keys(self.inputs, self.families) | (
            {"sweep"} if self.sweep is not None else set()
        )


def run_config(path: str | Path = FILE, **settings: Any) -> Outcome:
    """Evaluate everything that a `uqeval.yaml` asks for, as `uqeval run` does.

    `settings` are those of `RunSettings`: `stores`, `output`, `gate`, `baseline`, `workers`, … A
    store that cannot be evaluated is in the outcome's `failed`; raises `UqevalError` for what
    concerns all of them.
    """
    return run_stores(load_config(path), RunSettings(**settings), path)


def run_stores(config: Config, chosen: RunSettings, file: str | Path | None = None) -> Outcome:
    """The same for a configuration that was read from `file`, or from none."""
    from uqeval.report.folder import load_reports

    names = _names(config, chosen, file)
    cut = _cut(config, chosen)
    memory = next((m for m in (chosen.memory, config.memory) if m is not None), RunOptions.memory)
    options = RunOptions(
        config.workers if chosen.workers is None else chosen.workers, parse_memory(memory),
        progress=chosen.progress, resume=chosen.resume,
    )  # fmt: skip
    options.threads()
    rules = load_rules(file) if file is not None and chosen.gate and config.gate else []
    if chosen.baseline is not None and not rules:
        raise UsageError("--baseline is for the rules under gate: of a file; there are none.")
    outcome = Outcome(Path(chosen.output or config.output or FOLDER))
    if chosen.baseline is not None:
        refuse_same_folder(chosen.baseline, outcome.folder)
    before = load_reports(chosen.baseline) if chosen.baseline is not None else []
    sliced = cut is not None and cut.slices is not None
    check_rules(rules, list(config.stores), names, before, sliced=sliced)
    _make_folder(outcome.folder, names, [config.stores[name] for name in names], _files(cut, file))

    (outcome.folder / VERDICTS).unlink(missing_ok=True)  # of reports that are replaced now
    tasks = []
    for name in names:
        with _Failures(name, outcome, chosen):
            tasks.append(_opened(config, name, chosen))
    if not outcome.failed:  # else the gate does not judge
        check_metrics(rules, {task.name: task.keys() for task in tasks})
    tasks = _with_cuts(tasks, cut, outcome, chosen, len(config.stores))
    while tasks:
        task = tasks.pop(0)  # what it holds goes with it
        with _Failures(task.name, outcome, chosen):
            report = _evaluated(task, outcome.folder, options, chosen)
            outcome.reports[task.name] = report
            outcome.files += _left(task, report, outcome.folder, chosen)
            chosen.listener.done(task.name, report)
    for name in outcome.failed:
        _put_aside(outcome.folder / f"{name}.json")
    if rules and outcome.reports:
        _judge(outcome, rules, before, file, chosen)
    if outcome.reports:
        _overview(outcome)
    return outcome


def _put_aside(report: Path) -> None:
    """Keep an older report of a store that has failed where no gate takes it for today's."""
    if report.exists():
        report.replace(report.with_name(f"{report.name}.old"))


def _names(config: Config, chosen: RunSettings, file: str | Path | None) -> list[str]:
    """The stores to evaluate."""
    if not config.stores:
        raise UsageError(f"{file}: names no stores; give one under stores:.")
    strange = [name for name in chosen.stores if name not in config.stores]
    if strange:
        raise UsageError(
            f"--store {strange[0]}: is no store of {file}; it has {', '.join(config.stores)}."
        )
    names = [name for name in config.stores if not chosen.stores or name in chosen.stores]
    taken = {Path(PAGE).stem, Path(VERDICTS).stem}
    for name in names:
        if name.casefold() in taken:
            raise UsageError(
                f"{config.at('stores', name)}its report would be written over another file of the "
                "run; call the store something else."
            )
        taken.add(name.casefold())
    return names


def _cut(config: Config, chosen: RunSettings) -> CutOptions | None:
    table, by = chosen.slices, list(chosen.slice_by)
    if table is None and config.slices is not None:
        table = config.slices.table
        by = by or [one if isinstance(one, str) else ",".join(one) for one in config.slices.by]
    return cut_options(
        ci=config.ci if chosen.ci is None else chosen.ci, draws=chosen.draws, seed=chosen.seed,
        slices=table, slice_by=tuple(by), group_by=chosen.group_by or config.group_by,
    )  # fmt: skip


def _files(cut: CutOptions | None, file: str | Path | None) -> list[str]:
    """What is read beside the stores."""
    return [str(path) for path in (file, cut.slices if cut else None) if path is not None]


def _make_folder(
    folder: Path, names: Sequence[str], stores: Sequence[Store], read: list[str]
) -> None:
    """The folder of the reports. Raises `OutputError`, and `UsageError` where it is an input."""
    read = [*read, *(path for store in stores for path in store.paths())]
    targets = [folder, folder / PAGE, folder / VERDICTS]
    targets += [folder / f"{name}.{ending}" for name in names for ending in _ENDINGS]
    for target in filter(Path.exists, targets):
        for source in read:
            if Path(source).exists() and target.samefile(source):
                raise UsageError(f"{target} is an input; give another folder with -o DIR.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made a folder: {error.strerror}.") from error
    check_writable(folder / PAGE)


class _Failures:
    """Holds what goes wrong with one store, and tells of it, so that the others go on."""

    def __init__(self, name: str, outcome: Outcome, chosen: RunSettings) -> None:
        self.name, self.outcome, self.chosen = name, outcome, chosen

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, UqevalError):
            return False
        self.outcome.failed[self.name] = str(error)
        self.outcome.reports.pop(self.name, None)
        self.chosen.listener.failed(self.name, str(error))
        return True


def _opened(config: Config, name: str, chosen: RunSettings) -> _Task:
    """A store with all that is asked of it, checked without reading data."""
    store = config.stores[name]
    asked = config.metrics_of(name)
    families: dict[str, Mapping[str, Any]] = dict(asked or {})
    sweep = families.pop("sweep", None)
    try:
        inputs = _open(store, chosen, families)
        if asked is None:
            families, told = everything(inputs)
            inputs = dataclasses.replace(inputs, warnings=[*inputs.warnings, *told])
        elif not asked:
            raise UsageError("evaluate names no command for it; leave it out for all that applies.")
    except UqevalError as error:
        raise type(error)(f"{config.at('stores', name)}{error}") from None
    for family, options in families.items():
        try:
            check_family(inputs, family, options)
        except UqevalError as error:
            raise type(error)(f"{config.at('evaluate', name, family)}{error}") from None
    if sweep is not None and inputs.source.kind == "video":
        where = config.at("evaluate", name, "sweep")
        raise UsageError(f"{where}{inputs.source.where} holds video data; a sweep has none.")
    if families and inputs.source.kind == "classes" and inputs.record.get("labels"):
        families = {"segmentation": {}, **families}
    return _Task(name, store, inputs, families, None if sweep is None else dict(sweep))


def _with_cuts(
    tasks: list[_Task], cut: CutOptions | None, outcome: Outcome, chosen: RunSettings, stores: int
) -> list[_Task]:
    """The stores with what is read off each; without those that the table holds in part.

    A store that the table is not of goes without slices, unless it is of none of all stores.
    """
    if cut is None or cut.slices is None:
        return [dataclasses.replace(task, cut=cut) for task in tasks]
    from uqeval.statistics.table import names_in

    there = names_in(cut.slices)
    of_none = all(there.isdisjoint(task.inputs.source.names) for task in tasks)
    found = []
    for task in tasks:
        if not task.families:  # a sweep alone, of which nothing is read off
            found.append(task)
            continue
        with _Failures(task.name, outcome, chosen):
            if of_none and len(tasks) == stores:
                cut.check(task.inputs.source.names)
            own, told = table_of(task.inputs, cut, there)
            inputs = dataclasses.replace(task.inputs, warnings=[*task.inputs.warnings, *told])
            found.append(dataclasses.replace(task, inputs=inputs, cut=own))
    return found


def _open(store: Store, chosen: RunSettings, families: Mapping[str, Mapping[str, Any]]) -> Inputs:
    given = input_options(_options(store, chosen))
    tracks = families.get("tc", {}).get("tracks", False)
    if any(tracks) if isinstance(tracks, list) else tracks:
        given = dataclasses.replace(given, whole_sequences=True)
    inputs = open_inputs(store.predictions, store.truth, given)
    if store.reference is not None:
        inputs = beside_reference(inputs, store.reference, given)
    return inputs


def _options(store: Store, chosen: RunSettings) -> dict[str, Any]:
    limit = {} if chosen.limit is None else {"limit": chosen.limit}
    return store.options() | limit


def _evaluated(task: _Task, folder: Path, options: RunOptions, chosen: RunSettings) -> Report:
    """The report of one store: one read for all metrics, another for a sweep."""
    states = folder / f"{task.name}.states.zip"
    own = dataclasses.replace(
        options, states=states, cut=task.cut, progress=_Prefixed(task.name, options.progress)
    )
    report = run(task.inputs, task.families, own) if task.families else None
    if task.sweep is None:
        assert report is not None
        return report
    swept = _swept(task, own, chosen)
    return swept if report is None else _joined(report, swept)


def _swept(task: _Task, options: RunOptions, chosen: RunSettings) -> Report:
    from uqeval.sweeping import sweep

    asked = dict(task.sweep or {})
    store, metrics = task.store, asked.pop("metric", None)
    settings = {
        family: {name: asked.pop(name)}
        for family, name in (("sparsification", "error"), ("divergence", "clip")) if name in asked
    }  # fmt: skip
    numbers: dict[str, Any] = {
        name: _numbers(asked.pop(name)) for name in ("samples", "repeats") if name in asked
    }
    assert store.predictions is not None
    chosen_too: dict[str, Any] = {"reference": store.reference, **numbers, **asked}
    return sweep(
        store.predictions, store.truth, metrics, settings=settings, **chosen_too,
        workers=options.workers, memory=options.memory, progress=options.progress,
        **_options(store, chosen),
    )  # fmt: skip


def _numbers(given: Any) -> list[int]:
    """1, [1, 2] or "1,2" as numbers. Raises `UsageError`."""
    parts = given if isinstance(given, list) else str(given).split(",")
    try:
        return [int(part) for part in parts]
    except ValueError:
        raise UsageError(f"sweep: {given!r}; expected whole numbers.") from None


def _joined(report: Report, swept: Report) -> Report:
    """One report of both: the sweep under its own keys."""
    families = {key: own for key, own in swept.settings.items() if key != "sweep"}
    timing = {key: report.timing[key] + swept.timing[key] for key in ("seconds", "bytes_read")}
    return report.model_copy(
        update={
            "results": report.results | swept.results,
            "settings": report.settings
            | {"sweep": swept.settings["sweep"] | {"families": families}},
            "metrics": swept.metrics | report.metrics,
            "warnings": report.warnings
            + [f"sweep: {text}" for text in swept.warnings if text not in report.warnings],
            "timing": report.timing | timing | {"sweep_bytes_read": swept.timing["bytes_read"]},
        }
    )


def _left(task: _Task, report: Report, folder: Path, chosen: RunSettings) -> list[Path]:
    """Write a store's files; those that there are."""
    from uqeval.report.csv import to_csv
    from uqeval.report.html import to_html
    from uqeval.statistics.behind import behind

    exhibits = _exhibits(task, report, chosen)
    gallery = None
    if exhibits:
        from uqeval.gallery import open_gallery

        given = input_options(_options(task.store, chosen))
        gallery = open_gallery(report, task.store.predictions, task.store.truth, None, given)
    written = [Path(report.states)] if report.states is not None else []
    json, csv, page = (folder / f"{task.name}.{ending}" for ending in ("json", "csv", "html"))
    write(json, report.to_json())
    write(csv, to_csv(report))
    piles = behind(json, report) if report.states is not None else None
    write(page, to_html({task.name: report}, gallery, exhibits, piles))
    return [*written, json, csv, page]


def _exhibits(task: _Task, report: Report, chosen: RunSettings) -> int:
    """How many of the worst items the gallery shows: none without scores or truth."""
    kind = task.inputs.source.kind
    truth = {"classes": "labels", "regression": "target"}.get(kind)
    if not task.families or (truth and not task.inputs.record.get(truth)):
        return 0
    if chosen.gallery is not None:
        return chosen.gallery
    of_an_item = report.timing["bytes_read"] / len(report.items)
    return _EXHIBITS if of_an_item * (_EXHIBITS + 1) <= _CHEAP else 0


def _judge(
    outcome: Outcome, rules: Any, before: list[Named], file: Any, chosen: RunSettings
) -> None:
    """The gate's verdicts, where every store has its report."""
    from uqeval.gate import judge
    from uqeval.report import verdicts
    from uqeval.report.folder import Named
    from uqeval.statistics import resampler

    if outcome.failed:
        outcome.ungated = f"the gate did not judge: {', '.join(outcome.failed)} could not be read."
        return
    folder = outcome.folder
    reports = [Named(name, folder / f"{name}.json", r) for name, r in outcome.reports.items()]
    try:
        outcome.judgement = judge(reports, rules, before, resampler())
    except UqevalError as error:
        outcome.ungated = str(error)
        return
    read = {"report": str(folder), "baseline": chosen.baseline and str(chosen.baseline)}
    write(folder / VERDICTS, verdicts.to_json(outcome.judgement, read | {"rules": str(file)}))
    outcome.files.append(folder / VERDICTS)


def _overview(outcome: Outcome) -> None:
    from uqeval.report.overview import to_overview

    page = outcome.folder / PAGE
    text = to_overview(outcome.reports, outcome.failed, outcome.judgement, outcome.ungated)
    write(page, text)
    outcome.files.append(page)


@dataclass
class _Prefixed:
    """Progress that says which store it is of."""

    name: str
    inner: Progress

    def begin(self, what: str, items: int) -> None:
        self.inner.begin(f"{self.name}: {what}", items)

    def advance(self, nbytes: int, items: int) -> None:
        self.inner.advance(nbytes, items)

    def end(self) -> None:
        self.inner.end()


def alone(predictions: Sequence[str], truth: str | None, **given: Any) -> Config:
    """A configuration of one store, given by its paths, with all that applies to it."""
    store = {name: value for name, value in given.items() if value is not None}
    if predictions:
        store["predictions"] = list(predictions) if len(predictions) > 1 else predictions[0]
    if truth is not None:
        store["labels"] = truth
    first = str(predictions[0] if predictions else given["video"])
    return Config.model_validate({"stores": {_name_of(first): Store(**store)}})


def _name_of(path: str) -> str:
    """The name of a store from its path: of `data/preds.zarr`, `preds`."""
    last = Path(path).name if "://" in path else Path(path).resolve().name
    kept = "".join(c for c in last.removesuffix(".zip") if c.isprintable() and c not in "/\\")
    stem = Path(kept).stem if kept else ""
    return f"{stem}-store" if stem.casefold() in ("index", "verdicts") else stem or "predictions"
