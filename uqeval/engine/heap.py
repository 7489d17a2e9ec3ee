"""Freed memory that is kept for the next item, rather than given back and asked for again."""

from __future__ import annotations

import ctypes

#: glibc's numbers of what `mallopt` sets, and a size beyond that of any image.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_LARGE = 1 << 30


def keep_freed_memory() -> None:
    """Let glibc's malloc keep what is freed; elsewhere nothing happens.

    Images and flow are megabytes, which would go back to the system after each pair and come again
    page by page: a tenth of what optical flow costs. The peak stays what it is. This belongs to the
    process: it is for commands, not for a library.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    for parameter, value in (
        (_ARENA_MAX, 1), (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _LARGE)
    ):  # fmt: skip
        mallopt(parameter, value)
