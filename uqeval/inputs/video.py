"""A video: its frames, what models predict for them, their labels, and flow that was saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from uqeval.errors import StoreError, UsageError
from uqeval.inputs.common import refuse_missing
from uqeval.inputs.given import Given, InputOptions, Inputs, Stamp
from uqeval.inputs.ids import Ids, classes_of, frame_ids, open_ids, void_in
from uqeval.inputs.like_ids import like_ids
from uqeval.inputs.part import chosen_items
from uqeval.metrics._family import VideoFacts

if TYPE_CHECKING:
    from uqeval.stores.array import ItemArray
    from uqeval.stores.flow_files import Flows
    from uqeval.stores.frames import Frames
    from uqeval.stores.sequences import Pair, Sequences

#: Where a folder that is a video keeps what belongs to it.
FRAMES, PREDICTIONS, LABELS = "frames", "predictions", "labels"


def open_video(
    predictions: Given | Sequence[Given] | None, labels: Given | None, options: InputOptions
) -> Inputs:
    """A video with the predictions of one model or several. Raises `StoreError`, `UsageError`.

    What is not given is looked for in the video: in its folders `predictions/` and `labels/`, or in
    the arrays of its store.
    """
    from uqeval.maps.flow import single_threaded
    from uqeval.maps.flow_cache import FlowCache
    from uqeval.maps.video import VideoSource
    from uqeval.stores.array import ItemArray
    from uqeval.stores.frames import open_frames
    from uqeval.stores.names import read_names_file
    from uqeval.stores.sequences import sequences_of

    assert options.video is not None
    video = options.video
    frames = open_frames(inside(video, FRAMES) or video, fill_missing=options.fill)
    names = options.names
    if isinstance(names, str | Path):
        names = read_names_file(names)
    named = tuple(names) if names is not None else frames.names
    if named is not None and len(named) != len(frames):
        raise StoreError(
            f"{frames.where}: {len(named)} names for {len(frames)} frames; give one name a frame."
        )
    sequences = sequences_of(named, len(frames), frames.where)
    shown = named or tuple(str(i) for i in range(len(frames)))

    models = _models(predictions, video, named, len(frames), options)
    truth, against = _truth(labels, video, models, named, len(frames), options)
    classes, class_texts, is_named = classes_of([*models, *([truth] if truth else [])], options)
    void = void_in(models, options)
    resize = options.resize == "nearest"
    ends = [i + 1 for i, pair in enumerate(sequences.pairs) if pair.last]
    places, evaluated = chosen_items(
        options, len(sequences.pairs), ends if options.whole_sequences else None
    )
    pairs = list(sequences.pairs[places.start : places.stop])
    pairs[-1] = replace(pairs[-1], last=True)  # tracks end here, even within a sequence
    stored = _flows(video, sequences, named, len(frames), options)
    own_flows = {direction: flows.of(places) for direction, flows in stored.items()}
    source = VideoSource(
        frames, shown, pairs,
        [frame_ids(own, shown, classes, void, "predictions", resize) for own in models],
        labels=frame_ids(truth, shown, classes, void, "labels", resize) if truth else None,
        labelled=[truth.has(i) for i in range(len(frames))] if truth else (),
        stored=own_flows, cache=FlowCache(options.flow_cache) if options.flow_cache else None,
        classes=classes,
    )  # fmt: skip
    parts = [part for own in (*models, *([truth] if truth else [])) for part in own.stored]
    arrays = [*frames.arrays, *(array for flows in stored.values() for array in flows.arrays)]
    refuse_missing([*parts, *(ItemArray(array, None) for array in arrays)], options.fill)
    unlabelled = source.labelled.count(False)
    facts = VideoFacts(
        models=_model_names(models),
        before=tuple(shown[pair.before] for pair in pairs),
        sequences=tuple(pair.sequence for pair in pairs),
        first=tuple(pair.first for pair in pairs),
        rows=_rows(sequences, pairs),
        frames=len(frames),
        flow_record=lambda method: source.records()[method],
        against=against,
        unlabelled=unlabelled,
        named=is_named,
    )
    record: dict[str, Any] = {
        "frames": {
            "path": str(video), "frames": len(frames), "fingerprint": frames.fingerprint(),
        },
        "predictions": [own.record() for own in models],
        "labels": truth.record() if truth else None,
        "flow": [
            {"path": flows.where, "direction": name, "fingerprint": flows.fingerprint()}
            for name, flows in stored.items()
        ],
        **evaluated,
        "classes": classes if is_named or options.classes else None,
        "ignore_index": void,
    }  # fmt: skip
    told = [*models, *([truth] if truth else [])]
    warnings = [text for own in told for text in (*own.store.warnings, *own.sparse_warnings)]
    looks = [like_ids(frames, i, classes, void) for i in (pairs[0].before, pairs[-1].after)]
    warnings += looks[-1:] if all(looks) else []
    return Inputs(
        source, class_texts, void, record, list(dict.fromkeys(warnings)),
        partial=len(pairs) < len(sequences.pairs), video=facts, session=single_threaded,
        keeps_maps=False,  # one pass is enough, and flow takes much room
        timing=lambda: {"flow_seconds": dict(source.seconds)}, flows=source.records,
        stamped=[
            _stamped(frames, told, pair, [flows.parts[i] for flows in own_flows.values()])
            for i, pair in enumerate(pairs)
        ],
    )  # fmt: skip


def _stamped(
    frames: Frames, told: Sequence[Ids], pair: Pair, flows: Sequence[ItemArray]
) -> list[Stamp]:
    """What stamps all that a pair of frames is read from."""
    found: list[Stamp] = [lambda: f"{pair.first}"]
    for i in (pair.before, pair.after):
        found.append(partial(frames.stamp, i))
        found += [part.stamp for own in told for part in own.of_frame(i)]
    return found + [flow.stamp for flow in flows]


def inside(video: str | Path, name: str) -> Path | None:
    """The folder of this name in a video that is a plain folder."""
    from uqeval.stores.truth import is_zarr

    local = Path(video)
    if is_zarr(str(video)) or not (local / name).exists():
        return None
    return local / name


def _models(
    predictions: Given | Sequence[Given] | None,
    video: str | Path,
    names: tuple[str, ...] | None,
    count: int,
    options: InputOptions,
) -> list[Ids]:
    from uqeval.stores.truth import is_zarr

    if predictions is None:
        own = inside(video, PREDICTIONS)
        if own is None and not is_zarr(str(video)) and Path(video).suffix != ".npz":
            raise UsageError(
                f"{video}: has no folder `{PREDICTIONS}`; give the predictions after the video: a "
                "folder of PNGs of class ids, or a store."
            )
        given: list[Any] = [own or video]
    else:
        given = list(predictions) if isinstance(predictions, list | tuple) else [predictions]
    return [open_ids(own, names, count, "prediction", options) for own in given]


def _truth(
    labels: Given | None,
    video: str | Path,
    models: Sequence[Ids],
    names: tuple[str, ...] | None,
    count: int,
    options: InputOptions,
) -> tuple[Ids | None, str | None]:
    """What predictions are compared with, and which of the two kinds it is."""
    if labels is not None and options.pseudo_labels is not None:
        raise UsageError("--labels and --pseudo-labels: r is against one of them; give one.")
    if options.pseudo_labels is not None:
        for own in models:
            if _same(own.given, options.pseudo_labels):
                raise UsageError(
                    f"--pseudo-labels {options.pseudo_labels}: are the predictions themselves, "
                    "whose mIoU is 1; give those of a better model."
                )
        return open_ids(options.pseudo_labels, names, count, "label", options), "pseudo-labels"
    given = labels if labels is not None else inside(video, LABELS)
    if given is not None:
        return open_ids(given, names, count, "label", options), "labels"
    for own in models:
        if _same(own.given, video) and "labels" in own.store.arrays:
            parts = own.store.arrays["labels"]
            return Ids(own.store, ("labels",), parts, None, (), own.given), "labels"
    return None, None


def _same(one: Given, other: Given) -> bool:
    if not isinstance(one, str | Path) or not isinstance(other, str | Path):
        return one is other
    return Path(one).resolve() == Path(other).resolve()


def _flows(
    video: str | Path,
    sequences: Sequences,
    names: tuple[str, ...] | None,
    count: int,
    options: InputOptions,
) -> dict[str, Flows]:
    """Saved flow by direction, where it is given or the video's store holds it."""
    from uqeval.stores.flow_files import open_flows
    from uqeval.stores.store import open_store
    from uqeval.stores.truth import is_zarr

    held: set[str] = set()
    if is_zarr(str(video)) or Path(video).suffix == ".npz":
        held = set(open_store(video, role="frames", fill_missing=options.fill).arrays)
    found: dict[str, Flows] = {}
    given: dict[Literal["flow", "flow_forward"], Any] = {
        "flow": options.flow_path, "flow_forward": options.flow_forward_path
    }  # fmt: skip
    for kind, path in given.items():
        where = path if path is not None else (video if kind in held else None)
        if where is not None:
            found[kind] = open_flows(
                where, sequences.pairs, names, count, kind=kind, fill_missing=options.fill
            )
    return found


def _rows(sequences: Sequences, pairs: Sequence[Any]) -> tuple[dict[str, Any], ...]:
    """What is known of each sequence that has a pair, before anything is read."""
    counts: dict[str, int] = {}
    for pair in pairs:
        counts[pair.sequence] = counts.get(pair.sequence, 0) + 1
    return tuple(
        {
            "sequence": own.name,
            "frames": len(own.frames),
            "pairs": counts.get(own.name, 0),
            "gaps": own.gaps,
            "step": own.step,
        }
        for own in sequences.sequences
        if own.name in counts
    )


def _model_names(models: Sequence[Ids]) -> tuple[str, ...]:
    """What the models are called: the ends of their paths, as long as it takes to differ."""
    paths = [Path(own.store.path) for own in models]
    if len(set(paths)) < len(paths):
        twice = next(p for p in paths if paths.count(p) > 1)
        raise UsageError(f"{twice} is given twice; give each model once.")
    for parts in range(1, max(len(p.parts) for p in paths) + 1):
        names = [":".join(p.parts[-parts:]).removesuffix(".zarr") for p in paths]
        if len(set(names)) == len(names):
            break
    return tuple(names)
