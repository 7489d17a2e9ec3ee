"""Open a video as pairs of neighbouring frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.disk.files import place_of
from uqeval.errors import UsageError, listed
from uqeval.inputs.common import refuse_missing, warn_of_masks, watch_of
from uqeval.inputs.ids import Ids, classes_of, frame_ids, is_computed, like_ids, void_of_ids
from uqeval.inputs.opened import Given, Inputs, of_all_shards
from uqeval.inputs.options import InputOptions, chosen_items
from uqeval.inputs.video_stores import VideoInputs, open_video_inputs
from uqeval.metrics._dataset_info import VideoInfo
from uqeval.stores.class_ids import stamp_of_void, void_id_of
from uqeval.stores.video.sequences import Pair, Sequences
from uqeval.stores.watched_parts import PartsIfRead, Watched, WatchedText

if TYPE_CHECKING:
    from uqeval.maps.video import VideoSource

_EXCLUDED = "Pixels to leave out have the void id in the predictions (--ignore-index)."


def open_video(
    predictions: Given | Sequence[Given] | None, labels: Given | None, options: InputOptions
) -> Inputs:
    """Open the pairs of neighbouring frames of a video, with predictions of one or more models.

    Raises `StoreError` or `UsageError`.
    """
    from uqeval.maps.flow import FlowCache, single_threaded
    from uqeval.maps.video import VideoSource

    video_inputs = open_video_inputs(predictions, labels, options)
    classes, class_texts, is_named = classes_of(video_inputs.ids, options)
    pair_range, evaluated = _pair_range(video_inputs.sequences, options)
    pairs = list(video_inputs.sequences.pairs[pair_range.start : pair_range.stop])
    pairs[-1] = replace(pairs[-1], last=True)  # tracks end here, even within a sequence
    resize = options.resize == "nearest"
    truth, names, models = video_inputs.truth, video_inputs.names, video_inputs.models
    voids = [void_of_ids(model, classes, options) for model in models]
    void = (
        void_id_of(options.ignore_index, *([model.store] for model in models))
        if truth is None
        else void_of_ids(truth, classes, options, models)
    )
    ids = [
        frame_ids(model, names, classes, void_of_model, "predictions", resize)
        for model, void_of_model in zip(models, voids, strict=True)
    ]
    source = VideoSource(
        video_inputs.frames, names, pairs, ids,
        labels=frame_ids(truth, names, classes, void, "labels", resize) if truth else None,
        labelled=[truth.has(i) for i in range(len(video_inputs.frames))] if truth else (),
        stored={direction: flows.of(pair_range) for direction, flows in video_inputs.flows.items()},
        cache=FlowCache(options.flow_cache) if options.flow_cache else None, classes=classes,
    )  # fmt: skip
    parts = [
        _read_from(video_inputs, pair, at, source.reads)
        for pair, at in zip(pairs, pair_range, strict=True)
    ]
    if others := _other_voids(models, voids, void, classes):
        parts = [[*watched_parts, WatchedText(others)] for watched_parts in parts]
    watch = watch_of(source.names, parts, options)
    _refuse_missing(video_inputs, options)
    info = _info(video_inputs, pairs, source, is_named, voids)
    record = video_inputs.record() | {
        **evaluated,
        "classes": classes if is_named or options.classes else None,
        "ignore_index": int(void),
        # Items are named after the second frame of a pair; `verify` needs the names of all frames.
        **({} if options.names is None else {"frame_names": list(video_inputs.names)}),
    }
    stores = [*(own.store for own in video_inputs.ids), video_inputs.frames.store]
    return Inputs(
        source, class_texts, void, record,
        _warnings(video_inputs, pairs, classes, void)
        + warn_of_masks(stores, options, (), _EXCLUDED),
        partial=len(pairs) < len(video_inputs.sequences.pairs), video=info, session=single_threaded,
        store=video_inputs.frames.store or next((own.store for own in video_inputs.ids), None),
        keeps_maps=False,  # one pass is enough, and flow takes much room
        flow_seconds=source.seconds, flows=source.records,
        watch=watch, **of_all_shards(evaluated, *_all_pairs(video_inputs)),
    )  # fmt: skip


def _all_pairs(
    video_inputs: VideoInputs,
) -> tuple[tuple[str, ...], Callable[[], tuple[tuple[int, int], ...]]]:
    """Return the name of each pair of the video, and a function that returns their sizes."""
    after = [pair.after for pair in video_inputs.sequences.pairs]
    names = tuple(video_inputs.names[i] for i in after)
    return names, lambda: tuple(map(video_inputs.frames.size, after))


def _info(
    video_inputs: VideoInputs,
    pairs: Sequence[Pair],
    source: VideoSource,
    is_named: bool,
    voids: Sequence[int],
) -> VideoInfo:
    """Return the facts about the video that are known before reading it."""
    return VideoInfo(
        models=_model_names(video_inputs.models),
        before=tuple(video_inputs.names[pair.before] for pair in pairs),
        sequences=tuple(pair.sequence for pair in pairs),
        first=tuple(pair.first for pair in pairs),
        rows=_rows(video_inputs.sequences, pairs),
        frames=len(video_inputs.frames),
        flow_record=lambda method: source.records()[method],
        against=video_inputs.against,
        unlabelled=source.labelled.count(False),
        named=is_named,
        voids=tuple(
            None if is_computed(model) else int(void)
            for model, void in zip(video_inputs.models, voids, strict=True)
        ),
    )


def _warnings(
    video_inputs: VideoInputs, pairs: Sequence[Pair], classes: int, void: int
) -> list[str]:
    """Return warnings of the stores, of frames in no pair, of frames that look like ids, and
    of frames with an EXIF orientation, each once.
    """
    from uqeval.stores.video.image_folder import turned

    warnings = [
        text
        for model in video_inputs.ids
        for text in (*model.store.warnings, *model.match_warnings)
    ]
    warnings += [text for flows in video_inputs.flows.values() for text in flows.warnings]
    if video_inputs.truth is None:
        warnings += [
            f"{model.store.path}: its array `labels` is not read, as only labels inside the video "
            "are found. To compute mIoU_t, give this store as the labels, too."
            for model in video_inputs.models
            if "labels" in model.store.arrays
        ]
    looks = [
        like_ids(video_inputs.frames, i, classes, void) for i in (pairs[0].before, pairs[-1].after)
    ]
    warnings += looks[-1:] if all(looks) else []
    sampled = (pairs[0].before, pairs[len(pairs) // 2].after, pairs[-1].after)
    all_turned = (turned(video_inputs.frames, i) for i in sampled)
    warnings += [text for text in all_turned if text][:1]
    return list(dict.fromkeys([*warnings, *_frames_without_pair(video_inputs)]))


def _frames_without_pair(video_inputs: VideoInputs) -> list[str]:
    """Return a warning if frames of the video are in no pair: they are in no score."""
    in_pairs = {i for pair in video_inputs.sequences.pairs for i in (pair.before, pair.after)}
    names = [name for i, name in enumerate(video_inputs.names) if i not in in_pairs]
    if not names:
        return []
    return [
        f"{len(names)} of {len(video_inputs.names)} frames have no neighbour in their sequence, so "
        f"they are in no pair: {listed(names, 3)}. A sequence is a folder and a name without its "
        "last number"
    ]


def _pair_range(sequences: Sequences, options: InputOptions) -> tuple[range, dict[str, Any]]:
    """Return the range of evaluated pairs, and its record in a report."""
    ends = [i + 1 for i, pair in enumerate(sequences.pairs) if pair.last]
    borders = ends if options.whole_sequences else None
    return chosen_items(options, len(sequences.pairs), borders)


def _refuse_missing(video_inputs: VideoInputs, options: InputOptions) -> None:
    """Raise `StoreError` for missing chunks of any array."""
    of_ids = (item_array.array for model in video_inputs.ids for item_array in model.stored)
    flows = (array for flow in video_inputs.flows.values() for array in flow.arrays)
    refuse_missing([*of_ids, *video_inputs.frames.arrays, *flows], options.fill)


def _read_from(
    video_inputs: VideoInputs, pair: Pair, index: int, reads: Callable[[str], bool]
) -> list[Watched]:
    """Return all files and arrays that a pair of frames is read from.

    `reads`: whether the run reads labels, or the flow of a direction.
    """
    from uqeval.stores.video.frames import Frame

    watched_parts: list[Watched] = [WatchedText(f"{pair.first}")]
    for i in (pair.before, pair.after):
        watched_parts.append(Frame(video_inputs.frames, i))
        watched_parts += [part for model in video_inputs.models for part in model.of_frame(i)]
        if video_inputs.truth is not None:
            labels = video_inputs.truth.of_frame(i)
            watched_parts += PartsIfRead(labels, partial(reads, "labels"))
    for direction, flows in video_inputs.flows.items():
        watched_parts += PartsIfRead([flows.parts[index]], partial(reads, direction))
    return watched_parts


def _other_voids(models: Sequence[Ids], voids: Sequence[int], void: int, classes: int) -> str:
    """Return the void ids of predictions as text; empty if all are `void`, the recorded one."""
    stamps = [
        stamp_of_void(void_of_model, classes)
        for model, void_of_model in zip(models, voids, strict=True)
        if model.source is None
    ]
    return "" if set(stamps) <= {stamp_of_void(void, classes)} else f"void ids {stamps}"


def _rows(sequences: Sequences, pairs: Sequence[Any]) -> tuple[dict[str, Any], ...]:
    """Return the known facts of each sequence that has a pair, before reading data."""
    counts: dict[str, int] = {}
    for pair in pairs:
        counts[pair.sequence] = counts.get(pair.sequence, 0) + 1
    return tuple(
        {
            "sequence": sequence.name,
            "frames": len(sequence.frames),
            "pairs": counts.get(sequence.name, 0),
            "gaps": sequence.gaps,
            "step": sequence.step,
        }
        for sequence in sequences.sequences
        if sequence.name in counts
    )


def _model_names(models: Sequence[Ids]) -> tuple[str, ...]:
    """Return names of the models: the shortest ends of their paths that differ."""
    paths = [Path(model.store.path) for model in models]
    places = [place_of(model.store.path) for model in models]
    if len(set(places)) < len(paths):
        twice = next(p for p, place in zip(paths, places, strict=True) if places.count(place) > 1)
        raise UsageError(f"{twice} is given twice; give each model once.")
    for parts in range(1, max(len(p.parts) for p in paths) + 1):
        names = [":".join(p.parts[-parts:]).removesuffix(".zarr") for p in paths]
        if len(set(names)) == len(names):
            break
    return tuple(names)
