"""The pictures of `uqeval report`: the gallery of a page, and figures of chosen items."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from uqeval.cli.streams import warn
from uqeval.errors import UsageError, cut, number_in, number_of, quoted

if TYPE_CHECKING:
    from uqeval.cli.report_options import ReportOptions
    from uqeval.records.report import Report
    from uqeval.report.figures import Figure
    from uqeval.report.figures.maps import Box
    from uqeval.report.page.gallery import Gallery
    from uqeval.usecases.gallery.opening import Pictures

#: Options of inputs that a report records and that its pictures need.
_OF_INPUTS = (
    "ignore_index", "classes", "class_names", "kind", "axes", "missing_chunks", "label_map",
    "sum_tolerance", "nan_samples", "invalid", "limit", "part", "resize", "baseline_focal",
    "disparity", "median_scaling", "annotator_folders",
)  # fmt: skip
_BOX = re.compile(r"([\d.]+):([\d.]+),([\d.]+):([\d.]+)")


def gallery(reports: Mapping[str, Report], settings: ReportOptions) -> Gallery | None:
    """Return the gallery of the page. Raises `UsageError` for incomplete options."""
    if not settings.gallery:
        of_pictures = (
            settings.predictions, settings.video, settings.model, settings.labels, settings.images,
            settings.names,
        )  # fmt: skip
        if any(of_pictures) and not settings.item and settings.fiftyone is None:
            raise UsageError(
                "--predictions, --video, --model, --labels, --images and --names are for "
                "--gallery N, --item NAME and --fiftyone NAME. Add --gallery 8 for pictures of the "
                "8 worst items."
            )
        if settings.single_file:
            raise UsageError("--single-file is for the pictures of --gallery N. Add --gallery 8.")
        return None
    from uqeval.report.tables.items import columns_of

    for name, report in reports.items():
        if not columns_of(report):
            raise UsageError(
                f"--gallery shows the worst items, but {cut(name)} has no scores of items, as a "
                "sweep has none. Leave --gallery out; for pictures of an item, give --item NAME "
                "--figures DIR --predictions STORE."
            )
    stores = list(settings.predictions)
    if len(reports) == 1:
        (report,) = reports.values()
        return _open(report, settings, stores, "--gallery")
    from uqeval.report.page.side_by_side import SideBySide

    galleries = {
        name: _open(
            report, settings, [_nth_store(stores, n, len(reports), "--gallery")], "--gallery"
        )
        for n, (name, report) in enumerate(reports.items())
    }
    return SideBySide(reports, galleries)


def dataset_of(reports: Mapping[str, Report], settings: ReportOptions) -> Callable[[], str] | None:
    """Return a function that writes the dataset of `--fiftyone`, after all checks.

    Raises `UsageError` for options that do not fit.
    """
    if settings.fiftyone is None:
        return None
    from uqeval.usecases.trackers.fiftyone import FiftyOneDataset, images_by_item

    if len(reports) > 1 or settings.video is not None:
        raise UsageError("--fiftyone takes one report of images; leave out the others.")
    (report,) = reports.values()
    images = images_by_item(report, settings.images)
    pictures = _open(report, settings, list(settings.predictions), "--fiftyone")
    if pictures.note:
        warn([f"--fiftyone: {pictures.note}"], settings.quiet)
    dataset = FiftyOneDataset(settings.fiftyone)
    return lambda: dataset.add(report, pictures, images)


def item_figures(
    reports: Mapping[str, Report], settings: ReportOptions, quiet: bool
) -> list[Figure]:
    """Return the figures of the chosen items. Raises `UsageError` for options that do not fit."""
    if not settings.item:
        return []
    from uqeval.usecases.gallery.exhibits import file_name, item_figure

    files: dict[str, str] = {}
    for item in settings.item:
        if (earlier_item := files.setdefault(file_name(item), item)) != item:
            raise UsageError(
                f"--item {quoted(item)} and {quoted(earlier_item)} would be written to the same "
                f"file, {file_name(item)}. Write them to different folders, one by one."
            )
    maps = [name.strip() for name in (settings.maps or "").split(",") if name.strip()]
    boxes = [_box(text) for text in settings.box]
    galleries = {}
    for n, (name, report) in enumerate(reports.items()):
        stores = list(settings.predictions)
        if len(reports) > 1:
            stores = [_nth_store(stores, n, len(reports))]
        opened = _open(report, settings, stores, "--item", maps)
        if opened.note:
            warn([f"{name}: {opened.note}"], quiet)
        galleries[name] = (report, opened)
    return [
        item_figure(galleries, item, settings.by, boxes, settings.frames) for item in files.values()
    ]


def _nth_store(stores: Sequence[str], n: int, reports: int, option: str = "--item") -> str:
    if len(stores) != reports:
        raise UsageError(
            f"{option} with {number_of(reports, 'report')} needs --predictions once for each, in "
            f"their order; found {len(stores)}."
        )
    return stores[n]


def _box(text: str) -> Box:
    """Return y0, y1, x0, x1 of `0.2:0.6,0.1:0.4`. Raises `UsageError`."""
    match = _BOX.fullmatch(text)
    try:
        y0, y1, x0, x1 = (number_in(end) for end in match.groups()) if match else (0.0,) * 4
    except ValueError:
        y0 = y1 = x0 = x1 = 0.0
    if not (0 <= y0 < y1 <= 1 and 0 <= x0 < x1 <= 1):
        raise UsageError(
            f"--box {quoted(text)}: expected fractions of height and width, such as "
            "0.2:0.6,0.1:0.4."
        )
    return y0, y1, x0, x1


def _open(
    report: Report,
    settings: ReportOptions,
    predictions: Sequence[str],
    option: str,
    maps: Sequence[str] = (),
) -> Pictures:
    """Return the pictures of a report from its stores. Raises `UsageError` without its stores."""
    video, model = settings.video, settings.model
    if "video" in (report.inputs.get("options") or {}) and video is None:
        raise UsageError(
            f"{option} shows frames; give --video VIDEO (and --predictions STORE) of the report. "
            "uqeval does not open the paths in a report."
        )
    if video is None and not predictions:
        raise UsageError(
            f"{option} shows pixels; give --predictions STORE (and --labels STORE) of the report. "
            "uqeval does not open the paths in a report."
        )
    if model is not None and video is None:
        raise UsageError("--model chooses a model of a `uqeval tc` report; give --video VIDEO too.")
    if video is not None and maps:
        raise UsageError("--maps is for reports of single images; a video shows its frames.")
    if video is not None and settings.images is not None:
        raise UsageError("--images is for reports of single images; a video shows its frames.")
    from uqeval.usecases.gallery.opening import open_gallery
    from uqeval.usecases.plans import input_options

    of_run = report.inputs.get("options") or {}
    recorded = {name: of_run[name] for name in _OF_INPUTS if of_run.get(name) is not None}
    options = input_options(recorded | {"names": settings.names, "video": video})
    stores = list(predictions) or None
    return open_gallery(report, stores, settings.labels, settings.images, options, model, maps)
