"""A store that is being written: one dense array per kind, or one group per item if sizes or
attributes differ.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import DTypeLike

from uqeval.arrays import Array, np
from uqeval.disk.files import resolved
from uqeval.disk.locks import locked
from uqeval.disk.outputs import refuse_overlap
from uqeval.disk.publishing import hidden_path
from uqeval.errors import DataError, OutputError, cut
from uqeval.stores.axis_names import axis_called
from uqeval.stores.bfloat16 import SOURCE, SUM_TOLERANCE
from uqeval.stores.coordinates import AXIS, IN_ATTRIBUTES, Coordinate
from uqeval.stores.fill_values import INVALID, RANGE
from uqeval.stores.zarr import writer as zw

#: Attributes of an array that say what its numbers mean.
_MEANING = ("scale", "units", *INVALID, *RANGE, "ignore_index", *SOURCE, SUM_TOLERANCE)
#: The number of arrays that stay open if each item has its own.
_KEPT = 64
#: Items in one chunk have at most this many bytes: decoding it for a single one takes a moment.
_SHARED_CHUNK = 1 << 20
#: An array of more chunks than this has several small items in each: files cost more than bytes.
_MANY_CHUNKS = 64
#: The first axis of maps with several planes, other than class.
_AXES = {"labels": "annotator", "sample_predictions": "sample"}


def local_path(destination: str | os.PathLike[str]) -> Path:
    """Return the absolute path of a new store. Raises `OutputError` for a URL or a zip file."""
    target = resolved(destination)
    if "://" in str(destination) or target.suffix == ".zip":
        raise OutputError(
            f"{cut(destination)}: a store can only be written to a local folder. Give one, then "
            "copy or zip it."
        )
    return target


def checked_target(
    destination: str | os.PathLike[str], inputs: Sequence[Any], overwrite: bool
) -> Path:
    """Return the absolute path of a new store.

    Raises `OutputError` for a path that cannot be written or exists, `UsageError` for one that
    overlaps the `inputs`.
    """
    target = local_path(destination)
    refuse_overlap([destination], inputs, "give another path for the new store")
    if not target.parent.is_dir():
        raise OutputError(
            f"{cut(destination)}: the folder {target.parent} does not exist; make it."
        )
    zw.check_replaceable(target)
    if zw.is_taken(target) and not overwrite:
        raise OutputError(
            f"{cut(destination)} exists already; give --overwrite or another path "
            "(overwrite=True in Python)."
        )
    if zw.is_taken(target) and not os.access(target, os.W_OK):  # else it stays, under a hidden name
        raise OutputError(
            f"{cut(destination)} cannot be replaced, because you may not remove its files. Choose "
            "another path, change the modes (chmod -R u+w), or let the owner remove it."
        )
    return target


def are_equal(attributes: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether one array can have the attributes of all items."""
    return len({repr(sorted(of_item.items())) for of_item in attributes}) < 2


def meaning_of(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that say what numbers mean, which their copies need."""
    return {name: value for name, value in attributes.items() if name in _MEANING}


def items_in_chunk(items: int, item_bytes: int) -> int:
    """Return how many items a chunk has if the largest array of an item has `item_bytes`: one,
    unless there are many small ones.
    """
    return max(min(-(-items // _MANY_CHUNKS), _SHARED_CHUNK // max(item_bytes, 1)), 1)


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Give a hidden folder for a new store; at the end the store is complete and at `target`.

    After an error nothing of it remains. Raises `OutputError`.
    """
    new = hidden_path(target)
    with locked(target):
        try:
            yield new
            shutil.rmtree(new / zw.HIDDEN, ignore_errors=True)
            zw.mark_complete(new)
            zw.publish(new, target)
        except BaseException:  # also for an interrupt
            zw.discard(new)
            raise


@dataclass
class NewStore:
    """Creates arrays when they are first needed.

    Creation is atomic, so several processes may try it. `names`: of the items. `dense`: arrays [N,
    …] at the root, else arrays without N in `items/<name>/`. A store that is not dense needs names.

    `in_chunk`: items in a chunk of a dense store. If there are several, one process writes whole
    items in their order, then calls `flush`.
    """

    root: Path
    items: int
    names: Sequence[str] | None
    dense: bool
    compression: zw.Compression = "lz4"
    in_chunk: int = 1
    #: By folder: the first item that is not written yet, and the values of the items from it on.
    _waiting: dict[Path, tuple[int, list[Array]]] = field(
        default_factory=dict, init=False, repr=False
    )
    _arrays: dict[Path, Any] = field(default_factory=dict, init=False, repr=False)

    def create(
        self, attributes: Mapping[str, Any], coordinates: Mapping[str, Coordinate] | None = None
    ) -> None:
        """Make the group at the root, in a dense store with its `coordinates`, one of each name:
        numbers as arrays, texts and those whose name cannot be that of an array as attributes.

        Raises `OutputError`, also for a name that is too long for a folder, and `StoreError` for
        coordinates that cannot be read.
        """
        zw.refuse_long_names(() if self.dense else self.names or ())
        if not self.dense:
            zw.create_group(self.root, self._with_names(attributes))
            zw.create_group(self.root / "items", {})
            return
        by_name = {own.name: own for own in reversed([*(coordinates or {}).values()])}
        arrays, in_attributes = {}, {}
        for name, coordinate in by_name.items():
            if (stored := coordinate.stored()) is None:
                continue
            is_name = name.replace("-", "_").isidentifier()  # HDF5 may have any text
            # Zarr has no stable format for texts.
            if is_name and stored[0].dtype.kind != "U":
                arrays[name] = coordinate.axis, *stored
            elif stored[0].dtype.kind != "f" or np.isfinite(stored[0]).all():
                # JSON has no NaN, and coordinates with NaN are not compared.
                in_attributes[name] = coordinate.as_attribute(*stored)
        of_store = {**attributes.get("uqeval", {}), IN_ATTRIBUTES: in_attributes}
        own = {"uqeval": of_store} if in_attributes else {}
        zw.create_group(self.root, self._with_names({**attributes, **own}))
        for name, (axis, values, about) in arrays.items():
            about = about if axis_called(name) else {**about, AXIS: axis}
            folder, shape = self.root / name, values.shape
            array = zw.create_array(folder, shape, values.dtype, shape, [axis], attributes=about)
            zw.write(array, (slice(None),), values, folder)

    def repair(self, attributes: Mapping[str, Any]) -> None:
        """Create the groups of a store without coordinates again whose metadata a power loss has
        damaged. Raises `OutputError`."""
        zw.repair_group(self.root, self._with_names(attributes))
        if not self.dense:
            zw.repair_group(self.root / "items", {})

    def _with_names(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        names = {"names": list(self.names)} if self.names is not None else {}
        return {**attributes, **names}

    def array(
        self,
        index: int,
        kind: str,
        shape: tuple[int, ...],
        dtype: DTypeLike,
        chunks: tuple[int, ...],
        axes: tuple[str, ...],
        attributes: Mapping[str, Any] | None = None,
    ) -> tuple[int, ...]:
        """Open or create the array of a `kind` for an item; return its chunks.

        `shape`, `chunks` and `axes` are those of one item, as are the returned chunks, which may
        differ if the array existed. Raises `OutputError`, and `DataError` if the item exists with
        another shape.
        """
        folder = self._folder(index, kind)
        if folder not in self._arrays:
            if not folder.exists():
                of_all = shape, chunks, axes
                if self.dense:
                    of_all = (self.items, *shape), (self.in_chunk, *chunks), ("item", *axes)
                elif self.names is not None and not folder.parent.exists():
                    temporary = self._temporary()
                    zw.create_group(temporary, {"name": self.names[index]})
                    zw.put_in_place(temporary, folder.parent)
                temporary = self._temporary()
                zw.create_array(
                    temporary, of_all[0], dtype, *of_all[1:],
                    compression=self.compression, attributes=attributes,
                )  # fmt: skip
                zw.put_in_place(temporary, folder)
            if not self.dense and len(self._arrays) >= _KEPT:
                self._arrays.clear()
            self._arrays[folder] = zw.open_array(folder)
        array, first = self._arrays[folder], int(self.dense)
        own, before = dict(attributes or {}), meaning_of(array.attrs)
        # NaN equals itself only as text.
        if own != before and len({json.dumps(x, sort_keys=True) for x in (own, before)}) > 1:
            raise DataError(
                f"{kind} of item {self.label(index)}: the attributes are {own}; what was written "
                f"before has {before}. Write all items of a store in one dtype, with equal "
                "attributes."
            )
        if array.shape[first:] != shape:
            sizes = ", ".join(map(str, array.shape[first:]))
            raise DataError(
                f"{kind} of item {self.label(index)}: the shape is {list(shape)}; what was "
                f"written before has [{sizes}]."
            )
        return tuple(array.chunks[first:])

    def has(self, index: int, kind: str) -> bool:
        """Return whether the array of a `kind` exists for an item."""
        return self._folder(index, kind).is_dir()

    def shape(self, index: int, kind: str) -> tuple[int, ...] | None:
        """Return the shape of an item in the array of a `kind`; None without a readable one."""
        shape = zw.shape_of(self._folder(index, kind))
        return shape and shape[int(self.dense) :]

    def size(self, index: int) -> tuple[int, ...] | None:
        """Return the size [y, x] of an item's arrays; None if it has none. Not of a dense store."""
        files = sorted(self._folder(index, "").glob("*/zarr.json"))
        shapes = (self.shape(index, file.parent.name) for file in files)
        return next((shape[-2:] for shape in shapes if shape is not None), None)

    def put(
        self, index: int, kind: str, values: Array, attributes: Mapping[str, Any] | None = None
    ) -> None:
        """Write a whole map of an item, [y, x] or as in `_AXES`, to an array of its shape.

        Raises `OutputError`, and `DataError` as `array` does.
        """
        *classes, height, width = values.shape
        chunks = zw.pixel_chunks(values.itemsize * math.prod(classes), height, width)
        axes = (_AXES.get(kind, "class"), "y", "x")[-values.ndim :]
        chunks = (*classes, *chunks)
        self.array(index, kind, values.shape, values.dtype, chunks, axes, attributes)
        self.write(index, kind, values)

    def write(self, index: int, kind: str, values: Array, *start: int) -> None:
        """Write `values` to an open array of an item, from `start` on (0 on other axes).

        Raises `OutputError`.
        """
        folder = self._folder(index, kind)
        if self.dense and self.in_chunk > 1:
            _, waiting = self._waiting.setdefault(folder, (index, []))
            waiting.append(values.copy())  # not a view that keeps a whole block in memory
            if (index + 1) % self.in_chunk == 0:
                self._write_waiting(folder)
            return
        starts = (*start, *(0 for _ in range(values.ndim - len(start))))
        at = tuple(slice(s, s + n) for s, n in zip(starts, values.shape, strict=True))
        if self.dense:
            at, values = (slice(index, index + 1), *at), values[None]
        zw.write(self._arrays[folder], at, values, folder)

    def flush(self) -> None:
        """Write the items of chunks that are not full. Raises `OutputError`."""
        for folder in list(self._waiting):
            self._write_waiting(folder)

    def _write_waiting(self, folder: Path) -> None:
        first, values = self._waiting.pop(folder)
        at = slice(first, first + len(values)), *map(slice, values[0].shape)
        zw.write(self._arrays[folder], at, np.stack(values), folder)

    def label(self, index: int) -> str:
        """Return the name of an item for messages."""
        return repr(self.names[index]) if self.names is not None else str(index)

    def _folder(self, index: int, kind: str) -> Path:
        if self.dense:
            return self.root / kind
        assert self.names is not None
        return self.root / "items" / zw.item_folder(self.names[index]) / kind

    def _temporary(self) -> Path:
        return self.root / zw.HIDDEN / "new" / uuid.uuid4().hex
