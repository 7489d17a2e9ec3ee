"""Evaluate all stores of a file, each read once, and judge the rules.

All stores are opened and checked before any is read. A store that fails is reported and does not
stop the others. A sweep reads its store again, for its subsets of samples.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from uqeval.argument_types import checks_types
from uqeval.config import FILE, Config, RulesFile, Store, load_config, load_rules_file
from uqeval.disk.files import resolved
from uqeval.disk.locks import locked
from uqeval.engine.options import MachineOptions, Progress, RunOptions
from uqeval.errors import NegativeSigma, UsageError, all_listed, cut
from uqeval.gate import FailedStore
from uqeval.gate.rules import refuse_unused_day
from uqeval.gate.senseless import refuse_senseless
from uqeval.inputs.options import InputOptions
from uqeval.records.folder import load_reports
from uqeval.records.report import Report
from uqeval.settings import Settings, options_of
from uqeval.spelling import as_keys
from uqeval.statistics.options import CutOptions
from uqeval.stores.contents import Contents
from uqeval.usecases.compiling import compiling_ahead, evaluations_on
from uqeval.usecases.evaluate import run
from uqeval.usecases.plans import without_sigma
from uqeval.usecases.run.folder import (
    PAGE,
    VERDICTS,
    drop_aside,
    drop_overview_aside,
    judge_all,
    leftovers_of,
    make_folder,
    put_aside,
    put_overview_aside,
    show_verdicts,
    write_files,
    write_overview,
)
from uqeval.usecases.run.outcome import Failures, Outcome, RunSettings, keys_of_file
from uqeval.usecases.run.preflight import (
    RunRules,
    is_counted,
    refuse_same_folder,
    refuse_shared_fits,
)
from uqeval.usecases.run.tasks import Task, has_pictures, open_task, with_cuts

#: The default folder of reports.
FOLDER = "uqeval-report"


@checks_types()
def run_config(path: str | Path = FILE, **settings: Any) -> Outcome:
    """Evaluate everything in a `uqeval.yaml`, as `uqeval run` does.

    `settings`: options of `RunSettings` (`stores`, `output`, `gate`, `baseline`, …), `limit`,
    `workers`, `memory`, and those of intervals and slices. The outcome's `failed` lists the stores
    that cannot be evaluated; raises `UqevalError` for a problem of all of them.
    """
    return run_stores(load_config(path), RunSettings.of_keywords(settings), path)


def run_stores(
    config: Config,
    run_settings: RunSettings,
    file: str | Path | None = None,
    opened: Mapping[str, Contents] | None = None,
) -> Outcome:
    """Evaluate a configuration that was read from `file`, or made without one.

    `opened`: paths of the configuration that are open already.
    """
    if run_settings.gate:  # not as a key, which `gate` is, too
        _refuse_gate(config, run_settings, file)
    with as_keys(keys_of_file() if file is not None else ()):
        return _run(config, run_settings, file, opened or {})


def _run(
    config: Config,
    run_settings: RunSettings,
    file: str | Path | None,
    opened: Mapping[str, Contents],
) -> Outcome:
    from uqeval.engine.scheduler import cluster_of

    names = _names(config, run_settings, file)
    refuse_shared_fits(run_settings, names)
    counted = [name for name in names if is_counted(run_settings.fitted_of(name))]
    if names == counted:
        return Outcome(Path(run_settings.output or config.output or FOLDER), counted=counted)
    names = [name for name in names if name not in counted]
    cut_settings = _cut_options(config, run_settings)
    memory = {} if run_settings.memory is None else {"memory": run_settings.memory}
    machine = MachineOptions(**_overridden(config, run_settings, MachineOptions) | memory)
    rules = _rules_of(config, run_settings, file)
    outcome = Outcome(Path(run_settings.output or config.output or FOLDER), counted=counted)
    if run_settings.baseline is not None:
        refuse_same_folder(run_settings.baseline, outcome.folder)
    before = load_reports(run_settings.baseline) if run_settings.baseline is not None else []
    sliced = cut_settings is not None and cut_settings.slices is not None
    gate = RunRules(rules, run_settings.listener.warned)
    gate.check(list(config.stores), names, before, sliced=sliced)
    if rules:
        run_settings.listener.gate_follows()
    make_folder(
        outcome.folder, names, [config.stores[name] for name in names],
        _files(cut_settings, file, *map(run_settings.fitted_of, names)),
    )  # fmt: skip
    with locked(outcome.folder / PAGE):
        put_overview_aside(outcome.folder)  # it is of reports that are replaced now
        tasks = []
        for name in names:
            with Failures(name, outcome, run_settings):
                tasks.append(open_task(config, name, run_settings, opened))
        gate.check_metrics({task.name: task.keys() for task in tasks}, bool(outcome.failed))
        if not outcome.failed:
            _refuse_gallery(tasks, run_settings)
        tasks = with_cuts(config, tasks, cut_settings, outcome, run_settings)
        gate.check_fields({task.name: task.foreseen for task in tasks}, bool(outcome.failed))
        with cluster_of(machine) as cluster:
            for name in names:
                put_aside(outcome.folder, name)
            options = machine.run(
                progress=run_settings.progress, resume=run_settings.resume, cluster=cluster
            )
            threads = options.threads() if cluster is None else 1
            with compiling_ahead(_evaluations(tasks), threads):
                while tasks:
                    task = tasks.pop(0)  # frees its memory afterwards
                    with Failures(task.name, outcome, run_settings):
                        _evaluate(task, outcome, run_settings, options)
        if rules and outcome.reports:
            judge_all(outcome, gate, before, file, run_settings, _failed(config, outcome))
            show_verdicts(outcome, before)
        if outcome.reports and not run_settings.is_shard:
            write_overview(outcome)
            drop_overview_aside(outcome.folder)
            outcome.leftovers = leftovers_of(outcome.folder, config.stores)
    return outcome


def _evaluations(tasks: Sequence[Task]) -> list[str]:
    """Return the evaluations of the run, by the names of `compiling_ahead`."""
    return [name for task in tasks for name in evaluations_on(task.inputs, task.families)]


def _rules_of(
    config: Config, run_settings: RunSettings, file: str | Path | None
) -> RulesFile | None:
    """Return the rules of the file that the run judges; None if it judges none. Raises `UsageError`
    for options without effect, and for limits that no value can break or keep."""
    if not config.gate or file is None:
        why_none = "there are none"
    elif run_settings.gate is False:
        why_none = "--no-gate leaves them out"
    else:
        why_none = "a shard (--part) does not judge them" if run_settings.is_shard else ""
    rules = None if why_none or file is None else load_rules_file(file)
    if rules is not None:
        refuse_senseless(rules.rules)
    unused = {"--baseline": run_settings.baseline, "--today": run_settings.day}
    for option, value in unused.items():
        if value is not None and why_none:
            raise UsageError(
                f"{option} is for the rules under gate: of a file; {why_none}. Leave it out."
            )
    if run_settings.day is not None and rules is not None:
        refuse_unused_day(run_settings.day, rules.rules, file)
    return rules


def _refuse_gate(config: Config, run_settings: RunSettings, file: str | Path | None) -> None:
    """Raise `UsageError` for a gate that is requested, and has no rules to judge."""
    if file is None:
        raise UsageError("--gate is for the rules under gate: of a file. Give a file with rules.")
    if run_settings.is_shard:
        raise UsageError(
            "--gate has no effect on a shard (--part): rules are for all items. Judge the merged "
            f"report: uqeval gate REPORT {quote(str(file))}"
        )
    if not config.gate:
        raise UsageError(
            f"--gate: {cut(file)} has no rules under gate:. Add rules, or leave --gate out."
        )


def _refuse_gallery(tasks: Sequence[Task], run_settings: RunSettings) -> None:
    """Raise `UsageError` for a gallery that no page of the run would show."""
    shows_pictures = any(has_pictures(task.inputs, task.families) for task in tasks)
    if run_settings.gallery and not shows_pictures:
        raise UsageError(
            f"--gallery {run_settings.gallery} has no effect: pictures need labels or a target, "
            "and scores of images. Leave it out."
        )


def _failed(config: Config, outcome: Outcome) -> dict[str, FailedStore]:
    """Return each failed store with its reason and metrics; only the sweep if it has a report."""
    from uqeval.metrics import COMPANIONS

    failures = {}
    for name, reason in outcome.failed.items():
        requested = config.metrics_of(name)
        metrics = None if requested is None else frozenset({*COMPANIONS, *requested})
        failures[name] = FailedStore(
            reason, frozenset({"sweep"}) if name in outcome.reports else metrics
        )
    return failures


def _evaluate(task: Task, outcome: Outcome, run_settings: RunSettings, options: RunOptions) -> None:
    """Evaluate the families of a store, then its sweep, and write its files."""
    report = of_families(task, outcome.folder, options)
    try:
        complete_report = with_sweep(task, report, options)
    except BaseException as error:  # an interrupt, too: keep the report without the sweep
        if report is not None:
            _deliver(task, without_sweep(report, error), outcome, run_settings)
        raise
    _deliver(task, complete_report, outcome, run_settings)


def _deliver(task: Task, report: Report, outcome: Outcome, run_settings: RunSettings) -> None:
    """Write a store's files, and tell that it is done."""
    outcome.files += write_files(task, report, outcome.folder, run_settings)
    drop_aside(outcome.folder, task.name)
    outcome.reports[task.name] = report
    run_settings.listener.done(task.name, report, outcome.folder / f"{task.name}.json")


def _names(config: Config, run_settings: RunSettings, file: str | Path | None) -> list[str]:
    """Return the names of the stores to evaluate."""
    if not config.stores:
        raise UsageError(f"{cut(file)} has no stores; give one under stores:.")
    strange = [name for name in run_settings.stores if name not in config.stores]
    if strange:
        raise UsageError(
            f"--store {cut(strange[0])} is not a store of {cut(file)}; its stores are "
            f"{all_listed(config.stores)}."
        )
    names = [
        name for name in config.stores if not run_settings.stores or name in run_settings.stores
    ]
    reserved = {Path(PAGE).stem, Path(VERDICTS).stem}
    for name in names:
        if name.casefold() in reserved:
            raise UsageError(
                config.message_at(
                    "its report would be written over another file of the run; rename the store.",
                    "stores",
                    name,
                )
            )
        reserved.add(name.casefold())
    return names


def _cut_options(config: Config, run_settings: RunSettings) -> CutOptions | None:
    """Return the options of intervals and slices. Raises `UsageError`, which names keys and a line
    if the file has them all."""
    options = _overridden(config, run_settings, CutOptions)
    try:
        cut_settings = CutOptions(**options)
    except UsageError as error:
        if run_settings.shared.keys() & options.keys():
            raise
        named = (name.replace("-", "_") for name in re.findall(r"--([a-z-]+)", str(error)))
        place = [name for name in named if name in options]
        with config.errors_at(*place[:1]), as_keys(options_of(CutOptions)):
            raise
    return cut_settings if cut_settings.wanted else None


def _overridden(
    config: Config, run_settings: RunSettings, settings: type[Settings]
) -> dict[str, Any]:
    """Return options of these settings: those of the file, overridden by those of the run."""
    from_file = config.settings_from_file(settings)
    overrides = {
        n: v
        for n, v in run_settings.shared.items()
        if n in options_of(settings) and v not in ((), [])
    }
    if "slices" in overrides:  # another table has other columns
        from_file.pop("slice_by", None)
    return from_file | overrides


def _files(cut_settings: CutOptions | None, *files: str | Path | None) -> list[str]:
    """Return the input files, except the stores."""
    paths = (*files, cut_settings.slices if cut_settings else None)
    return [str(path) for path in paths if path is not None]


def config_of_store(predictions: Sequence[str], truth: str | None, **options: Any) -> Config:
    """Return a configuration of one store by its paths, with all metrics that apply.

    Raises `UsageError` for the value of an option, as a command of one family does.
    """
    store = {name: value for name, value in options.items() if value is not None}
    InputOptions(**{name: store[name] for name in options_of(InputOptions) if name in store})
    if predictions:
        store["predictions"] = list(predictions) if len(predictions) > 1 else predictions[0]
    if truth is not None:
        store["labels"] = truth
    first = str(predictions[0] if predictions else options["video"])
    # The options are checked: messages of the model would name keys of a file.
    return Config.model_validate({"stores": {_name_of(first): Store.model_construct(**store)}})


def _name_of(path: str) -> str:
    """Return the name of a store from its path: `preds` of `data/preds.zarr`."""
    last = Path(path).name if "://" in path else resolved(path).name
    printable = "".join(c for c in last.removesuffix(".zip") if c.isprintable() and c not in "/\\")
    stem = Path(printable).stem if printable else ""
    return f"{stem}-store" if stem.casefold() in ("index", "verdicts") else stem or "predictions"


def of_families(task: Task, folder: Path, options: RunOptions) -> Report | None:
    """Return the report of all metrics except a sweep, from one read; None if there are no others.

    If the user did not name metrics, those whose map of σ has negative values are left out.
    """
    inputs, families = task.inputs, task.families
    options = dataclasses.replace(
        options, states=folder / f"{task.name}.states.zip", cut=task.cut,
        progress=_Prefixed(task.name, options.progress),
    )  # fmt: skip
    while families:
        try:
            return run(inputs, families, options)
        except NegativeSigma as error:
            if not task.everything or "part" in inputs.record:  # shards leave out the same
                raise
            families, inputs = without_sigma(inputs, families, error)
    return None


def with_sweep(task: Task, report: Report | None, options: RunOptions) -> Report:
    """Return the report with the requested sweep, which reads the store again."""
    if task.sweep is None:
        assert report is not None
        return report
    from uqeval.usecases.sweep.sweeping import run_sweep

    options = dataclasses.replace(
        options, progress=_Prefixed(task.name, options.progress), resume=False
    )
    swept = run_sweep(task.sweep, options)
    return swept if report is None else _with_sweep(report, swept)


def without_sweep(report: Report, error: BaseException) -> Report:
    """Return the report with a warning that its sweep is missing."""
    reason = str(error) or "it was interrupted."
    return dataclasses.replace(report, warnings=[*report.warnings, f"no sweep: {reason}"])


def _with_sweep(report: Report, swept: Report) -> Report:
    """Return one report of both, the sweep under its own keys."""
    families = {
        key: family_settings for key, family_settings in swept.settings.items() if key != "sweep"
    }
    timing = {key: report.timing[key] + swept.timing[key] for key in ("seconds", "bytes_read")}
    timing["finished"] = swept.timing["finished"]
    return dataclasses.replace(
        report,
        results=report.results | swept.results,
        settings=report.settings | {"sweep": swept.settings["sweep"] | {"families": families}},
        metrics=swept.metrics | report.metrics,
        warnings=report.warnings
        + [f"sweep: {text}" for text in swept.warnings if text not in report.warnings],
        timing=report.timing | timing | {"sweep_bytes_read": swept.timing["bytes_read"]},
    )


@dataclass
class _Prefixed:
    """Progress with the name of its store."""

    name: str
    inner: Progress

    def begin(self, activity: str, items: int) -> None:
        self.inner.begin(f"{self.name}: {activity}", items)

    def advance(self, nbytes: int, items: int) -> None:
        self.inner.advance(nbytes, items)

    def end(self) -> None:
        self.inner.end()
