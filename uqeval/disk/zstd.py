"""The size that zstd data claim to unpack to, before any memory is allocated for it."""

from __future__ import annotations

MAGIC = (0xFD2FB528).to_bytes(4, "little")


def content_size(data: memoryview) -> int | None:
    """Return the size of the content that the header of the first frame declares; None if it
    declares none (RFC 8878 §3.1.1.1). More frames may follow, each with a size of its own.

    Raises `ValueError` if the data do not begin with a frame.
    """
    if len(data) < 6 or data[:4] != MAGIC:
        raise ValueError("no zstd frame")
    flags = data[4]
    is_single, width = flags >> 5 & 1, (0, 2, 4, 8)[flags >> 6]
    if not width and not is_single:
        return None
    at = 5 + (1 - is_single) + (0, 1, 2, 4)[flags & 3]
    field = int.from_bytes(data[at : at + (width or 1)], "little")
    return field + 256 if width == 2 else field
