"""Read the chunks of HDF5 datasets without more memory than their shape needs: HDF5 itself
allocates whatever compressed data unpack to.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.errors import StoreError, cut
from uqeval.stores.array import Region
from uqeval.stores.compression import DamagedChunk, decompress

#: Numbers of filters in HDF5.
_DEFLATE, _SHUFFLE, _FLETCHER32, _LZF = 1, 2, 3, 32000
#: The bytes of a checksum.
_CHECKSUM = 4


def stored_size(dataset: Any) -> int:
    """Return the bytes of an element on disk, where its type may differ from the one in memory."""
    import h5py

    if (text := h5py.check_string_dtype(dataset.dtype)) is not None and text.length is None:
        # A length, the address of a heap and a number in it.
        return 8 + int(dataset.file.id.get_create_plist().get_sizes()[0])
    return int(dataset.id.get_type().get_size())


class Hdf5Chunks:
    """The chunks of an open dataset, which has some; `where` names it in messages.

    Deflate, shuffle and fletcher32 are undone here. LZF is left to h5py: it unpacks to at most 88
    times its size. Raises `StoreError` for other filters, which nothing bounds.
    """

    def __init__(self, dataset: Any, where: str) -> None:
        self.where = where
        self._dataset = dataset
        self._type = dataset.id.get_type()
        settings = dataset.id.get_create_plist()
        filters = [settings.get_filter(k) for k in range(settings.get_nfilters())]
        self._steps = [(code, values) for code, _, values, _ in filters]
        self._is_lzf = any(code == _LZF for code, *_ in filters)
        for code, _, _, name in filters:
            if code not in (_DEFLATE, _SHUFFLE, _FLETCHER32, _LZF):
                called = name.decode("utf-8", "replace") if name else f"number {code}"
                raise StoreError(
                    f"{where} has the filter {cut(called)}; expected deflate (gzip), shuffle, "
                    "fletcher32 or lzf. Write it again: h5repack -f GZIP=4 OLD.h5 NEW.h5"
                )
        self._bytes = math.prod(dataset.chunks) * stored_size(dataset)
        checksums = _CHECKSUM * sum(code == _FLETCHER32 for code, _ in self._steps)
        self._most_unpacked = self._bytes + checksums
        #: Deflate makes random bytes longer by less than this.
        most_stored = self._most_unpacked + self._bytes // 1000 + 64
        self._most_stored = min(most_stored, int(dataset.file.id.get_filesize()))

    def read(self, region: Region, fill: bool = False) -> Array:
        """Return the values of `region`; with `fill`, missing chunks have the fill value.

        Raises `StoreError` for a damaged or missing chunk, or what h5py raises.
        """
        bounds = [part.indices(n) for part, n in zip(region, self._dataset.shape, strict=True)]
        if self._is_lzf:
            for start in self._starts(bounds):
                self._stored(start, fill)
            return np.asarray(self._dataset[region])
        values: Array = np.empty([stop - start for start, stop, _ in bounds], self._dataset.dtype)
        for start in self._starts(bounds):
            inside, outside = [], []
            for at, size, (first, stop, _) in zip(start, self._dataset.chunks, bounds, strict=True):
                low, high = max(at, first), min(at + size, stop)
                inside.append(slice(low - at, high - at))
                outside.append(slice(low - first, high - first))
            chunk = self._chunk(start, fill)
            values[tuple(outside)] = self._dataset.fillvalue if chunk is None else (
                chunk[tuple(inside)]
            )  # fmt: skip
        return values

    def check(self) -> None:
        """Raise `StoreError` for a chunk that unpacks to another size than its shape needs."""
        for start in self._starts([(0, n, 1) for n in self._dataset.shape]):
            if (stored := self._stored(start, True)) is not None and not self._is_lzf:
                self._unpacked(start, *stored)

    def _starts(self, bounds: Sequence[tuple[int, int, int]]) -> Iterator[tuple[int, ...]]:
        """Yield the first index of each chunk that overlaps the bounds."""
        sizes = self._dataset.chunks
        return itertools.product(*(
            range(first // size * size, stop, size)
            for (first, stop, _), size in zip(bounds, sizes, strict=True)
        ))  # fmt: skip

    def _stored(self, start: tuple[int, ...], fill: bool) -> tuple[int, Any] | None:
        """Return the filters that were left out, as bits, and the stored bytes of a chunk; None if
        it is missing, which `fill` allows.
        """
        buffer = np.empty(self._most_stored, np.uint8)
        try:
            mask, stored = self._dataset.id.read_direct_chunk(start, out=buffer)
        except ValueError as error:
            raise self._damaged(start, f"too long: {error}") from None
        except (OSError, RuntimeError):
            if fill and self._dataset.id.get_chunk_info_by_coord(start).byte_offset is None:
                return None
            raise
        return mask, stored

    def _chunk(self, start: tuple[int, ...], fill: bool) -> Array | None:
        """Return the decoded chunk, including what is beyond the array's edge; None if missing."""
        import h5py

        if (stored := self._stored(start, fill)) is None:
            return None
        data = np.frombuffer(self._unpacked(start, *stored), np.uint8)
        dtype, shape = self._dataset.dtype, self._dataset.chunks
        in_memory = h5py.h5t.py_create(dtype, logical=True)
        if in_memory == self._type:
            return data.view(dtype).reshape(shape)
        numbers = math.prod(shape)
        converted = np.zeros(max(numbers * dtype.itemsize, len(data)), np.uint8)
        converted[: len(data)] = data
        h5py.h5t.convert(self._type, in_memory, numbers, converted)
        return converted[: numbers * dtype.itemsize].view(dtype).reshape(shape)

    def _unpacked(self, start: tuple[int, ...], mask: int, stored: Any) -> Any:
        """Return the bytes of a chunk before its filters were applied."""
        data = stored
        try:
            for k, (code, values) in reversed(list(enumerate(self._steps))):
                if not mask >> k & 1:
                    data = _UNDO[code](data, values, self._most_unpacked)
        except DamagedChunk as error:
            raise self._damaged(start, str(error)) from None
        if (size := memoryview(data).nbytes) != self._bytes:
            raise self._damaged(start, f"{size} bytes where the shape needs {self._bytes}")
        return data

    def _damaged(self, start: tuple[int, ...], why: str) -> StoreError:
        place = [at // size for at, size in zip(start, self._dataset.chunks, strict=True)]
        return StoreError(
            f"{self.where}: chunk {place} is damaged: {why}. Copy or save the file again."
        )


def _inflated(data: Any, values: Sequence[int], most: int) -> Any:
    return decompress("zlib", None, data, None, most)


def _unshuffled(data: Any, values: Sequence[int], most: int) -> Any:
    size = values[0] if values else 1
    plain = np.frombuffer(data, np.uint8)
    whole = len(plain) // max(size, 1) * size  # the rest is not shuffled
    if size < 2 or whole <= size:
        return plain
    rows = plain[:whole].reshape(size, -1)
    numbers = np.empty(rows.shape[::-1], np.uint8)
    if size <= 8:  # a third of the time of a transposed copy
        for k, row in enumerate(rows):
            numbers[:, k] = row
    else:
        numbers[...] = rows.T
    flat = numbers.reshape(-1)
    return flat if whole == len(plain) else np.concatenate([flat, plain[whole:]])


def _without_checksum(data: Any, values: Sequence[int], most: int) -> Any:
    from numcodecs.fletcher32 import Fletcher32

    if memoryview(data).nbytes <= _CHECKSUM:
        raise DamagedChunk("it is cut short")
    try:
        return Fletcher32().decode(data)
    except RuntimeError:
        raise DamagedChunk("its checksum is wrong") from None


_UNDO: dict[int, Callable[[Any, Sequence[int], int], Any]] = {
    _DEFLATE: _inflated, _SHUFFLE: _unshuffled, _FLETCHER32: _without_checksum,
}  # fmt: skip
