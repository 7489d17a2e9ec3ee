"""Entries of a states file: names, places, complete entries of a truncated file, and the digest.

The digest of a finished file is the SHA-256 of its bytes without the zip's comment; the comment
holds it. A report has the digest of its states, so other states are detected.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from uqeval.disk.files import DIGEST_BYTES, DIGEST_MARK, as_given, open_file
from uqeval.errors import StoreError, cut
from uqeval.stores.compression import decompressed

#: Entries of compressed JSON: what was counted, and what is needed to compute scores.
RUN, INDEX = "run.json.z", "index.json.z"
#: Their names in files of earlier versions, uncompressed.
PLAIN = {RUN: "run.json", INDEX: "index.json"}
#: A zip's local header: signature, three words, time and date, CRC, two sizes, two lengths.
LOCAL = struct.Struct("<4sHHHHHIIIHH")
#: The largest number of bytes of an index, and of the state of one item.
MOST = 1 << 30
_BLOCK = 1 << 20
#: The largest expansion of compressed text, and the size that every text may have, in bytes.
_MOST_EXPANSION, _SMALL = 64, 1 << 16
#: Entries of a list that are written together.
_TOGETHER = 1024
_SIZE = struct.Struct("<Q")
#: The errors that reading a damaged file may raise.
DAMAGED = (
    OSError, KeyError, ValueError, IndexError, struct.error, zipfile.BadZipFile, zlib.error,
    NotImplementedError, RuntimeError, OverflowError, RecursionError, EOFError,
)  # fmt: skip
_BLOCK_NAME = re.compile(r"([0-9]{1,9})/([0-9]{1,12})(?:-([0-9]{1,12}))?")


def seal(file: BinaryIO) -> str:
    """Append the digest to a finished zip that has no comment; return the digest."""
    digest = _digest_of(file, os.fstat(file.fileno()).st_size)
    file.seek(-2, os.SEEK_END)  # the length of the comment, which was 0
    file.write(DIGEST_BYTES.to_bytes(2, "little") + DIGEST_MARK + digest.encode())
    file.flush()
    return digest


def check_seal(file: BinaryIO, path: Path) -> str | None:
    """Return the digest of a states file; None for a file of an earlier version without a digest.

    Raises `StoreError` if the file was changed or damaged.
    """
    size = os.fstat(file.fileno()).st_size
    file.seek(max(size - DIGEST_BYTES, 0))
    comment = file.read()
    if not comment.startswith(DIGEST_MARK):
        return None
    digest = _digest_of(file, size - DIGEST_BYTES)
    if comment.removeprefix(DIGEST_MARK) != digest.encode():
        raise StoreError(
            f"{cut(path)}: the states were changed or damaged after they were written: their "
            "checksum does not fit. Run the evaluation again."
        )
    return digest


def _digest_of(file: BinaryIO, size: int) -> str:
    """Return the SHA-256 of the first `size` bytes, with the last two (the length of the comment)
    as zeros.
    """
    digest = hashlib.sha256()
    file.seek(0)
    remaining = max(size - 2, 0)
    while remaining and (data := file.read(min(remaining, _BLOCK))):
        digest.update(data)
        remaining -= len(data)
    digest.update(bytes(2))
    return digest.hexdigest()


def entries_of(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the complete entries of a zip that may be truncated."""
    try:
        with open_file(path) as file:
            while len(head := file.read(LOCAL.size)) == LOCAL.size:
                mark, *_, crc, size, length, name_size, extra_size = LOCAL.unpack(head)
                # Earlier versions wrote 0 as CRC and first size before the data.
                if mark != b"PK\x03\x04" or size != length or size > MOST:
                    return
                name = file.read(name_size).decode("utf-8", "replace")
                file.seek(extra_size, os.SEEK_CUR)
                data = file.read(size)
                if len(data) < size or zlib.crc32(data) != crc or name in (INDEX, PLAIN[INDEX]):
                    return
                yield name, data
    except OSError as error:
        raise StoreError(f"{cut(path)} cannot be read: {error.strerror}.") from None


def pack_text(pieces: Callable[[], Iterable[bytes]]) -> bytes:
    """Return the size of a text and the compressed text; equal for equal pieces."""
    # A text that would expand too much is stored uncompressed.
    for level in (1, 0):
        compressor, parts, size = zlib.compressobj(level), list[bytes](), 0
        for piece in pieces():
            parts.append(compressor.compress(piece))
            size += len(piece)
        data = b"".join((*parts, compressor.flush()))
        if size <= _most_text(data):
            break
    return _SIZE.pack(size) + data


def json_pieces(record: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield `json.dumps(record)` in pieces, so the text of many items is never in memory at
    once.

    Staged local files have their URLs in it.
    """
    before = "{"
    for key, value in record.items():
        yield f"{before}{json.dumps(key)}: ".encode()
        if isinstance(value, list) and value:
            for first in range(0, len(value), _TOGETHER):
                text = as_given(json.dumps(value[first : first + _TOGETHER], allow_nan=False))
                yield f"{', ' if first else '['}{text[1:-1]}".encode()
            yield b"]"
        else:
            yield as_given(json.dumps(value, allow_nan=False)).encode()
        before = ", "
    yield b"}" if record else b"{}"


def unpack_text(packed: bytes) -> bytes:
    """Undo `pack_text`. Raise `ValueError` for a damaged text, before allocating much memory."""
    if len(packed) < _SIZE.size:
        raise ValueError("a compressed text that is cut short")
    (size,), data = _SIZE.unpack_from(packed), packed[_SIZE.size :]
    if size > min(_most_text(data), MOST):
        raise ValueError(f"a text of {size} bytes, compressed to {len(data)}")
    return decompressed(data, size, exactly=True)


def _most_text(data: bytes) -> int:
    return _SMALL + _MOST_EXPANSION * len(data)


def read_entry(file: int, info: zipfile.ZipInfo) -> bytes:
    """Return the data of an uncompressed entry, in one read of the file descriptor.

    Raises `ValueError` if the entry's header or its checksum does not match.
    """
    # Entries are uncompressed, so none can be larger than the file.
    if info.compress_type != zipfile.ZIP_STORED or info.file_size > MOST:
        raise ValueError(
            f"{info.filename} is compressed, or claims too much: {info.file_size} bytes"
        )
    name = info.orig_filename.encode()
    size = LOCAL.size + len(name)
    data = os.pread(file, size + info.file_size, info.header_offset)
    mark, *_, extra = LOCAL.unpack_from(data.ljust(LOCAL.size, b"\0"))
    if mark != b"PK\x03\x04" or extra or data[LOCAL.size : size] != name:
        raise ValueError(f"{info.filename} has another header")
    content = data[size:]
    if len(content) < info.file_size or zlib.crc32(content) != info.CRC:
        raise ValueError(f"{info.filename} does not fit its checksum")
    return content


def tally_key(parameters: Mapping[str, Any]) -> str:
    """Return a tally's parameters as text, equal for equal tallies."""
    return json.dumps(dict(parameters), sort_keys=True, allow_nan=False)


def digest_of(key: str) -> str:
    """Return a tally's key as the name of an entry."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def block_name(number: int, first: int, items: int) -> str:
    """Return the name of the entry with the states of consecutive items of a tally, by its
    number.
    """
    last = f"-{first + items - 1}" if items > 1 else ""
    return f"{number}/{first}{last}"


def block_of(name: str) -> tuple[str, int, int] | None:
    """Return a tally's number, the first item and the number of items of an entry; None for
    another entry. Undoes `block_name`.
    """
    match = _BLOCK_NAME.fullmatch(name)
    if match is None:
        return None
    first, last = int(match[2]), int(match[3] or match[2])
    return (match[1], first, last - first + 1) if last >= first else None
