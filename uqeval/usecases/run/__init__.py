"""The use case `run`: everything that a file asks for, each store read once, one verdict.

All stores are opened and checked before any is read. A store that fails is told of and leaves the
others alone. `uqeval sweep`, where a file asks for it, draws its subsets from a read of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.config import FILE, Config, load_config, load_rules
from uqeval.disk.locks import locked
from uqeval.engine.options import MachineOptions
from uqeval.errors import UsageError, cut
from uqeval.settings import options_of
from uqeval.statistics.options import CutOptions
from uqeval.usecases.evaluate import cut_options
from uqeval.usecases.run.folder import (
    PAGE,
    VERDICTS,
    drop_aside,
    drop_overview_aside,
    judge_all,
    make_folder,
    put_aside,
    put_overview_aside,
    write_files,
    write_overview,
)
from uqeval.usecases.run.outcome import Failures, Listener, Outcome, RunSettings
from uqeval.usecases.run.preflight import RunRules, refuse_same_folder
from uqeval.usecases.run.reports import of_families, with_sweep, without_sweep
from uqeval.usecases.run.single import alone
from uqeval.usecases.run.tasks import opened, with_cuts

if TYPE_CHECKING:
    from uqeval.gate import FailedStore
    from uqeval.report.schema import Report
    from uqeval.settings import Settings
    from uqeval.usecases.run.tasks import Task

__all__ = ["FOLDER", "Listener", "Outcome", "RunSettings", "alone", "run_config", "run_stores"]

#: Where reports go if nobody says.
FOLDER = "uqeval-report"


def run_config(path: str | Path = FILE, **settings: Any) -> Outcome:
    """Evaluate everything that a `uqeval.yaml` asks for, as `uqeval run` does.

    `settings`: options of `RunSettings` (`stores`, `output`, `gate`, `baseline`, …), `limit`,
    `workers`, `memory`, and those of intervals and slices. The outcome's `failed` lists the stores
    that cannot be evaluated; raises `UqevalError` for a problem of all of them.
    """
    return run_stores(load_config(path), RunSettings.of_keywords(settings), path)


def run_stores(config: Config, chosen: RunSettings, file: str | Path | None = None) -> Outcome:
    """The same for a configuration that was read from `file`, or from none."""
    from uqeval.gate.rules import refuse_unused_day
    from uqeval.report.folder import load_reports

    names = _names(config, chosen, file)
    cut = _cut(config, chosen)
    memory = {} if chosen.memory is None else {"memory": chosen.memory}
    machine = MachineOptions(**_over(config, chosen, MachineOptions) | memory)
    options = machine.run(progress=chosen.progress, resume=chosen.resume)
    rules = load_rules(file) if file is not None and chosen.gate and config.gate else []
    if chosen.baseline is not None and not rules:
        raise UsageError("--baseline is for the rules under gate: of a file; there are none.")
    if chosen.day is not None:
        refuse_unused_day(chosen.day, rules, file)
    outcome = Outcome(Path(chosen.output or config.output or FOLDER))
    if chosen.baseline is not None:
        refuse_same_folder(chosen.baseline, outcome.folder)
    before = load_reports(chosen.baseline) if chosen.baseline is not None else []
    sliced = cut is not None and cut.slices is not None
    gate = RunRules(rules, chosen.listener.warned)
    gate.check(list(config.stores), names, before, sliced=sliced)
    make_folder(outcome.folder, names, [config.stores[name] for name in names], _files(cut, file))
    with locked(outcome.folder / PAGE):
        put_overview_aside(outcome.folder)  # it is of reports that are replaced now
        tasks = []
        for name in names:
            with Failures(name, outcome, chosen):
                tasks.append(opened(config, name, chosen))
        gate.check_metrics({task.name: task.keys() for task in tasks}, bool(outcome.failed))
        tasks = with_cuts(tasks, cut, outcome, chosen, len(config.stores))
        for name in names:
            put_aside(outcome.folder, name)
        while tasks:
            task = tasks.pop(0)  # what it holds goes with it
            with Failures(task.name, outcome, chosen):
                report = of_families(task, outcome.folder, options)
                try:
                    whole = with_sweep(task, report, outcome.folder, options, chosen)
                except BaseException as error:  # an interrupt, too: what was done is kept
                    if report is not None:
                        _keep(task, without_sweep(report, error), outcome, chosen)
                    raise
                _keep(task, whole, outcome, chosen)
        if rules and outcome.reports:
            judge_all(outcome, gate, before, file, chosen, _failed(config, outcome))
        if outcome.reports:
            write_overview(outcome)
            drop_overview_aside(outcome.folder)
    return outcome


def _failed(config: Config, outcome: Outcome) -> dict[str, FailedStore]:
    """Why stores failed, and what was asked of them; of one that has a report, its sweep alone."""
    from uqeval.gate import FailedStore

    found = {}
    for name, why in outcome.failed.items():
        asked = config.metrics_of(name)
        metrics = None if asked is None else frozenset({"segmentation", *asked})
        found[name] = FailedStore(why, frozenset({"sweep"}) if name in outcome.reports else metrics)
    return found


def _keep(task: Task, report: Report, outcome: Outcome, chosen: RunSettings) -> None:
    """Write a store's files, and tell that it is done."""
    outcome.files += write_files(task, report, outcome.folder, chosen)
    drop_aside(outcome.folder, task.name)
    outcome.reports[task.name] = report
    chosen.listener.done(task.name, report)


def _names(config: Config, chosen: RunSettings, file: str | Path | None) -> list[str]:
    """The stores to evaluate."""
    if not config.stores:
        raise UsageError(f"{cut(file)}: names no stores; give one under stores:.")
    strange = [name for name in chosen.stores if name not in config.stores]
    if strange:
        raise UsageError(
            f"--store {cut(strange[0])}: is no store of {cut(file)}; it has "
            f"{cut(', '.join(config.stores))}."
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
    return cut_options(**_over(config, chosen, CutOptions))


def _over(config: Config, chosen: RunSettings, settings: type[Settings]) -> dict[str, Any]:
    """Options of these settings: of the file, and over them those of the run."""
    from_file = config.given(settings)
    own = {
        n: v for n, v in chosen.shared.items() if n in options_of(settings) and v not in ((), [])
    }
    if "slices" in own:  # columns of another table are not those of the file's
        from_file.pop("slice_by", None)
    return from_file | own


def _files(cut: CutOptions | None, file: str | Path | None) -> list[str]:
    """What is read beside the stores."""
    return [str(path) for path in (file, cut.slices if cut else None) if path is not None]
