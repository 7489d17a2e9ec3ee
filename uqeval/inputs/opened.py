"""Opened inputs, and their record in a report.

For later runs: stamps of items, and the cache of their maps.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from uqeval.arrays import Array, np
from uqeval.errors import UqevalError, UsageError
from uqeval.maps.names import map_and_id
from uqeval.records.inputs import VALUE_OPTIONS
from uqeval.stores.class_ids import stamp_of_void
from uqeval.stores.watch import Watch
from uqeval.threads import Threads

if TYPE_CHECKING:
    from uqeval.inputs.options import InputOptions
    from uqeval.maps.contract import MapSource
    from uqeval.metrics._dataset_info import DatasetInfo, VideoInfo
    from uqeval.stores.array import ItemArray, Store
    from uqeval.stores.contents import Contents
    from uqeval.stores.described import DescribedArray
    from uqeval.stores.map_cache import MapCache
    from uqeval.stores.watched_parts import Watched

#: Accepted as a store: a path, a URL, an opened store, an array in memory, or a mapping
#: of arrays by name.
Given: TypeAlias = "str | Path | Contents | Array | DescribedArray | Mapping[str, Any]"


#: Options that name a path.
_PATHS = (
    "names", "video", "pseudo_labels", "flow_path", "flow_forward_path", "flow_cache", "map_cache",
    "depth_map",
    "ood_mask",
)  # fmt: skip


@dataclass(frozen=True)
class Recipe:
    """The arguments with which inputs were opened.

    `subsets`: those of the samples that a sweep draws.
    """

    predictions: Any
    truth: Any
    options: InputOptions
    reference: Any = None
    subsets: tuple[tuple[int, ...], ...] | None = None

    def with_absolute_paths(self) -> Recipe:
        """Return a copy with absolute paths.

        Raises `UsageError` for arrays in memory, which another process cannot open.
        """
        options: dict[str, Any] = {
            name: _absolute(value) for name in _PATHS
            if (value := getattr(self.options, name)) is not None
            # Names may also be a list, and a mask an id of the labels.
            and not (name == "names" and not isinstance(value, str | os.PathLike))
            and not (name == "ood_mask" and self.options.ood_id is not None)
        }  # fmt: skip
        options["out"] = tuple(
            [_absolute(member) for member in members_of(store)] for store in self.options.out
        )
        return Recipe(
            [_absolute(given) for given in self.stores()] or None,
            None if self.truth is None else _absolute(self.truth),
            dataclasses.replace(
                self.options, **options, region=tuple(map(_absolute_map, self.options.regions))
            ),
            None if self.reference is None else _absolute(self.reference),
            self.subsets,
        )

    def stores(self) -> list[Any]:
        """Return the stores of predictions."""
        if self.predictions is None:
            return []
        given = self.predictions
        return list(given) if isinstance(given, list | tuple) else [given]


def _absolute_map(region: str) -> str:
    """Return a region with the absolute path of its map, if it names a path."""
    path, number = map_and_id(region)
    if not region.strip().startswith("map:") or not Path(path).exists():
        return region
    return f"map:{_absolute(path)}" + ("" if number is None else f":{number}")


def members_of(store: Any) -> list[Any]:
    """Return the members of one set of predictions: a list, or paths joined by `+`."""
    if isinstance(store, list | tuple):
        return list(store)
    is_path = isinstance(store, str) and "+" in store and not Path(store).exists()
    return store.split("+") if is_path else [store]


def _absolute(given: Given | os.PathLike[str]) -> str:
    """Return the absolute path of a store; a URL unchanged. Raises `UsageError` for an array."""
    if isinstance(given, Mapping) or not isinstance(given, str | os.PathLike):
        raise UsageError(
            "an array in memory cannot be read by the workers of a cluster; save it, and give its "
            "path."
        )
    path = os.fspath(given)
    return path if "://" in path else str(Path(path).absolute())


@dataclass(frozen=True)
class Inputs:
    """Opened inputs: the source of maps, and the record in a report."""

    source: MapSource
    class_names: tuple[str, ...]
    ignore_index: int
    record: dict[str, Any]
    warnings: list[str]
    partial: bool
    reference: bool = False
    #: Regions of pixels that are evaluated, in addition to the whole image.
    regions: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    video: VideoInfo | None = None
    #: The case (volume) of each item, where items are slices of cases.
    groups: tuple[str, ...] | None = None
    #: Resources that must stay open while the items are read.
    session: Callable[[], AbstractContextManager[Any]] = nullcontext
    #: Whether maps are kept between passes instead of being read again.
    keeps_maps: bool = True
    #: Of a video: seconds that the flow took, by its name, for the report's timing.
    flow_seconds: dict[str, float] | None = None
    #: What the maps depend on, except the stores: for a video, the flow.
    flows: Callable[[], dict[str, Any]] = dict
    #: Folder with the cache of maps for other runs.
    map_cache: str | Path | None = None
    #: Watch for changes of each item's files.
    watch: Watch = field(default_factory=lambda: Watch((), ()))
    #: Whether the user, or the target's array, declares invalid targets.
    invalid: bool = False
    #: Whether the names of items are numbers, because the stores have no names.
    are_numbered: bool = False
    #: Names and sizes of the items of all shards; None if these are all items.
    all_names: tuple[str, ...] | None = None
    all_sizes: tuple[tuple[int, int], ...] | None = None
    #: Arguments for opening them again in another process.
    recipe: Recipe | None = None
    #: Of several sets of items: the set of each item.
    sets: tuple[int, ...] = ()
    #: Of masked pixels in labelled images: how many classes there are; else 0.
    inner_classes: int = 0
    #: How many annotators labelled each item; 0 for one label per pixel.
    annotators: int = 0
    #: The store of all predictions, or of the frames; None for several sets, and for files.
    store: Store | None = None

    @property
    def all_item_names(self) -> tuple[str, ...]:
        """Return the names of the items of all shards."""
        return self.source.names if self.all_names is None else self.all_names

    def region_names(self) -> tuple[str, ...]:
        """Return the regions to evaluate, one for each id of a map. Raises `UqevalError`."""
        expanded = getattr(self.source, "expanded", None)
        try:
            return self.regions if expanded is None else tuple(expanded(self.regions))
        except UqevalError:  # a map looks damaged while it is replaced
            self.watch.check(range(self.source.items))
            raise

    def info(self) -> DatasetInfo:
        """Return the properties of the data that are known before reading them."""
        from uqeval.metrics._dataset_info import DatasetInfo, names_digest

        source, record = self.source, self.record
        sizes = tuple(source.size(item) for item in range(source.items))
        return DatasetInfo(
            source.where, source.names, sizes, source.classes, self.class_names, source.samples,
            source.kind, self.reference, self.video, self.given, self.invalid, self.groups,
            tuple(
                dict.fromkeys(
                    name for store in record["predictions"]
                    for name, array in store["arrays"].items() if array["dtype"] == "float16"
                )
            ),
            (record.get("labels") or {}).get("path", ""), self.ignore_index,
            all_names=self.all_names, all_sizes=self.all_sizes,
            names_digest=names_digest(self.all_names), sets=self.sets,
            inner_classes=self.inner_classes, annotators=self.annotators,
            choices=getattr(source, "stored_choices", 0), units=record.get("units", ""),
            samples_of_maps=_samples_of_maps(record) if source.samples is None else 0,
        )  # fmt: skip

    def paths(self) -> list[str]:
        """Return the absolute paths of the stores, if they are on a disk."""
        record = self.record
        stores = [record.get("labels"), record.get("target"), record.get("reference")]
        store_paths = [store["path"] for store in (*record["predictions"], *stores) if store]
        return [path if "://" in path else str(Path(path).absolute()) for path in store_paths]

    @property
    def given(self) -> tuple[str, ...]:
        """Return the paths of predictions and ground truth as given."""
        record = self.record
        truth = record.get("labels") or record.get("target")
        paths = [store["path"] for store in (*record["predictions"], *([truth] if truth else []))]
        return tuple(dict.fromkeys(paths))

    @property
    def fingerprint(self) -> str:
        """Return one digest for all stores; empty if one has no fingerprint."""
        truth = self.record.get("labels") or self.record.get("target") or {}
        stores = [*self.record["predictions"], truth]
        stores += [s for s in (self.record.get("frames"), *self.record.get("flow", ())) if s]
        stores += self.record.get("regions", ())
        # A mask of pixels may be an id of the labels, which is no store.
        others = (self.record.get(name) for name in ("reference", "ood_mask"))
        stores += [store for store in others if isinstance(store, dict)]
        if any(store.get("fingerprint", "") is None for store in stores):
            return ""
        text = "\n".join(str(store.get("fingerprint")) for store in stores)
        return hashlib.sha256(text.encode()).hexdigest()


def _samples_of_maps(record: Mapping[str, Any]) -> int:
    """Return the number of samples that a maps store records; 0 without one."""
    samples = record.get("samples")
    return samples if isinstance(samples, int) and samples > 0 else 0


def of_all_shards(
    evaluated: Mapping[str, Any],
    names: tuple[str, ...],
    sizes: Callable[[], tuple[tuple[int, int], ...]],
) -> dict[str, Any]:
    """Return the items of all shards as fields of `Inputs`; empty if these are all items.

    `evaluated`: the record of the choice of items. `sizes` is called for a shard only.
    """
    return {"all_names": names, "all_sizes": sizes()} if "part" in evaluated else {}


def sizes_of(parts: Sequence[ItemArray]) -> tuple[tuple[int, int], ...]:
    """Return height and width of each item, 1 along an axis that is not stored."""
    from uqeval.stores.array import arrays_of  # loads NumPy

    sizes = {id(own): (own.length("y"), own.length("x")) for own in arrays_of(parts)}
    return tuple(sizes[id(part.array)] for part in parts)


def store_of(store: Store, item_range: range) -> Store:
    """Return a store of only the items at these indices."""
    rows = slice(item_range.start, item_range.stop)
    names = None if store.names is None else store.names[rows]
    return replace(
        store, arrays={kind: parts[rows] for kind, parts in store.arrays.items()}, names=names,
        groups=None if store.groups is None else store.groups[rows],
    )  # fmt: skip


#: Input options that the states of an item depend on: those that change numbers, and those that
#: decide how arrays are read and whether values are valid.
_OPTIONS = (*VALUE_OPTIONS, "kind", "axes", "sum_tolerance")

#: Computing stamps waits until the disk has written new files; several stamps share one wait.
_SYNCS = 8


def map_cache_of(inputs: Inputs, stamps: list[str | None]) -> MapCache | None:
    """Return the cache of maps for later runs, if requested."""
    from uqeval.maps.checks import has_valid_values
    from uqeval.maps.names import OF_CLASSES, form_of
    from uqeval.stores.map_cache import MapCache

    if inputs.map_cache is None:
        return None
    info = inputs.info()
    float32: Collection[str] = getattr(inputs.source, "float32", ())

    def classes_of(name: str) -> int:
        return info.inner_classes if name.startswith(OF_CLASSES) else info.classes

    def form(name: str, item: int) -> tuple[tuple[int, ...], str]:
        return form_of(name, classes_of(name), info.sizes[item], info.kind, float32)

    def is_valid(name: str, values: Array) -> bool:
        return has_valid_values(name, values, classes_of(name), info.kind)

    return MapCache(inputs.map_cache, info.names, stamps, form, is_valid)


def stamps_of(inputs: Inputs) -> list[str | None]:
    """Return a stamp per item, which changes when its states may change.

    It covers all that states depend on, except the parameters and versions of tallies. None if
    changes of the item's files cannot be detected.
    """
    from uqeval.maps import VERSION
    from uqeval.stores.states.saved import SCHEMA
    from uqeval.stores.watch import combining, one_look

    info = inputs.info()
    void = stamp_of_void(inputs.ignore_index, inputs.record.get("classes") or info.classes)
    context: dict[str, Any] = {
        "states": [SCHEMA, VERSION, np.__version__, zlib.ZLIB_RUNTIME_VERSION],
        "options": {name: inputs.options.get(name) for name in _OPTIONS},
        "data": [info.kind, info.classes, info.samples, info.reference, void],
        "flows": inputs.flows(),
        "paths": inputs.paths(),
        "last_digits": last_digits(),
    }
    if inputs.recipe is not None and inputs.recipe.subsets is not None:
        context["subsets"] = inputs.recipe.subsets
    combined = combining(json.dumps(context, sort_keys=True))

    def stamp(parts: Sequence[Watched]) -> str | None:
        return combined(item_array.stamp() for item_array in parts)

    def stamps(first: int) -> list[str | None]:
        with one_look():
            return [stamp(parts) for parts in all_parts[first : first + step]]

    all_parts = inputs.watch.parts
    step = -(-len(all_parts) // (4 * _SYNCS)) or 1
    with Threads(_SYNCS) as threads:
        blocks = threads.map(stamps, range(0, len(all_parts), step))
    return [item_stamp for block in blocks for item_stamp in block] or [None] * inputs.source.items


@cache
def last_digits() -> str:
    """Return a digest of NumPy's exp and log, whose last digits depend on the processor."""
    below = np.linspace(-20, 0, 4099)
    results = [
        function(values.astype(kind)).tobytes()
        for function, values in ((np.exp, below), (np.log, np.exp2(below)))
        for kind in (np.float64, np.float32)
    ]
    return hashlib.sha256(b"".join(results)).hexdigest()[:16]
