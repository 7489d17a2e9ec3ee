"""Open the class ids of a video's frames: predictions of a model, or labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from uqeval.arrays import np
from uqeval.errors import StoreError, UsageError, all_listed, quoted
from uqeval.inputs.classes import open_classes
from uqeval.inputs.common import (
    PredictionStores,
    as_store,
    is_folder_of_files,
    open_once,
    open_predictions,
    record_of,
    refuse_unsure_order,
    warn_of_positions,
)
from uqeval.inputs.opened import Given
from uqeval.inputs.options import InputOptions
from uqeval.maps.names import void_of
from uqeval.stores.array import ItemArray, Store, arrays_of
from uqeval.stores.attribute_arrays import of_uqeval
from uqeval.stores.class_ids import names_of_classes, refuse_other_void, void_id_of
from uqeval.stores.files.label_folder import (
    open_label_folder,
    open_ordered_folder,
    open_sparse_labels,
    png_files,
)
from uqeval.stores.matching import match_files, match_some, warnings_of_folders
from uqeval.stores.planes import Planes

if TYPE_CHECKING:
    from uqeval.maps.frame_ids import FrameIds
    from uqeval.maps.sources import Source
    from uqeval.stores.video.frames import Frames

#: Number of classes if unknown: all ids of 8 bits, without void.
UNKNOWN_CLASSES = 255


@dataclass(frozen=True)
class Ids:
    """Opened ids of the frames: planes by frame, or a source of probabilities, whose items have the
    `places`; None for frames without ids."""

    store: Store
    kinds: tuple[str, ...]
    parts: Sequence[ItemArray | None]
    source: Source | None
    places: tuple[int | None, ...]
    given: Given
    match_warnings: tuple[str, ...] = ()

    @property
    def stored(self) -> list[ItemArray]:
        """Return the arrays, or parts of them, that the ids are read from."""
        if self.source is not None:
            return [item_array for kind in self.kinds for item_array in self.store.arrays[kind]]
        return [item_array for item_array in self.parts if item_array is not None]

    def has(self, frame: int) -> bool:
        """Return whether a frame has ids."""
        return (self.parts if self.source is None else self.places)[frame] is not None

    def of_frame(self, frame: int) -> list[ItemArray]:
        """Return the files or arrays of a frame's ids; empty if it has none."""
        if self.source is not None:
            place = self.places[frame]
            return [] if place is None else [self.store.arrays[kind][place] for kind in self.kinds]
        item_array = self.parts[frame]
        return [] if item_array is None else [item_array]

    def beside(self, frames: Store | str, named: bool) -> Ids:
        """Return these ids with a warning if only they or only the `frames` have names; not for
        files of the frames of a video file, which are known to be in natural order. Raises
        `StoreError` if the order of the ids is not clear.
        """
        if isinstance(frames, str) and not named and is_folder_of_files(self.given):
            return self
        if self.store.names is not None and not named:
            refuse_unsure_order(self.store, frames if isinstance(frames, str) else frames.path)
        return replace(self, store=warn_of_positions(self.store, frames, named))

    def record(self) -> dict[str, Any]:
        """Return the record of these ids in a report."""
        return record_of(self.store, self.kinds, self.given)


def open_ids(
    origin: Given,
    names: tuple[str, ...] | None,
    count: int | None,
    noun: str,
    options: InputOptions,
    called: str = "",
) -> Ids:
    """Open the ids of the frames in their order, in any format; `count` None: all frames.

    `called`: the argument that they were given as, for messages about arrays in memory.
    """
    label = noun == "label"
    origin = open_once(as_store(origin, noun))
    if is_folder_of_files(origin) and png_files(str(origin)):
        path = str(origin)
        kind: Literal["labels", "predictions"] = "labels" if label else "predictions"
        label_map = options.label_map if label else None
        if names is None and count is not None:
            store = open_ordered_folder(path, count, label_map=label_map, kind=kind)
            return Ids(store, (kind,), store.arrays[kind], None, (), origin)
        if label:
            labels, warnings = open_sparse_labels(path, names, label_map=label_map)
            store = Store(path, {"labels": tuple(p for p in labels if p)}, names)
            return Ids(store, (kind,), labels, None, (), origin, warnings)
        store = open_label_folder(path, names, kind=kind)
        return Ids(store, (kind,), store.arrays[kind], None, (), origin)
    reading = replace(options, names=None)
    if label:
        reading = replace(reading, kind=None, axes=None)
    predictions = open_predictions(origin, reading, called)
    (store,) = predictions.stores
    kinds = ("labels", "predictions") if label else ("predictions",)
    probabilities = [kind for kind in ("probs", "logits") if kind in store.arrays]
    for array in kinds:
        if array in store.arrays and not (probabilities and array == "predictions"):
            parts = store.arrays[array]
            positions, warnings = positions_of_frames(store, len(parts), names, count, noun)
            chosen = tuple(None if i is None else parts[i] for i in positions)
            return Ids(store, (array,), chosen, None, (), origin, warnings)
    if not probabilities:
        raise StoreError(
            f"{store.path} holds {all_listed(sorted(store.arrays))}; expected `predictions` "
            "[N, H, W], or `probs` or `logits`, of the frames."
        )
    narrowed = replace(
        options, names=None, limit=None, part=None, label_map=None, class_names=None, video=None
    )
    source: Any = open_classes(
        PredictionStores([origin], [store], store.names), None, narrowed
    ).source
    positions, warnings = positions_of_frames(store, source.items, names, count, noun)
    if "predictions" in store.arrays:
        warnings += (
            f"{store.path} holds {quoted(probabilities[0])} and `predictions`; the likeliest "
            f"classes of {quoted(probabilities[0])} are evaluated. Give the one that you mean as a "
            "store of its own.",
        )
    return Ids(store, tuple(probabilities), (), source, positions, origin, warnings)


def positions_of_frames(
    store: Store, items: int, names: tuple[str, ...] | None, count: int | None, noun: str,
    of: str = "frame",
) -> tuple[tuple[int | None, ...], tuple[str, ...]]:  # fmt: skip
    """Return each frame's item of a store, by name if both have names, else by position; and
    warnings. A frame may have no label: None.

    Raises `StoreError`, which calls a frame `of`.
    """
    if store.names is not None and names is not None and store.names != names:
        if noun == "label" and store.groups is None:
            file_names = match_some(store.path, store.names, names, noun)
        else:
            cases = dict(zip(store.names, store.groups, strict=True)) if store.groups else None
            advice = (
                f"Name the {noun}s as the {of}s; `uqeval convert` with --names FILE does so for a "
                "Zarr store."
            )
            file_names = match_files(
                store.path, store.names, names, noun, cases=cases, advice=advice
            )
        place = {name: i for i, name in enumerate(store.names)}
        warnings = warnings_of_folders(store.path, file_names, noun)
        found = (file_names.get(name) for name in names)
        return tuple(None if file is None else place[file] for file in found), tuple(warnings)
    if count is not None and items != count:
        raise StoreError(
            f"{store.path} holds {items} {noun}s for {count} {of}s; give names to both, or one "
            f"{noun} per {of} in the same order."
        )
    return tuple(range(items)), ()


def classes_of(models: Sequence[Ids], options: InputOptions) -> tuple[int, tuple[str, ...], bool]:
    """Return the number of classes, their names, and whether the number is declared."""
    counts = {}
    if options.classes is not None:
        counts["--classes"] = options.classes
    if options.class_names is not None:
        counts["--class-names"] = len(options.class_names)
    for model in models:
        if model.source is not None:
            counts[model.store.path] = model.source.classes
        elif names := model.store.attributes.get("class_names"):
            counts[model.store.path] = len(names)
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{where}: {n}" for where, n in counts.items())
        raise StoreError(f"the number of classes differs: {listed}.")
    if counts:
        classes = next(iter(counts.values()))
    else:
        wide = [
            model
            for model in models
            for item_array in model.stored
            if item_array.array.dtype.itemsize > 1
        ]
        if wide:
            raise UsageError(
                f"{wide[0].store.path} has ids of more than 8 bits, and the number of "
                "classes is unknown; give --classes."
            )
        classes = UNKNOWN_CLASSES
    names, _ = names_of_classes(options.class_names, [model.store for model in models], classes)
    return classes, names, bool(counts)


def is_computed(ids: Ids) -> bool:
    """Return whether ids are the likeliest classes of probabilities, which are never void.

    `ignore_index` of their store is the void id of labels.
    """
    is_of_maps = of_uqeval(ids.store.attributes).get("format") == "maps"
    return ids.source is not None or (is_of_maps and "labels" not in ids.kinds)


def void_of_ids(ids: Ids, classes: int, options: InputOptions, models: Sequence[Ids] = ()) -> int:
    """Return the void id of ids: of computed ones, an id that no class has.

    For labels, `models` are the predictions: if only a store of computed ones declares the void id
    of labels, it is that.
    """
    if is_computed(ids):
        return void_of(classes)
    computed = [model.store for model in models if is_computed(model)]
    void = void_id_of(options.ignore_index, [ids.store], computed)
    if options.ignore_index is None:
        refuse_other_void(arrays_of(ids.stored), void)
    return void


def frame_ids(
    ids: Ids, names: Sequence[str], classes: int, void: int, noun: str, resize: bool | None
) -> FrameIds:
    """Return readers of each frame's ids; `noun` is "labels" or "predictions"."""
    from uqeval.maps.frame_ids import ReducedIds, StoredIds

    if ids.source is not None:
        return ReducedIds(ids.source, ids.places, resize)
    stored_arrays = [item_array for item_array in ids.parts if item_array is not None]
    place = iter(range(len(stored_arrays)))
    positions = [None if item_array is None else next(place) for item_array in ids.parts]
    return StoredIds(
        Planes(stored_arrays), names, positions, classes, void, noun, ids.store.path, resize
    )


#: A camera image has more distinct grey values than this; an image of class ids has fewer.
_FEW = 32


def like_ids(frames: Frames, i: int, classes: int, void: int) -> str:
    """Return a warning if frame `i` looks like an image of class ids, else an empty text."""
    from uqeval.stores.video.image_folder import ImageFolder

    values = frames.single_channel(i) if isinstance(frames, ImageFolder) else None
    if values is None:
        return ""
    distinct = np.unique(values)
    if distinct.size > _FEW or not ((distinct < classes) | (distinct == void)).all():
        return ""
    return (
        f"{frames.where_of(i)} looks like an image of class ids, not a camera image (one "
        f"channel, {distinct.size} different values), so its optical flow would be meaningless. "
        "Give the camera's images as the video, and ids as predictions or labels."
    )
