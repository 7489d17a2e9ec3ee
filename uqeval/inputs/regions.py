"""Open the maps that regions of pixels need, and match them with the items."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.errors import StoreError, UsageError, cut, quoted
from uqeval.inputs.common import (
    as_store,
    in_order_of,
    open_truth,
    path_of,
    record_of,
    refuse_missing,
)
from uqeval.inputs.ids import positions_of_frames
from uqeval.inputs.opened import Given, Inputs
from uqeval.inputs.options import InputOptions, chosen_items
from uqeval.maps.names import map_and_id
from uqeval.stores.array import ItemArray, Store, StoredArray, arrays_of
from uqeval.stores.class_ids import (
    ASSUMED_VOID,
    declared_void,
    fills_of,
    refuse_other_void,
    void_id_of,
)
from uqeval.stores.contents import Role
from uqeval.stores.fill_values import ignored
from uqeval.stores.map_names import STORED_DEPTH
from uqeval.stores.orders import refuse_other_order
from uqeval.stores.planes import Planes
from uqeval.stores.watch import Watch
from uqeval.stores.watched_parts import WatchedText

if TYPE_CHECKING:
    from uqeval.maps.region_maps import RegionPlanes


_OTHER_VOID = "give another void id, such as 65535, as the attribute ignore_index"


def void_of_map(arrays: Sequence[StoredArray], inputs: Inputs, options: InputOptions) -> int:
    """Return the id of no region in a map of the store of predictions: that of the options, of its
    arrays (`uqeval reduce` writes it if labels have another), or of the labels.

    Raises `StoreError` if the arrays of items have different ones.
    """
    declared = [(declared_void(array.attributes, array.where), array.where) for array in arrays]
    if options.ignore_index is not None:
        return inputs.ignore_index
    # That 255 is void in labels does not say that it is in a map with larger ids.
    default = ASSUMED_VOID if inputs.ignore_index == ASSUMED_VOID else inputs.ignore_index
    voids: dict[int, str] = {}
    for void, where in declared:
        own = "without the attribute ignore_index" if void is None else "attribute ignore_index"
        voids.setdefault(default if void is None else void, f"in {where} ({own})")
    if len(voids) > 1:
        first, second = [f"{int(void)} {where}" for void, where in voids.items()][:2]
        raise StoreError(
            f"the void id of a map is {first}, and {second}; expected one for all items. Write "
            "the map with one void id, and set the attribute ignore_index of all items to it; or "
            "give the id that is void in labels and in the map of all items, such as "
            "--ignore-index 65535."
        )
    return next((void for void, _ in declared if void is not None), default)


@dataclasses.dataclass
class _Opener:
    """Opens maps of regions for opened inputs; collects their records and their parts."""

    inputs: Inputs
    options: InputOptions
    #: The store of all predictions, and the names of all its items (frames of a video).
    store: Store | None
    names: tuple[str, ...] | None
    count: int
    records: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    parts: list[Sequence[ItemArray]] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)

    @property
    def where(self) -> str:
        """Return the store of predictions as messages call it."""
        return self.store.path if self.store is not None else self.inputs.source.where

    def array(self, name: str, region: str) -> RegionPlanes | None:
        """Return an array of the store of predictions by its name; None if there is none.

        `region`: how keys of results begin that need it, "depth" or "map:NAME".
        """
        arrays = self.store.arrays if self.store is not None else {}
        if name not in arrays:
            return None
        assert self.store is not None
        own = arrays_of(arrays[name])
        for array in own:
            array.check_claims()  # before the void id is read
        path = self.store.path_of(name)
        record = record_of(self.store, [name], path)
        self.records.append(record | {"region": region})
        where = f"{path}, {name}"
        void = void_of_map(own, self.inputs, self.options)
        to_change = f"{_OTHER_VOID} of the array"
        is_given = self.options.ignore_index is not None
        if is_given:
            to_change = "give another --ignore-index, or the map in a store of its own"
        is_declared = is_given or any("ignore_index" in array.attributes for array in own)
        fills = {} if is_declared else fills_of(own)
        return self._planes(arrays[name], where, void, to_change, region, fills)

    def path(self, path: Given, role: Role, option: str, region: str) -> RegionPlanes:
        """Return the maps in a folder, one per item, or in an array. Raises `StoreError`."""
        noun = "region map" if role == "labels" else "depth map"
        store = open_truth(path, role, noun, self.store, self.names, self.options)
        self.warnings += store.warnings
        kinds = (role, STORED_DEPTH) if region == "depth" else (role,)
        kind = next((kind for kind in kinds if kind in store.arrays), None)
        if kind is None:
            raise StoreError(
                f"{option}: {store.path} holds {store.holds()}; expected one map, in an array "
                f"{' or '.join(map(quoted, reversed(kinds)))}."
            )
        parts = store.arrays[kind]
        if self.store is not None:
            parts = in_order_of(store, parts, self.store, self.names, "map")
        else:
            if (of_items := self.inputs.store) is not None:
                by_name = store.names is not None and self.names is not None
                refuse_other_order(store, of_items, by_name=by_name)
            of = "frame" if self.inputs.source.kind == "video" else "item"
            places, warnings = positions_of_frames(
                store, len(parts), self.names, self.count, "map", of
            )
            self.warnings += warnings
            parts = tuple(parts[place] for place in places if place is not None)  # none is None
        self.records.append(record_of(store, [kind], path) | {"region": region})
        void = void_id_of(None, [store])
        if role == "labels":
            refuse_other_void(arrays_of(parts), void, option_counts=False)
        return self._planes(
            parts,
            option,
            void,
            f"{_OTHER_VOID} of a store of ids (`uqeval convert` writes it with --ignore-index)",
            region,
            fills_of(arrays_of(parts)) if void is ASSUMED_VOID else {},
        )

    def _chosen(self) -> Sequence[int]:
        """Return the numbers of the evaluated items among all."""
        if self.store is not None or self.names is None:
            return chosen_items(self.options, self.count)[0]
        numbers = {name: i for i, name in enumerate(self.names)}  # --limit is of each set
        return [numbers[name] for name in self.inputs.source.names]

    def _planes(
        self,
        parts: Sequence[ItemArray],
        where: str,
        void: int,
        to_change_void: str,
        region: str,
        fills: Mapping[int, str],
    ) -> RegionPlanes:
        from uqeval.maps.region_maps import RegionPlanes

        if any(set(part.array.axes) - {"item"} != {"y", "x"} for part in parts):
            raise StoreError(f"{where}: axes {cut(parts[0].array.axes)}; a map is [item, y, x].")
        arrays = arrays_of(parts)
        refuse_missing(arrays, self.options.fill)
        if region == "depth":
            self.warnings += next(filter(None, map(ignored, arrays)), [])
        source: Any = self.inputs.source
        before = None
        if self.inputs.source.kind == "video":
            items = tuple(parts[pair.after] for pair in source.pairs)
            before = tuple(parts[pair.before] for pair in source.pairs)
        else:
            items = tuple(parts[i] for i in self._chosen())
        self.parts += [items, *([before] if before else [])]
        return RegionPlanes(
            Planes(items), Planes(before) if before else None, Planes(parts), void, to_change_void,
            fills,
        )  # fmt: skip


def with_regions(
    inputs: Inputs, options: InputOptions, store: Store | None, names: tuple[str, ...] | None,
    count: int,
) -> Inputs:  # fmt: skip
    """Return inputs whose source has the maps that regions read.

    `store`: of all predictions, None for a video and several sets; `names` and `count`: of all
    items, or of the frames of a video.
    Raises `UsageError` for missing maps, `StoreError` for maps of other items.
    """
    from uqeval.maps.region_maps import WithRegions

    opener = _Opener(inputs, options, store, names, count)
    maps = _region_maps(options.regions, opener, store)
    depth = None
    wants_depth = any(text.strip().startswith("depth:") for text in options.regions)
    if options.depth_map is not None and not wants_depth:
        raise UsageError(
            f"--depth-map {cut(path_of(options.depth_map))} has no effect without --region "
            "depth:LOW-HIGH; give such a region, or leave --depth-map out."
        )
    if options.depth_map is not None:
        given = as_store(options.depth_map, "depth_map")
        depth = opener.path(given, "target", "--depth-map", "depth")
    elif wants_depth:
        depth = opener.array(STORED_DEPTH, "depth")
    watch = inputs.watch
    if opener.parts:
        kinds = WatchedText(" ".join([*maps, "depth"]))
        by_item = [[kinds, *parts] for parts in zip(*opener.parts, strict=True)]
        watch = watch.and_of(Watch(inputs.source.names, by_item))
    record = inputs.record | ({"regions": opener.records} if opener.records else {})
    source: Any = WithRegions(inputs.source, maps, depth)
    return dataclasses.replace(
        inputs, source=source, record=record, watch=watch, regions=options.regions,
        warnings=[*inputs.warnings, *opener.warnings],
    )  # fmt: skip


def _region_maps(
    regions: Sequence[str], opener: _Opener, store: Store | None
) -> dict[str, RegionPlanes]:
    """Return the planes of the maps that `map:` regions name, by the name of the map."""
    maps: dict[str, RegionPlanes] = {}
    paths: dict[str, str] = {}
    for text in regions:
        if not text.strip().startswith("map:"):
            continue
        path, _ = map_and_id(text)
        if not path:
            raise UsageError(_unknown_map(text, path, store))
        name = path.rstrip("/").rpartition("/")[2]
        if paths.setdefault(name, path) != path:
            raise UsageError(
                f"--region map:{cut(path)} and map:{cut(paths[name])} have the same name in "
                "reports; rename one of the folders."
            )
        if name in maps:
            continue
        planes = opener.array(path, f"map:{name}")
        if planes is not None and Path(path).exists():
            raise UsageError(
                f"--region {cut(text)}: {cut(path)} is both an array of {opener.where} and a "
                f"path. Rename one, or give map:./{cut(path)} for the path."
            )
        if planes is None and ("://" in path or Path(path).exists()):
            planes = opener.path(path, "labels", f"--region {cut(text)}", f"map:{name}")
        if planes is None:
            raise UsageError(_unknown_map(text, path, store))
        maps[name] = planes
    return maps


def _unknown_map(text: str, name: str, store: Store | None) -> str:
    arrays = sorted(
        array for array, parts in (store.arrays if store else {}).items()
        if set(parts[0].array.axes) - {"item"} == {"y", "x"} and parts[0].array.dtype.kind in "biu"
        and array not in ("predictions", "labels", "valid")
    )  # fmt: skip
    if store is None:  # a video, or several sets
        absent = f"there is no path {cut(name)}" if name else "it names no map"
        return (
            f"--region {cut(text)}: {absent}; expected a folder of PNGs of ids, or a store of "
            "them, with the map of each item. Arrays in the stores of a video, or of IN OUT, are "
            "not read."
        )
    absent = f"there is no array and no path {cut(name)}" if name else "it names no map"
    of_store = f"{store.path} has {', '.join(arrays) or 'none'}"
    return (
        f"--region {cut(text)}: {absent}; expected the name of an "
        f"array of ids [item, y, x] ({of_store}), or a folder of PNGs of ids."
    )
