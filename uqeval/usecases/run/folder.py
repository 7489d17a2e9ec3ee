"""The folder that a run leaves: files of each store, the gate's verdicts, and a page of all."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.config import Store
from uqeval.disk.outputs import (
    check_writable,
    refuse_file_name,
    refuse_other_kind,
    refuse_overlap,
    refuse_url,
    write,
)
from uqeval.disk.publishing import link_aside, new_file, repair_states, writing
from uqeval.errors import ChangedError, OutputError, UqevalError, cut
from uqeval.gate import FailedStore, judge
from uqeval.gate.saved_verdicts import of_stores
from uqeval.records.folder import Named, digests_of
from uqeval.records.report import Report
from uqeval.spelling import for_caller
from uqeval.statistics import resampler
from uqeval.usecases.run.outcome import Outcome, RunSettings
from uqeval.usecases.run.preflight import RunRules
from uqeval.usecases.run.tasks import Task, has_pictures

if TYPE_CHECKING:
    from uqeval.compare import Comparison

#: The files of a run for each store, and for all: the page, and the gate's verdicts.
_ENDINGS = ("json", "states.zip", "csv", "html", "pictures")
PAGE, VERDICTS = "index.html", "verdicts.json"
#: Bytes to read for the gallery up to which it is shown by default, and its number of pictures.
_CHEAP, _EXHIBITS = 256 * 10**6, 3


def make_folder(
    folder: Path, names: Sequence[str], stores: Sequence[Store], read_paths: list[str]
) -> None:
    """Create the folder of the reports.

    Raises `OutputError`, and `UsageError` if it is an input or holds files of other kinds
    at the paths that are written.
    """
    refuse_url(folder)
    refuse_file_name(folder)
    read_paths = [*read_paths, *(path for store in stores for path in store.paths())]
    files = [folder / PAGE, folder / VERDICTS]
    files += [folder / f"{name}.{ending}" for name in names for ending in _ENDINGS]
    backups = [
        backup for name in names for _, backup in [*_asides(folder, name), _states(folder, name)]
    ]
    advice = "give another folder with -o DIR"
    # The folder may contain inputs: only these files in it are written.
    refuse_overlap([folder], read_paths, advice, may_contain=True)
    refuse_overlap([*files, *backups], read_paths, advice)
    for file in files:
        refuse_other_kind(file, for_caller("-o", "output="), _kind_of(file))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{cut(folder)} cannot be made a folder: {error.strerror}.") from error
    check_writable(folder / PAGE)


def _kind_of(file: Path) -> str | None:
    """Return the kind of a file of a run, as `disk.outputs` names it."""
    if file.name == VERDICTS:
        return "verdicts"
    return {".json": "report", ".zip": "states"}.get(file.suffix)


def put_aside(folder: Path, name: str) -> None:
    """Rename the older files of a store, so that they are not mistaken for new ones if the run
    fails.

    The states of the older report also stay in place, because the run may reuse them.
    """
    report, (states, backup) = folder / f"{name}.json", _states(folder, name)
    if report.is_file() and states.is_file():
        with writing(states):
            repair_states(states, [report])
            if not link_aside(states, backup):  # a file system without hard links
                with new_file(backup) as copy, states.open("rb") as file:
                    shutil.copyfileobj(file, copy)
    _put_aside(_asides(folder, name))


def put_overview_aside(folder: Path) -> None:
    """Rename the older page and verdicts likewise."""
    _put_aside(_old(folder / VERDICTS, folder / PAGE))


def drop_overview_aside(folder: Path) -> None:
    """Remove the older page and verdicts after new ones are written."""
    for _, backup in _old(folder / VERDICTS, folder / PAGE):
        with writing(backup):
            backup.unlink(missing_ok=True)


def _put_aside(files: list[tuple[Path, Path]]) -> None:
    for file, backup in files:
        if file.exists():
            with writing(file):
                file.replace(backup)


def drop_aside(folder: Path, name: str) -> None:
    """Remove the older files of a store after new ones are written."""
    for _, backup in [*_asides(folder, name), _states(folder, name)]:
        with writing(backup):
            backup.unlink(missing_ok=True)


def leftovers_of(folder: Path, names: Collection[str]) -> list[Path]:
    """Return the files that earlier runs wrote for stores other than these, reports first.

    A run writes a report, a table and a page; other JSON files are not listed.
    """
    reports = [
        path for path in sorted(folder.glob("*.json"))
        if path.stem not in names
        and all(path.with_suffix(f".{ending}").is_file() for ending in ("csv", "html"))
    ]  # fmt: skip
    files = [path.with_suffix(f".{ending}") for ending in _ENDINGS[1:] for path in reports]
    return [*reports, *(file for file in files if file.exists())]


def _states(folder: Path, name: str) -> tuple[Path, Path]:
    return _old(folder / f"{name}.states.zip")[0]


def _asides(folder: Path, name: str) -> list[tuple[Path, Path]]:
    return _old(*(folder / f"{name}.{ending}" for ending in ("json", "csv", "html")))


def _old(*files: Path) -> list[tuple[Path, Path]]:
    return [(file, file.with_name(f"{file.name}.old")) for file in files]


def write_files(task: Task, report: Report, folder: Path, run_settings: RunSettings) -> list[Path]:
    """Write a store's files and return their paths.

    Raises `ChangedError`, and removes the states, if the data have changed since the run began:
    pictures and sweeps read the data a second time.
    """
    from uqeval.report.csv import to_csv
    from uqeval.report.figures import linked_keys
    from uqeval.report.page.files import picture_files, write_page
    from uqeval.report.page.html import to_html
    from uqeval.statistics.items_behind_cell import items_by_cell, items_by_class
    from uqeval.statistics.states_of_report import states_of

    if run_settings.is_shard:  # all items have a table and a page, after `merge`
        path = folder / f"{task.name}.json"
        report.save(path)
        return [*([Path(report.states)] if report.states is not None else []), path]
    exhibits = _exhibits(task, report, run_settings)
    gallery = None
    if exhibits:
        from uqeval.usecases.gallery.opening import gallery_of

        gallery = gallery_of(report, replace(task.inputs, source=task.source), task.store.images)
    written_paths = [Path(report.states)] if report.states is not None else []
    json, csv, page = (folder / f"{task.name}.{ending}" for ending in ("json", "csv", "html"))
    saved = states_of(json, report) if report.states is not None else None
    cell_items = items_by_cell(saved, linked_keys(report)) if saved else None
    classes = items_by_class(saved) if saved else None
    try:
        pictures = picture_files(page, run_settings.single_file)
        html = to_html(
            {task.name: report},
            gallery,
            exhibits,
            cell_items,
            index=PAGE,
            files=pictures,
            classes=classes,
        )
        task.inputs.watch.check_all()
    except ChangedError:
        for states in written_paths:
            with writing(states):
                states.unlink(missing_ok=True)
        raise
    report.save(json)
    write(csv, to_csv(report))
    write_page(page, html, pictures)
    return [*written_paths, json, csv, page]


def _exhibits(task: Task, report: Report, run_settings: RunSettings) -> int:
    """Return the number of items in the gallery; 0 without scores or ground truth, and for sets."""
    if not has_pictures(task.inputs, task.families):
        return 0
    if run_settings.gallery is not None:
        return run_settings.gallery
    # The bytes of this run may be few, if it reused states of an earlier run.
    record = task.inputs.record
    stored = [
        a["stored_bytes"] or 0 for store in record["predictions"] for a in store["arrays"].values()
    ]
    of_an_item = max(report.timing["bytes_read"] / len(report.items), sum(stored) / record["items"])
    return _EXHIBITS if of_an_item * (_EXHIBITS + 1) <= _CHEAP else 0


def judge_all(
    outcome: Outcome, gate: RunRules, before: list[Named], file: Any, run_settings: RunSettings,
    failed: Mapping[str, FailedStore],
) -> None:  # fmt: skip
    """Judge the reports; list the rules that cannot be judged."""
    from uqeval.report.verdict_files import to_json

    folder = outcome.folder
    reports = [Named(name, folder / f"{name}.json", r) for name, r in outcome.reports.items()]
    try:
        states = resampler(rule.address for rule in gate.judged)
        judged = judge(reports, gate.judged, before, states, failed, run_settings.day)
    except UqevalError as error:
        outcome.ungated = str(error)
        return
    lost = (*gate.unjudged, *judged.not_evaluated)
    outcome.announced = len(gate.unjudged)
    outcome.judgement = replace(judged, not_evaluated=lost).dated(run_settings.day)
    inputs = {
        "report": str(folder),
        "baseline": run_settings.baseline and str(run_settings.baseline),
    }
    record = {"rules": str(file), "sha256": digests_of(reports, before, gate.sha256)}
    write(folder / VERDICTS, to_json(outcome.judgement, inputs | record))
    outcome.files.append(folder / VERDICTS)


def show_verdicts(outcome: Outcome, before: Sequence[Named]) -> None:
    """Put the verdicts on each store, and its change from the baseline, on its page."""
    from uqeval.report.page.html import with_first_screen

    baselines = {named.name: named for named in before}
    for name, report in outcome.reports.items():
        page = outcome.folder / f"{name}.html"
        judgement = of_stores(outcome.judgement, {name}) if outcome.judgement else None
        now = Named(name, outcome.folder / f"{name}.json", report)
        older = baselines.get(name) or (
            before[0] if len(before) == len(outcome.reports) == 1 else None
        )
        change = _change(older, now) if older is not None else None
        if judgement is not None or change is not None:
            text = page.read_text("utf-8")
            write(page, with_first_screen(text, report, judgement, change))


def _change(older: Named, now: Named) -> Comparison | None:
    """Return the change of the key numbers from the baseline; None if they cannot be compared."""
    from uqeval.compare import Choice, Model, compare
    from uqeval.compare.models import Training
    from uqeval.report.page.first_screen import addresses_of

    models = [
        Model(name, (Training(named.path, {now.name: named}),))
        for name, named in (("the baseline", older), ("this report", now))
    ]
    try:
        return compare(models, Choice(metrics=addresses_of(now.report)))
    except UqevalError:
        return None  # the rules say why, where they need it


def write_overview(outcome: Outcome) -> None:
    """Write the page with links to the pages of all stores."""
    from uqeval.report.page.overview import to_overview

    page = outcome.folder / PAGE
    text = to_overview(outcome.reports, outcome.failed, outcome.judgement, outcome.ungated)
    write(page, text)
    outcome.files.append(page)
