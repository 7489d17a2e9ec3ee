"""`uqeval report`: write reports as one HTML page, and their figures as files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from uqeval.cli.declared import with_options
from uqeval.cli.streams import printing, tell, warn
from uqeval.errors import StoreError, UqevalError, UsageError, cut
from uqeval.inputs.options import InputOptions
from uqeval.settings import Settings, same_option, shared_option

if TYPE_CHECKING:
    from uqeval.compare import Comparison
    from uqeval.gate import Judgement
    from uqeval.records.folder import Named
    from uqeval.records.report import ItemsByCell, Report
    from uqeval.report.page.gallery import Gallery

_FIGURES, _GALLERY = "Figures", "Gallery"


@dataclass(frozen=True)
class ReportOptions(Settings):
    """The options of `uqeval report`."""

    # fmt: off
    output: str | None = shared_option(
        None, "Write the page to FILE; - is stdout.", flags=("-o", "--output"), metavar="FILE",
        panel="Output", shown="the report's name with .html")
    verdicts: str | None = shared_option(
        None, "Show the verdicts that `uqeval gate -o FILE` wrote for the report.", metavar="FILE")
    figures: str | None = shared_option(
        None, "Also write the figures to this folder.", metavar="DIR", panel=_FIGURES)
    figure_format: Sequence[str] = shared_option(
        (), "File format of the figures. Repeat for more.", choices=("svg", "png", "pdf"),
        list_by="repeat", panel=_FIGURES, shown="svg")
    gallery: int = shared_option(
        0, "Show pictures of the N worst items, and of some good ones.", metavar="N", least=0,
        panel=_GALLERY, common=True)
    predictions: Sequence[str] = shared_option(
        (), "The predictions of the report. Repeat for the members of an ensemble.",
        metavar="STORE", list_by="repeat", panel=_GALLERY)
    video: str | None = shared_option(
        None, "The video of a `uqeval tc` report; it may contain the predictions.",
        metavar="VIDEO", panel=_GALLERY)
    model: str | None = shared_option(
        None, "Show only this model of a `uqeval tc` report.", metavar="NAME", panel=_GALLERY,
        shown="all")
    labels: str | None = shared_option(
        None, "Labels or target, if the store of predictions does not have them.",
        flags=("--labels", "--target"), metavar="STORE", panel=_GALLERY)
    images: str | None = shared_option(
        None, "Folder of the input images, with files named as the items.", metavar="DIR",
        panel=_GALLERY)
    quiet: bool = shared_option(
        False, "Print no messages.", flags=("-q", "--quiet"), panel="Output")
    names: str | None = same_option(InputOptions, "names")
    # fmt: on

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.figure_format and self.figures is None:
            raise UsageError(
                "--figure-format has an effect only with --figures DIR; give that too."
            )

    @property
    def files(self) -> list[str | None]:
        """Return the files that are read besides the reports."""
        return [
            self.verdicts, self.video, self.labels, self.images, self.names, *self.predictions
        ]  # fmt: skip


@with_options(of=ReportOptions)
def report(
    settings: ReportOptions,
    paths: Annotated[list[str], typer.Argument(
        metavar="REPORT...", show_default=False,
        help="A report, or several to compare. A folder means all reports in it.")],
) -> None:  # fmt: skip
    """Write one self-contained HTML page: scores, figures, tables and the worst items.

    Give several reports to compare them.

    Example: uqeval report report.json --figures figures/ --figure-format pdf
    """
    from uqeval.cli.finish import check_outputs
    from uqeval.disk.outputs import refuse_overlap
    from uqeval.records.folder import load_reports

    quiet = settings.quiet
    loaded = [named_report for path in paths for named_report in load_reports(path)]
    reports = _by_name([(named_report.path, named_report.report) for named_report in loaded])
    target = settings.output or _page_path(paths)
    read_paths = [
        *(path for named_report in loaded for path in named_report.files),
        *settings.files,
    ]
    check_outputs(target, inputs=read_paths)
    refuse_overlap(
        [settings.figures], read_paths, "give --figures another folder", may_contain=True
    )
    judgement = _judgement(settings.verdicts, loaded) if settings.verdicts else None
    pictures = _gallery(reports, settings)
    if pictures is not None and pictures.note:
        warn([f"gallery: {pictures.note}"], quiet)
    cell_items = _behind(loaded[0], quiet) if len(loaded) == 1 else None
    differences = _differences(loaded, list(reports), quiet) if len(loaded) > 1 else None

    from uqeval.report.page.html import to_html

    html = to_html(reports, pictures, settings.gallery, cell_items, judgement, differences)
    figure_paths = _figures(reports, settings.figures, settings.figure_format or ("svg",))
    _page(html, target)
    for text in [f"wrote {target}"] * (target != "-") + figure_paths:
        if not quiet:
            tell(text)


def _figures(reports: dict[str, Report], folder: str | None, forms: Sequence[str]) -> list[str]:
    """Write the requested figures; return messages about them."""
    if folder is None:
        return []
    from uqeval.report.figures import write_figures

    figure_paths = [path for form in forms for path in write_figures(reports, folder, form)]
    return [f"wrote {len(figure_paths)} figures to {folder}"]


def _page(html: str, target: str) -> None:
    from uqeval.disk.outputs import write

    if target != "-":
        write(target, html)
        return
    with printing():
        sys.stdout.write(html)


def _page_path(paths: list[str]) -> str:
    """Return the path of the page: next to the report, or in the folder of the first report."""
    first = Path(paths[0])
    if len(paths) == 1 and not first.is_dir():
        return str(first.with_suffix(".html"))
    return str((first if first.is_dir() else first.parent) / "comparison.html")


def _by_name(loaded: list[tuple[Path, Report]]) -> dict[str, Report]:
    """Return reports by file name, with as much of the path as makes the names unique."""
    stems = [path.stem for path, _ in loaded]
    by_name: dict[str, Report] = {}
    for path, report in loaded:
        name = path.stem if stems.count(path.stem) == 1 else str(path.with_suffix(""))
        if name in by_name:
            raise UsageError(f"{cut(path)} is given twice.")
        by_name[name] = report
    return by_name


def _differences(loaded: list[Named], names: list[str], quiet: bool) -> Comparison | None:
    """Return the differences of the reports, if they can be compared."""
    from uqeval.compare import Choice, Model, compare
    from uqeval.compare.models import Training

    models = [
        Model(name, (Training(model.path, {model.name: model}),))
        for name, model in zip(names, loaded, strict=True)
    ]
    try:
        comparison = compare(models, Choice())
    except UqevalError as error:
        warn([f"no differences: {error}"], quiet)
        return None
    warn((f"{text}." for text in comparison.warnings), quiet)
    return comparison


def _judgement(path: str, loaded: list[Named]) -> Judgement:
    """Return the saved verdicts on these reports. Raises `UsageError` if there are none."""
    from uqeval.gate.saved_verdicts import load_verdicts, of_stores

    verdicts = load_verdicts(path)
    verdicts_of_reports = of_stores(verdicts, {named_report.name for named_report in loaded})
    if not verdicts_of_reports.verdicts:
        stores = ", ".join(dict.fromkeys(str(v.address.store) for v in verdicts.verdicts))
        raise UsageError(
            f"--verdicts {cut(path)}: are of {stores or 'nothing'}, not of "
            f"{cut(', '.join(named_report.name for named_report in loaded))}."
        )
    return verdicts_of_reports


def _behind(named_report: Named, quiet: bool) -> ItemsByCell | None:
    """Return the items behind the cells of a report, if its states are available."""
    if (
        named_report.report.states is None
        or not (named_report.path.parent / Path(named_report.report.states).name).is_file()
    ):
        return None
    from uqeval.statistics.items_behind_cell import items_by_cell

    try:
        return items_by_cell(named_report.path, named_report.report)
    except StoreError as error:
        warn([f"no items behind cells: {error}"], quiet)
        return None


def _gallery(reports: dict[str, Report], settings: ReportOptions) -> Gallery | None:
    """Return the gallery of the options. Raises `UsageError` for incomplete options."""
    predictions, video, model = settings.predictions, settings.video, settings.model
    names = settings.names
    if not settings.gallery:
        gallery_options = (predictions, video, model, settings.labels, settings.images, names)
        if any(gallery_options):
            raise UsageError(
                "--predictions, --video, --model, --labels, --images and --names are for "
                "--gallery N."
            )
        return None
    if len(reports) > 1:
        raise UsageError("--gallery takes only one report; leave out the others.")
    (report,) = reports.values()
    if "video" in (report.inputs.get("options") or {}) and video is None:
        raise UsageError(
            "--gallery shows frames; give --video VIDEO (and --predictions STORE) of the report. "
            "The paths that a report holds are not followed."
        )
    if video is None and not predictions:
        raise UsageError(
            "--gallery shows pixels; give --predictions STORE (and --labels STORE) of the report. "
            "The paths that a report holds are not followed."
        )
    if model is not None and video is None:
        raise UsageError("--model is one of a report of uqeval tc; give its --video VIDEO too.")
    from uqeval.usecases.gallery import open_gallery
    from uqeval.usecases.plans import input_options

    run_options = report.inputs.get("options") or {}
    names_of_inputs = ("ignore_index", "classes", "class_names", "missing_chunks", "label_map",
            "sum_tolerance", "nan_samples", "invalid", "limit", "part", "resize", "baseline_focal",
            "disparity", "median_scaling")  # fmt: skip
    gallery_inputs = {
        name: run_options[name] for name in names_of_inputs if run_options.get(name) is not None
    }
    options = input_options(gallery_inputs | {"names": names, "video": video})
    stores = list(predictions) or None
    return open_gallery(report, stores, settings.labels, settings.images, options, model)
