"""Open predicted numbers (mean and standard deviation, members or samples) and their target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from uqeval.errors import StoreError, UsageError, cut
from uqeval.inputs.common import (
    PredictionStores,
    in_order_of,
    is_folder_of_files,
    nameless,
    open_once,
    record_of,
    refuse_missing,
    watched,
)
from uqeval.inputs.opened import Given, Inputs, store_of
from uqeval.inputs.options import InputOptions, chosen_items
from uqeval.stores.kinds import SPREADS

if TYPE_CHECKING:
    from uqeval.stores.array import ItemArray, Store
    from uqeval.stores.stack import Stack

_PARTS = ("mean", *SPREADS, "samples")


def open_regression(
    opened: PredictionStores, target: Given | None, options: InputOptions
) -> Inputs:
    """Open predicted numbers with their target. Raises `StoreError` or `UsageError`."""
    from uqeval.maps.invalid import invalid_of
    from uqeval.maps.regression import RegressionSource
    from uqeval.stores.planes import Planes
    from uqeval.stores.stack import Stack

    _refuse_class_options(opened, options)
    stores, where = opened.stores, opened.where
    kinds = _parts(stores)
    count = len(stores[0].arrays[kinds[0]])
    item_range, evaluated = chosen_items(options.part, options.limit, count)
    own_stores = [store_of(store, item_range) for store in stores]
    stacks = {name: Stack(own_stores, name) for name in kinds}
    _check_shapes(stacks, where)
    if options.nan_samples == "skip" and "samples" not in kinds:
        raise UsageError(
            f"--nan-samples skip is for `samples`; {where} holds {cut(', '.join(kinds))}."
        )
    extra = _extra_maps(stores)
    target_store, target_parts, valid = _target(stores[0], target, opened.names, options)
    invalid = options.invalid_targets()
    if options.invalid is not None and target_parts is None:
        raise UsageError(
            f"--invalid is for a target, and {where} has none. Give a target after the "
            "predictions, or leave --invalid out."
        )
    of_array = [invalid_of(a) for a in {id(p.array): p.array for p in target_parts or ()}.values()]
    says_invalid = options.invalid is not None or any(of_array)
    rows = slice(item_range.start, item_range.stop)
    source = RegressionSource(
        opened.shown_names(count)[rows],
        stacks,
        target=Planes(target_parts[rows]) if target_parts else None,
        valid=[Planes(parts[rows]) for parts in valid],
        extra={name: Planes(parts[rows]) for name, parts in extra.items()},
        where=where,
        skip_nan=options.nan_samples == "skip",
        invalid=invalid,
    )  # fmt: skip
    watched_parts = [(name, store.arrays[name]) for store in own_stores for name in kinds]
    for name, of_all in (*extra.items(), ("target", target_parts), *(("valid", v) for v in valid)):
        watched_parts += [(name, of_all[rows])] if of_all else []
    watch = watched(source.names, watched_parts, options)
    converted = conversion_of(kinds)
    target_record = None
    if target_store:
        held = [name for name in ("target", "valid") if name in target_store.arrays]
        target_record = record_of(target_store, held, opened.given[0] if target is None else target)
    record = {
        "predictions": [
            record_of(store, [*kinds, *sorted(extra)] if store is stores[0] else kinds, given_as)
            | ({"converted": converted} if converted else {})
            for store, given_as in zip(stores, opened.given, strict=True)
        ],
        "target": target_record,
        **evaluated,
        "samples": stacks[kinds[0]].samples,
    }
    parts = [item_array for store in stores for name in kinds for item_array in store.arrays[name]]
    for item_arrays in (*extra.values(), target_parts or (), *valid):
        parts += item_arrays
    refuse_missing(parts, options.fill)
    record_stores = [
        *stores,
        *([target_store] if target_store and target_store not in stores else []),
    ]
    warnings = [text for store in record_stores for text in store.warnings]
    return Inputs(
        source, ("0",), 255, record, warnings,
        partial=len(item_range) < count, watch=watch, invalid=says_invalid,
        groups=own_stores[0].groups,
    )  # fmt: skip


def _check_shapes(stacks: Mapping[str, Stack], where: str) -> None:
    """Raise `StoreError` if the arrays differ in members or size of an item."""
    first, stack = next(iter(stacks.items()))
    for name, other in stacks.items():
        for i in range(stack.items):
            shapes = [(members.samples, *members.size(i)) for members in (stack, other)]
            if shapes[0] != shapes[1]:
                raise StoreError(
                    f"{where}: {first} and {name} differ in members or size: item {i} has "
                    f"(members, height, width) {shapes[0]} and {shapes[1]}; each member has both, "
                    "of one shape."
                )


def _refuse_class_options(opened: PredictionStores, options: InputOptions) -> None:
    for name in ("classes", "class_names", "kind", "label_map", "ignore_index", "sum_tolerance"):
        if getattr(options, name) is not None:
            raise UsageError(
                f"--{name.replace('_', '-')} is for classes; {opened.where} holds numbers with a "
                "target."
            )


def _parts(stores: list[Store]) -> list[str]:
    """Return the arrays for mean and σ, equal for all members: `mean`, or `samples`."""
    kinds = []
    for store in stores:
        held = [name for name in _PARTS if name in store.arrays]
        if "samples" in held and len(held) > 1:
            raise StoreError(
                f"{store.path} holds samples and {cut(', '.join(held[:-1]))}; keep one of them: "
                "the mean and the standard deviation are computed from the samples."
            )
        spreads = [name for name in held if name in SPREADS]
        if len(spreads) > 1:
            raise StoreError(
                f"{store.path} holds {' and '.join(spreads)}; expected one of them, which says the "
                f"standard deviation. Remove or rename the other{'s' * (len(spreads) > 2)}"
                f"{_how_to_remove(store.path, spreads[-1])}."
            )
        if not {"mean", "samples"} & set(held):
            raise StoreError(
                f"{store.path} holds {store.holds()}; expected `mean` with one of "
                f"{', '.join(f'`{name}`' for name in SPREADS)}, or `samples`."
            )
        kinds.append(held)
    if any(store_kinds != kinds[0] for store_kinds in kinds):
        listed = ", ".join(f"{s.path}: {'+'.join(k)}" for s, k in zip(stores, kinds, strict=True))
        raise StoreError(f"members of one ensemble hold the same arrays, but these hold {listed}.")
    return kinds[0]


def _how_to_remove(path: str, name: str) -> str:
    """Return a command that removes an array of a local file or folder, for a message."""
    if Path(path).is_dir():
        code = f"import zarr; del zarr.open_group({path!r}, mode='r+')[{name!r}]"
    elif path.endswith(".npz"):
        code = (
            f"import numpy as np; z = dict(np.load({path!r})); del z[{name!r}]; "
            f"np.savez({path!r}, **z)"
        )
    else:
        return ""
    return f': python -c "{code}"'


def conversion_of(kinds: Sequence[str]) -> dict[str, str]:
    """Return the conversion of a stored array to σ; empty if it is a standard deviation."""
    spread = next((name for name in kinds if name in SPREADS), "std")
    if spread == "std":
        return {}
    natural = {"logarithm": "natural"} if spread.startswith("log") else {}
    return {"sigma": SPREADS[spread], **natural}


def _extra_maps(stores: list[Store]) -> dict[str, tuple[ItemArray, ...]]:
    """Return maps [N, H, W] of other names, which the user may choose as σ."""
    known_maps = {*_PARTS, "target", "valid", "labels"}
    return {
        name: parts
        for name, parts in stores[0].arrays.items()
        if name not in known_maps and set(parts[0].array.axes) - {"item"} == {"y", "x"}
    }


def _target(
    predictions: Store, target: Given | None, names: tuple[str, ...] | None, options: InputOptions
) -> tuple[Store | None, tuple[ItemArray, ...] | None, list[tuple[ItemArray, ...]]]:
    """Return the store of the target, its planes, and its planes of valid pixels."""
    from uqeval.stores.store import open_store

    masks = [predictions.arrays["valid"]] if "valid" in predictions.arrays else []
    if target is None:
        parts = predictions.arrays.get("target")
        return (predictions if parts else None), parts, masks
    target = open_once(target)
    folder = is_folder_of_files(target)
    if folder and names is None:
        raise nameless(target, "target", predictions)
    store = open_store(
        target, role="target", names=names if folder else None, fill_missing=options.fill
    )
    if "target" not in store.arrays:
        raise StoreError(f"{store.path} holds {store.holds()}, but no `target`.")

    def ordered(kind: str) -> tuple[ItemArray, ...]:
        return in_order_of(store, store.arrays[kind], predictions, names, "target")

    if "valid" in store.arrays:
        masks.append(ordered("valid"))
    return store, ordered("target"), masks
