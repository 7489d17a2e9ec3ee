"""Keep maps between passes, so that a sample stack is read only once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeGuard, cast

import numpy as np

from uqeval.arrays import Maps
from uqeval.disk.locks import remove_temporary, temporary_folder
from uqeval.maps.contract import StackedMaps
from uqeval.stores.file_values import FileValues
from uqeval.stores.map_cache import MapCache, has_room
from uqeval.stores.watch import Watch

if TYPE_CHECKING:
    from uqeval.maps.contract import Heartbeat, MappedSource, MapSource


#: Bytes per pixel for a tally in addition to the maps: sorted keys and their positions.
_COUNTING = 24
#: The largest number of bytes of an item's maps that are kept in one array with others of its
#: batch.
_SMALL = 1 << 14


class Scratch:
    """Store of the maps of items read so far.

    Keeps maps in memory up to `memory` bytes, then in a temporary folder until the disk is full.
    Other items are reduced again in the next pass. A `mapped` source reads as fast as a copy of its
    maps. Its maps stay in memory only if all of them fit; else each pass reads the maps that it
    needs. Removes the folder on exit. With a `cache`, maps are stored there, and maps of earlier
    runs are read from there. Calls `reads` with each batch read from the source, from several
    threads. `watch` ends the run if the files change.
    """

    def __init__(
        self, memory: int, enabled: bool = True, cache: MapCache | None = None,
        reads: Callable[[range], None] = lambda _: None, watch: Watch | None = None,
    ) -> None:  # fmt: skip
        self._memory = self._free = memory if enabled else 0
        self._enabled = enabled
        self._cache = cache
        self.reads = reads
        self._watch = watch or Watch((), ())
        #: Whether a later pass needs the maps of this pass.
        self.keeping = True
        self._held: dict[int, _MapsInMemory] = {}
        self._files: dict[int, dict[str, tuple[str, tuple[int, ...]]]] = {}
        self._folder: Path | None = None
        self._owner = -1
        self._lock = threading.Lock()

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, *error: object) -> None:
        self._held.clear()
        if self._folder is not None:
            remove_temporary(self._folder, self._owner)

    def reads_again(self, source: MapSource) -> TypeGuard[MappedSource]:
        """Return whether each pass reads the source again, so that maps may be left out."""
        mapped = cast("MappedSource", source)
        if self._cache is not None or not getattr(source, "mapped", False):
            return False
        return mapped.maps_bytes() > self._memory

    @property
    def has_cache(self) -> bool:
        """Return whether maps of earlier runs are cached."""
        return self._cache is not None

    @property
    def not_cached(self) -> set[int]:
        """Return the items whose maps the cache has refused; workers of a cluster add theirs."""
        return set() if self._cache is None else self._cache.refused

    def batch_bytes(self, source: MapSource, batch: range) -> int:
        """Return the peak bytes of reading and counting a batch. For kept maps: the bytes of those
        in files, and of counting. Never more than reading the source takes, so a run that has
        started can continue.
        """
        need = source.batch_bytes(batch)
        if not self._has(batch):
            return need
        pixels = sum(height * width for height, width in map(source.size, batch))
        files = sum(self._path(item).stat().st_size for item in batch if item in self._files)
        return min(need, files + _COUNTING * pixels)

    def read(
        self, source: MapSource, batch: range, heartbeat: Heartbeat, names: Collection[str]
    ) -> Sequence[Maps]:
        """Return the maps `names` of a batch, and possibly others.

        Takes them from an earlier pass or run, or from the source.
        """
        if self._has(batch):
            together = self._held_stacked(batch)
            loaded = together or [self._load(item, names) for item in batch]
            heartbeat(0)
            return loaded
        if self._cache is not None:
            cached = [self._cache.read(item, names) for item in batch]
            if None not in cached:
                heartbeat(0)
                return cast("list[Maps]", cached)
        self.reads(batch)
        with self._watch.reading(batch):
            maps = source.read(batch, heartbeat)
        if self._enabled and not self.reads_again(source):
            self._keep(batch, maps)
        return maps

    def _has(self, batch: range) -> bool:
        return all(item in self._held or item in self._files for item in batch)

    def _path(self, item: int) -> Path:
        assert self._folder is not None
        return self._folder / str(item)

    def _keep(self, batch: range, maps: Sequence[Maps]) -> None:
        """Keep the maps of a batch."""
        kept = 0
        if self._cache is None and (stacked := _stacked(maps)) is not None:
            kept = self._keep_first(batch, stacked)
        for item, item_maps in zip(batch[kept:], maps[kept:], strict=True):
            self._keep_item(item, item_maps)

    def _keep_first(self, batch: range, maps: StackedMaps) -> int:
        """Keep the maps of the first items of a batch in memory, of as many as fit; return their
        number."""
        size = sum(values.nbytes for values in maps.arrays.values()) // len(batch)
        with self._lock:
            if not self.keeping:
                return len(batch)
            if any(i in self._held or i in self._files for i in batch):
                return 0
            fit = min(self._free // max(size, 1), len(batch))
            if 0 < fit < len(batch):  # a view would keep the arrays of all
                maps = StackedMaps({n: values[:fit].copy() for n, values in maps.arrays.items()})
            self._free -= fit * size
            self._held.update(dict.fromkeys(batch[:fit], _MapsInMemory(batch.start, maps)))
        return fit

    def _keep_item(self, item: int, maps: Maps) -> None:
        cached = self._cache is not None and self._cache.write(item, maps)
        if not self.keeping:
            return
        size = sum(values.nbytes for values in maps.values())
        with self._lock:
            if item in self._held or item in self._files:
                return
            if size <= self._free:
                self._free -= size
                own = StackedMaps({name: values[None] for name, values in maps.items()})
                self._held[item] = _MapsInMemory(item, own)
                return
            if cached:
                return
            if self._folder is None:
                self._folder, self._owner = temporary_folder()
            if not has_room(self._folder, size):
                return
        path = self._path(item)
        try:
            with path.open("wb") as file:
                for values in maps.values():
                    values.tofile(file)
        except OSError:  # the disk is full: the item is reduced again
            path.unlink(missing_ok=True)
            return
        self._files[item] = {n: (v.dtype.str, v.shape) for n, v in maps.items()}

    def _held_stacked(self, batch: range) -> StackedMaps | None:
        """Return the maps of a batch that are held in common arrays; None for others."""
        held = self._held.get(batch.start)
        if len(batch) == 1 or held is None or any(self._held.get(i) is not held for i in batch):
            return None
        return held.maps[batch.start - held.first : batch.stop - held.first]

    def _load(self, item: int, names: Collection[str]) -> Maps:
        if item in self._held:
            held = self._held[item]
            return held.maps[item - held.first]
        maps: Maps = {}
        at, path = 0, str(self._path(item))
        for name, (dtype, shape) in self._files[item].items():
            values = FileValues(path, path, shape, np.dtype(dtype), False, at)
            if name in names:
                maps[name] = values.read(tuple(map(slice, shape)))
            at += values.nbytes
        return maps


class _MapsInMemory(NamedTuple):
    """Maps of consecutive items in memory, from item `first` on."""

    first: int
    maps: StackedMaps


def _stacked(maps: Sequence[Maps]) -> StackedMaps | None:
    """Return the maps of several small items in one array per name; None for others.

    Small arrays take several times the memory of their numbers.
    """
    if isinstance(maps, StackedMaps):
        return maps
    forms = {tuple((name, v.dtype, v.shape) for name, v in own.items()) for own in maps}
    size = sum(values.nbytes for values in maps[0].values())
    if len(maps) == 1 or len(forms) > 1 or size > _SMALL:
        return None
    return StackedMaps({name: np.stack([own[name] for own in maps]) for name in maps[0]})
