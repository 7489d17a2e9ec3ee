"""Open predicted numbers (mean and standard deviation, members or samples) and their target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.errors import StoreError, UsageError, all_listed, cut, option_name
from uqeval.inputs.common import (
    PredictionStores,
    hint_of_truth,
    in_order_of,
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
from uqeval.records.units import normal_unit
from uqeval.stores.array import ItemArray, Store, StoredArray, arrays_of
from uqeval.stores.fill_values import has_invalid, ignored
from uqeval.stores.kinds import SPREADS
from uqeval.stores.planes import Planes
from uqeval.stores.stack import Stack
from uqeval.stores.watched_parts import PartsIfRead, Watched

if TYPE_CHECKING:
    from uqeval.maps.regression import RegressionSource

_PARTS = ("mean", *SPREADS, "samples")
_EXCLUDED = "Store it as `valid`, true for the pixels to evaluate."


def open_regression(
    opened: PredictionStores, target: Given | None, options: InputOptions
) -> Inputs:
    """Open predicted numbers with their target. Raises `StoreError` or `UsageError`."""
    from uqeval.maps.regression import RegressionSource

    _refuse_class_options(opened, options)
    stores, where = opened.stores, opened.where
    kinds = _parts(stores)
    count = len(stores[0].arrays[kinds[0]])
    item_range, evaluated = chosen_items(options, count)
    own_stores = [store_of(store, item_range) for store in stores]
    stacks = {name: Stack(own_stores, name) for name in kinds}
    _check_shapes(stacks, where)
    extra = _extra_maps(opened.joined)
    truth = _target(opened, target, options)
    _refuse_without_effect(options, kinds, truth, where)
    rows, names = slice(item_range.start, item_range.stop), opened.shown_names(count)
    source = RegressionSource(
        names[rows],
        stacks,
        target=Planes(truth.target[rows]) if truth.target else None,
        valid=[Planes(parts[rows]) for parts in truth.valid],
        extra={name: Planes(parts[rows]) for name, parts in extra.items()},
        where=where,
        content=opened.joined.holds(), and_others=opened.joined.and_others,
        skip_nan=options.nan_samples == "skip",
        invalid=options.invalid_targets(),
    )  # fmt: skip
    units = _units_of_scores(own_stores, truth, options)
    converted = _converted(source, options, truth, where)
    beside = [*extra.items(), *truth.arrays]
    read: list[tuple[str, Sequence[Watched]]]
    read = [(name, store.arrays[name]) for store in own_stores for name in kinds]
    read += [
        (name, PartsIfRead(parts[rows], partial(source.reads, name)))
        for name, parts in extra.items()
    ]
    read += [(name, parts[rows]) for name, parts in truth.arrays]
    watch = watched(source.names, read, options)
    predicted = [store.arrays[name] for store in stores for name in kinds]
    all_parts = [*predicted, *(parts for _, parts in beside)]
    refuse_missing([array for parts in all_parts for array in arrays_of(parts)], options.fill)
    truth_store = [truth.store] if truth.store and truth.store not in stores else []
    recorded_maps = recorded(opened.joined, sorted(extra), options)
    record = _record(opened, recorded_maps, kinds, truth, target)
    return Inputs(
        converted, ("0",), 255,
        record | evaluated | units | {"samples": stacks[kinds[0]].samples},
        [text for store in [*stores, *truth_store] for text in store.warnings]
        + next(filter(None, map(ignored, truth.target_arrays)), [])
        + warn_of_masks([*stores, *truth_store], options, ["valid"], _EXCLUDED),
        partial=len(item_range) < count, watch=watch,
        invalid=options.invalid is not None or any(map(has_invalid, truth.target_arrays)),
        groups=store_of(opened.joined, item_range).groups,
        **of_all_shards(evaluated, names, lambda: sizes_of(stores[0].arrays[kinds[0]])),
    )  # fmt: skip


def _units_of_scores(
    stores: Sequence[Store], truth: _Truth, options: InputOptions
) -> dict[str, str]:
    """Return the record of the declared unit of predictions and target; empty without one.

    Converted predictions are in the unit of the target, unless it is converted too. Raises
    `StoreError` for different units that no option converts.
    """
    predicted = _declared(stores, ("mean", "std", "samples"))
    target = _declared(truth.stores, ("target",))
    if options.converts:
        _common_unit(predicted)
        unit = _common_unit(target) if options.disparity != "both" else None
    else:
        unit = _common_unit([*predicted, *target])
    return {} if unit is None else {"units": unit}


def _declared(stores: Sequence[Store], names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the units that arrays declare, as in CF and xarray by the attribute `units`, each with
    a name for the array."""
    return [
        (unit, f"{name} of {store.path}")
        for store in stores for name, parts in store.arrays.items() if name in names
        for array in arrays_of(parts)
        if isinstance(unit := array.attributes.get("units"), str)
    ]  # fmt: skip


def _common_unit(declared: Sequence[tuple[str, str]]) -> str | None:
    """Return the unit; None if no array declares one. Raises `StoreError` for several."""
    first_places: dict[str, tuple[str, str]] = {}
    for text, name in declared:
        first_places.setdefault(normal_unit(text), (text, name))
    if len(first_places) > 1:
        of_arrays = ", ".join(f"{name} is in {cut(text)}" for text, name in first_places.values())
        raise StoreError(
            f"mixed units: {of_arrays} (attribute units). Expected one unit. For disparities give "
            "--baseline-focal BF, for depths up to a factor --median-scaling; else store one unit, "
            "or correct the attribute."
        )
    return next((text for text, _ in first_places.values()), None)


def _converted(source: RegressionSource, options: InputOptions, truth: _Truth, where: str) -> Any:
    """Return the source in the units that the options request. Raises `UsageError`."""
    if options.disparity != "predictions" and options.baseline_focal is None:
        raise UsageError("--disparity needs --baseline-focal BF; give that too.")
    if options.baseline_focal is None and not options.median_scaling:
        return source
    if truth.target is None:
        option = "--median-scaling" if options.median_scaling else "--disparity both"
        if options.median_scaling or options.disparity == "both":
            raise UsageError(f"{option}: {where} has no target; give one after the predictions.")
    from uqeval.maps.converted import Conversion, ConvertedSource

    return ConvertedSource(
        source,
        Conversion(options.baseline_focal, options.disparity == "both", options.median_scaling),
    )


@dataclass(frozen=True)
class _Truth:
    """The target of all items and the masks of valid pixels, if there are any, and their stores:
    all members that have the target, or that of the user."""

    stores: list[Store]
    target: Sequence[ItemArray] | None
    valid: list[Sequence[ItemArray]]

    @property
    def store(self) -> Store | None:
        """Return the first store that has the target."""
        return next(iter(self.stores), None)

    @property
    def arrays(self) -> list[tuple[str, Sequence[ItemArray]]]:
        """Return its arrays by name."""
        target = [("target", self.target)] if self.target else []
        return [*target, *(("valid", parts) for parts in self.valid)]

    @property
    def target_arrays(self) -> list[StoredArray]:
        """Return the stored arrays of the target, each once."""
        return arrays_of(self.target or ())


def _record(
    opened: PredictionStores,
    maps: Sequence[str],
    kinds: Sequence[str],
    truth: _Truth,
    target: Given | None,
) -> dict[str, Any]:
    """Return the record of the stores in a report; `maps`: further arrays, each recorded with the
    first store that has it.
    """
    conversion = conversion_of(kinds)
    converted = {"converted": conversion} if conversion else {}
    target_record = None
    if truth.store:
        names = [name for name in ("target", "valid") if name in truth.store.arrays]
        given_as = opened.given_of(truth.store) if target is None else target
        target_record = record_of(truth.store, names, given_as)
    return {
        "predictions": [
            record_of(store, [*kinds, *(n for n in maps if opened.holder(n) is store)], given_as)
            | converted
            for store, given_as in zip(opened.stores, opened.given, strict=True)
        ],
        "target": target_record,
    }


def _refuse_without_effect(
    options: InputOptions, kinds: Sequence[str], truth: _Truth, where: str
) -> None:
    """Raise `UsageError` for options of samples or of a target if there are none."""
    if options.nan_samples == "skip" and "samples" not in kinds:
        raise UsageError(f"--nan-samples skip is for `samples`; {where} holds {all_listed(kinds)}.")
    if options.invalid is not None and truth.target is None:
        raise UsageError(
            f"--invalid is for a target, and {where} has none. Give a target after the "
            "predictions, or leave --invalid out."
        )


def _check_shapes(stacks: Mapping[str, Stack], where: str) -> None:
    """Raise `StoreError` if the arrays differ in members or size of an item."""
    first, stack = next(iter(stacks.items()))
    for name, other in stacks.items():
        for i in range(stack.items):
            shapes = [(members.samples, *members.size(i)) for members in (stack, other)]
            if shapes[0] != shapes[1]:
                raise StoreError(
                    f"{where}: {first} and {name} differ in members or size: item {i} has "
                    f"(members, height, width) {shapes[0]} and {shapes[1]}; each member needs "
                    "both, with the same shape."
                )


def _refuse_class_options(opened: PredictionStores, options: InputOptions) -> None:
    for name in ("classes", "class_names", "kind", "label_map", "ignore_index", "sum_tolerance"):
        if getattr(options, name) is not None:
            raise UsageError(
                f"{option_name(name)} is for classes; {opened.where} holds numbers with a target."
            )
    if options.annotator_folders:
        raise UsageError(
            f"--annotator-folders is for labels of classes; {opened.where} holds numbers with a "
            "target. Leave it out."
        )


def _parts(stores: list[Store]) -> list[str]:
    """Return the arrays for mean and σ, equal for all members: `mean`, or `samples`."""
    kinds = []
    for store in stores:
        held = [name for name in _PARTS if name in store.arrays]
        if "samples" in held and len(held) > 1:
            raise StoreError(
                f"{store.path} holds samples and {all_listed(held[:-1])}; keep one of them: "
                "the mean and the standard deviation are computed from the samples."
            )
        spreads = [name for name in held if name in SPREADS]
        if len(spreads) > 1:
            raise StoreError(
                f"{store.path} holds {' and '.join(spreads)}; expected only one of them, for the "
                "standard deviation. Remove or rename the "
                f"other{'s' * (len(spreads) > 2)}{_how_to_remove(store.path, spreads[-1])}."
            )
        if not {"mean", "samples"} & set(held):
            raise StoreError(
                f"{store.path} holds {store.holds()}; expected `mean` with one of "
                f"{', '.join(f'`{name}`' for name in SPREADS)}, or `samples`."
                + hint_of_truth(stores)
            )
        kinds.append(held)
    if any(store_kinds != kinds[0] for store_kinds in kinds):
        listed = ", ".join(f"{s.path}: {'+'.join(k)}" for s, k in zip(stores, kinds, strict=True))
        formulas = {n: SPREADS[n] for held in kinds for n in held if SPREADS.get(n, n) != n}
        how = "; ".join(f"in place of {n}, {of_std}" for n, of_std in formulas.items())
        raise StoreError(
            f"members of one ensemble need the same arrays, but these hold {listed}. Store `mean` "
            f"and `std` in all of them{f' ({how})' if how else ''}."
        )
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


def _extra_maps(store: Store) -> dict[str, Sequence[ItemArray]]:
    """Return maps [N, H, W] of other names, which the user may choose as σ."""
    known_maps = {*_PARTS, "target", "valid", "labels"}
    return {
        name: parts
        for name, parts in store.arrays.items()
        if name not in known_maps and set(parts[0].array.axes) - {"item"} == {"y", "x"}
    }


def _target(opened: PredictionStores, target: Given | None, options: InputOptions) -> _Truth:
    """Return the target and the masks of valid pixels, in the order of the predictions."""
    predictions, names = opened.joined, opened.names
    masks = [valid] if (valid := opened.shared("valid")) else []
    if target is None:
        holders = [store for store in opened.stores if "target" in store.arrays]
        return _Truth(holders, opened.shared("target"), masks)
    target = open_once(target)
    store = open_truth(target, "target", "target", predictions, names, options)
    if "target" not in store.arrays:
        raise StoreError(f"{store.path} holds {store.holds()}, but no `target`.")

    def ordered(kind: str) -> Sequence[ItemArray]:
        return in_order_of(store, store.arrays[kind], predictions, names, "target")

    if "valid" in store.arrays:
        masks.append(ordered("valid"))
    return _Truth([store], ordered("target"), masks)
