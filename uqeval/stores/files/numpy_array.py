"""`.npy` and `.npz` files, read region by region, and arrays in memory."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import math
import threading
import weakref
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import IO, Any

import numpy as np

from uqeval.arrays import Array
from uqeval.disk.files import open_file, readable
from uqeval.errors import StoreError, cut, quoted
from uqeval.stores.array import Region, StoredArray
from uqeval.stores.bfloat16 import SOURCE, is_coarse
from uqeval.stores.file_values import FileValues, stamp_of, unpacked
from uqeval.stores.watch import combined_stamp, file_stamp, file_state
from uqeval.stores.zarr.source import check_method, open_zip

#: The largest number of bytes of a header.
_MOST = 1 << 16


@dataclass(frozen=True)
class Header:
    """The fields of an array's header, and its bytes `data`."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    data: bytes

    @property
    def expected(self) -> int:
        """Return the bytes of the header and of the values that it announces."""
        return len(self.data) + math.prod(self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"shape {self.shape} of {self.dtype}"

    def values(
        self, file: str | IO[bytes], where: str, offset: int, stamp: tuple[int, ...] = ()
    ) -> FileValues:
        """Return the values after the header."""
        return FileValues(file, where, self.shape, self.dtype, self.fortran, offset, stamp)


def read_header(file: IO[bytes], where: str) -> Header:
    """Read a header, after checking its length. Raises `StoreError`."""
    try:
        start = file.read(12)
        version = np.lib.format.read_magic(io.BytesIO(start))
        read_fields, width = {
            (1, 0): (np.lib.format.read_array_header_1_0, 2),
            (2, 0): (np.lib.format.read_array_header_2_0, 4),
            # Differs only in names of fields, which no array of numbers has.
            (3, 0): (np.lib.format.read_array_header_2_0, 4),
        }[version]
        length = int.from_bytes(start[8 : 8 + width], "little")
        if length > _MOST:
            raise ValueError(f"its header claims {length} bytes, expected at most {_MOST}")
        end = 8 + width + length
        data = start[:end] + file.read(max(end - len(start), 0))
        head = io.BytesIO(data)
        head.seek(8)
        shape, fortran, dtype = read_fields(head)
        if not all(type(size) is int and 0 <= size < 2**63 for size in shape):
            raise ValueError(f"its shape is {quoted(shape)}")
        if not dtype.itemsize or (0 in shape and max(shape) > 2**31):
            raise ValueError(f"its shape {quoted(shape)} of {dtype.str} holds no values")
    except (OSError, zipfile.BadZipFile):
        raise
    except Exception as error:  # NumPy's parser raises SyntaxError, tokenize.TokenError, and more
        raise StoreError(
            f"{where}: is not a NumPy file that can be read ({error!s:.200}). Save it with "
            "numpy.save."
        ) from error
    if dtype.hasobject:
        raise StoreError(
            f"{where}: holds pickled objects, which are never read: unpickling runs code. Save "
            "an array of numbers."
        )
    return Header(shape, fortran, dtype, data)


_TILE_BYTES = 8 * 2**20
#: Bytes and number of small items that are read together: each read costs as much as 100 kB.
_ROWS_BYTES, _MOST_ITEMS = 2 * 2**20, 4096
#: The largest number of unpacked files that are open.
_OPEN = 64
_open: OrderedDict[int, weakref.ref[NumpyArray]] = OrderedDict()
_open_lock = threading.Lock()
_BLOCK = 4096
_BLOCKS = 64


class NumpyArray(StoredArray):
    """An array in memory, or in a file that `load` opens at the first read.

    The file has no chunks, and any box of it can be read alone. So `chunks` are chosen: bands of
    rows of one item with all its samples and classes, of about 8 MB.
    """

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
            if dtype.kind == "V" and dtype.itemsize == 2:
                hint = "numpy.save writes bfloat16 like this: save array.astype('float32')."
            raise StoreError(f"{where}: holds {dtype}, neither numbers nor text. {hint}")
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
        array.attributes = self.attributes
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
        if self._file is None:
            return None
        return combined_stamp([self._file_stamp], self.where, self.shape, self.axes, index)

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


def open_npy(path: str) -> NumpyArray:
    """Return the array of a `.npy` file, which is read by regions.

    Raises `StoreError` if it is not one, holds pickled objects, or is cut short.
    """
    with readable(path), open_file(path) as file:
        head = read_header(file, path)
        stamp = stamp_of(file.fileno())
        size = file.seek(0, 2)
    if size != head.expected:
        word = "cut short" if size < head.expected else "too long"
        raise StoreError(
            f"{cut(path)}: is {word}: {size} bytes where its header, {head}, needs "
            f"{head.expected}. Copy or save it again."
        )
    return NumpyArray(
        path,
        head.shape,
        head.dtype,
        lambda: head.values(path, path, len(head.data), stamp),
        head.data,
        path,
    )


def open_npz(path: str) -> dict[str, NumpyArray]:
    """Return the members of a `.npz` file by name.

    Uncompressed members are read in place; before, one pass over their bytes compares their
    checksum. Compressed ones are unpacked at the first read, into a temporary file that is deleted
    with the array. Raises `StoreError` if the file is damaged, or a member is not an array of
    numbers or text. The first read of a member that is damaged raises it, too.
    """
    members: dict[str, NumpyArray] = {}
    with open_zip(path, f"{path}: cannot be opened as an .npz file") as archive:
        for info in archive.infolist():
            if not info.filename.endswith(".npy"):
                continue
            name = info.filename.removesuffix(".npy")
            if name in members:
                raise StoreError(
                    f"{cut(path)}: holds {quoted(name)} twice; expected each name once. Save it "
                    "again with numpy.savez."
                )
            members[name] = _member(path, archive, info)
    return members


def _member(path: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NumpyArray:
    where = cut(f"{path}[{info.filename.removesuffix('.npy')}]")
    try:
        check_method(info)
        with archive.open(info) as file:
            head = read_header(file, where)
    except StoreError:
        raise
    except Exception as error:  # zlib.error, BadZipFile, RuntimeError (encrypted), OSError
        raise StoreError(
            f"{where}: cannot be read ({cut(error)}). Copy or save it again."
        ) from error
    if info.file_size != head.expected:
        raise StoreError(
            f"{where}: is {info.file_size} bytes where its header, {head}, needs "
            f"{head.expected}. Save it again."
        )
    stamp = stamp_of(archive.fp.fileno())  # type: ignore[union-attr]

    def load() -> FileValues:
        if info.compress_type == zipfile.ZIP_STORED:
            start = _data_offset(path, info, where)
            size, unsigned = (info.file_size,), np.dtype(np.uint8)
            member = FileValues(path, where, size, unsigned, offset=start, stamp=stamp)
            if _crc32(member) != info.CRC:
                raise StoreError(
                    f"{where}: its bytes do not match the checksum in the .npz file, so it is "
                    "damaged. Copy or save it again."
                )
            return head.values(path, where, start + len(head.data), stamp)
        file = unpacked(partial(_opened_member, path, info, where), info.file_size, where)
        values = head.values(file, where, len(head.data))
        weakref.finalize(values, file.close)
        return values

    return NumpyArray(where, head.shape, head.dtype, load, head.data, path, info.CRC)


@lru_cache(maxsize=1 << 16)
def _crc32(member: FileValues) -> int:
    """Return `member.crc32()`, computed once for a file that has not changed."""
    return member.crc32()


@contextmanager
def _opened_member(path: str, info: zipfile.ZipInfo, where: str) -> Iterator[IO[bytes]]:
    with open_zip(path, where) as archive, archive.open(info) as member:
        yield member


def _data_offset(path: str, info: zipfile.ZipInfo, where: str) -> int:
    with readable(where), open_file(path) as file:
        file.seek(info.header_offset)
        local = file.read(30)
        size = file.seek(0, 2)
    # The local header's name and extra field may be longer than those in the directory.
    names = int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
    start = info.header_offset + 30 + names
    if local[:4] != b"PK\x03\x04" or start + info.file_size > size:
        raise StoreError(f"{where}: the .npz file is damaged. Copy or save it again.")
    return start


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
