"""Steps for all kinds of data: open stores, match names, make records, find missing chunks."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from uqeval.disk.files import place_of
from uqeval.errors import DataError, StoreError, UsageError, cut, listed
from uqeval.inputs.opened import Given
from uqeval.inputs.options import InputOptions
from uqeval.stores.array import ItemArray, Store, StoredArray, arrays_of, digest_of, distinct
from uqeval.stores.contents import Contents, Role
from uqeval.stores.described import DescribedArray, described
from uqeval.stores.kinds import CLASS_PREDICTIONS, KNOWN
from uqeval.stores.names import read_names_file
from uqeval.stores.orders import (
    names_in_coordinates,
    refuse_other_order,
    refuse_other_orders,
)
from uqeval.stores.store import ARRAY, ARRAYS, contents_of, open_store
from uqeval.stores.watch import Watch
from uqeval.stores.watched_parts import PartsByItem, Watched, WatchedText


@dataclass(frozen=True)
class PredictionStores:
    """Opened stores of predictions: one store, or the members of an ensemble."""

    given: list[Any]
    stores: list[Store]
    names: tuple[str, ...] | None

    @cached_property
    def joined(self) -> Store:
        """Return the first member with all that others have beside predictions. Raises
        `StoreError` if two members contradict each other.
        """
        if len(self.stores) == 1:
            return self.stores[0]
        from uqeval.inputs.members import joined_members

        return joined_members(self.stores)

    def shared(self, name: str) -> Sequence[ItemArray] | None:
        """Return an array of any members; None if none has it. Raises `StoreError` if members have
        other sizes of it, or attributes that contradict each other.
        """
        parts = self.joined.arrays.get(name)
        for array in arrays_of(parts or ()):
            array.check_claims()
        return parts

    def holder(self, name: str) -> Store | None:
        """Return the first member that has an array of this name."""
        return next((store for store in self.stores if name in store.arrays), None)

    def given_of(self, store: Store) -> Any:
        """Return a member as the user gave it."""
        return next(given for own, given in zip(self.stores, self.given, strict=True)
                    if own is store)  # fmt: skip

    @property
    def where(self) -> str:
        """Return their name in messages."""
        return " + ".join(store.path for store in self.stores)

    def shown_names(self, count: int) -> tuple[str, ...]:
        """Return the items' names, or their numbers."""
        return self.names or tuple(str(i) for i in range(count))

    def records(self, kinds: Sequence[str]) -> list[dict[str, Any]]:
        """Return the records of these arrays of the stores in a report."""
        pairs = zip(self.stores, self.given, strict=True)
        return [record_of(store, kinds, given) for store, given in pairs]


def open_predictions(
    predictions: Given | Sequence[Given], options: InputOptions, called: str = "predictions",
    *, has_other_truth: bool = False,
) -> PredictionStores:  # fmt: skip
    """Open the stores of predictions. Raises `StoreError` or `UsageError`.

    `called`: the argument that they were given as, for messages about arrays in memory.
    `has_other_truth`: labels or a target are read from another store.
    """
    inputs: Sequence[Any] = predictions if isinstance(predictions, list | tuple) else [predictions]
    arguments = [called]
    if len(inputs) > 1:
        of_set = "" if called == "predictions" else f" of {called}"
        arguments = [f"member {number}{of_set}" for number in range(1, len(inputs) + 1)]
    stores_or_paths = [as_store(*each) for each in zip(inputs, arguments, strict=False)]
    if not stores_or_paths:
        raise UsageError("no predictions; give a store of predictions.")
    _refuse_twice(stores_or_paths)
    names = options.names
    if isinstance(names, str | Path):
        names = read_names_file(names)
    stores = [
        open_store(
            path,
            role="predictions",
            names=names,
            fill_missing=options.fill,
            kind=options.kind,
            axes=options.axes,
            maps=options.named_maps,
            called=argument,
            has_other_truth=has_other_truth,
        )
        for path, argument in zip(stores_or_paths, arguments, strict=True)
    ]
    stores, names_of_items = _in_order_of_first(stores)
    if names is not None:
        own, _ = _in_order_of_first([replace(store, names=store.replaced) for store in stores])
        refuse_other_orders(own)
        stores = [replace(store, names=names_of_items) for store in own]
        return PredictionStores(stores_or_paths, stores, names_of_items)
    refuse_other_orders(stores)
    if names_of_items is not None:
        named = next(store for store in stores if store.names is not None)
        for store in stores:
            if store.names is None:
                refuse_unsure_order(named, store.path)
        stores = [warn_of_positions(store, named, named=True) for store in stores]
    return PredictionStores(stores_or_paths, stores, names_of_items)


def as_store(source: Any, keyword: str) -> Given:
    """Return an input that can be opened: a path, a URL, an array in memory, or a mapping of
    arrays.

    Converts arrays and tensors of any framework to NumPy. Raises `UsageError` for other inputs.
    """
    if isinstance(source, str | Path | Contents | DescribedArray | Mapping):
        return source
    if isinstance(source, os.PathLike):
        return Path(source)
    try:
        return described(source, keyword)
    except DataError as error:
        raise UsageError(f"{error} Or give the path of a store.") from None


def identity_of(source: Any) -> Any:
    """Return a key that is equal for the same store: its place, or the identity of an array."""
    if isinstance(source, os.PathLike | str):
        return place_of(str(source))
    return id(source.source if isinstance(source, DescribedArray) else source)


def _refuse_twice(sources: Sequence[Given]) -> None:
    """Raise `UsageError` if a store is given twice: an ensemble would count it twice."""
    first_spellings: dict[Any, str] = {}
    for source in sources:
        key = identity_of(source)
        spelling = str(source) if isinstance(source, os.PathLike | str) else "the same array"
        if key in first_spellings:
            repeated_as = (
                ""
                if spelling == first_spellings[key]
                else f", the first time as {first_spellings[key]}"
            )
            raise UsageError(
                f"{spelling} is given twice{repeated_as}; the members of an ensemble must be "
                "different stores."
            )
        first_spellings[key] = spelling


def _in_order_of_first(stores: Sequence[Store]) -> tuple[list[Store], tuple[str, ...] | None]:
    """Return the members of an ensemble with their items in the order of the first that has names,
    and these names; members without names as they are. Raises `StoreError` for other items."""
    first = next((store for store in stores if store.names is not None), None)
    if first is None:
        return list(stores), None
    others = [s.path for s in stores if s.names not in (None, first.names)]
    ordered = [_in_order_of(store, first) for store in stores]
    if not others and any(s.names is not None and not s.unsure_order for s in stores):
        ordered = [replace(store, unsure_order="") for store in ordered]  # that member tells it
    if others:
        reason = f"{first.path} and {others[0]} have them in different orders"
        ordered = [replace(store, unsure_order=reason) for store in ordered]
    return ordered, first.names


def _in_order_of(store: Store, first: Store) -> Store:
    """Return a member with its items in the order of the first member."""
    if store.names is None or first.names is None or store.names == first.names:
        return store
    count = len(store.names)
    between_items = any(len(parts) != count for parts in store.arrays.values())
    if between_items or sorted(store.names) != sorted(first.names):
        i = next(
            (k for k, (a, b) in enumerate(zip(store.names, first.names, strict=False)) if a != b),
            min(count, len(first.names)),
        )
        order = " in the same order, as flow is between them" if between_items else ""
        raise StoreError(
            f"{store.path} and {first.path} name their items differently, first item {i}: "
            f"{cut(store.names[i : i + 1])} and {cut(first.names[i : i + 1])}; members of one "
            f"ensemble need the same items{order}."
        )
    place = {name: i for i, name in enumerate(store.names)}
    order_of_first = [place[name] for name in first.names]
    arrays = {kind: [parts[i] for i in order_of_first] for kind, parts in store.arrays.items()}
    groups = store.groups and tuple(store.groups[i] for i in order_of_first)
    return replace(store, arrays=arrays, names=first.names, groups=groups)


def is_folder_of_files(path: Given) -> bool:
    """Return whether ground truth consists of separate files, matched with items by name."""
    from uqeval.stores.files.folder_store import FolderStore

    if not isinstance(path, os.PathLike | str) or not Path(path).is_dir():
        return False
    contents = contents_of(path)
    return isinstance(contents, FolderStore) and contents.is_truth()


def open_once(source: Given) -> Given:
    """Return the opened content of a path, so that later users need not open it again; return
    anything else unchanged.
    """
    return contents_of(source) if isinstance(source, str | Path) else source


def in_order_of(
    store: Store, parts: Sequence[ItemArray], predictions: Store, names: tuple[str, ...] | None,
    noun: str,
) -> Sequence[ItemArray]:  # fmt: skip
    """Return the items of a ground-truth store in the order of the predictions' items.

    Matches by name if both have names, else by position. Raises `StoreError`, also if coordinates
    show another order.
    """
    refuse_other_order(store, predictions, by_name=store.names is not None and names is not None)
    count = predictions.items
    if store.names is not None and names is not None and store.names != names:
        place = {name: i for i, name in enumerate(store.names)}
        lost = [name for name in names if name not in place]
        if lost:
            raise StoreError(
                f"{store.path}: {len(lost)} of {len(names)} items of {predictions.path} have no "
                f"{noun}: {listed(lost)}."
            )
        return tuple(parts[place[name]] for name in names)
    if len(parts) != count:
        raise StoreError(
            f"{store.path} holds {len(parts)} {noun}s, {predictions.path} holds {count} items; "
            "give names to both, or the same items in the same order."
        )
    if store.names is None and names is not None:
        refuse_unsure_order(predictions, store.path)
    elif names is None:
        refuse_unsure_order(store, predictions.path)
    return parts


def refuse_unsure_order(named: Store, other: str) -> None:
    """Raise `StoreError` if the items at `other`, which have no names, cannot be matched by
    position with those of a store, because the order of its items is not clear."""
    if named.unsure_order:
        raise StoreError(
            f"{other} has no names of items, and the order of the items of {named.path} is not "
            f"clear: {named.unsure_order}. Save names with {other}, as an array `names` in an "
            ".npz or a Zarr store, or as the names of files."
        )


#: The arguments of ground truth, by the noun of its items.
_ARGUMENTS = {
    "label": "labels", "mask": "ood_mask", "region map": "region", "depth map": "depth_map"
}  # fmt: skip


def open_truth(
    truth: Given, role: Role, noun: str, predictions: Store | None, names: tuple[str, ...] | None,
    options: InputOptions, **reading: Any,
) -> Store:  # fmt: skip
    """Open ground truth, or other maps, of items of these `names`: a store, or a folder of files.

    Files are matched with items by name. Raises `StoreError` if the items of `predictions` have no
    names. `reading`: further arguments of `open_store`.
    """
    is_folder = is_folder_of_files(truth)
    if is_folder and names is None and predictions is not None:
        names = names_in_coordinates(predictions)
    if is_folder and names is None and predictions is not None:
        count = predictions.items
        raise StoreError(
            f"{truth}: {noun} files are matched with items by name, but {predictions.path} gives "
            f"its {count} items no names. Give --names FILE (a JSON list or one name per line), or "
            "store an array `names`."
        )
    store = open_store(
        truth, role=role, names=names if is_folder else None, fill_missing=options.fill,
        called=_ARGUMENTS.get(noun, noun), noun=noun, **reading,
    )  # fmt: skip
    if predictions is None or options.names is not None:
        return store
    return warn_of_positions(store, predictions, named=names is not None)


def warn_of_positions(store: Store, other: Store | str, named: bool) -> Store:
    """Return a store with a warning if it or the `other` names its items, and the other of the two
    does not. No warning for arrays in memory.

    `other`: predictions, or the path of frames. `named`: whether they, or other members of their
    ensemble, have names.
    """
    if (store.names is not None) == named:
        return store
    without = store if named else other
    if not isinstance(without, str) and without.in_memory:
        return store
    path = other if isinstance(other, str) else other.path
    paths = (store.path, path) if named else (path, store.path)
    fix = None if named else "give --names FILE, one name per line"
    return replace(store, warnings=(*store.warnings, text_of_positions(*paths, fix)))


def text_of_positions(path: str, other: str, fix: str | None = None) -> str:
    """Return the warning that the items at `path` have no names, and those at `other` have."""
    return (
        f"{path} has no names of items, so its items are matched with those of {other} "
        f"by position. If the orders may differ, {fix or 'store an array `names` in it'}."
    )


def record_of(store: Store, kinds: Sequence[str], source: Given) -> dict[str, Any]:
    """Return the record of one store in a report."""
    arrays: dict[str, Any] = {}
    all_arrays: list[StoredArray] = []
    for kind in kinds:
        parts = store.arrays[kind]
        distinct = arrays_of(parts)
        all_arrays += distinct
        first = distinct[0]
        sizes = [array.stored_bytes() for array in distinct]
        arrays[kind] = {
            "shape": list(first.shape) if len(distinct) == 1 else None,
            "arrays": len(distinct),
            "dtype": str(first.dtype),
            "stored_bytes": None if None in sizes else sum(filter(None, sizes)),
        }
    return {"path": path_of(source), "arrays": arrays, "fingerprint": digest_of(all_arrays)}


def path_of(source: Given) -> str:
    """Return the path of an input as reports and messages have it, also of arrays in memory."""
    if isinstance(source, os.PathLike | str):
        return str(source)
    return ARRAYS if isinstance(source, Mapping) else ARRAY


def recorded(store: Store, names: Sequence[str], options: InputOptions) -> list[str]:
    """Return the arrays that the record of a store covers. It must not depend on
    regions, so it leaves out arrays that were looked up only for these."""
    return [name for name in names if name not in store.looked_up or name in options.read_maps]


def watched(
    names: Sequence[str], parts: Sequence[tuple[str, Sequence[Watched]]], options: InputOptions
) -> Watch:
    """Return a watch for changes of the items' files; `parts`: one file per item, by kind.

    Call it before taking fingerprints, so that the watch covers what they describe.
    """
    kinds = WatchedText(" ".join(kind for kind, _ in parts))
    columns = [item_parts for _, item_parts in parts]
    return watch_of(names, PartsByItem(kinds, columns), options)


def watch_of(
    names: Sequence[str], parts: Sequence[Sequence[Watched]], options: InputOptions
) -> Watch:
    """Return a watch for changes of each item's files, and of the file of names."""
    watch = Watch(names, parts)
    if isinstance(options.names, str | Path):
        watch.add(str(options.names))
    return watch


def refuse_missing(arrays: Iterable[StoredArray], fill: bool) -> None:
    """Raise `StoreError` for missing chunks, which would read as the fill value."""
    if fill:
        return
    for array in distinct(own for joined in arrays for own in joined.holders):
        missing = array.missing()
        if missing:
            first = missing[0][: array.stored_rank]
            corner = [k * c for k, c in zip(first, array.chunks, strict=False)]
            raise StoreError(
                f"{array.where}: {len(missing)} of {array.chunk_count} chunks are missing, first "
                f"chunk {list(first)} (from {corner} on). {array.format_name} would read them as "
                f"the fill value. Either the store is incomplete, or {array.format_name} left them "
                "out because all their values are the fill value. If you are sure of that, give "
                f"--missing-chunks fill, or write the store {array.write_all_chunks}."
            )


#: Names of arrays that users expect to exclude pixels.
_MASK = re.compile(r"(?:^|_)(?:in)?(?:valid|masks?|ignored?)(?:_|$)", re.IGNORECASE)


def warn_of_masks(
    stores: Iterable[Store | None], options: InputOptions, read: Collection[str], advice: str
) -> list[str]:
    """Return a warning for each array that has the name of a mask and excludes no pixels.

    `read`: arrays that are masks. Maps of `--region` are not warned of. `advice` says what does
    exclude pixels.
    """
    used = {*read, *options.region_maps}
    names = {(store.path, name): None for store in stores if store for name in store.arrays}
    return [
        f"{path}: the array {cut(name)} is not read and excludes no pixels. {advice}"
        for path, name in names
        if name not in used and _MASK.search(name)
    ]


def hint_of_truth(stores: Sequence[Store]) -> str:
    """Return a hint if the last of several stores of predictions may be meant as ground truth: it
    holds only maps of other names, or, after predicted numbers, an array with a last axis of size
    1.
    """
    last = stores[-1]
    shapes = [array.shape for array in arrays_of(last.arrays.get("probs", ()))]
    are_numbers = len(stores) > 1 and not {"mean", "samples"}.isdisjoint(stores[0].arrays)
    if are_numbers and shapes and all(shape[-1] == 1 for shape in shapes):
        return (
            f" If {cut(last.path)} is the target, expected numbers [H, W] of each item, but the "
            f"shape is {shapes[0]}: leave out the last axis, of size 1 (array[..., 0])."
        )
    if len(stores) == 1 or KNOWN & set(last.arrays):
        return ""
    return (
        f" If {cut(last.path)} is ground truth, call its array `labels` (class ids) or `target` "
        f"(numbers); it holds {last.holds()}."
    )


def is_regression(opened: PredictionStores) -> bool:
    """Return whether the stores contain `mean` or `samples`, and no classes."""
    kinds = {name for store in opened.stores for name in store.arrays}
    return not kinds & set(CLASS_PREDICTIONS) and bool(kinds & {"mean", "samples"})
