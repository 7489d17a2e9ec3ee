"""An array in memory, or in a NumPy file that is read region by region."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import threading
import weakref
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.errors import StoreError
from uqeval.stores.array import Region, StoredArray
from uqeval.stores.bfloat16 import SOURCE, is_coarse
from uqeval.stores.file_values import FileValues
from uqeval.stores.watch import combining_with, file_stamp, file_state

#: About the bytes of a chunk.
_TILE_BYTES = 8 * 2**20
#: Bytes and number of small items that are read together: each read costs as much as 100 kB.
_ROWS_BYTES, _MOST_ITEMS = 2 * 2**20, 4096
#: The largest number of unpacked files that are open.
_OPEN = 64
_open: OrderedDict[int, weakref.ref[NumpyArray]] = OrderedDict()
_open_lock = threading.Lock()
#: Bytes and number of the blocks of a file's fingerprint.
_BLOCK, _BLOCKS = 4096, 64


class NumpyArray(StoredArray):
    """An array in memory, or in a file that `load` opens at the first read.

    The file has no chunks, and any box of it can be read alone. So `chunks` are chosen: bands of
    rows of one item with all its samples and classes, of about 8 MB.
    """

    has_attributes = False

    def __init__(
        self,
        where: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        load: Callable[[], FileValues | Array],
        header: bytes = b"",
        file: str | None = None,
        checksum: int | None = None,
    ) -> None:
        if dtype.kind not in "biufU":
            hint = "Save float, integer or bool values; pickled objects are never read."
            if file is None:
                hint = (
                    "Convert it to numbers: array.astype(float); for class ids, array.astype(int); "
                    "for a table of pandas, table.to_numpy(float)."
                )
            if dtype.kind == "S":
                hint = "Save texts as str: array.astype(str)."
            if dtype.kind == "V" and dtype.itemsize == 2:
                hint = "numpy.save writes bfloat16 like this: save array.astype('float32')."
            raise StoreError(f"{where} holds {dtype}, neither numbers nor text. {hint}")
        self.where = where
        self.shape = shape
        self.dtype = dtype.newbyteorder("=")
        self.chunks = _bands(shape, dtype.itemsize)
        self.attributes = {}
        self._header = header or repr((shape, dtype.str)).encode()
        self._load = load
        self._file = file
        self.in_memory = file is None
        self._checksum = checksum
        self._values: FileValues | Array | None = None
        self._lock = threading.Lock()

    def read(self, region: Region) -> Array:
        """Return the values of `region`, C-contiguous and in native byte order; see
        `StoredArray.read`.

        Raises `StoreError` if the file cannot be read or unpacked.
        """
        values = self._found()
        tile = values.read(region) if isinstance(values, FileValues) else values[region]
        return np.require(tile, self.dtype, ["C"] if self.anywhere else ["C", "A"])

    def suit(self, axes: tuple[str, ...]) -> None:
        """Set the chunks, which are arbitrary here, to bands of rows of one item."""
        self.chunks = _chunks_for(axes, self.shape, self.dtype.itemsize)

    def reshaped(self, shape: tuple[int, ...]) -> NumpyArray:
        """Return the same numbers in another shape, in row order; regions can still be read."""

        def load() -> FileValues | Array:
            values = self._found()
            if not isinstance(values, FileValues):
                return values.reshape(shape)
            if values.fortran:  # Fortran order depends on the shape
                return values.read(tuple(map(slice, values.shape))).reshape(shape)
            return dataclasses.replace(values, shape=shape)

        array = NumpyArray(
            self.where, shape, self.dtype, load, self._header, self._file, self._checksum
        )
        array.attributes, array.coordinates = self.attributes, self.coordinates
        return array

    def stored_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def fingerprint(self) -> str:
        """Return SHA-256 of the header, the size, and 64 blocks of 4 KiB spread over the values.

        A checksum of all values replaces the blocks for a member of an .npz, which stores it, and
        for an array in memory, which has no time of its last change. Raises `StoreError` if the
        file cannot be read.
        """
        checksum = self._checksum_in_memory if self.in_memory else self._checksum
        if checksum is not None:
            size = self.stored_bytes()
            identity = self._header + f"{size} {checksum:08x}".encode()
            return hashlib.sha256(identity).hexdigest()
        values = self._found()
        digest = hashlib.sha256(self._header + str(values.nbytes).encode())
        item = max(1, self.dtype.itemsize)
        count, items = values.nbytes // item, max(1, _BLOCK // item)
        starts = np.unique(np.linspace(0, max(0, count - items), _BLOCKS, dtype=np.int64)).tolist()
        if isinstance(values, FileValues):
            for block in values.blocks(
                [start * item for start in starts], min(items, count) * item
            ):
                digest.update(block)
            return digest.hexdigest()
        # A transposed view of an array in Fortran order has the bytes in file order.
        flat = (values if values.flags.c_contiguous else values.T).reshape(-1)
        for start in starts:
            digest.update(flat[start : start + items].tobytes())
        return digest.hexdigest()

    @cached_property
    def _checksum_in_memory(self) -> int:
        """Return CRC-32 of all values of an array in memory in C order, computed once.

        SHA-256 takes twice as long, and on many processors longer than an evaluation.
        """
        values = self._found()
        assert not isinstance(values, FileValues)
        checksum = 0
        for block in _blocks_in_order(values):
            checksum = zlib.crc32(block.data, checksum)
        return checksum

    def stamp(self, index: int | None) -> str | None:
        """Return a stamp of the whole file: a file that has grown is a new one. None for arrays in
        memory.
        """
        return None if self._file is None else self._stamp_of_item(index)

    @cached_property
    def _stamp_of_item(self) -> Callable[[object], str | None]:
        return combining_with([self._file_stamp], self.where, self.shape, self.axes)

    @cached_property
    def _file_stamp(self) -> str | None:
        """Return the stamp of the file, computed once before any read; flushes the file to disk."""
        assert self._file is not None
        return file_stamp(self._file)

    def states(self, index: int | None) -> dict[str, str]:
        """Return the state of the file; nothing for an array in memory."""
        return {} if self._file is None else {self._file: file_state(self._file)}

    def file_group(self, index: int) -> int:
        return 0

    def _found(self) -> FileValues | Array:
        with self._lock:
            if self._values is None:
                self._values = self._load()
            values = self._values
        if self._file is not None:
            _keep_open(self)
        return values

    def _close(self) -> None:
        """Close the file; the next read opens it again, and unpacks compressed values."""
        with self._lock:
            self._values = None


def _keep_open(array: NumpyArray) -> None:
    """Close the least recently read array if more than `_OPEN` are open.

    Each unpacked array keeps a file open, and folders may have thousands of files.
    """
    with _open_lock:
        _open.pop(id(array), None)
        _open[id(array)] = weakref.ref(array)
        oldest = [_open.pop(next(iter(_open))) for _ in range(len(_open) - _OPEN)]
    for reference in oldest:
        if (closed := reference()) is not None and closed is not array:
            closed._close()


def _blocks_in_order(values: Array) -> Iterator[Array]:
    """Yield contiguous arrays that have all values in C order; copies of at most one block."""
    if values.flags.c_contiguous or values.nbytes <= _TILE_BYTES:
        yield np.ascontiguousarray(values)
        return
    rows = max(1, _TILE_BYTES * len(values) // values.nbytes)
    for start in range(0, len(values), rows):
        block = values[start : start + rows]
        yield from _blocks_in_order(block if len(block) > 1 else block[0])


def in_memory(values: Array, where: str = "array in memory") -> NumpyArray:
    """Return an array in memory; raises `StoreError` for objects."""
    array = NumpyArray(where, values.shape, values.dtype, lambda: np.asarray(values))
    array.attributes = dict(SOURCE) if is_coarse(values) else {}
    return array


def _chunks_for(axes: tuple[str, ...], shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return chunks: bands of rows of one item with all its samples and classes, in any order of
    axes.

    A chunk has many small items.
    """
    sizes = dict(zip(axes, shape, strict=True))
    chunks = {axis: max(1, size) for axis, size in sizes.items()} | {"item": 1}
    item_bytes = math.prod(chunks.values()) * itemsize
    if "y" in axes:
        chunks["y"] = max(1, min(chunks["y"], _TILE_BYTES * chunks["y"] // item_bytes))
    chunks["item"] = max(1, min(sizes.get("item", 1), _ROWS_BYTES // item_bytes, _MOST_ITEMS))
    return tuple(chunks[axis] for axis in axes)


def _bands(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    if len(shape) < 3:
        return tuple(max(1, size) for size in shape)
    row = math.prod(shape[1:-2]) * shape[-1] * itemsize
    rows = max(1, min(shape[-2], _TILE_BYTES // max(1, row)))
    inner = (max(1, size) for size in shape[1:-2])
    return (1, *inner, rows, max(1, shape[-1]))
