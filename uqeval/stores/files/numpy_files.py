"""`.npy` and `.npz` files as arrays that are read region by region."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import IO

import numpy as np

from uqeval.disk.files import open_file, readable
from uqeval.errors import StoreError, cut, quoted
from uqeval.stores.file_values import FileValues, Header, stamp_of
from uqeval.stores.files.numpy_array import NumpyArray
from uqeval.stores.zarr.source import check_method, open_zip

#: The largest number of bytes of a header.
_MOST_HEADER = 1 << 16


def open_npy(path: str) -> NumpyArray:
    """Return the array of a `.npy` file, which is read by regions.

    Raises `StoreError` if it is not one, holds pickled objects, or is cut short.
    """
    with readable(path), open_file(path) as file:
        head = _read_header(file, path)
        stamp = stamp_of(file.fileno())
        size = file.seek(0, 2)
    if size != head.expected:
        word = "cut short" if size < head.expected else "too long"
        raise StoreError(
            f"{cut(path)} is {word}: {size} bytes where its header, {head}, needs "
            f"{head.expected}. Copy or save it again."
        )
    return NumpyArray(
        path,
        head.shape,
        head.dtype,
        lambda: head.values(path, path, stamp),
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
    with open_zip(path, f"{path} cannot be opened as an .npz file") as archive:
        for info in archive.infolist():
            if not info.filename.endswith(".npy"):
                continue
            name = info.filename.removesuffix(".npy")
            if name in members:
                raise StoreError(
                    f"{cut(path)} holds {quoted(name)} twice; expected each name once. Save it "
                    "again with numpy.savez."
                )
            members[name] = _member(path, archive, info)
    return members


def _member(path: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NumpyArray:
    where = cut(f"{path}[{info.filename.removesuffix('.npy')}]")
    try:
        check_method(info)
        with archive.open(info) as file:
            head = _read_header(file, where)
    except StoreError:
        raise
    except Exception as error:  # zlib.error, BadZipFile, RuntimeError (encrypted), OSError
        raise StoreError(
            f"{where} cannot be read ({cut(error)}). Copy or save it again."
        ) from error
    if info.file_size != head.expected:
        raise StoreError(
            f"{where} is {info.file_size} bytes where its header, {head}, needs "
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
            return head.values(path, where, stamp, start)
        return head.unpacked(partial(_opened_member, path, info, where), where)

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


def _read_header(file: IO[bytes], where: str) -> Header:
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
        if length > _MOST_HEADER:
            raise ValueError(f"its header claims {length} bytes, expected at most {_MOST_HEADER}")
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
            f"{where} is not a NumPy file that can be read ({error!s:.200}). Save it with "
            "numpy.save."
        ) from error
    if dtype.hasobject:
        raise StoreError(
            f"{where} holds pickled objects, which are never read: unpickling runs code. Save "
            "an array of numbers, or of texts as values.astype(str)."
        )
    return Header(shape, dtype, data, len(data), fortran)
