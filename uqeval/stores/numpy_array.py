"""`.npy` and `.npz` files, memory-mapped, and arrays that are in memory already."""

from __future__ import annotations

import hashlib
import math
import mmap
import tempfile
import threading
import weakref
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from uqeval.errors import StoreError
from uqeval.stores.array import Region, StoredArray
from uqeval.stores.bfloat16 import SOURCE, is_coarse
from uqeval.stores.stamps import file_stamp, file_state, joined

_TILE_BYTES = 8 * 2**20
#: Of items of one pixel, which cost more to count than to read.
_ROWS_BYTES = 64 * 2**10
#: Bytes read of a mapped file, after which its pages are given back: they count as memory in use.
_TOUCHED = 64 * 2**20
#: Files that are mapped, or unpacked, at a time.
_OPEN = 64
_open: OrderedDict[int, weakref.ref[NumpyArray]] = OrderedDict()
_open_lock = threading.Lock()
_BLOCK = 4096
_BLOCKS = 64


class NumpyArray(StoredArray):
    """An array in memory, or mapped into it by `load` when it is first read.

    Its `chunks` are made up: bands of rows of one item with all its samples and classes, of about
    8 MB, since any box of a mapped array can be read alone.
    """

    def __init__(
        self,
        where: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        load: Callable[[], NDArray[Any]],
        header: bytes = b"",
        file: str | None = None,
        checksum: int | None = None,
    ) -> None:
        if dtype.kind not in "biufU":
            hint = "Save float, integer or bool values; pickled objects are never read."
            if dtype.kind == "V" and dtype.itemsize == 2:
                hint = "numpy.save writes bfloat16 so: save array.astype('float32')."
            raise StoreError(f"{where}: holds {dtype}, neither numbers nor text. {hint}")
        self.where = where
        self.shape = shape
        self.dtype = dtype.newbyteorder("=")
        self.chunks = _bands(shape, dtype.itemsize)
        self.attributes = {}
        self._header = header or repr((shape, dtype.str)).encode()
        self._load = load
        self._file = file
        self._checksum = checksum
        self._values: NDArray[Any] | None = None
        self._lock = threading.Lock()
        self._touched = 0

    def read(self, region: Region) -> NDArray[Any]:
        """The values of `region`, C-contiguous and in native byte order; see `StoredArray.read`.

        Raises `StoreError` if the file cannot be mapped or unpacked.
        """
        values = self._mapped()
        found = np.require(values[region], self.dtype, ["C"] if self.anywhere else ["C", "A"])
        with self._lock:
            self._touched += found.nbytes
            if self._touched > _TOUCHED:
                self._touched = 0
                self._give_back()
        return found

    def suit(self, axes: tuple[str, ...]) -> None:
        """Made-up chunks can be any: those of few rows of one item."""
        self.chunks = _chunks_for(axes, self.shape, self.dtype.itemsize)

    def reshaped(self, shape: tuple[int, ...]) -> NumpyArray:
        """The same numbers in another shape; still mapped when they are first read."""
        return NumpyArray(
            self.where, shape, self.dtype, lambda: self._mapped().reshape(shape), self._header,
            self._file, self._checksum,
        )  # fmt: skip

    def stored_bytes(self) -> int:
        """The size of the values, unpacked."""
        return math.prod(self.shape) * self.dtype.itemsize

    def fingerprint(self) -> str:
        """SHA-256 of the header, the size, and 64 blocks of 4 KiB spread over the values.

        Of a member of an .npz its stored checksum in place of the blocks. Raises `StoreError` if
        the file cannot be mapped.
        """
        if self._checksum is not None:
            size = self.stored_bytes()
            told = self._header + f"{size} {self._checksum:08x}".encode()
            return hashlib.sha256(told).hexdigest()
        values = self._mapped()
        digest = hashlib.sha256(self._header + str(values.nbytes).encode())
        # A transposed view of Fortran order has the bytes in the order of the file.
        flat = (values if values.flags.c_contiguous else values.T).reshape(-1)
        items = max(1, _BLOCK // max(1, values.itemsize))
        for start in np.unique(np.linspace(0, max(0, flat.size - items), _BLOCKS, dtype=np.int64)):
            digest.update(flat[start : start + items].tobytes())
        if values.nbytes > _TOUCHED:  # around each block megabytes may have been mapped
            self._give_back()
        return digest.hexdigest()

    def stamp(self, index: int | None) -> str | None:
        """Of the whole file: one that has grown was written anew. None for arrays in memory."""
        if self._file is None:
            return None
        return joined([self._file_stamp], self.where, self.shape, self.axes, index)

    @cached_property
    def _file_stamp(self) -> str | None:
        """Taken once, before anything is read: it has the disk write all that was written."""
        assert self._file is not None
        return file_stamp(self._file)

    def states(self, index: int | None) -> dict[str, str]:
        """Return the state of the file; nothing for an array in memory."""
        return {} if self._file is None else {self._file: file_state(self._file)}

    def _give_back(self) -> None:
        """Let go of the pages of a mapped file; who still reads them finds them again.

        Not of an array that a user gave: what he wrote to his own map would be gone.
        """
        base: Any = self._values if self._file is not None else None
        while base is not None and not isinstance(base, mmap.mmap):
            base = getattr(base, "base", None)
        if base is not None and hasattr(mmap, "MADV_DONTNEED"):
            base.madvise(mmap.MADV_DONTNEED)

    def _mapped(self) -> NDArray[Any]:
        with self._lock:
            if self._values is None:
                self._values = self._load()
            values = self._values
        if self._file is not None:
            _keep_open(self)
        return values

    def _close(self) -> None:
        """Forget the map; the next read makes a new one, and unpacks again what is compressed."""
        with self._lock:
            self._values = None


def _keep_open(array: NumpyArray) -> None:
    """Close the map that was read longest ago, where more than `_OPEN` are open.

    Each map holds a file open, and there are folders of many thousand files.
    """
    with _open_lock:
        _open.pop(id(array), None)
        _open[id(array)] = weakref.ref(array)
        oldest = [_open.pop(next(iter(_open))) for _ in range(len(_open) - _OPEN)]
    for reference in oldest:
        if (closed := reference()) is not None and closed is not array:
            closed._close()


def in_memory(values: NDArray[Any], where: str = "array in memory") -> NumpyArray:
    """An array that is in memory; raises `StoreError` for objects."""
    array = NumpyArray(where, values.shape, values.dtype, lambda: np.asarray(values))
    array.attributes = dict(SOURCE) if is_coarse(values) else {}
    return array


def open_npy(path: str) -> NumpyArray:
    """A `.npy` file, memory-mapped.

    Raises `StoreError` if it is not one, holds pickled objects, or is cut short.
    """
    try:
        with Path(path).open("rb") as file:
            shape, fortran, dtype, header = _header(file, path)
            size = file.seek(0, 2)
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}.") from error
    expected = len(header) + math.prod(shape) * dtype.itemsize
    if size != expected:
        word = "cut short" if size < expected else "too long"
        raise StoreError(
            f"{path}: is {word}: {size} bytes where its header, shape {shape} of {dtype}, needs "
            f"{expected}. Copy or save it again."
        )
    return NumpyArray(
        path, shape, dtype, lambda: _map(path, shape, fortran, dtype, len(header)), header, path
    )


def open_npz(path: str) -> dict[str, NumpyArray]:
    """The members of a `.npz` file by name.

    Stored members are mapped where they lie; compressed ones are unpacked, when they are first
    read, into a temporary file that goes away with the array. Raises `StoreError` if the file is
    damaged, or a member is not an array of numbers or text.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return {
                info.filename.removesuffix(".npy"): _member(path, archive, info)
                for info in archive.infolist()
                if info.filename.endswith(".npy")
            }
    except (OSError, zipfile.BadZipFile) as error:
        raise StoreError(
            f"{path}: cannot be opened as an .npz file ({error}). Copy or save it again."
        ) from error


def _member(path: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NumpyArray:
    where = f"{path}[{info.filename.removesuffix('.npy')}]"
    try:
        with archive.open(info) as file:
            shape, fortran, dtype, header = _header(file, where)
    except StoreError:
        raise
    except Exception as error:  # zlib.error, BadZipFile, RuntimeError (encrypted), OSError
        raise StoreError(f"{where}: cannot be read ({error}). Copy or save it again.") from error
    expected = len(header) + math.prod(shape) * dtype.itemsize
    if info.file_size != expected:
        raise StoreError(
            f"{where}: is {info.file_size} bytes where its header, shape {shape} of {dtype}, "
            f"needs {expected}. Save it again."
        )

    def load() -> NDArray[Any]:
        if info.compress_type == zipfile.ZIP_STORED:
            start = _data_offset(path, info, where)
            return _map(path, shape, fortran, dtype, start + len(header))
        with _unpacked(path, info, where) as unpacked:  # the map keeps the file
            return _map(unpacked, shape, fortran, dtype, len(header))

    return NumpyArray(where, shape, dtype, load, header, path, checksum=info.CRC)


def _unpacked(path: str, info: zipfile.ZipInfo, where: str) -> IO[bytes]:
    # The file has no name, so that it is gone with the last map of it, even after a crash.
    file = tempfile.TemporaryFile(prefix="uqeval-")  # noqa: SIM115 - it outlives this function
    try:
        with zipfile.ZipFile(path) as archive, archive.open(info) as member:
            left = info.file_size
            while left > 0 and (block := member.read(min(left, 2**20))):
                left -= file.write(block)
            member.read(1)  # the end of the member is where its checksum is compared
        if left:
            raise EOFError(f"{left} bytes are missing")
        file.flush()
    except OSError as error:
        file.close()
        raise StoreError(
            f"{where}: cannot be unpacked into {tempfile.gettempdir()}: {error}. It needs "
            f"{info.file_size} bytes there; set TMPDIR, or save it uncompressed."
        ) from error
    except Exception as error:  # zlib.error, BadZipFile, EOFError
        file.close()
        raise StoreError(
            f"{where}: cannot be unpacked ({error}): it is damaged or cut short. Copy or save it "
            "again."
        ) from error
    return file


def _data_offset(path: str, info: zipfile.ZipInfo, where: str) -> int:
    with Path(path).open("rb") as file:
        file.seek(info.header_offset)
        local = file.read(30)
        size = file.seek(0, 2)
    # The local header's name and extra field may be longer than those in the directory.
    names = int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
    start = info.header_offset + 30 + names
    if local[:4] != b"PK\x03\x04" or start + info.file_size > size:
        raise StoreError(f"{where}: the .npz file is damaged. Copy or save it again.")
    return start


def _header(file: IO[bytes], where: str) -> tuple[tuple[int, ...], bool, np.dtype[Any], bytes]:
    try:
        version = np.lib.format.read_magic(file)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, fortran, dtype = read(file)
        end = file.tell()
        file.seek(0)
        header = file.read(end)
    except (ValueError, KeyError, EOFError) as error:
        raise StoreError(
            f"{where}: is not a NumPy file that can be read ({error}). Save it with numpy.save."
        ) from error
    if dtype.hasobject:
        raise StoreError(
            f"{where}: holds pickled objects, which are never read: unpickling runs code. Save "
            "an array of numbers."
        )
    return shape, fortran, dtype, header


def _map(
    file: str | IO[bytes], shape: tuple[int, ...], fortran: bool, dtype: np.dtype[Any], offset: int
) -> NDArray[Any]:
    if math.prod(shape) == 0:  # an empty file range cannot be mapped
        return np.empty(shape, dtype)
    order: Any = "F" if fortran else "C"
    try:
        mapped = np.memmap(file, dtype, "r", offset, shape, order)
    except (OSError, ValueError) as error:
        name = file if isinstance(file, str) else "temporary file"
        raise StoreError(f"{name}: cannot be mapped: {error}. Copy or save it again.") from error
    return np.asarray(mapped)


def _chunks_for(axes: tuple[str, ...], shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Bands of rows of one item with all its samples and classes, wherever these axes are.

    Items without rows (image classification) come many at a time.
    """
    along, most = ("y", _TILE_BYTES) if "y" in axes else ("item", _ROWS_BYTES)
    sizes = dict(zip(axes, shape, strict=True))
    rest = math.prod(size for axis, size in sizes.items() if axis not in ("item", along))
    chunks = {axis: max(1, size) for axis, size in sizes.items()} | {"item": 1}
    chunks[along] = max(1, min(sizes.get(along, 1), most // max(1, rest * itemsize)))
    return tuple(chunks[axis] for axis in axes)


def _bands(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    if len(shape) < 3:
        return tuple(max(1, size) for size in shape)
    row = math.prod(shape[1:-2]) * shape[-1] * itemsize
    rows = max(1, min(shape[-2], _TILE_BYTES // max(1, row)))
    inner = (max(1, size) for size in shape[1:-2])
    return (1, *inner, rows, max(1, shape[-1]))
