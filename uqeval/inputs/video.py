"""A video as pairs of neighbouring frames: where maps come from, and what is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.errors import UsageError
from uqeval.inputs.common import refuse_missing, watch_of
from uqeval.inputs.film import Film, open_film
from uqeval.inputs.given import Given, Inputs
from uqeval.inputs.ids import Ids, classes_of, frame_ids, void_in
from uqeval.inputs.like_ids import like_ids
from uqeval.inputs.options import InputOptions
from uqeval.inputs.part import chosen_items
from uqeval.metrics._dataset_info import VideoInfo
from uqeval.stores.watch import Said

if TYPE_CHECKING:
    from uqeval.stores.sequences import Pair, Sequences
    from uqeval.stores.watch import Watched


def open_video(
    predictions: Given | Sequence[Given] | None, labels: Given | None, options: InputOptions
) -> Inputs:
    """The pairs of neighbouring frames of a video, with the predictions of one model or several.

    Raises `StoreError` or `UsageError`.
    """
    from uqeval.maps.flow import single_threaded
    from uqeval.maps.flow_cache import FlowCache
    from uqeval.maps.video import VideoSource

    film = open_film(predictions, labels, options)
    classes, class_texts, is_named = classes_of(film.ids, options)
    void = void_in(film.models, options)
    places, evaluated = _places(film.sequences, options)
    pairs = list(film.sequences.pairs[places.start : places.stop])
    pairs[-1] = replace(pairs[-1], last=True)  # tracks end here, even within a sequence
    resize = options.resize == "nearest"
    ids = [frame_ids(own, film.names, classes, void, "predictions", resize) for own in film.models]
    truth = film.truth
    source = VideoSource(
        film.frames, film.names, pairs, ids,
        labels=frame_ids(truth, film.names, classes, void, "labels", resize) if truth else None,
        labelled=[truth.has(i) for i in range(len(film.frames))] if truth else (),
        stored={direction: flows.of(places) for direction, flows in film.flows.items()},
        cache=FlowCache(options.flow_cache) if options.flow_cache else None, classes=classes,
    )  # fmt: skip
    parts = [_read_from(film, pair, at) for pair, at in zip(pairs, places, strict=True)]
    watch = watch_of(source.names, parts, options)
    _refuse_missing(film, options)
    info = VideoInfo(
        models=_model_names(film.models),
        before=tuple(film.names[pair.before] for pair in pairs),
        sequences=tuple(pair.sequence for pair in pairs),
        first=tuple(pair.first for pair in pairs),
        rows=_rows(film.sequences, pairs),
        frames=len(film.frames),
        flow_record=lambda method: source.records()[method],
        against=film.against,
        unlabelled=source.labelled.count(False),
        named=is_named,
    )
    record = film.record() | {
        **evaluated,
        "classes": classes if is_named or options.classes else None,
        "ignore_index": void,
        # Items are named after the second frame of a pair; `verify` needs the names of all frames.
        **({} if options.names is None else {"frame_names": list(film.names)}),
    }
    warnings = [text for own in film.ids for text in (*own.store.warnings, *own.sparse_warnings)]
    looks = [like_ids(film.frames, i, classes, void) for i in (pairs[0].before, pairs[-1].after)]
    warnings += looks[-1:] if all(looks) else []
    return Inputs(
        source, class_texts, void, record, list(dict.fromkeys(warnings)),
        partial=len(pairs) < len(film.sequences.pairs), video=info, session=single_threaded,
        keeps_maps=False,  # one pass is enough, and flow takes much room
        timing=lambda: {"flow_seconds": dict(source.seconds)}, flows=source.records,
        watch=watch,
    )  # fmt: skip


def _places(sequences: Sequences, options: InputOptions) -> tuple[range, dict[str, Any]]:
    """Which pairs are evaluated, and what a report says of it."""
    ends = [i + 1 for i, pair in enumerate(sequences.pairs) if pair.last]
    between = ends if options.whole_sequences else None
    return chosen_items(options.part, options.limit, len(sequences.pairs), between)


def _refuse_missing(film: Film, options: InputOptions) -> None:
    """Raise `StoreError` for chunks of any array that are not there."""
    from uqeval.stores.array import ItemArray

    parts = [part for own in film.ids for part in own.stored]
    flows = (array for own in film.flows.values() for array in own.arrays)
    arrays = [ItemArray(array, None) for array in (*film.frames.arrays, *flows)]
    refuse_missing([*parts, *arrays], options.fill)


def _read_from(film: Film, pair: Pair, place: int) -> list[Watched]:
    """Return all that a pair of frames is read from."""
    from uqeval.stores.frames import Frame

    found: list[Watched] = [Said(f"{pair.first}")]
    for i in (pair.before, pair.after):
        found.append(Frame(film.frames, i))
        found += [part for own in film.ids for part in own.of_frame(i)]
    return found + [flows.parts[place] for flows in film.flows.values()]


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
