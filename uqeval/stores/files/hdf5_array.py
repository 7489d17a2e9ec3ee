"""One array of an HDF5 file; needs h5py."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.errors import StoreError, UqevalError, cut
from uqeval.stores.array import Region, StoredArray, file_digest
from uqeval.stores.bfloat16 import SOURCE
from uqeval.stores.described import names_of
from uqeval.stores.files.hdf5_chunks import Hdf5Chunks, stored_size
from uqeval.stores.fill_values import fill_of_netcdf
from uqeval.stores.watch import combining_with, file_stamp, file_state, looked_up

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
