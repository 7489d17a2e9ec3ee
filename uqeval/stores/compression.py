"""Compression of states: zlib for few bytes, as earlier versions have for all; zstd for many.

zstd takes a tenth of the time of zlib for the ranks of an image. For few bytes, its library would
take longer to load. All data tell the size that they unpack to, which is checked before memory is
allocated.
"""

from __future__ import annotations

import zlib

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
