"""The bytes of image files, whose damage Pillow and OpenCV may not find."""

from __future__ import annotations

import zlib
from pathlib import Path

from uqeval.errors import StoreError, cut
from uqeval.stores.files.file_array import bytes_of

#: The first bytes of a PNG file.
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def undecoded(error: Exception) -> str:
    """Return why Pillow did not decode the bytes of a file. Its own text for bytes of no known
    format names an object in memory.
    """
    from PIL import UnidentifiedImageError

    is_unknown = isinstance(error, UnidentifiedImageError)
    return "its bytes are of no known image format" if is_unknown else cut(error)


def image_bytes(path: Path) -> bytes:
    """Return the content of an image file. Raises `StoreError` if it is unreadable or empty, and
    for a PNG with a wrong checksum: Pillow and OpenCV do not compare those of the pixels.
    """
    data = bytes_of(path)
    if not data:
        raise StoreError(f"{cut(path)} is cut short: it is empty (0 bytes). Copy it again.")
    if data.startswith(PNG_SIGNATURE) and not _is_whole(data):
        raise StoreError(
            f"{cut(path)} is damaged or cut short: a checksum in it does not match. Copy it again."
        )
    return data


def _is_whole(data: bytes) -> bool:
    """Return whether a PNG has all chunks, with their checksums."""
    at, name = len(PNG_SIGNATURE), b""
    while name != b"IEND":
        end = at + 12 + int.from_bytes(data[at : at + 4], "big")
        if end > len(data):
            return False
        name, stored = data[at + 4 : at + 8], int.from_bytes(data[end - 4 : end], "big")
        if zlib.crc32(data[at + 4 : end - 4]) != stored:
            return False
        at = end
    return True
