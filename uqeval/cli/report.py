"""`uqeval report`: reports as one HTML page, and their figures as files."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from uqeval.cli import options as o
from uqeval.cli.messages import tell, warn
from uqeval.cli.stdout import printing
from uqeval.cli.taking import taking
from uqeval.errors import StoreError, UqevalError, UsageError

if TYPE_CHECKING:
    from uqeval.compare import Comparison
    from uqeval.gate import Judgement
    from uqeval.report import Report
    from uqeval.report.behind import Behind
    from uqeval.report.folder import Named
    from uqeval.report.gallery import Gallery

_FIGURES, _GALLERY = "Figures", "Gallery"


class FigureFormat(StrEnum):
    """What a figure is written as."""

    svg = "svg"
    png = "png"
    pdf = "pdf"


@taking("names")
def report(
    shared: o.Shared,
    paths: Annotated[list[str], typer.Argument(
        metavar="REPORT...", show_default=False,
        help="A report, or several to compare. A folder means all reports in it.")],
    output: Annotated[str | None, typer.Option(
        "-o", "--output", metavar="FILE", show_default=False, rich_help_panel="Output",
        help="Write the page to FILE; - is stdout (default: the report's name with .html).")]
        = None,
    verdicts: Annotated[str | None, typer.Option(
        metavar="FILE", show_default=False,
        help="Show the verdicts that `uqeval gate -o FILE` wrote for the report.")] = None,
    figures: Annotated[str | None, typer.Option(
        metavar="DIR", show_default=False, rich_help_panel=_FIGURES,
        help="Also write the figures to this folder.")] = None,
    figure_format: Annotated[list[FigureFormat] | None, typer.Option(
        show_default=False, rich_help_panel=_FIGURES,
        help="File format of the figures (default: svg). Repeat for more.")] = None,
    gallery: Annotated[int, typer.Option(
        metavar="N", min=0, rich_help_panel=_GALLERY,
        help="Show pictures of the N worst items, and of some good ones.")] = 0,
    predictions: Annotated[list[str] | None, typer.Option(
        metavar="STORE", show_default=False, rich_help_panel=_GALLERY,
        help="The predictions of the report. Repeat for the members of an ensemble.")]
        = None,
    video: Annotated[str | None, typer.Option(
        metavar="VIDEO", show_default=False, rich_help_panel=_GALLERY,
        help="The video of a `uqeval tc` report; it may contain the predictions.")] = None,
    model: Annotated[str | None, typer.Option(
        metavar="NAME", show_default=False, rich_help_panel=_GALLERY,
        help="Show only this model of a `uqeval tc` report (default: all).")] = None,
    labels: Annotated[str | None, typer.Option(
        "--labels", "--target", metavar="STORE", show_default=False, rich_help_panel=_GALLERY,
        help="Labels or target, if the store of predictions does not have them.")] = None,
    images: Annotated[str | None, typer.Option(
        metavar="DIR", show_default=False, rich_help_panel=_GALLERY,
        help="Folder of the input images, with files named as the items.")] = None,
    quiet: Annotated[bool, typer.Option(
        "-q", "--quiet", rich_help_panel="Output", help="Print no messages.")] = False,
) -> None:  # fmt: skip
    """Write one self-contained HTML page: scores, figures, tables and the worst items.

    Give several reports to compare them.

    Example: uqeval report report.json --figures figures/ --figure-format pdf
    """
    from uqeval.cli.finish import check_outputs
    from uqeval.report.folder import load_reports
    from uqeval.stores.overlap import refuse_overlap

    if figure_format and figures is None:
        raise UsageError("--figure-format is of the files of --figures DIR; give that too.")
    loaded = [named for path in paths for named in load_reports(path)]
    reports = _named([(one.path, one.report) for one in loaded])
    target = output or _beside(paths)
    given = [*(path for one in loaded for path in one.files), verdicts, video, labels, images,
             shared.names, *(predictions or [])]  # fmt: skip
    check_outputs(target, inputs=given)
    refuse_overlap([figures], given, "give --figures another folder", may_contain=True)
    judgement = _judgement(verdicts, loaded) if verdicts else None
    pictures = _gallery(reports, gallery, predictions, video, model, labels, images, shared.names)
    if pictures is not None and pictures.note:
        warn([f"gallery: {pictures.note}"], quiet)
    piles = _behind(loaded[0], quiet) if len(loaded) == 1 else None
    differences = _differences(loaded, list(reports), quiet) if len(loaded) > 1 else None

    from uqeval.report.html import to_html

    html = to_html(reports, pictures, gallery, piles, judgement, differences)
    drawn = _figures(reports, figures, figure_format or [FigureFormat.svg])
    _page(html, target)
    for told in [f"wrote {target}"] * (target != "-") + drawn:
        if not quiet:
            tell(told)


def _figures(
    reports: dict[str, Report], folder: str | None, forms: list[FigureFormat]
) -> list[str]:
    """Write the figures that are asked for; what there is to tell of that."""
    if folder is None:
        return []
    from uqeval.report.figures import write_figures

    written = [path for form in forms for path in write_figures(reports, folder, form.value)]
    return [f"wrote {len(written)} figures to {folder}"]


def _page(html: str, target: str) -> None:
    from uqeval.report.files import write

    if target != "-":
        write(target, html)
        return
    with printing():
        sys.stdout.write(html)


def _beside(paths: list[str]) -> str:
    """Where the page goes: beside the report, or into the first report's folder."""
    first = Path(paths[0])
    if len(paths) == 1 and not first.is_dir():
        return str(first.with_suffix(".html"))
    return str((first if first.is_dir() else first.parent) / "comparison.html")


def _named(loaded: list[tuple[Path, Report]]) -> dict[str, Report]:
    """Reports by the name of their file; of the same names, by as much of the path as tells."""
    stems = [path.stem for path, _ in loaded]
    found: dict[str, Report] = {}
    for path, one in loaded:
        name = path.stem if stems.count(path.stem) == 1 else str(path.with_suffix(""))
        if name in found:
            raise UsageError(f"{path} is given twice.")
        found[name] = one
    return found


def _differences(loaded: list[Named], names: list[str], quiet: bool) -> Comparison | None:
    """How far the reports differ, where they can be held against each other."""
    from uqeval.compare import Choice, Model, compare
    from uqeval.compare.models import Training

    models = [
        Model(name, (Training(one.path, {one.name: one}),))
        for name, one in zip(names, loaded, strict=True)
    ]
    try:
        found = compare(models, Choice())
    except UqevalError as error:
        warn([f"no differences: {error}"], quiet)
        return None
    warn((f"{text}." for text in found.warnings), quiet)
    return found


def _judgement(path: str, loaded: list[Named]) -> Judgement:
    """The saved verdicts that are of the reports. Raises `UsageError` where there are none."""
    from uqeval.gate.saved import load_verdicts, of_stores

    found = load_verdicts(path)
    own = of_stores(found, {one.name for one in loaded})
    if not own.verdicts:
        stores = ", ".join(dict.fromkeys(str(v.address.store) for v in found.verdicts))
        raise UsageError(
            f"--verdicts {path}: are of {stores or 'nothing'}, not of "
            f"{', '.join(one.name for one in loaded)}."
        )
    return own


def _behind(one: Named, quiet: bool) -> Behind | None:
    """The items behind the cells of a report, where its states lie beside it."""
    if one.report.states is None or not (one.path.parent / Path(one.report.states).name).is_file():
        return None
    from uqeval.statistics.behind import behind

    try:
        return behind(one.path, one.report)
    except StoreError as error:
        warn([f"no items behind cells: {error}"], quiet)
        return None


def _gallery(
    reports: dict[str, Report],
    count: int,
    predictions: list[str] | None,
    video: str | None,
    model: str | None,
    labels: str | None,
    images: str | None,
    names: str | None,
) -> Gallery | None:
    """The gallery that the options ask for. Raises `UsageError` for a part of it."""
    if not count:
        if predictions or video or model or labels or images or names:
            raise UsageError(
                "--predictions, --video, --model, --labels, --images and --names are for "
                "--gallery N."
            )
        return None
    if len(reports) > 1:
        raise UsageError("--gallery is of one report; give one.")
    (one,) = reports.values()
    if "video" in (one.inputs.get("options") or {}) and video is None:
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

    said = one.inputs.get("options") or {}
    kept = ("ignore_index", "classes", "class_names", "missing_chunks", "label_map",
            "sum_tolerance", "nan_samples", "invalid", "limit", "part", "resize")  # fmt: skip
    chosen = {name: said[name] for name in kept if said.get(name) is not None}
    options = input_options(chosen | {"names": names, "video": video})
    return open_gallery(one, predictions, labels, images, options, model)
