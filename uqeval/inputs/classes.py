"""Open class probabilities or predicted ids, and their labels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np

from uqeval.errors import StoreError, UsageError, cut, listed
from uqeval.inputs.common import (
    PredictionStores,
    hint_of_truth,
    in_order_of,
    is_folder_of_files,
    open_once,
    open_truth,
    record_of,
    recorded,
    refuse_missing,
    warn_of_masks,
    watched,
)
from uqeval.inputs.opened import Given, Inputs, of_all_shards, sizes_of, store_of
from uqeval.inputs.options import InputOptions, chosen_items
from uqeval.maps.labels import Labels, annotators_of, check_label_sizes
from uqeval.maps.names import MOST_CLASSES, SAMPLE_PREDICTIONS
from uqeval.stores.array import ItemArray, Store, arrays_of
from uqeval.stores.attribute_arrays import of_uqeval
from uqeval.stores.bfloat16 import warnings_of
from uqeval.stores.class_ids import check_number, names_of_classes, refuse_other_void, void_id_of
from uqeval.stores.incoming import LEAST_PIXELS, refuse_one_hot
from uqeval.stores.kinds import predictions_expected
from uqeval.stores.planes import Planes, ScaledPlanes
from uqeval.stores.stack import Stack
from uqeval.stores.watch import Watch
from uqeval.stores.watched_parts import PartsIfRead, Watched

if TYPE_CHECKING:
    from uqeval.maps.sources import Source

_EXCLUDED = "Pixels to leave out have the void id in the labels (--ignore-index)."


def open_classes(
    opened: PredictionStores,
    labels: Given | None,
    options: InputOptions,
    chosen: range | None = None,
) -> Inputs:
    """Open predictions of classes with their labels. Raises `StoreError` or `UsageError`.

    `chosen`: the items, in place of those that the options choose.
    """
    from uqeval.maps.sources import Source

    stores, where = opened.stores, opened.where
    kind = kind_of(stores)
    label_store, all_labels = _labels(opened, labels, options)
    count = len(stores[0].arrays[kind or "predictions"])
    item_range, evaluated = chosen_items(options, count)
    item_range = item_range if chosen is None else chosen
    restricted = [store_of(store, item_range) for store in stores]
    stack = Stack(restricted, kind) if kind else None
    classes = _classes(stores, stack, options, where)
    joined, names = store_of(opened.joined, item_range), opened.shown_names(count)
    ignore = void_id_of(options.ignore_index, [label_store] if label_store else [], stores)
    target = None
    if all_labels is not None and label_store is not None:
        path = "" if labels is None else label_store.path
        target = _target(all_labels, names, item_range, ignore, options, path)
    source = Source(
        names[item_range.start : item_range.stop], classes, stack=stack,
        stored=stored_maps(joined), labels=target, where=where,
        sum_tolerance=options.sum_tolerance, content=joined.holds(), and_others=joined.and_others,
    )  # fmt: skip
    source.with_options = partial(_with_options, options)
    if labels is not None and not stack:
        source.labels_of_maps = _labels_of_maps(joined, source.names, stores)
    _check_labels(source, is_volume=joined.groups is not None)
    watch = _watch(source, joined, restricted, kind, options)
    all_stores = [*stores, label_store] if label_store else stores
    class_names, warnings = names_of_classes(options.class_names, all_stores, classes)
    warnings = [text for store in all_stores for text in store.warnings] + warnings
    warnings += _warn_of_sample_axes(restricted, kind)
    warnings += warn_of_masks([*stores, label_store], options, (), _EXCLUDED)
    warnings += _warn_of_labels(target, classes) + _warn_of_probabilities(joined, stack, kind)
    kinds = [kind] if kind else recorded(stores[0], sorted(source.stored), options)
    record = _records_of(opened, label_store, labels, kinds) | {
        **evaluated,
        "classes": classes,
        "samples": stack.samples if stack else of_uqeval(stores[0].attributes).get("samples"),
        "ignore_index": int(ignore),
    }
    _refuse_missing(stores, kind, all_labels, options)
    return Inputs(
        source, class_names, ignore, record, warnings,
        partial=len(item_range) < count, watch=watch, groups=joined.groups,
        annotators=target.annotators if target else 0, are_numbered=opened.names is None,
        **of_all_shards(evaluated, names, lambda: sizes_of_items(stores[0], kind)),
    )  # fmt: skip


def _target(
    parts: Sequence[ItemArray], names: Sequence[str], items: range, void: int,
    options: InputOptions, path: str,
) -> Labels:  # fmt: skip
    """Return the labels of some of the items. `path`: theirs, if predictions do not hold them."""
    if options.ignore_index is None:
        refuse_other_void(arrays_of(parts), void)
    annotators = annotators_of(parts, names)
    planes = Planes(parts[items.start : items.stop], bool(annotators), "annotator")
    return Labels(planes, void, annotators, path)


def _labels_of_maps(store: Store, names: Sequence[str], stores: Sequence[Store]) -> Labels | None:
    """Return the labels with which the maps of a store were computed; None without any."""
    if not (parts := store.arrays.get("labels")):
        return None
    annotators = annotators_of(parts, names)
    planes = Planes(parts, bool(annotators), "annotator")
    return Labels(planes, void_id_of(None, [], stores), annotators)


def _check_labels(source: Source, is_volume: bool) -> None:
    """Raise an error for labels of another size than the predictions, and for one-hot ones."""
    if source.labels is not None:
        sizes = [source.size(item) for item in range(source.items)]
        check_label_sizes(
            source.labels.planes, source.names, source.classes, sizes, volume=is_volume
        )
    _refuse_one_hot_pixels(source)


def _watch(
    source: Source, joined: Store, members: Sequence[Store], kind: str | None,
    options: InputOptions,
) -> Watch:  # fmt: skip
    """Return a watch of the files of predictions, maps and labels that are read."""
    parts: list[tuple[str, Sequence[Watched]]]
    parts = [(kind, store.arrays[kind]) for store in members if kind]
    parts += [
        (name, PartsIfRead(of_map, partial(source.reads, name)))
        for name, of_map in joined.arrays.items() if name in source.stored
    ]  # fmt: skip
    if source.labels is not None:
        of_labels = source.labels.planes.parts
        parts.append(("labels", PartsIfRead(of_labels, partial(source.reads, "labels"))))
    if source.labels_of_maps is not None:
        of_maps = source.labels_of_maps.planes.parts
        parts.append(("labels", PartsIfRead(of_maps, source.compares_labels)))
    return watched(source.names, parts, options)


def _with_options(options: InputOptions, command: str) -> str:
    """Return a command with the options that say what the predictions hold."""
    from uqeval.inputs.command_words import with_options_of_content

    return with_options_of_content(command, options)


def _refuse_missing(
    stores: Sequence[Store], kind: str | None, labels: Sequence[ItemArray] | None,
    options: InputOptions,
) -> None:  # fmt: skip
    """Raise `StoreError` for missing chunks of the predictions (None: of all arrays) and labels."""
    arrays = [array for store in stores for name, parts in store.arrays.items()
              if kind in (None, name) for array in arrays_of(parts)]  # fmt: skip
    refuse_missing([*arrays, *arrays_of(labels or ())], options.fill)


def _records_of(
    opened: PredictionStores, label_store: Store | None, labels: Given | None, kinds: list[str]
) -> dict[str, Any]:
    """Return the records of the stores of predictions and labels in a report."""
    of_labels = None
    if label_store:
        given_as = opened.given_of(label_store) if labels is None else labels
        of_labels = record_of(label_store, ["labels"], given_as)
    return {"predictions": opened.records(kinds), "labels": of_labels}


def _warn_of_probabilities(store: Store, stack: Stack | None, kind: str | None) -> list[str]:
    """Return warnings about the precision of probabilities; none for logits."""
    if kind == "logits":
        return []
    mean_probs = [part.array for part in store.arrays.get("mean_probs", ())]
    return warnings_of(stack.arrays if stack else mean_probs)


def _warn_of_labels(labels: Labels | None, classes: int) -> list[str]:
    """Return warnings about labels that can hold only two of more classes, and about labels of
    several annotators."""
    if labels is None:
        return []
    warnings = []
    bools = [array for array in labels.planes.arrays if array.dtype.kind == "b"]
    if classes != 2 and bools:
        warnings.append(
            f"{bools[0].where}: the labels are bool, so only the classes 0 and 1 of {classes} can "
            "appear. Save class ids as uint8."
        )
    if labels.annotators:
        warnings.append(
            f"the labels are from {labels.annotators} annotators. Only `annotators` compares with "
            "each of them; other metrics use the most frequent class of each pixel, on a tie the "
            "lowest id."
        )
    return warnings


def stored_maps(store: Store) -> dict[str, Planes]:
    """Return the maps of a store: its arrays of numbers [item, y, x], `mean_probs`, and, without
    samples, `sample_predictions`.
    """
    planes = {"mean_probs": "class"}
    if not store.arrays.keys() & {"probs", "logits"}:
        planes[SAMPLE_PREDICTIONS] = "sample"
    found: dict[str, Planes] = {}
    for name, parts in store.arrays.items():
        array, own = parts[0].array, planes.get(name)
        if name in ("probs", "logits", "labels") or array.dtype.kind not in "biuf":
            continue
        if {"class", "sample"} & set(array.axes) == ({own} if own else set()):
            is_mean = name == "mean_probs"
            found[name] = (
                ScaledPlanes(parts, name) if is_mean else Planes(parts, bool(own), own or "class")
            )
    return found


def _refuse_one_hot_pixels(source: Source) -> None:
    """Raise `DataError` if labels of image classification are one-hot, [N, C].

    A single item has too few pixels to judge, so this reads the labels of the first ones.
    """
    if source.labels is None or source.labels.annotators != source.classes:
        return
    if source.items < LEAST_PIXELS or any(source.size(i) != (1, 1) for i in range(LEAST_PIXELS)):
        return
    planes = source.labels.planes
    pixels = [planes.read(item) for item in range(LEAST_PIXELS)]
    refuse_one_hot(np.concatenate(pixels, axis=-1), source.classes, planes.where_of(0))


def sizes_of_items(store: Store, kind: str | None) -> tuple[tuple[int, int], ...]:
    """Return height and width of each item of a store of this kind (`kind_of`)."""
    return sizes_of(store.arrays[kind or "predictions"])


def kind_of(stores: Sequence[Store]) -> str | None:
    """Return `probs` or `logits`, equal for all stores; None for a maps store."""
    kinds: list[str | None] = []
    for store in stores:
        score_kinds = [k for k in ("probs", "logits") if k in store.arrays]
        if len(score_kinds) == 2:
            raise StoreError(f"{store.path} holds both probs and logits; keep one of them.")
        kinds.append(score_kinds[0] if score_kinds else None)
    if len(set(kinds)) > 1:
        kinds_by_store = "; ".join(
            f"{cut(s.path)}: {k or listed(sorted(s.arrays), 3) or 'nothing'}"
            for s, k in zip(stores, kinds, strict=True)
        )
        raise StoreError(
            f"members of one ensemble must have the same kind, but these have {kinds_by_store}."
            + hint_of_truth(stores)
        )
    kind = kinds[0]
    if kind is None:
        if len(stores) > 1:
            raise StoreError(
                "maps stores cannot be joined: an ensemble is joined from its samples. Give the "
                "stores that hold `probs` or `logits`." + hint_of_truth(stores)
            )
        if "predictions" not in stores[0].arrays:
            raise StoreError(
                f"{stores[0].path} holds {stores[0].holds()}; "
                f"{predictions_expected(stores[0].held or stores[0].arrays)}"
            )
    return kind


def _labels(
    opened: PredictionStores, labels: Given | None, options: InputOptions
) -> tuple[Store | None, Sequence[ItemArray] | None]:
    """Return the store that has the labels, and their planes in the order of the items."""
    if labels is not None:
        return labels_of(opened.joined, labels, opened.names, options)
    _refuse_options_of_folders(options, opened.joined.path)
    return opened.holder("labels"), opened.shared("labels")


def labels_of(
    predictions: Store, labels: Given, names: tuple[str, ...] | None, options: InputOptions
) -> tuple[Store, Sequence[ItemArray]]:
    """Return a store of labels, and its planes in the order of the predictions' items."""
    labels = open_once(labels)
    if not is_folder_of_files(labels):
        _refuse_options_of_folders(options, labels)
    store = open_truth(
        labels, "labels", "label", predictions, names, options,
        label_map=options.label_map, annotator_folders=options.annotator_folders,
    )  # fmt: skip
    parts = store.arrays.get("labels")
    if parts is None:
        raise StoreError(f"{store.path} holds {store.holds()}, but no `labels`.")
    return store, in_order_of(store, parts, predictions, names, "label")


def _refuse_options_of_folders(options: InputOptions, where: object) -> None:
    """Raise `UsageError` for options of folders of label PNGs, if the labels are an array."""
    for option, given in (
        (f"--label-map {cut(options.label_map)}", options.label_map is not None),
        ("--annotator-folders", options.annotator_folders),
    ):
        if given:
            raise UsageError(
                f"{option} is for a folder of label PNGs; the labels here are an array of {where}. "
                "Leave it out."
            )


def _classes(
    stores: Sequence[Store], stack: Stack | None, options: InputOptions, where: str
) -> int:
    store = stores[0]  # members of an ensemble have a stack
    names = store.attributes.get("class_names")
    if stack:
        classes = max(stack.classes, 2)
    elif "mean_probs" in store.arrays:
        classes = store.arrays["mean_probs"][0].array.length("class")
        if classes == 1:
            raise StoreError(
                f"{where}: mean_probs has one class; expected both of two classes. Or call the "
                "array probs: probs of one class are those of class 1."
            )
    elif isinstance(declared := of_uqeval(store.attributes).get("classes"), int):
        classes = int(declared)
    elif names:
        classes = len(names)
    elif options.classes or options.class_names:
        classes = options.classes or len(options.class_names or ())
    elif set(stored_maps(store)) - {"predictions", "valid"}:
        raise UsageError(
            f"{where} does not say how many classes there are. Give --classes N, or store their "
            "names as the attribute class_names."
        )
    else:
        how = "give metrics='segmentation' and --classes N"
        if not store.in_memory:
            paths = quote(where) + ("" if "labels" in store.arrays else " LABELS")
            how = f"uqeval run {paths} --classes N"
        raise UsageError(
            f"{where} holds predicted ids and no uncertainty, and does not say how many classes "
            f"there are. Ids give the segmentation scores: {how}. Other scores need class "
            "probabilities."
        )
    if classes > MOST_CLASSES:
        raise StoreError(
            f"{where} has {classes:,} classes, expected at most {MOST_CLASSES:,}. Are the axes in "
            "the right order (--axes)? Else evaluate the likeliest classes only."
        )
    if options.classes is not None and options.classes != classes:
        raise UsageError(f"--classes {options.classes}, but {where} has {classes} classes.")
    check_number(options.class_names, None, classes, where)
    for member in stores:
        check_number(None, member.attributes.get("class_names"), classes, member.path)
    return classes


def _warn_of_sample_axes(members: Sequence[Store], kind: str | None) -> list[str]:
    """Return a warning if only some stores of an ensemble have a sample axis."""
    if (
        kind is None
        or len({"sample" in member.arrays[kind][0].array.axes for member in members}) == 1
    ):
        return []
    counts = [Stack([member], kind).samples for member in members]
    sample_counts = ", ".join(
        f"{member.path} {count}" for member, count in zip(members, counts, strict=True)
    )
    return [
        f"predictions per item: {sample_counts}; they are evaluated together, as {sum(counts)} "
        "members of one ensemble. To compare the stores, evaluate each alone, then `uqeval "
        "compare`."
    ]
