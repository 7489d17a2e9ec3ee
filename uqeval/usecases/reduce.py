"""The use case `reduce`: convert sample stacks to a maps store, which most metrics accept."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Maps, np
from uqeval.engine.options import RunOptions
from uqeval.engine.passes import Progress as Advance
from uqeval.engine.passes import Resources, workers_within
from uqeval.errors import OutputError, UsageError, cut, quoted
from uqeval.inputs import InputOptions, Inputs
from uqeval.inputs.common import refuse_missing
from uqeval.inputs.regions import void_of_map
from uqeval.maps.names import (
    COMPUTED,
    OF_LABELS,
    OF_SEVERAL_SAMPLES,
    UNCERTAINTIES,
    annotations_of,
    choices_of,
    form_of,
    stored_name,
    void_of,
)
from uqeval.maps.sources import Source, with_samples
from uqeval.maps.stored_maps import PROBABILITIES
from uqeval.maps.with_stored import WithStored, stored_beside_samples
from uqeval.stores.array import StoredArray
from uqeval.stores.bfloat16 import SOURCE, SUM_TOLERANCE, TOLERANCE, is_coarse
from uqeval.stores.class_ids import ASSUMED_VOID, AssumedVoid, may_be_class
from uqeval.stores.coordinates import Coordinate
from uqeval.stores.zarr import writer as zw
from uqeval.threads import in_order

if TYPE_CHECKING:
    from uqeval.engine.remote import Opened

#: The rounding of sums of float32 maps.
_ROUNDING = 1e-6


def default_maps(source: Source, mean_probs: bool) -> tuple[str, ...]:
    """Return all maps that are defined for the samples, and the maps of labels if there are any."""
    names = [n for n in COMPUTED if source.samples != 1 or n not in OF_SEVERAL_SAMPLES]
    if not mean_probs:
        names.remove("mean_probs")
    if source.labels is None:
        return tuple(names)
    annotators = source.labels.annotators
    if not annotators:
        return (*names, *OF_LABELS)
    # The energy distance compares the samples with the annotators.
    choices = choices_of(source.samples or 0)
    return (*names, annotations_of(annotators), *OF_LABELS[1:], choices)


def reduce(
    inputs: Inputs,
    destination: str | Path,
    maps: Sequence[str] | None = None,
    *,
    mean_probs: bool = True,
    overwrite: bool = False,
    options: RunOptions | None = None,
) -> Path:
    """Write the maps of all items to a Zarr store at `destination`; return its path.

    `maps`: uncertainties to compute, and maps of the store to copy (default: all). On a cluster,
    the workers write the maps of their items, so `destination` must be a folder that all see.
    Arrays: `mean_probs` [item, class, y, x] and maps [item, y, x], float32; `predictions` and
    `labels`, uint8 (uint16 from 256 classes on); with labels of several annotators also
    `sample_predictions` [item, sample, y, x]; copied maps in their dtype. Adds a warning to
    `inputs.warnings` for each map that cannot be copied. Writes to a temporary name and renames at
    the end. Raises `UqevalError`.
    """
    from uqeval.stores.writing.new_store import NewStore, are_equal, checked_target, replacing

    options = options or RunOptions()
    source = with_samples(inputs.source, "reduce")
    read_stores = [*inputs.record["predictions"], *filter(None, [inputs.record["labels"]])]
    read_paths = [*(store["path"] for store in read_stores), inputs.options.get("names")]
    target = checked_target(destination, read_paths, overwrite)
    copied = _copied_maps(inputs, source, maps)
    map_names = _wanted_maps(source, maps, mean_probs, copied)
    source.want(map_names)
    voids = {name: _void_of_copy(inputs, source, name) for name in copied}
    dense = len({source.size(item) for item in range(source.items)}) == 1 and all(
        are_equal(_attributes_of_copy(array, void) for array in source.stored[name].arrays)
        for name, void in voids.items()
    )
    with replacing(target) as new, ExitStack() as stack:
        writing = _Writing(
            str(new), dense, map_names, _mean_probs_origin(source), _sum_tolerance(source), voids,
            _items_in_chunk(source, map_names, copied) if options.cluster is None else 1,
        )  # fmt: skip
        options.progress.begin("reduce", source.items)
        stack.callback(options.progress.end)
        names = source.names if _has_names(inputs, dense) else None
        new_store = NewStore(new, source.items, names, dense)
        new_store.create(_attributes(inputs, source), _coordinates(inputs))
        if options.cluster is None:
            resources = Resources(options.threads(), options.memory)
            writing.write(inputs, source.batches(), resources, options.progress.advance)
        else:
            executor = options.cluster.executor(inputs, options, map_names)
            stack.callback(executor.end)
            for items, _, nbytes in executor.each(writing):
                options.progress.advance(nbytes, len(items))
            _give_modes(Path(new))
        inputs.watch.check_all()
    return target


@dataclass(frozen=True)
class _Writing:
    """Writes maps of items into the new store at `root`, which is `dense` if all have one size and
    equal attributes.

    `origin`: attributes of `mean_probs`; `sum_tolerance`: those of maps of probabilities. `copied`:
    maps of the old store, with the void id of each (`_void_of_copy`). `in_chunk`: as in `NewStore`.
    """

    root: str
    dense: bool
    maps: tuple[str, ...]
    origin: Mapping[str, str]
    sum_tolerance: Mapping[str, float]
    copied: Mapping[str, Mapping[str, Any] | None]
    in_chunk: int

    def __call__(self, opened: Opened) -> None:
        """Write the items of a job. Raises `OutputError` if this host does not see the store."""
        if not (Path(self.root) / "zarr.json").is_file():
            raise OutputError(
                f"{self.root}: the worker does not see the new store there. Write to a folder that "
                "all hosts share."
            )
        resources = Resources(opened.workers, opened.memory)
        self.write(opened.inputs, opened.batches, resources, opened.advance)

    def write(
        self, inputs: Inputs, batches: Sequence[range], own: Resources, advance: Advance
    ) -> None:
        """Write the items of some batches."""
        from uqeval.stores.writing.new_store import NewStore

        source = WithStored(with_samples(inputs.source, "reduce"), tuple(self.copied))

        def work(batch: range, check: Callable[[], None]) -> list[Maps]:
            def heartbeat(nbytes: int) -> None:
                check()
                advance(nbytes, 0)

            with inputs.watch.reading(batch):
                maps = source.read(batch, heartbeat)
            advance(0, len(batch))
            return maps

        store = NewStore(
            Path(self.root), source.items, source.names, self.dense, in_chunk=self.in_chunk
        )
        workers = workers_within(source, own, batches=batches)
        for batch, reduced in in_order(work, batches, workers):
            for item, values in zip(batch, reduced, strict=True):
                for name in self.maps:
                    attributes: dict[str, Any] = dict(self.origin) if name == "mean_probs" else {}
                    if name in PROBABILITIES:
                        attributes |= self.sum_tolerance
                    store.put(item, stored_name(name), values[name], attributes)
                for name, void in self.copied.items():
                    array = source.planes[name].parts[item].array
                    store.put(item, name, values[name], _attributes_of_copy(array, void))
        store.flush()


def _give_modes(store: Path) -> None:
    """Give the files of workers, which may have another umask, the modes of those of this process.

    Files of another user keep theirs.
    """
    mode = stat.S_IMODE((store / "zarr.json").stat().st_mode)
    mode_of_folder = mode | (mode & 0o444) >> 2  # who may read it may list it
    for folder, _, names in os.walk(store):
        for path, own in ((folder, mode_of_folder), *((f"{folder}/{n}", mode) for n in names)):
            with suppress(PermissionError):
                Path(path).chmod(own)


def _has_names(inputs: Inputs, dense: bool) -> bool:
    """Return whether the new store has names of items. Without names in the old store it has none,
    so that it also matches labels by position; but shards keep the numbers of their items, and
    folders of items need names.
    """
    return not inputs.are_numbered or inputs.all_names is not None or not dense


def _items_in_chunk(source: Source, maps: Sequence[str], copied: Sequence[str]) -> int:
    """Return how many small items share a chunk; one process must write all of them."""
    from uqeval.stores.writing.new_store import items_in_chunk

    size = source.size(0)
    forms = [form_of(name, source.classes, size) for name in maps]
    forms += [(size, source.stored[name].arrays[0].dtype.str) for name in copied]
    largest = max(math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in forms)
    return items_in_chunk(source.items, largest)


def _copied_maps(inputs: Inputs, source: Source, maps: Sequence[str] | None) -> tuple[str, ...]:
    """Return the maps of the store to copy: those in `maps`, by default all.

    Raises `StoreError` for missing chunks, `UsageError` for a map in `maps` that cannot be copied.
    By default such a map gives a warning, as one that several members have.
    """
    obstacles = dict(stored_beside_samples(source))
    if maps is None and source.and_others:
        inputs.warnings.append(
            f"{source.where}: a web server cannot list arrays, so only the usual maps are "
            "copied. For other maps, name all maps to copy: --maps entropy --maps mine."
        )
    if maps is not None:
        obstacles = {name: why for name, why in obstacles.items() if name in maps}
    for name, why in obstacles.items():
        if why is None and maps is None and len(source.stored[name].arrays[0].holders) > 1:
            # Equal values are not known before all are read.
            why = obstacles[name] = (
                "several members have it, perhaps each its own. If it is the same in all, name it "
                f"with every map that you need: --maps entropy --maps {cut(name)}"
            )
        if why is not None and maps is not None:
            raise UsageError(f"--maps {cut(name)}: {source.where} has this map, but {why}.")
        if why is not None:
            inputs.warnings.append(f"left out the map {quoted(name)} of {source.where}: {why}.")
    copied = tuple(name for name, why in obstacles.items() if why is None)
    fill = inputs.recipe is not None and inputs.recipe.options.fill
    refuse_missing([array for name in copied for array in source.stored[name].arrays], fill)
    return copied


def _wanted_maps(
    source: Source, maps: Sequence[str] | None, mean_probs: bool, copied: Sequence[str]
) -> tuple[str, ...]:
    """Return the maps to compute. Raises `UsageError` for unknown names."""
    names = default_maps(source, mean_probs)
    if maps is None:
        return names
    unknown = [name for name in maps if name not in UNCERTAINTIES and name not in copied]
    if unknown:
        stored = stored_beside_samples(source)
        raise UsageError(
            f"--maps {cut(unknown[0])}; expected some of {', '.join([*UNCERTAINTIES, *stored])}."
        )
    retained = [n for n in names if n not in UNCERTAINTIES or n in maps]
    return (*retained, *(n for n in maps if n not in names and n not in copied))


def _attributes_of_copy(array: StoredArray, void: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the attributes of an item of a copied map. `void`: that of ids, None for numbers."""
    from uqeval.stores.writing.new_store import meaning_of

    attributes = meaning_of(array.attributes)
    if void is not None:
        attributes.pop("ignore_index", None)
    return attributes | dict(void or {})


def _void_of_copy(inputs: Inputs, source: Source, name: str) -> dict[str, Any] | None:
    """Return the attribute for the void id of a copied map of ids, which is empty if readers take
    the same id from the new store; None for numbers. Raises `StoreError` for an invalid one.
    """
    arrays = source.stored[name].arrays
    if arrays[0].dtype.kind not in "iu":  # all items of a copied map have one dtype
        return None
    options = inputs.recipe.options if inputs.recipe else InputOptions()
    void = void_of_map(arrays, inputs, options)
    # Of a map, the default void id stays assumed, and one that somebody gave stays given.
    follows = isinstance(void, AssumedVoid) or void != ASSUMED_VOID
    is_of_store = follows and void == _void_of_store(inputs, source)
    return {} if is_of_store else {"ignore_index": int(void)}


def _void_of_store(inputs: Inputs, source: Source) -> int:
    """Return the void id that labels are written with; without labels, that of later ones."""
    return inputs.ignore_index if source.labels is None else void_of(source.classes)


def _mean_probs_origin(source: Source) -> Mapping[str, str]:
    """Return the attributes of `mean_probs` if some samples were bfloat16, else none."""
    stack = source.stack
    return SOURCE if stack is not None and any(map(is_coarse, stack.arrays)) else {}


def _sum_tolerance(source: Source) -> dict[str, float]:
    """Return the attribute of maps of probabilities that were computed from coarse integers."""
    stack = source.stack
    if stack is None or stack.kind != "probs":
        return {}
    largest = max(map(stack.tolerance, stack.arrays))
    # Maps are float32.
    return {SUM_TOLERANCE: largest + _ROUNDING} if largest > TOLERANCE else {}


def _coordinates(inputs: Inputs) -> dict[str, Coordinate]:
    """Return the coordinates of the predictions, those of items only if all are written."""
    if (store := inputs.store) is None:
        return {}
    are_all = store.items == inputs.source.items
    return {name: own for name, own in store.coordinates.items() if are_all or own.axis != "item"}


def _attributes(inputs: Inputs, source: Source) -> dict[str, Any]:
    """Return the attributes of the new store."""
    void = _void_of_store(inputs, source)
    # Without labels, 255 may be a class of later ones, which the store must not decide.
    return zw.group_attributes("maps", samples=source.samples, classes=source.classes) | {
        "class_names": list(inputs.class_names),
        **({} if may_be_class(void, source.classes) else {"ignore_index": int(void)}),
        "reduced_from": inputs.fingerprint or None,
    }
