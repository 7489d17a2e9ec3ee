"""Open in-distribution and out-of-distribution predictions (IN, OUT), or a mask of OUT pixels."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import accumulate, chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.disk.suffixes import GROUPS
from uqeval.errors import IN_MEMORY, DataError, StoreError, UsageError, cut, listed, quoted
from uqeval.inputs.classes import kind_of, open_classes, sizes_of_items, stored_maps
from uqeval.inputs.common import (
    PredictionStores,
    as_store,
    identity_of,
    in_order_of,
    open_predictions,
    open_truth,
    path_of,
    record_of,
    refuse_missing,
    watched,
)
from uqeval.inputs.opened import Given, Inputs, members_of, of_all_shards
from uqeval.inputs.options import InputOptions, chosen_items
from uqeval.records.set_names import IN, set_names
from uqeval.stores.array import Store, arrays_of
from uqeval.stores.class_ids import (
    ASSUMED_VOID,
    AssumedVoid,
    refuse_other_numbers,
    refuse_other_void,
    void_id_of,
)
from uqeval.stores.kinds import ALIASES, KNOWN
from uqeval.stores.planes import Planes
from uqeval.stores.watch import Watch

if TYPE_CHECKING:
    from uqeval.maps.sets import Mask

#: Sets fit into ids of 8 bits, with void.
_MOST_SETS = 254


#: The store of all predictions (None for several sets), and the names and the number of its items.
OfItems = tuple[Store | None, tuple[str, ...] | None, int]


def open_sets(
    predictions: Given | Sequence[Given], truth: Given | None, options: InputOptions
) -> tuple[Inputs, OfItems]:
    """Open IN predictions with OUT predictions or a mask. Raises `UqevalError`."""
    if options.out and options.ood_mask is not None:
        raise UsageError(
            "--ood-mask finds out-of-distribution pixels inside IN; with OUT stores leave it out."
        )
    first = _members(predictions)[0]
    options.refuse_invalid(path_of(first))
    if options.ood_mask is not None:
        return _open_masked(predictions, truth, options)
    if len(options.out) > _MOST_SETS:
        raise UsageError(f"{len(options.out)} OUT stores; expected at most {_MOST_SETS}.")
    return _open_several(predictions, truth, options)


def _open_several(
    predictions: Given | Sequence[Given], truth: Given | None, options: InputOptions
) -> tuple[Inputs, OfItems]:
    from uqeval.maps.sets import Sets

    given = [_members(predictions), *(_members(store) for store in options.out)]
    out_options = dataclasses.replace(options, **_OF_IN_ONLY)
    of_sets = [options, *(out_options for _ in options.out)]
    called = ["IN", *(f"OUT {number}" for number in range(1, len(options.out) + 1))]
    opened = [
        open_predictions(*each, has_other_truth=truth is not None or k > 0)
        for k, each in enumerate(zip(given, of_sets, called, strict=True))
    ]
    opened[1:] = map(_without_labels, opened[1:])
    counts = [_count(own) for own in opened]
    labels = _set_names(opened)
    names = _item_names(opened, counts, labels)
    chosen, evaluated = _chosen_of_sets(options, counts)
    parts: list[tuple[int, Inputs]] = []
    firsts = [0, *accumulate(counts)]
    chosen_names: list[str] = []
    for k, (stores, own_range) in enumerate(zip(opened, chosen, strict=True)):
        chosen_names += names[firsts[k] + own_range.start : firsts[k] + own_range.stop]
        if own_range:
            own = dataclasses.replace(of_sets[k], **_WHOLE)
            labels_of_set = truth if k == 0 else None
            parts.append((k, open_classes(stores, labels_of_set, own, own_range)))
    if not parts:
        raise DataError(f"{opened[0].where}: --part selects no items. Give fewer shards.")
    # Shards record the same, also those without an item of IN.
    set_of_first, of_in = parts[0]
    if set_of_first != 0:
        of_in = open_classes(opened[0], truth, dataclasses.replace(options, **_WHOLE), range(1))
    _refuse_other_networks([of_in, *(own for _, own in parts)])
    if options.class_names is None:
        refuse_other_numbers(
            (store.path, store.attributes.get("class_names") or ())
            for own in opened for store in own.stores
        )  # fmt: skip
    sources: list[Any] = [inputs.source for _, inputs in parts]
    source = Sets(
        sources, [k for k, _ in parts], chosen_names, len(opened),
        samples=of_in.source.samples,
    )  # fmt: skip
    record = dict(of_in.record) | evaluated
    record["predictions"] = [own for stores in opened for own in _records(stores)]
    in_sets = counts if options.limit is None else list(map(len, chosen))
    record["sets"] = [
        {"name": label, "items": count} for label, count in zip(labels, in_sets, strict=True)
    ]
    inputs = _joined(
        [own for _, own in parts], source, labels, of_in.ignore_index, record,
        len(chosen_names) < sum(counts),
        tuple(k for k, own in parts for _ in range(own.source.items)),
    )  # fmt: skip
    if any(own.joined.groups is not None for own in opened):
        # An item of a set without cases is a case of its own.
        groups = [own.groups or own.source.names for _, own in parts]
        inputs = dataclasses.replace(inputs, groups=tuple(chain.from_iterable(groups)))
    inputs = dataclasses.replace(
        inputs, **of_all_shards(evaluated, names, lambda: tuple(chain(*map(_sizes, opened))))
    )
    return inputs, (None, names, sum(counts))


def _chosen_of_sets(
    options: InputOptions, counts: Sequence[int]
) -> tuple[list[range], dict[str, Any]]:
    """Return which items of each set are evaluated, and the record of the choice: a shard of all
    items, or with a limit the first items of each set."""
    if options.limit is not None:
        chosen = [range(min(options.limit, count)) for count in counts]
        return chosen, {"items": sum(counts), "evaluated": sum(map(len, chosen))}
    of_all, evaluated = chosen_items(options, sum(counts))
    firsts = [0, *accumulate(counts)]
    return [
        range(*(min(max(end - first, 0), count) for end in (of_all.start, of_all.stop)))
        for first, count in zip(firsts, counts, strict=False)
    ], evaluated


def _without_labels(opened: PredictionStores) -> PredictionStores:
    """Return OUT predictions without their labels: what is unknown has no class of the network, so
    its pixels have other ids, or are void."""
    stores = [
        dataclasses.replace(
            store, arrays={name: own for name, own in store.arrays.items() if name != "labels"}
        )
        for store in opened.stores
    ]
    return dataclasses.replace(opened, stores=stores)


#: Options that choose no items.
_WHOLE: dict[str, Any] = {"part": None, "limit": None, "fitted": None}
#: What the options of IN say need not hold for OUT.
_OF_IN_ONLY: dict[str, Any] = {
    "label_map": None, "names": None, "annotator_folders": False,
}  # fmt: skip


def _open_masked(
    predictions: Given | Sequence[Given], truth: Given | None, options: InputOptions
) -> tuple[Inputs, OfItems]:
    from uqeval.maps.sets import Sets

    opened = open_predictions(_members(predictions), options, has_other_truth=truth is not None)
    inputs = open_classes(opened, truth, options)
    source: Any = inputs.source
    mask, record, warnings = _mask(opened, inputs, options)
    sets = Sets([source], [0], source.names, 2, mask, samples=source.samples)
    parts = mask.planes.parts if mask.out is None else ()
    watch = inputs.watch
    if parts:
        watch = watch.and_of(watched(source.names, [("mask", parts)], options))
    watch = Watch.joined([watch], [f"mask {mask.out}"], source.names)
    masked = dataclasses.replace(
        inputs, source=sets, class_names=("in", "out"), watch=watch,
        inner_classes=source.classes if source.labels is not None and mask.out is None else 0,
        record=inputs.record | record, warnings=[*inputs.warnings, *warnings],
    )  # fmt: skip
    return masked, (opened.joined, opened.names, _count(opened))


def _mask(
    opened: PredictionStores, inputs: Inputs, options: InputOptions
) -> tuple[Mask, dict[str, Any], Sequence[str]]:
    """Return the mask, its record, and warnings."""
    from uqeval.maps.sets import Mask

    source: Any = inputs.source
    out = options.ood_id
    if out is not None:
        if source.labels is None:
            raise UsageError(
                f"--ood-mask {out} is an id of the labels, and {opened.where} has none. Give "
                "LABELS after the predictions, or a folder of masks to --ood-mask."
            )
        if source.labels.annotators:
            raise UsageError(
                f"--ood-mask {out} is an id of one label per pixel, and {opened.where} has labels "
                f"of {source.labels.annotators} annotators. Give the labels of one annotator, or "
                "a folder of masks to --ood-mask."
            )
        void = inputs.ignore_index
        if out == void and not isinstance(void, AssumedVoid):
            raise UsageError(
                f"--ood-mask {out} is the void id of the labels of {opened.where}, so their pixels "
                "do not count. Give the id of out-of-distribution pixels, or another void id, such "
                f"as --ignore-index {65535 if out == ASSUMED_VOID else int(ASSUMED_VOID)}."
            )
        source.read_elsewhere = frozenset({"labels"})
        mask = Mask(source.labels.planes, inputs.ignore_index, out, source.classes)
        return mask, {"ood_mask": out}, ()
    given = as_store(options.ood_mask, "ood_mask")
    store = open_truth(given, "labels", "mask", opened.stores[0], opened.names, options)
    parts = store.arrays.get("labels")
    if parts is None:
        raise UsageError(
            f"--ood-mask {store.path} holds {store.holds()}; expected ids [item, y, x], as labels."
        )
    count = _count(opened)
    parts = in_order_of(store, parts, opened.stores[0], opened.names, "mask")
    refuse_missing(arrays_of(parts), options.fill)
    chosen, _ = chosen_items(options, count)
    planes = Planes(parts[chosen.start : chosen.stop])
    has_labels = source.labels is not None
    void = _void_of(store, has_labels, options)
    if has_labels or options.ignore_index is None:
        refuse_other_void(arrays_of(parts), void, option_counts=not has_labels)
    return Mask(planes, void), {"ood_mask": record_of(store, ["labels"], given)}, store.warnings


def _void_of(mask: Store, has_labels: bool, options: InputOptions) -> int:
    """Return the void id of a mask. Without labels, `ignore_index` of the options is that of the
    mask. Raises `UsageError` for 0, the id of IN.
    """
    void = void_id_of(None if has_labels else options.ignore_index, [mask])
    if void == 0:
        raise UsageError(
            f"--ood-mask {cut(mask.path)}: its void id is 0, which is the id of IN pixels. Use "
            "another id for void pixels, such as 255."
        )
    return void


def _members(predictions: Given | Sequence[Given]) -> list[Any]:
    stores = predictions if isinstance(predictions, list | tuple) else [predictions]
    return [member for store in stores for member in members_of(store)]


def _count(opened: PredictionStores) -> int:
    store = opened.stores[0]
    if not store.arrays:
        raise StoreError(f"{store.path} holds {store.holds()}, and no predictions of classes.")
    return store.items


def _sizes(opened: PredictionStores) -> tuple[tuple[int, int], ...]:
    return sizes_of_items(opened.stores[0], kind_of(opened.stores))


def _set_names(opened: Sequence[PredictionStores]) -> list[str]:
    """Return distinct names of the sets: "in", then those of the OUT stores (`set_names`)."""
    paths: list[str | None] = []
    for stores in opened[1:]:
        path = getattr(stores.given[0], "path", stores.given[0])
        is_file = isinstance(path, str | Path) and IN_MEMORY not in str(path)
        paths.append(_without_array(str(path)) if is_file else None)
    return [IN, *set_names(paths)]


def _without_array(path: str) -> str:
    """Return the path of the group or store of an array: an array is called `probs` in each."""
    inside = path.rstrip("/").replace("::", "/")
    group, _, name = inside.rpartition("/")
    is_array = name in KNOWN | ALIASES.keys() and any(f"{e}/" in inside for e in GROUPS)
    return group if is_array else path


def _item_names(
    opened: Sequence[PredictionStores], counts: Sequence[int], labels: Sequence[str]
) -> tuple[str, ...]:
    """Return the names of all items; `set/number` in a set without names.

    Raises `UsageError` for items that several sets have.
    """
    set_of: dict[str, str] = {}
    names: list[str] = []
    for stores, count, label in zip(opened, counts, labels, strict=True):
        own = stores.names or tuple(f"{label}/{i}" for i in range(count))
        shared = [name for name in own if name in set_of]
        if shared:
            raise UsageError(
                f"{stores.where} shares {len(shared)} of its {count} items with the set "
                f"{set_of[shared[0]]!r}: {listed(shared)}. An item is either in-distribution or "
                "out-of-distribution. Remove it from one of the sets, or rename it."
            )
        set_of |= dict.fromkeys(own, label)
        names += own
    _refuse_same_stores(opened)
    return tuple(names)


def _refuse_same_stores(opened: Sequence[PredictionStores]) -> None:
    """Raise `UsageError` for a store that is in two sets."""
    seen: set[Any] = set()
    for stores in opened:
        for given in stores.given:
            key = identity_of(given)
            if key in seen:
                raise UsageError(f"{stores.where} is in two sets; give each store once.")
            seen.add(key)


#: Facts of the inputs' records on which the scale of an uncertainty depends.
_OF_SCALE = ("classes", "samples")


def _refuse_other_networks(parts: Sequence[Inputs]) -> None:
    """Raise `UsageError` if two sets have other numbers of classes or samples: the uncertainty of
    another network, or of fewer samples, has another scale. Maps may not say how many samples they
    are of.
    """
    first: dict[str, tuple[Any, str]] = {}
    for part in parts:
        where = part.source.where
        for name in _OF_SCALE:
            number = part.record[name]
            of_first, first_place = first.setdefault(name, (number, where))
            if of_first is None:
                first[name] = number, where
            elif number not in (None, of_first):
                raise UsageError(
                    f"the sets have different numbers of {name}: {quoted(of_first)} in "
                    f"{first_place}, {quoted(number)} in {where}. IN and OUT are compared by the "
                    f"uncertainty of one network: give its predictions, with as many {name}, for "
                    "every set."
                )


def _records(opened: PredictionStores) -> list[dict[str, Any]]:
    """Return the records of all stores of one set."""
    kind = kind_of(opened.stores)
    return opened.records([kind] if kind else sorted(stored_maps(opened.stores[0])))


def _joined(
    parts: Sequence[Inputs], source: Any, labels: Sequence[str], ignore_index: int,
    record: dict[str, Any], partial: bool, sets: tuple[int, ...],
) -> Inputs:  # fmt: skip
    """Return the inputs of several sets."""
    texts = [f"set {k} of {source.classes}" for k in dict.fromkeys(sets)]
    watch = Watch.joined([part.watch for part in parts], texts, source.names)
    warnings = list(dict.fromkeys(text for part in parts for text in part.warnings))
    return Inputs(
        source, tuple(labels), ignore_index, record, warnings, partial=partial,
        watch=watch, sets=sets,
    )  # fmt: skip
