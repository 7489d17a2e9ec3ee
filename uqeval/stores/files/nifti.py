"""NIfTI files of class ids, `.nii` and `.nii.gz`: the labels of medical images."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO, Any, cast

import numpy as np

from uqeval.disk.files import open_file
from uqeval.errors import StoreError, cut
from uqeval.stores.file_values import FileValues, Header, stamp_of
from uqeval.stores.files.numpy_array import NumpyArray

#: Bytes of the header, and dtypes by their code in NIfTI-1.
_HEADER = 348
_DTYPES = {
    2: "u1", 4: "i2", 8: "i4", 16: "f4", 32: "c8", 64: "f8", 256: "i1", 512: "u2", 768: "u4",
    1024: "i8", 1280: "u8",
}  # fmt: skip
#: The largest compression ratio of deflate.
_MOST_PACKED = 1032


def open_nifti(path: str) -> NumpyArray:
    """Return the ids [z, y, x] or [y, x] of a NIfTI-1 file, as SimpleITK orders them.

    A compressed file is unpacked at the first read, into a temporary file that is deleted with the
    array. Raises `StoreError` for a damaged file, and for values that are not integers.
    """
    where = cut(path)
    try:
        with open_file(path) as file:
            stamp = stamp_of(file.fileno())
            size = file.seek(0, 2)
            file.seek(0)
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            head = _read_header(gzip.GzipFile(fileobj=file) if packed else file, where)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise StoreError(
            f"{where} cannot be read ({cut(reason)}). Copy or save it again."
        ) from error
    fits = size * _MOST_PACKED >= head.expected if packed else size == head.expected
    if not fits:
        raise StoreError(
            f"{where} is {size} bytes, too few or too many for its header: {head} from byte "
            f"{head.offset}. Copy or save it again."
        )

    def load() -> FileValues:
        if not packed:
            return head.values(path, where, stamp)
        return head.unpacked(partial(_opened_gzip, path), where)

    return NumpyArray(where, head.shape, head.dtype, load, head.data, path)


def _read_header(file: Any, where: str) -> Header:
    """Read the header of a NIfTI-1 file. Raises `StoreError`."""
    data = file.read(_HEADER)
    order = next((o for o in "<>" if data[:4] == struct.pack(f"{o}i", _HEADER)), None)
    if order is None or data[344:347] != b"n+1" or len(data) < _HEADER:
        raise StoreError(
            f"{where} is not a NIfTI-1 file with its values in the same file (n+1). Save it with "
            "SimpleITK.WriteImage, or as .npy."
        )
    dims = struct.unpack(f"{order}8h", data[40:56])
    code, bits = struct.unpack(f"{order}hh", data[70:74])
    offset, slope, intercept = struct.unpack(f"{order}3f", data[108:120])
    shape = dims[1 : 1 + dims[0]] if 2 <= dims[0] <= 7 else ()
    while len(shape) > 3 and shape[-1] == 1:
        shape = shape[:-1]
    if not 2 <= len(shape) <= 3 or min(shape) < 1:
        raise StoreError(
            f"{where} has the sizes {dims[1:]} of {dims[0]} axes; expected a volume (x, y, z) or "
            "an image (x, y)."
        )
    dtype = np.dtype(order + _DTYPES.get(code, "V1"))
    if code in _DTYPES and bits != 8 * dtype.itemsize:
        raise StoreError(
            f"{where}: its header gives {bits} bits to values of {dtype.name}, which have "
            f"{8 * dtype.itemsize}. Copy or save it again."
        )
    if dtype.kind not in "iu":
        raise StoreError(
            f"{where} holds {dtype.name if code in _DTYPES else f'NIfTI type {code}'}; labels are "
            f"integers. {_as_integers(where)}"
        )
    if slope == slope and slope != 0 and (slope, intercept) != (1.0, 0.0):  # 0 and NaN: none
        raise StoreError(
            f"{where} has scaled values (slope {slope:g}, intercept {intercept:g}); labels are "
            f"integers as they are stored. {_as_integers(where)}"
        )
    if not (_HEADER <= offset <= 1 << 24) or offset != int(offset):
        raise StoreError(
            f"{where}: its header puts the values at byte {offset:g}; expected a "
            f"whole number from {_HEADER}. Copy or save it again."
        )
    return Header(tuple(map(int, shape[::-1])), dtype, data, int(offset))


def _as_integers(where: str) -> str:
    return (
        'Convert it: python -c "import SimpleITK as s; s.WriteImage(s.Cast(s.ReadImage('
        f"'{where}'), s.sitkUInt8), '{where}')\""
    )


@contextmanager
def _opened_gzip(path: str) -> Iterator[IO[bytes]]:
    with open_file(path) as packed, gzip.GzipFile(fileobj=packed) as member:
        yield cast("IO[bytes]", member)
