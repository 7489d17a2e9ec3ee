"""`uqeval inspect`: check a store before you evaluate it, and estimate memory and time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from uqeval.cli import options as o
from uqeval.cli.declared import Shared, with_options
from uqeval.cli.streams import console, progress_for, tell, warn
from uqeval.disk.files import json_text
from uqeval.engine.options import MachineOptions
from uqeval.errors import UqevalError, UsageError, all_listed, cut, number_of
from uqeval.settings import Settings, shared_option

if TYPE_CHECKING:
    from uqeval.usecases.inspect import Inspection


#: What the table calls numbers of pixels that were read.
_LABELS = {
    "pixels": "pixels checked",
    "confidence_1": "pixels of confidence 1",
    "void": "void pixels",
}
#: Number of class names in the table; JSON has all.
_CLASSES = 40


@dataclass(frozen=True)
class InspectOptions(Settings):
    """The options of `uqeval inspect`."""

    # fmt: off
    full: bool = shared_option(False, "Check the values of all items instead of three.")
    format: str = shared_option("table", "Format of stdout.", choices=("table", "json"))
    store: Sequence[str] = shared_option(
        (), "Without paths: show only this store of uqeval.yaml. Repeat for more.",
        metavar="NAME", panel="Input", list_by="repeat")
    # fmt: on


@with_options("quiet", *o.READING, "invalid", *o.RUNNING, of=InspectOptions)
def inspect(
    shared: Shared,
    settings: InspectOptions,
    paths: o.Paths = None,
) -> None:  # fmt: skip
    """Check a store before you evaluate it: arrays, missing chunks, values, memory and time.

    A store or a folder of frames and predicted ids is a video. For predictions that are not
    inside the video, give VIDEO PREDS. Exit status 2: the store has a problem.

    Without paths, shows all stores of uqeval.yaml.

    Example: uqeval inspect preds.zarr labels/
    """
    import dataclasses

    options = shared.values_of(*o.READING, "invalid", *o.RUNNING)
    if paths:
        if settings.store:
            raise UsageError(
                "--store chooses a store of uqeval.yaml; leave it out, or leave out the paths."
            )
        given = options | _stores(paths)
        inspections = {"": _looked(given, settings.full, shared)}
    else:
        inspections = _of_file(options, settings.full, shared, settings.store)
    if settings.format == "json":
        records: Any = {
            name: dataclasses.asdict(inspection) for name, inspection in inspections.items()
        }
        typer.echo(json_text(records[""] if paths else records), nl=False)
    for name, inspection in inspections.items():
        of = f"{name}: " if name else ""
        if settings.format == "table" and not shared.quiet:
            _show(inspection, of)
        if not shared.quiet:
            warn((of + text for text in inspection.warnings), shared.quiet)
            for text in inspection.problems:
                tell(f"problem: {of}{text}")
    if any(inspection.problems for inspection in inspections.values()):
        raise typer.Exit(2)


def _stores(paths: list[str]) -> dict[str, Any]:
    """Return the predictions and the labels among the paths, as `inspect` takes them."""
    from uqeval.inputs.video_stores import FRAMES, frames_in, has_predictions, is_store
    from uqeval.stores.store import contents_of
    from uqeval.usecases.inspect import predictions_in_video

    has_folder, others = predictions_in_video(paths[0]) is not None, [*map(contents_of, paths[1:])]
    # Labels belong to the predictions inside the video.
    are_labels = len(others) == 1 and others[0].is_truth()
    if has_folder and (are_labels or not others):
        return {"predictions": paths[0], "labels": paths[1] if others else None}
    first = contents_of(paths[0])
    # Members of one ensemble all have frames, or none.
    has_frames = is_store(paths[0]) and FRAMES in first.kinds
    is_only_one = not any(FRAMES in own.kinds for own in others)
    has_ids = has_folder or (
        {"frames", "predictions"} <= first.kinds and not {"probs", "logits"} & first.kinds
    )
    stores, video = [first, *others], {}
    if others and (
        ((has_ids or (has_frames and is_only_one)) and not are_labels)
        or (frames_in(first) and not has_predictions(paths[0]))
    ):
        video, stores = {"video": paths[0]}, others
    predictions, labels = o.split_paths(stores, labels_alone=True)
    return {"predictions": predictions, "labels": labels} | video


def _of_file(
    options: dict[str, Any], full: bool, shared: Shared, store_names: Sequence[str]
) -> dict[str, Inspection]:
    """Inspect the stores of uqeval.yaml; print the errors of those that cannot be opened."""
    from uqeval.cli.from_file import merged_options, stores_to_inspect
    from uqeval.usecases.inspect import Inspection

    stores, videos = stores_to_inspect("PREDS [LABELS]", store_names)
    warn(
        (f"{name}: skipped, because inspect does not check video data." for name in videos),
        shared.quiet,
    )
    inspections = {}
    for name, store in stores.items():
        everywhere = {n: v for n, v in store.everywhere.items() if n in shared.option_names}
        request = merged_options(store.data | everywhere, options, shared.typed)
        try:
            with store.errors("inspect", shared.typed):
                inspections[name] = _looked(request, full, shared)
        except UqevalError as error:
            path = request["predictions"]
            title = path if isinstance(path, str) else ", ".join(path)
            inspections[name] = Inspection(title, [], 0, None, {}, problems=[str(error)])
    return inspections


def _looked(request: dict[str, Any], full: bool, shared: Shared) -> Inspection:
    from uqeval.engine.scheduler import cluster_of
    from uqeval.usecases.inspect import inspect as look

    machine = MachineOptions(**{name: request.pop(name) for name in o.RUNNING if name in request})
    with cluster_of(machine) as cluster:
        run = machine.run(progress=progress_for(shared.quiet), cluster=cluster)
        return look(full=full, machine=run, **request)


def _first(names: Sequence[object], most: int) -> str:
    """Return the first `most` names, shortened, and the number of the others."""
    return ", ".join(map(cut, names[:most])) + (" …" if len(names) > most else "")


def _show(inspection: Inspection, of: str) -> None:
    from rich import filesize
    from rich.markup import escape

    from uqeval.report.tables.table import text_table
    from uqeval.report.terminal import fitted, print_table

    stdout = console(120)
    columns = ["array", "axes", "shape", "dtype", "chunk", "a chunk", "on disk", "missing"]
    rows = []
    for array in inspection.arrays:
        shape = array.shape if isinstance(array.shape, str) else "×".join(map(str, array.shape))
        stored, missing = array.stored_bytes, array.missing_chunks
        share = (stored or 0) / max(array.logical_bytes, 1)
        rows.append([
            cut(array.name), all_listed(array.axes), cut(shape), cut(array.dtype),
            "×".join(map(str, array.chunks)), filesize.decimal(array.chunk_bytes),
            "?" if stored is None else f"{filesize.decimal(stored)} ({share:.0%})",
            "?" if missing is None else f"{missing:,}",
        ])  # fmt: skip
    title = f"{cut(of + inspection.path)}  {number_of(inspection.items, 'item')}"
    for part in fitted(text_table(title, columns, rows, left=frozenset(range(5))), stdout.width):
        print_table(part, stdout)
    names = "none" if inspection.names is None else _first(inspection.names, 3)
    values = {_LABELS.get(key, key): f"{n:,}" for key, n in inspection.values.items()}
    for key, value in (inspection.facts | {"names": names} | values).items():
        is_list = isinstance(value, list)
        text = _first(value, _CLASSES) if is_list else value if key == "names" else cut(value)
        stdout.print(f"  {key.replace('_', ' '):<22} {escape(text)}", soft_wrap=True)
    if inspection.cost:
        stdout.print(
            f"  {'memory':<22} {filesize.decimal(inspection.cost['bytes_a_worker'])} per worker, "
            f"{number_of(inspection.cost['workers_within_memory'], 'worker')} within --memory"
        )
        stdout.print(
            f"  {'time':<22} about {inspection.cost['seconds_estimated']:.1f} s to read all items "
            "once"
        )
    verdict = "[bold red]not sound[/]" if inspection.problems else "[bold green]sound[/]"
    unchecked = f" (not checked: {escape('; '.join(inspection.unchecked))})"
    stdout.print(f"{verdict}{unchecked if inspection.unchecked else ''}", soft_wrap=True)
