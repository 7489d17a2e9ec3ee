"""Compress states, and decompress them and chunks without allocating more bytes than they may have.

States: zlib for few bytes, as earlier versions have for all; zstd for many. It takes a tenth of the
time of zlib for the ranks of an image. For few bytes, its library would take longer to load.

numcodecs allocates the size that compressed data claim. Here this size is compared with the
required one before memory is allocated. Streams that claim no size are stopped one byte beyond it.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from uqeval.arrays import np
from uqeval.errors import cut

#: The first bytes of zstd data.
MAGIC = (0xFD2FB528).to_bytes(4, "little")
#: Bytes from which on states are compressed by zstd.
_MANY = 1 << 15


def compressed(data: bytes) -> bytes:
    """Compress bytes; equal bytes give equal results."""
    if len(data) < _MANY:
        return zlib.compress(data, 1)
    from numcodecs.zstd import compress

    return bytes(compress(data, 1))


def decompressed(data: bytes, most: int, exactly: bool) -> bytes:
    """Return decompressed bytes, of which there are at most `most`, or `exactly` so many.

    Raises `ValueError` for any other data, before it allocates more memory than that.
    """
    text = _from_zstd(data, most) if data.startswith(MAGIC) else _from_zlib(data, most)
    if exactly and len(text) != most:
        raise ValueError("it is cut short")
    return text


def _from_zlib(data: bytes, most: int) -> bytes:
    decompressor = zlib.decompressobj()
    try:
        text = decompressor.decompress(data, most + 1)
    except zlib.error:
        raise ValueError("it is no packed state, as it cannot be unpacked") from None
    if len(text) > most:
        raise _too_much(most)
    if not decompressor.eof:
        raise ValueError("it is cut short")
    return text


def _from_zstd(data: bytes, most: int) -> bytes:
    from numcodecs.zstd import decompress

    size = content_size(memoryview(data))
    if size is None:
        raise ValueError("it is no packed state, as it does not state its size")
    if size > most:
        raise _too_much(most)
    text = bytearray(size)
    try:
        decompress(data, text)
    except (RuntimeError, ValueError):  # damaged, or more frames than the first
        raise ValueError("it is no packed state, as it cannot be unpacked") from None
    return bytes(text)


def _too_much(most: int) -> ValueError:
    return ValueError(f"more than the {most} bytes that it can have")


def content_size(data: memoryview) -> int | None:
    """Return the size of the content that the header of the first frame declares; None if it
    declares none (RFC 8878 §3.1.1.1). More frames may follow, each with a size of its own.

    Raises `ValueError` if the data do not begin with a frame.
    """
    if len(data) < 6 or data[:4] != MAGIC:
        raise ValueError("it does not begin with a zstd frame")
    flags = data[4]
    is_single, width = flags >> 5 & 1, (0, 2, 4, 8)[flags >> 6]
    if not width and not is_single:
        return None
    at = 5 + (1 - is_single) + (0, 1, 2, 4)[flags & 3]
    field = int.from_bytes(data[at : at + (width or 1)], "little")
    return field + 256 if width == 2 else field


#: The largest memory for the dictionary of lzma, in bytes.
_LZMA_MEMORY = 1 << 28
#: Codecs that unpack into a given buffer, completely or not at all.
_INTO_MEMORY = frozenset({"blosc", "lz4", "zstd"})


class DamagedChunk(Exception):
    """The reason why a chunk is damaged, without the chunk's name."""


def decompress(name: str, codec: Any, data: bytes | memoryview, size: int | None, most: int) -> Any:
    """Return the bytes before the codec `name` was applied.

    `size`: the required size if it is known; `most`: the largest size. Raises `DamagedChunk` for
    any other data.
    """
    if name == "blosc":
        _check_blosc(data, size, most)
    try:
        if name in _STREAMS:
            return _unpacked(name, codec, data, most)
        if name == "zstd":
            size = _zstd_size(data, size, most)
        if name == "lz4":
            check_claim(int.from_bytes(memoryview(data).cast("B")[:4], "little"), size, most)
        if name in _INTO_MEMORY and size is not None:
            from uqeval.stores.buffer_pool import CHUNKS  # loads NumPy

            unpacked = CHUNKS.empty((size,), np.uint8).data
            codec.decode(data, unpacked)
            return unpacked.toreadonly()
        return codec.decode(data)
    except DamagedChunk:
        raise
    except Exception as error:  # each compressor has its own
        raise DamagedChunk(f"its {name} data cannot be unpacked ({cut(error)})") from error


def check_claim(claimed: int, size: int | None, most: int) -> None:
    """Raise `DamagedChunk` if data claim to unpack to another size than `size`, or more than `most`
    bytes.
    """
    if size is not None and claimed != size:
        raise DamagedChunk(f"unpacks to {claimed} bytes where the shape needs {size}")
    if claimed > most:
        raise DamagedChunk(f"unpacks to {claimed} bytes, expected at most {most}")


def _check_blosc(data: bytes | memoryview, size: int | None, most: int) -> None:
    """Check the header of a Blosc chunk: numcodecs reads past the end of truncated chunks."""
    view = memoryview(data).cast("B")
    if len(view) < 16:
        raise DamagedChunk(f"cut short: {len(view)} of at least 16 bytes")
    unpacked, block, packed = (int.from_bytes(view[i : i + 4], "little") for i in (4, 8, 12))
    if packed != len(view):
        word = "cut short" if len(view) < packed else "too long"
        raise DamagedChunk(f"{word}: {len(view)} of {packed} bytes")
    check_claim(unpacked, size, most)
    if unpacked and not 0 < block <= max(unpacked, 128):
        raise DamagedChunk("its blosc header is damaged")


def _zstd_size(data: bytes | memoryview, size: int | None, most: int) -> int:
    """Return the size in the header of the first zstd frame, or the known `size` if it has none.

    Later frames may claim more: the size of the first must be that of all.
    """
    claimed = content_size(memoryview(data).cast("B"))
    if claimed is not None:
        check_claim(claimed, size, most)
        return claimed
    if size is None:
        raise DamagedChunk("its zstd data do not tell how many bytes they unpack to")
    return size


def _unpacked(name: str, codec: Any, data: bytes | memoryview, most: int) -> bytes:
    """Return the stream in `data`, at most `most` + 1 bytes of it."""
    if name == "gzip":  # several members are one stream
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            unpacked = file.read(most + 1)
        check_length(len(unpacked), most)
        return unpacked
    stream = _STREAMS[name](codec)
    parts: list[bytes] = []
    length, remaining = 0, data
    while not stream.eof:
        parts.append(stream.decompress(remaining, most + 1 - length))
        length += len(parts[-1])
        check_length(length, most)
        remaining = getattr(stream, "unconsumed_tail", b"")
        if not parts[-1] and not remaining and not stream.eof:
            raise DamagedChunk(f"its {name} data are cut short")
    if stream.unused_data:
        raise DamagedChunk(f"{len(stream.unused_data)} bytes follow the end of its {name} data")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def check_length(length: int, most: int) -> None:
    """Raise `DamagedChunk` for more than `most` bytes."""
    if length > most:
        raise DamagedChunk(f"unpacks to more than the {most} bytes that the shape needs")


def _lzma(codec: Any) -> Any:
    form = getattr(codec, "format", lzma.FORMAT_XZ)
    limit = None if form == lzma.FORMAT_RAW else _LZMA_MEMORY
    return lzma.LZMADecompressor(form, limit, getattr(codec, "filters", None))


_STREAMS: Mapping[str, Callable[[Any], Any]] = {
    "zlib": lambda codec: zlib.decompressobj(),
    "gzip": gzip.GzipFile,
    "bz2": lambda codec: bz2.BZ2Decompressor(),
    "lzma": _lzma,
}
