"""`.npy` and `.npz` files as arrays that are read region by region."""

from __future__ import annotations

import weakref
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import IO

import numpy as np

from uqeval.disk.files import open_file, readable
from uqeval.errors import StoreError, cut, quoted
from uqeval.stores.file_values import FileValues, stamp_of, unpacked
from uqeval.stores.files.numpy_array import NumpyArray
from uqeval.stores.files.numpy_header import read_header
from uqeval.stores.zarr.source import check_method, open_zip


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
