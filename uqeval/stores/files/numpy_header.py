"""Headers of `.npy` files and of members of `.npz` files."""

from __future__ import annotations

import io
import math
import zipfile
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from uqeval.errors import StoreError, quoted
from uqeval.stores.file_values import FileValues

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
