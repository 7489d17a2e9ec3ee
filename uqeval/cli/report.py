"""`uqeval report`: write reports as one HTML page, and their figures as files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from uqeval.cli.declared import with_options
from uqeval.cli.report_options import ReportOptions
from uqeval.cli.streams import printing, tell, warn
from uqeval.disk.files import path_without_suffix
from uqeval.errors import OutputError, StoreError, UqevalError, UsageError, all_listed, cut

if TYPE_CHECKING:
    from uqeval.compare import Comparison
    from uqeval.gate import Judgement
    from uqeval.records.folder import Named
    from uqeval.records.report import ItemClasses, ItemsByCell, Report
    from uqeval.report.figures import Figure
    from uqeval.report.page.exhibits import PictureFiles
    from uqeval.usecases.trackers.entry import Tracker


@with_options(of=ReportOptions)
def report(
    settings: ReportOptions,
    paths: Annotated[list[str], typer.Argument(
        metavar="REPORT...", show_default=False,
        help="A report, or several to compare. Give a folder for all reports in it.")],
) -> None:  # fmt: skip
    """Write an HTML page: scores, figures, tables and the worst items.

    Give several reports to compare them.

    Example: uqeval report report.json --figures figures/ --figure-format pdf
    """
    from uqeval.cli.report_pictures import dataset_of, gallery, item_figures
    from uqeval.records.folder import load_reports

    quiet = settings.quiet
    loaded = [named_report for path in paths for named_report in load_reports(path)]
    reports = _by_name([(named_report.path, named_report.report) for named_report in loaded])
    target = settings.output or _page_path(paths)
    _check_outputs(target, settings, loaded)
    trackers, write_dataset = _trackers(settings), dataset_of(reports, settings)
    judgement = _judgement(settings.verdicts, loaded) if settings.verdicts else None
    pictures, exhibits = gallery(reports, settings), item_figures(reports, settings, quiet)
    if pictures is not None and pictures.note:
        warn([f"gallery: {pictures.note}"], quiet)
    cell_items, classes = _from_states(loaded[0], quiet) if len(loaded) == 1 else (None, None)
    differences, no_differences = None, ""
    if len(loaded) > 1:
        try:
            differences = _differences(loaded, list(reports), quiet)
        except UqevalError as error:
            no_differences = " ".join(
                [f"no differences: {error}", *getattr(error, "__notes__", ())]
            )
            warn([no_differences], quiet)

    from uqeval.report.page.files import folder_of, picture_files
    from uqeval.report.page.html import to_html

    # Trackers get the page alone, without a folder of pictures.
    files = picture_files(target, settings.single_file or bool(trackers))
    html = to_html(
        reports,
        pictures,
        settings.gallery,
        cell_items,
        judgement,
        differences,
        files=files,
        classes=classes,
        no_comparison=no_differences,
    )
    logged = _log(reports, html, settings, trackers)
    if write_dataset is not None:
        logged.append(write_dataset())
    figure_paths = _figures(reports, settings, exhibits)
    _page(html, target, files)
    if files and files.files:
        figure_paths.append(f"wrote {len(files.files)} pictures to {folder_of(target)}")
    for text in [f"wrote {target}"] * (target != "-") + figure_paths + logged:
        if not quiet:
            tell(text)


def _check_outputs(target: str, settings: ReportOptions, loaded: Sequence[Named]) -> None:
    """Raise `UqevalError` for outputs that cannot be written, or would be written over inputs."""
    from uqeval.cli.finish import Output, check_outputs
    from uqeval.disk.outputs import refuse_overlap
    from uqeval.report.page.files import is_of_run

    inputs = [*(path for named_report in loaded for path in named_report.files), *settings.files]
    try:
        check_outputs(Output(target), inputs=inputs)
    except OutputError as error:
        if settings.output is not None:
            raise
        raise OutputError(f"{error} Name the page with -o FILE.html.") from None
    if settings.output is None and is_of_run(Path(target)):
        raise UsageError(
            f"{cut(target)} is the page that uqeval run wrote, with a link to all stores, verdicts "
            "and pictures. Open that, or name another page with -o FILE.html; -o with the same "
            "name replaces it."
        )
    for name, folder in (("figures", settings.figures), ("tensorboard", settings.tensorboard)):
        refuse_overlap([folder], inputs, f"give --{name} another folder", may_contain=True)
    if settings.gallery and target != "-":
        refuse_overlap([Path(target).with_suffix(".pictures")], inputs, "give -o another name")


def _figures(
    reports: dict[str, Report], settings: ReportOptions, exhibits: Sequence[Figure]
) -> list[str]:
    """Write the requested figures; return messages about them."""
    if settings.figures is None:
        return []
    from uqeval.report.figures import write_figures

    forms = settings.figure_format or ("svg",)
    paths = [p for form in forms for p in write_figures(reports, settings.figures, form, exhibits)]
    return [f"wrote {len(paths)} figures to {settings.figures}"]


def _trackers(settings: ReportOptions) -> list[Tracker]:
    """Return the chosen trackers. Raises `UsageError` if a library is not installed."""
    if not settings.tracks:
        return []
    from uqeval.usecases.trackers import open_trackers

    return open_trackers(settings.tensorboard, settings.mlflow, settings.wandb)


def _log(
    reports: dict[str, Report], html: str, settings: ReportOptions, trackers: Sequence[Tracker]
) -> list[str]:
    """Write the reports to trackers; return messages about them."""
    if not trackers:
        return []
    from uqeval.usecases.trackers.entry import entries_of

    entries = entries_of(reports, html, settings.step or 0)
    return [tracker.add(entry) for tracker in trackers for entry in entries]


def _page(html: str, target: str, pictures: PictureFiles | None) -> None:
    from uqeval.report.page.files import write_page

    if target != "-":
        write_page(target, html, pictures)
        return
    with printing():
        sys.stdout.write(html)


def _page_path(paths: list[str]) -> str:
    """Return the path of the page: next to the report, or in the folder of all reports.

    Reports of different folders have their page in the working folder, as it belongs to none.
    """
    first = Path(paths[0])
    if len(paths) == 1 and not first.is_dir():
        return str(first.with_suffix(".html"))
    folders = {path if path.is_dir() else path.parent for path in map(Path, paths)}
    return str((folders.pop() if len(folders) == 1 else Path()) / "comparison.html")


def _by_name(loaded: list[tuple[Path, Report]]) -> dict[str, Report]:
    """Return reports by file name, with as much of the path as makes the names unique."""
    stems = [path.stem for path, _ in loaded]
    by_name: dict[str, Report] = {}
    for path, report in loaded:
        name = path.stem if stems.count(path.stem) == 1 else path_without_suffix(path)
        if name in by_name:
            raise UsageError(f"{cut(path)} is given twice.")
        by_name[name] = report
    return by_name


def _differences(loaded: list[Named], names: list[str], quiet: bool) -> Comparison:
    """Return the differences of the reports. Raises `UqevalError` if they cannot be compared."""
    from uqeval.compare import Choice, Model, compare
    from uqeval.compare.models import Training

    models = [
        Model(name, (Training(model.path, {model.name: model}),))
        for name, model in zip(names, loaded, strict=True)
    ]
    comparison = compare(models, Choice())
    warn(comparison.sentences, quiet)
    return comparison


def _judgement(path: str, loaded: list[Named]) -> Judgement:
    """Return the saved verdicts on these reports. Raises `UsageError` if there are none."""
    from uqeval.gate.saved_verdicts import load_verdicts, of_stores

    verdicts = load_verdicts(path)
    verdicts_of_reports = of_stores(verdicts, {named_report.name for named_report in loaded})
    if not verdicts_of_reports.verdicts:
        stores = ", ".join(dict.fromkeys(str(v.address.store) for v in verdicts.verdicts))
        raise UsageError(
            f"--verdicts {cut(path)} has verdicts on {stores or 'no store'}, but not on "
            f"{all_listed(named_report.name for named_report in loaded)}. Judge these "
            "reports with uqeval gate -o FILE, and give that file."
        )
    return verdicts_of_reports


def _from_states(named_report: Named, quiet: bool) -> tuple[ItemsByCell | None, ItemClasses | None]:
    """Return the items behind the cells of a report, and the classes of its items, if its states
    are available."""
    from uqeval.records.folder import states_beside

    states = states_beside(named_report.path, named_report.report)
    if states is None or not states.is_file():
        return None, None
    from uqeval.report.figures import linked_keys
    from uqeval.statistics.items_behind_cell import items_by_cell, items_by_class
    from uqeval.statistics.states_of_report import states_of

    try:
        saved = states_of(named_report.path, named_report.report)
        return items_by_cell(saved, linked_keys(named_report.report)), items_by_class(saved)
    except StoreError as error:
        warn([f"the page lists no items for the cells of tables and figures: {error}"], quiet)
        return None, None
