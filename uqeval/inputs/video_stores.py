"""Open the parts of a video: frames, models, labels and saved flow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from uqeval.disk.suffixes import ARRAYS as ARRAY_FILES
from uqeval.errors import StoreError, UsageError, cut
from uqeval.inputs.common import as_store, identity_of, open_once, path_of
from uqeval.inputs.ids import Ids, open_ids
from uqeval.inputs.opened import Given
from uqeval.inputs.options import InputOptions
from uqeval.stores.array import Store
from uqeval.stores.class_ids import ASSUMED_VOID
from uqeval.stores.contents import Contents
from uqeval.stores.kinds import CLASS_PREDICTIONS
from uqeval.stores.kinds import PREDICTIONS as ARRAYS
from uqeval.stores.names import files_below, read_names_file, refuse_reordered
from uqeval.stores.orders import refuse_other_orders
from uqeval.stores.store import contents_of, open_store
from uqeval.stores.video.sequences import Sequences, sequences_of
from uqeval.stores.zarr.source import is_url, is_zarr
from uqeval.unicode_names import in_one_spelling

if TYPE_CHECKING:
    from uqeval.stores.video.flow_files import Flows
    from uqeval.stores.video.frames import Frames

#: Subfolders of a video folder.
FRAMES, PREDICTIONS, LABELS = "frames", "predictions", "labels"


@dataclass(frozen=True)
class VideoInputs:
    """Opened parts of a video.

    `names`: names of the frames, or their numbers. `models`: the predictions. `truth` by kind
    (`against`): labels or pseudo-labels. `flows`: saved flow by direction.
    """

    path: str
    frames: Frames
    names: tuple[str, ...]
    sequences: Sequences
    models: list[Ids]
    truth: Ids | None
    against: str | None
    flows: dict[str, Flows]

    @property
    def ids(self) -> list[Ids]:
        """Return all inputs that contain class ids."""
        return [*self.models, *([self.truth] if self.truth else [])]

    def record(self) -> dict[str, Any]:
        """Return the record of the video in a report."""
        return {
            "frames": {
                "path": self.path,
                "frames": len(self.frames),
                "fingerprint": self.frames.fingerprint(),
            },
            "predictions": [model.record() for model in self.models],
            "labels": self.truth.record() if self.truth else None,
            "flow": [
                {"path": flows.where, "direction": name, "fingerprint": flows.fingerprint()}
                for name, flows in self.flows.items()
            ],
        }


def open_video_inputs(
    predictions: Given | Sequence[Given] | None, labels: Given | None, options: InputOptions
) -> VideoInputs:
    """Open the given parts of a video, and find the others inside it.

    They are in its folders `predictions/` and `labels/`, or in the arrays of its store or mapping.
    Raises `StoreError` or `UsageError`.
    """
    from uqeval.stores.video.frames import open_frames

    assert options.video is not None
    video = as_store(options.video, "video")
    store = open_once(video) if is_store(video) else None
    source = store if store is not None else inside(video, FRAMES) or video
    frames = open_frames(source, fill_missing=options.fill)
    count, names = len(frames), options.names
    if isinstance(names, str | Path):
        names = read_names_file(names)
    item_names = in_one_spelling(names) if names is not None else frames.names
    if item_names is not None and len(item_names) != count:
        raise StoreError(
            f"{frames.where}: {len(item_names)} names for {count} frames; give one name per frame."
        )
    if names is not None:
        refuse_reordered(names, frames.names, frames.where)
    sequences = sequences_of(item_names, count, frames.where)
    ids_of = partial(open_ids, names=item_names, count=count, options=options)
    named_frames = frames.store and replace(frames.store, names=item_names)
    models = _models(predictions, video, store, ids_of)
    truth, truth_record = _truth(labels, video, named_frames, models, ids_of, options)
    ids = [*models, *([truth] if truth else [])]
    of_frames = [named_frames] if named_frames else []
    refuse_other_orders([*of_frames, *(own.store for own in ids)])
    if names is None:
        named = item_names is not None
        models = [own.beside(frames.store or frames.where, named) for own in models]
        truth = truth and truth.beside(frames.store or frames.where, named)
    return VideoInputs(
        path_of(video), frames, item_names or tuple(str(i) for i in range(count)), sequences,
        models, truth, truth_record, _flows(store, sequences, item_names, frames, options),
    )  # fmt: skip


def is_store(video: Given) -> bool:
    """Return whether a video is one store of named arrays, not a folder of files, a video file or
    an array."""
    if not isinstance(video, str | Path):
        return isinstance(video, Contents | Mapping)
    return is_url(str(video)) or is_zarr(str(video)) or Path(video).suffix == ".npz"


def inside(video: Given, name: str) -> Path | None:
    """Return the subfolder with this name if the video is a plain folder."""
    if not isinstance(video, str | Path):
        return None
    local = Path(video)
    if is_zarr(str(video)) or not (local / name).exists():
        return None
    return local / name


def frames_in(store: Contents) -> str:
    """Return what makes an input a video of frames without other arrays of numbers than flow: its
    folder `frames/`, or its array; empty if it is none, such as a folder of frames and `.npy`
    predictions.
    """
    path, kinds = store.path, store.kinds
    if is_store(path):
        return f"an array `{FRAMES}`" if FRAMES in kinds and not kinds & ARRAYS else ""
    folder = inside(path, FRAMES)
    if folder is None or not folder.is_dir():
        return ""
    below = {PurePosixPath(file).parts[0] for file in files_below(path, ARRAY_FILES)}
    if any(not name.startswith(("flow", FRAMES)) for name in below):
        return ""
    from uqeval.inputs.ids import UNKNOWN_CLASSES, like_ids
    from uqeval.stores.video.image_folder import ImageFolder

    try:
        images = ImageFolder(folder)
        are_ids = like_ids(images, 0, UNKNOWN_CLASSES, ASSUMED_VOID)
    except StoreError:
        return ""
    return "" if are_ids else f"a folder `{FRAMES}/` of images"


def has_predictions(video: str) -> bool:
    """Return whether predictions are inside a video: a folder `predictions/`, or an array."""
    if not is_store(video):
        return inside(video, PREDICTIONS) is not None
    return not contents_of(video).kinds.isdisjoint(CLASS_PREDICTIONS)


def _models(
    predictions: Given | Sequence[Given] | None,
    video: Given,
    store: Given | None,
    ids_of: Callable[..., Ids],
) -> list[Ids]:
    if predictions is None:
        models = inside(video, PREDICTIONS)
        if models is None and store is None:
            raise UsageError(
                f"{cut(path_of(video))} has no folder `{PREDICTIONS}`; give the predictions after "
                "the video: a folder of PNGs of class ids, or a store."
            )
        sources: list[Any] = [store if models is None else models]
    else:
        sources = list(predictions) if isinstance(predictions, list | tuple) else [predictions]
    several = len(sources) > 1
    return [
        ids_of(source, noun="prediction", called=f"model {number}" * several)
        for number, source in enumerate(sources, 1)
    ]


def _truth(
    labels: Given | None,
    video: Given,
    frames: Store | None,
    models: Sequence[Ids],
    ids_of: Callable[..., Ids],
    options: InputOptions,
) -> tuple[Ids | None, str | None]:
    """Return the labels or pseudo-labels, and which of the two they are.

    Those inside the video count if no others are given.
    """
    if labels is not None and options.pseudo_labels is not None:
        raise UsageError("--labels and --pseudo-labels exclude each other; give one of them.")
    if options.pseudo_labels is not None:
        for model in models:
            if identity_of(model.given) == identity_of(options.pseudo_labels):
                raise UsageError(
                    f"--pseudo-labels {cut(path_of(options.pseudo_labels))} are the evaluated "
                    "predictions, so their mIoU would be 1. Give the predictions of a better model."
                )
        given = options.pseudo_labels
        return ids_of(given, noun="label", called="pseudo_labels"), "pseudo-labels"
    source = labels if labels is not None else inside(video, LABELS)
    if source is not None:
        return ids_of(source, noun="label", called="labels"), "labels"
    if frames is not None and "labels" in frames.arrays:  # of the frames beside them
        return Ids(frames, ("labels",), frames.arrays["labels"], None, (), video), "labels"
    return None, None


def _flows(
    store: Given | None,
    sequences: Sequences,
    names: tuple[str, ...] | None,
    frames: Frames,
    options: InputOptions,
) -> dict[str, Flows]:
    """Return saved flow by direction, from the given paths or the video's store."""
    from uqeval.stores.video.flow_files import open_flows

    inside_video: set[str] = set()
    if store is not None:
        inside_video = set(open_store(store, role="frames", fill_missing=options.fill).arrays)
    flows: dict[str, Flows] = {}
    paths: dict[Literal["flow", "flow_forward"], Any] = {
        "flow": options.flow_path, "flow_forward": options.flow_forward_path
    }  # fmt: skip
    for kind, path in paths.items():
        where = store if kind in inside_video else None
        if path is not None:
            where = as_store(path, f"{kind}_path")
        if where is not None:
            flows[kind] = open_flows(
                where, sequences.pairs, names, len(frames), kind=kind, fill_missing=options.fill,
                beside=frames.store,
            )  # fmt: skip
    return flows
