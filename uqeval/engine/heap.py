"""Keep freed memory for the next item instead of returning it to the system."""

from __future__ import annotations

import ctypes

#: Parameters of glibc's `mallopt`, and a size larger than any image.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_LARGE = 1 << 30


def keep_freed_memory() -> None:
    """Let glibc's malloc keep freed memory; does nothing on other systems.

    Images and flow take megabytes. Without this, their memory returns to the system after each pair
    and comes back page by page, which takes a tenth of the time of optical flow. The peak stays the
    same. The setting applies to the whole process, so it is for commands and not for a library.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    for parameter, value in (
        (_ARENA_MAX, 1), (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _LARGE)
    ):  # fmt: skip
        mallopt(parameter, value)
