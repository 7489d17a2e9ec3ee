"""One array of an HDF5 file; needs h5py.

Chunks are read without more memory than their shape needs: HDF5 itself allocates whatever
compressed data unpack to.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.errors import StoreError, UqevalError, cut
from uqeval.stores.array import Region, StoredArray, file_digest
from uqeval.stores.bfloat16 import SOURCE
from uqeval.stores.compression import DamagedChunk, decompress
from uqeval.stores.described import names_of
from uqeval.stores.fill_values import fill_of_netcdf
from uqeval.stores.watch import combining_with, file_stamp, file_state, looked_up

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


#: More missing chunks than this count as damage.
_MOST_MISSING = 1_000_000
#: The largest number of bytes of a chunk.
_MOST_CHUNK = 1 << 32
#: What h5py raises for damage: its errors have no common base.
_DAMAGE = (OSError, RuntimeError, LookupError, ValueError, TypeError, ArithmeticError)


class Hdf5Array(StoredArray):
    """A dataset of an open HDF5 file; h5py lets one thread read at a time.

    With `fill_missing`, missing chunks read as the fill value.
    """

    format_name = "HDF5"
    write_all_chunks = "with a value assigned to every element"

    def __init__(self, path: str, dataset: Any) -> None:
        self.where = f"{cut(path)}::{cut(dataset.name)}"
        self.shape = tuple(dataset.shape)
        self.dtype = dataset.dtype.newbyteorder("=")
        stored = dataset.chunks or self.shape
        self.chunks = tuple(max(1, size) for size in stored)
        self.dimension_names = names_of(dataset.dims, len(self.shape))
        self.attributes = attributes_of(dataset) | fill_of_netcdf(dataset)
        self.attributes |= SOURCE if _is_bfloat16(dataset) else {}
        self._path = path
        self.dataset = dataset
        self.fill_missing = False
        self._refuse()
        self._chunks = Hdf5Chunks(dataset, self.where) if dataset.chunks else None

    def _refuse(self) -> None:
        """Raise `StoreError` for values in other files or datasets, and for a shape that the file
        cannot fill.
        """
        if self.dataset.external:
            raise StoreError(
                f"{self.where}: its values are in other files, which are not read. Copy them into "
                "one file."
            )
        if self.dataset.is_virtual:
            raise StoreError(
                f"{self.where} is a virtual dataset: its values are in other datasets, which are "
                "not read. Copy them into a dataset."
            )
        if math.prod(self.chunks) * self.dtype.itemsize > _MOST_CHUNK and self.dataset.chunks:
            raise StoreError(
                f"{self.where} has chunks {self.chunks} of more than 4 GiB. Write it with smaller "
                "chunks."
            )
        needed, stored = self._needed_bytes(), int(self.dataset.id.get_storage_size())
        if self.dataset.chunks is None:
            if stored != needed > _MOST_MISSING:
                raise StoreError(
                    f"{self.where} claims the shape {self.shape}, but {needed - stored:,} of its "
                    f"{needed:,} bytes are missing. Write it again."
                )
        elif self._absent() > _MOST_MISSING:
            raise StoreError(
                f"{self.where} claims the shape {self.shape}, but {self._absent():,} of its "
                f"{self.chunk_count:,} chunks are missing. Write it again."
            )

    def _needed_bytes(self) -> int:
        """Return the bytes of all values on disk."""
        return math.prod(self.shape) * stored_size(self.dataset)

    def _absent(self) -> int:
        if self.dataset.chunks is None:
            is_stored = self.dataset.id.get_storage_size() == self._needed_bytes()
            return 0 if is_stored else self.chunk_count
        return self.chunk_count - int(self.dataset.id.get_num_chunks())

    def suit(self, axes: tuple[str, ...]) -> None:
        """Set the tile of a dataset without chunks: one item at a time."""
        if self.dataset.chunks is None and "item" in axes and len(axes) > 1:
            self.chunks = tuple(
                1 if axis == "item" else n for axis, n in zip(axes, self.chunks, strict=True)
            )

    def read(self, region: Region) -> Array:
        """Return the values of `region`.

        Raises `StoreError` for chunks that cannot be decoded and (without `fill_missing`) for an
        array with missing chunks.
        """
        with readable(self.where):
            if self._missing and not self.fill_missing:
                raise StoreError(
                    f"{self.where}: chunk {list(self._missing[0])} is not stored. Write it again; "
                    "if it was left out because all its values are the fill value, add "
                    "--missing-chunks fill."
                )
            if self._chunks is None:
                values = self.dataset[region]
            else:
                values = self._chunks.read(region, self.fill_missing)
            return np.require(values, self.dtype, ["C"])

    def missing(self) -> list[tuple[int, ...]]:
        with readable(self.where):
            return self._missing

    @cached_property
    def _missing(self) -> list[tuple[int, ...]]:
        if not self._absent():
            return []
        absent = np.ones(self.grid, bool)
        if self.dataset.chunks is not None:
            for number in range(self.dataset.id.get_num_chunks()):
                start = self.dataset.id.get_chunk_info(number).chunk_offset
                absent[tuple(s // c for s, c in zip(start, self.chunks, strict=True))] = False
        return [tuple(map(int, place)) for place in np.argwhere(absent)]

    def stored_bytes(self) -> int:
        with readable(self.where):
            return int(self.dataset.id.get_storage_size())

    def fingerprint(self) -> str:
        """Return SHA-256 of the file's name, size and time of change, and of the dataset's
        address.
        """
        return file_digest(Path(self._path), self.dataset.name, self.shape, str(self.dtype))

    def stamp(self, index: int | None) -> str | None:
        """Return a stamp of the whole file."""
        combined = looked_up(
            (id(self), "items"),
            lambda: combining_with([file_stamp(self._path)], self.where, self.shape, self.axes),
        )
        return combined(index)

    def states(self, index: int | None) -> dict[str, str]:
        return {self._path: file_state(self._path)}

    def file_group(self, index: int) -> int:
        return 0


def _is_bfloat16(dataset: Any) -> bool:
    """Return whether numbers on disk are bfloat16, which h5py gives as float32."""
    stored = dataset.id.get_type()
    return dataset.dtype.kind == "f" and stored.get_fields() == (15, 7, 8, 0, 7)


@contextmanager
def readable(where: str) -> Iterator[None]:
    """Raise `StoreError` for damage that h5py finds inside the context."""
    try:
        yield
    except UqevalError:
        raise
    except _DAMAGE as error:
        raise StoreError(
            f"{where} cannot be read ({cut(error)}). Copy or save it again."
        ) from error


def attributes_of(holder: Any) -> dict[str, Any]:
    """Return the attributes of an array or a group as plain values; others are left out."""
    import h5py

    values: dict[str, Any] = {}
    for name in holder.attrs:
        try:
            value = holder.attrs[name]
        except (OSError, RuntimeError, TypeError):
            continue
        if isinstance(value, h5py.Empty):
            continue
        if isinstance(value, np.ndarray | np.generic):
            value = value.tolist()
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        if isinstance(value, list):
            value = [v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in value]
        if _is_plain(value):  # not references, as to the scales of dimensions
            values[str(name)] = value
    return values


def _is_plain(value: Any) -> bool:
    """Return whether a value is text, numbers or lists of them."""
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return isinstance(value, str | bool | int | float)
