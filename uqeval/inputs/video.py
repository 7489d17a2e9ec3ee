"""A video: its frames, what models predict for them, their labels, and flow that was saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from uqeval.errors import StoreError, UsageError
from uqeval.inputs.classes import class_names, open_classes
from uqeval.inputs.common import (
    Opened,
    is_folder_of_files,
    open_predictions,
    record_of,
    refuse_missing,
)
from uqeval.inputs.given import Given, InputOptions, Inputs
from uqeval.inputs.part import chosen_items
from uqeval.metrics._family import VideoFacts

if TYPE_CHECKING:
    from uqeval.maps.frame_ids import FrameIds
    from uqeval.maps.sources import Source
    from uqeval.stores.array import ItemArray, Store
    from uqeval.stores.flow_files import Flows
    from uqeval.stores.sequences import Sequences

#: Where a folder that is a video keeps what belongs to it.
FRAMES, PREDICTIONS, LABELS = "frames", "predictions", "labels"
#: Ids that 8 bits hold beside void, where nobody says how many classes there are.
UNKNOWN_CLASSES = 255


@dataclass(frozen=True)
class Ids:
    """Ids of the frames as opened: planes by frame, or a source of probabilities."""

    store: Store
    kinds: tuple[str, ...]
    parts: tuple[ItemArray | None, ...]
    source: Source | None
    places: tuple[int, ...]
    given: Given
    sparse_warnings: tuple[str, ...] = ()


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
    source = VideoSource(
        frames, shown, pairs,
        [frame_ids(own, shown, classes, void, "predictions", resize) for own in models],
        labels=frame_ids(truth, shown, classes, void, "labels", resize) if truth else None,
        labelled=[_has(truth, i) for i in range(len(frames))] if truth else (),
        stored=stored, cache=FlowCache(options.flow_cache) if options.flow_cache else None,
        classes=classes,
    )  # fmt: skip
    parts = [part for own in (*models, *([truth] if truth else [])) for part in _stored(own)]
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
        "predictions": [_record(own) for own in models],
        "labels": _record(truth) if truth else None,
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
    return Inputs(
        source, class_texts, void, record, list(dict.fromkeys(warnings)),
        partial=len(pairs) < len(sequences.pairs), video=facts, session=single_threaded,
        keeps_maps=False,  # one pass is enough, and flow takes much room
        timing=lambda: {"flow_seconds": dict(source.seconds)},
    )  # fmt: skip


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


def open_ids(
    given: Given,
    names: tuple[str, ...] | None,
    count: int | None,
    noun: str,
    options: InputOptions,
) -> Ids:
    """Ids of the frames, in their order, wherever they are stored; `count` None: all there are."""
    from uqeval.stores.array import Store
    from uqeval.stores.label_folder import (
        open_label_folder,
        open_ordered_folder,
        open_sparse_labels,
    )

    label = noun == "label"
    if is_folder_of_files(given):
        path = str(given)
        kind: Literal["labels", "predictions"] = "labels" if label else "predictions"
        label_map = options.label_map if label else None
        if names is None and count is not None:
            store = open_ordered_folder(path, count, label_map=label_map, kind=kind)
            return Ids(store, (kind,), store.arrays[kind], None, (), given)
        if label:
            found = open_sparse_labels(path, names, label_map=label_map)
            store = Store(path, {"labels": tuple(p for p in found.parts if p)}, names)
            return Ids(store, (kind,), found.parts, None, (), given, found.warnings)
        store = open_label_folder(path, names, kind=kind)
        return Ids(store, (kind,), store.arrays[kind], None, (), given)
    opened = open_predictions(given, replace(options, names=None))
    (store,) = opened.stores
    kinds = ("labels", "predictions") if label else ("predictions",)
    probabilities = [kind for kind in ("probs", "logits") if kind in store.arrays]
    for array in kinds:
        if array in store.arrays and not (probabilities and array == "predictions"):
            parts = store.arrays[array]
            places = _places(store, len(parts), names, count, noun)
            return Ids(store, (array,), tuple(parts[i] for i in places), None, (), given)
    if not probabilities:
        raise StoreError(
            f"{store.path}: holds {', '.join(sorted(store.arrays))}; expected `predictions` "
            "[N, H, W], or `probs` or `logits`, of the frames."
        )
    alone = replace(options, names=None, limit=None, part=None, label_map=None, video=None)
    source: Any = open_classes(Opened([given], [store], store.names), None, alone).source
    places = _places(store, source.items, names, count, noun)
    return Ids(store, tuple(probabilities), (), source, places, given)


def _places(
    store: Store, items: int, names: tuple[str, ...] | None, count: int | None, noun: str
) -> tuple[int, ...]:
    """Which item of a store is each frame's: by name where both have names, else by order."""
    from uqeval.stores.matching import match_files

    if store.names is not None and names is not None and store.names != names:
        chosen = match_files(store.path, store.names, names, noun)
        place = {name: i for i, name in enumerate(store.names)}
        return tuple(place[chosen[name]] for name in names)
    if count is not None and items != count:
        raise StoreError(
            f"{store.path}: holds {items} {noun}s for {count} frames; give names to both, or one "
            f"{noun} a frame in the same order."
        )
    return tuple(range(items))


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


def classes_of(told: Sequence[Ids], options: InputOptions) -> tuple[int, tuple[str, ...], bool]:
    """How many classes there are, what they are called, and whether anybody says so."""
    counts = {}
    if options.classes is not None:
        counts["--classes"] = options.classes
    for own in told:
        if own.source is not None:
            counts[own.store.path] = own.source.classes
        elif names := own.store.attributes.get("class_names"):
            counts[own.store.path] = len(names)
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{where}: {n}" for where, n in counts.items())
        raise StoreError(f"the number of classes differs: {listed}.")
    if counts:
        classes = next(iter(counts.values()))
    else:
        wide = [own for own in told for part in _stored(own) if part.array.dtype.itemsize > 1]
        if wide:
            raise UsageError(
                f"{wide[0].store.path}: ids of more than 8 bits, and nobody says how many classes "
                "there are; give --classes."
            )
        classes = UNKNOWN_CLASSES
    for own in told:
        texts = class_names(own.store, None, classes)
        if own.store.attributes.get("class_names"):
            return classes, texts, True
    return classes, tuple(str(c) for c in range(classes)), bool(counts)


def void_in(models: Sequence[Ids], options: InputOptions) -> int:
    if options.ignore_index is not None:
        return options.ignore_index
    found = [own.store.attributes.get("ignore_index") for own in models]
    return next((int(v) for v in found if v is not None), 255)


def frame_ids(
    own: Ids, names: Sequence[str], classes: int, void: int, noun: str, resize: bool
) -> FrameIds:
    from uqeval.maps.frame_ids import ReducedIds, StoredIds
    from uqeval.stores.planes import Planes

    if own.source is not None:
        return ReducedIds(own.source, own.places, resize)
    there = [part for part in own.parts if part is not None]
    place = iter(range(len(there)))
    places = [None if part is None else next(place) for part in own.parts]
    return StoredIds(Planes(there), names, places, classes, void, noun, own.store.path, resize)


def _has(own: Ids, frame: int) -> bool:
    return own.source is not None or own.parts[frame] is not None


def _stored(own: Ids) -> list[ItemArray]:
    if own.source is not None:
        return [part for kind in own.kinds for part in own.store.arrays[kind]]
    return [part for part in own.parts if part is not None]


def _record(own: Ids) -> dict[str, Any]:
    return record_of(own.store, own.kinds, own.given)


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
        names = ["/".join(p.parts[-parts:]).removesuffix(".zarr") for p in paths]
        if len(set(names)) == len(names):
            break
    return tuple(names)
