"""Uncompressed values of an array in a file, read region by region."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import weakref
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from uqeval.arrays import Array
from uqeval.disk.files import open_descriptor, read_into, readable
from uqeval.errors import StoreError, cut
from uqeval.stores.buffer_pool import CHUNKS

#: Runs shorter than `_RUN` bytes are not read one by one: blocks of `_BLOCK` bytes are read and
#: cut.
_RUN, _BLOCK = 512, 1 << 20
#: From so many runs on, a compiled loop reads them. Between calls from Python, threads would wait
#: for each other: with two, 6 MB in runs of 16 kB take half the time.
_MANY = 64


@dataclass(frozen=True)
class FileValues:
    """An array of `shape` that starts at byte `offset` of a file: a path, an open file, or the
    descriptor of one.

    `size` and `changed` (st_mtime_ns) are those of the file when its header was read.
    """

    file: str | IO[bytes] | int
    where: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran: bool = False
    offset: int = 0
    stamp: tuple[int, ...] = ()

    @property
    def nbytes(self) -> int:
        """Return the bytes of all values."""
        return math.prod(self.shape) * self.dtype.itemsize

    def read(self, region: tuple[slice, ...]) -> Array:
        """Return the values of `region` in the file's byte order. Raises `StoreError`."""
        bounds = [bound.indices(size)[:2] for bound, size in zip(region, self.shape, strict=True)]
        shape, bounds = self.shape, [(low, max(low, high)) for low, high in bounds]
        if self.fortran:
            shape, bounds = shape[::-1], bounds[::-1]
        values = CHUNKS.empty(tuple(high - low for low, high in bounds), self.dtype)
        if values.size:
            with self._opened() as descriptor:
                self._fill(descriptor, values, self.offset, shape, bounds)
        return values.T if self.fortran else values

    def blocks(self, begins: Sequence[int], count: int) -> Iterator[bytes]:
        """Yield blocks of `count` bytes of the values, each from one of these bytes on. A small
        file is read once. Raises `StoreError`.
        """
        with self._opened() as descriptor:
            if self.nbytes <= len(begins) * count:
                values = bytes(self._read(descriptor, _buffer(self.nbytes), self.offset))
                yield from (values[begin : begin + count] for begin in begins)
                return
            for begin in begins:
                yield bytes(self._read(descriptor, _buffer(count), self.offset + begin))

    def crc32(self) -> int:
        """Return the CRC-32 of the bytes of all values. Raises `StoreError`."""
        checksum, buffer = 0, _buffer(min(self.nbytes, _BLOCK))
        with self._opened() as descriptor:
            for begin in range(0, self.nbytes, _BLOCK):
                block = buffer[: self.nbytes - begin]
                checksum = zlib.crc32(self._read(descriptor, block, self.offset + begin), checksum)
        return checksum

    @contextmanager
    def _opened(self) -> Iterator[int]:
        if not isinstance(self.file, str):
            yield self.file if isinstance(self.file, int) else self.file.fileno()
            return
        with readable(self.where):
            descriptor = open_descriptor(self.file)
        try:
            if self.stamp and stamp_of(descriptor) != self.stamp:
                raise self._changed()
            yield descriptor
        finally:
            os.close(descriptor)

    def _changed(self) -> StoreError:
        return StoreError(
            f"{self.where} changed while it was read. Wait until it is written, and start again."
        )

    def _read(self, descriptor: int, buffer: memoryview, begin: int) -> memoryview:
        try:
            filled = read_into(descriptor, buffer, begin)
        except OSError as error:
            raise StoreError(f"{self.where} cannot be read: {error.strerror}.") from error
        if len(filled) < len(buffer):
            raise self._changed()
        return filled

    def _fill(
        self,
        descriptor: int,
        out: Array,
        begin: int,
        shape: Sequence[int],
        bounds: Sequence[tuple[int, int]],
    ) -> None:
        """Read a box of an array [shape] that begins at byte `begin` into `out`, C-contiguous."""
        item = self.dtype.itemsize
        first_whole_axis = 0  # axes from here on are read whole, so that runs are contiguous
        for axis, (size, (low, high)) in enumerate(zip(shape, bounds, strict=True)):
            if high - low < size:
                first_whole_axis = axis + 1
        axis = max(first_whole_axis - 1, 0)  # of the run
        strides = [item * math.prod(shape[k + 1 :]) for k in range(len(shape))]
        run = out.nbytes // max(math.prod(out.shape[:axis]), 1)
        if shape and run < _RUN and axis and out.nbytes > run:
            self._cut_out(descriptor, out, begin, shape, bounds, strides[0])
            return
        starts = np.array(begin, np.int64)
        for (low, high), step in zip(bounds[:axis], strides, strict=False):
            starts = starts[..., None] + step * np.arange(low, high)
        if shape:
            starts = starts + bounds[axis][0] * strides[axis]
        begins = starts.reshape(-1)
        runs = out.reshape(-1).view(np.uint8).reshape(begins.size, run)
        done = 0
        if begins.size >= _MANY:
            from uqeval.kernels.reading import read_runs

            done = read_runs(descriptor, begins, runs)
        for i in range(done, begins.size):
            self._read(descriptor, runs[i].data, int(begins[i]))

    def _cut_out(
        self,
        descriptor: int,
        out: Array,
        begin: int,
        shape: Sequence[int],
        bounds: Sequence[tuple[int, int]],
        step: int,
    ) -> None:
        """Fill a buffer as `_fill` does, but for short runs: read whole blocks and cut them."""
        low, high = bounds[0]
        rows = _BLOCK // max(step, 1)
        if not rows:
            for k in range(low, high):
                self._fill(descriptor, out[k - low], begin + k * step, shape[1:], bounds[1:])
            return
        inner = tuple(slice(*bound) for bound in bounds[1:])
        for k in range(low, high, rows):
            count = min(rows, high - k)
            block = np.empty((count, *shape[1:]), self.dtype)
            self._read(descriptor, block.reshape(-1).view(np.uint8).data, begin + k * step)
            out[k - low : k - low + count] = block[(slice(None), *inner)]


@dataclass(frozen=True)
class Header:
    """The header of an array in a file: its fields, its bytes, and the first byte after it."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    data: bytes
    offset: int
    fortran: bool = False

    @property
    def expected(self) -> int:
        """Return the bytes of the header and of the values that it announces."""
        return self.offset + math.prod(self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"shape {self.shape} of {self.dtype}"

    def values(
        self, file: str | IO[bytes], where: str, stamp: tuple[int, ...] = (), start: int = 0
    ) -> FileValues:
        """Return the values after the header, which is at byte `start`."""
        offset = start + self.offset
        return FileValues(file, where, self.shape, self.dtype, self.fortran, offset, stamp)

    def unpacked(
        self, opened: Callable[[], AbstractContextManager[IO[bytes]]], where: str
    ) -> FileValues:
        """Return the values of a compressed file, in a file that is deleted with them; see
        `unpacked`."""
        file = unpacked(opened, self.expected, where)
        values = self.values(file, where)
        weakref.finalize(values, file.close)
        return values


def _buffer(count: int) -> memoryview:
    return memoryview(bytearray(count))


def stamp_of(descriptor: int) -> tuple[int, ...]:
    """Return the identity, size and time of change of an open file."""
    stat = os.fstat(descriptor)
    return (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)


def unpacked(
    opened: Callable[[], AbstractContextManager[IO[bytes]]], size: int, where: str
) -> IO[bytes]:
    """Return a temporary file of the `size` bytes that a compressed file holds.

    `opened` gives the unpacked bytes, of which at most `size` are read. Raises `StoreError` for
    more or fewer, for a damaged file, and if the disk is full.
    """
    if shutil.disk_usage(tempfile.gettempdir()).free < size:
        raise _no_room(where, size, "No space left on device")
    # The file has no name, so the system deletes it after its last reader, even after a crash.
    file = tempfile.TemporaryFile(prefix="uqeval-")  # noqa: SIM115 - it outlives this function
    try:
        with opened() as packed:
            missing = size
            while missing > 0 and (block := packed.read(min(missing, _BLOCK))):
                missing -= file.write(block)
            excess = packed.read(1)  # reading to the end compares the checksum
        if missing or excess:
            raise EOFError(f"{missing} bytes are missing" if missing else "it holds more bytes")
        file.flush()
    except Exception as error:  # OSError, zlib.error, BadZipFile, EOFError
        file.close()
        if isinstance(error, OSError) and error.errno is not None:
            raise _no_room(where, size, error) from error
        raise StoreError(
            f"{where} cannot be unpacked ({cut(error)}): it is damaged or cut short. Copy or save "
            "it again."
        ) from error
    return file


def _no_room(where: str, size: int, reason: object) -> StoreError:
    return StoreError(
        f"{where} cannot be unpacked into {tempfile.gettempdir()}: {reason}. It needs {size} "
        "bytes there; set TMPDIR, or save it uncompressed."
    )
