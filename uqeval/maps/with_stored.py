"""Maps of a store beside those of its samples, as they are stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from uqeval.arrays import Array, Maps
from uqeval.errors import StoreError, cut
from uqeval.maps.contract import Heartbeat, MapSource
from uqeval.maps.names import COMPUTED, OF_LABELS, SAMPLE_PREDICTIONS
from uqeval.maps.sources import Source
from uqeval.stores.planes import Planes
from uqeval.stores.zarr.writer import item_folder

#: Names of arrays that `uqeval` computes from the samples, or that a store has for other use.
_RESERVED = {"predictions", "labels", SAMPLE_PREDICTIONS, *COMPUTED, *OF_LABELS}
#: Names of files of a Zarr store.
_FILES = {"zarr.json", "items"}


class WithStored(MapSource):
    """The maps of `inner`, and arrays of its store by `stored` names: values and dtype unchanged.

    `want` takes names of maps of `inner` alone.
    """

    def __init__(self, inner: Source, stored: Sequence[str]) -> None:
        self.inner = inner
        inner.read_elsewhere = frozenset(stored)
        self.planes = {name: inner.stored[name] for name in stored}
        self.kind, self.names, self.classes = inner.kind, inner.names, inner.classes
        self.where = inner.where

    @property
    def samples(self) -> int | None:
        return self.inner.samples

    def size(self, item: int) -> tuple[int, int]:
        return self.inner.size(item)

    def want(self, names: Sequence[str]) -> None:
        self.inner.want(names)

    def batches(self) -> list[range]:
        return self.inner.batches()

    def batch_bytes(self, batch: range) -> int:
        pixels = sum(h * w for h, w in map(self.size, batch))
        widths = [
            max(array.dtype.itemsize for array in planes.arrays) for planes in self.planes.values()
        ]
        chunks = [planes.chunk_bytes for planes in self.planes.values()]
        return self.inner.batch_bytes(batch) + pixels * sum(widths) + sum(chunks)

    def read(self, batch: range, heartbeat: Heartbeat = lambda _: None) -> list[Maps]:
        """Return the maps of the items of a batch. Raises `UqevalError`."""
        read_items = list(self.inner.read(batch, heartbeat))
        for item, maps in zip(batch, read_items, strict=True):
            for name, planes in self.planes.items():
                maps[name] = _native(planes.read(item))
                heartbeat(maps[name].nbytes)
                if maps[name].shape != self.size(item):
                    raise StoreError(
                        f"{planes.where_of(item)}, item {cut(self.names[item])}: shape "
                        f"{maps[name].shape}; expected {self.size(item)}, as the samples have."
                    )
        return read_items


def _native(plane: Array) -> Array:
    """Return a plane in the byte order of this machine, in which stores are written."""
    return plane.astype(plane.dtype.newbyteorder("="), copy=False)


def stored_beside_samples(source: Source) -> Mapping[str, str | None]:
    """Return the maps that the store has beside its samples, by name: None, or why they cannot be
    copied."""
    return {
        name: next(_obstacles(name, planes, source), None)
        for name, planes in sorted(source.stored.items())
        if name not in _RESERVED
    }


def _obstacles(name: str, planes: Planes, source: Source) -> Iterator[str]:
    """Yield why the planes of a map cannot be written to a store of maps."""
    if item_folder(name) != name or name in _FILES:
        yield "its name cannot be the name of a folder"
    dtypes = sorted({str(array.dtype) for array in planes.arrays})
    if len(dtypes) > 1:
        yield f"its items have several dtypes, {', '.join(dtypes)}"
    if max(array.dtype.itemsize for array in planes.arrays) > 8:
        yield f"Zarr has no dtype {dtypes[0]}"
    for item, item_name in enumerate(source.names):
        if planes.size(item) != source.size(item):
            yield (
                f"it is {_shown(planes.size(item))} pixels for item {cut(item_name)}, whose "
                f"samples are {_shown(source.size(item))}"
            )


def _shown(size: tuple[int, int]) -> str:
    return f"{size[0]} × {size[1]}"
