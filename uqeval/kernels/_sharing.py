"""Share compilation among processes: one compiles a kernel, the others wait and load it.

The processes lock files in a common folder. The system unlocks the files of a process that ends.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

_FOLDER: Path | None = None
#: By name: the locked files of kernels that this process compiles.
_LOCKED: dict[str, int] = {}


def share(folder: Path | None) -> None:
    """Compile together with the processes that share `folder`; None: alone."""
    global _FOLDER
    _FOLDER = folder


def begin(name: str) -> bool:
    """Wait while another process compiles a kernel; return whether processes compile together.

    Afterwards, load the kernel if it is saved now. Otherwise compile it; others wait until `end`.
    """
    if _FOLDER is None or name in _LOCKED:
        return False
    file = -1
    try:
        file = os.open(_FOLDER / name, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError:  # the folder is gone, too many files are open, or the file system has no locks
        if file >= 0:
            os.close(file)
        return False
    _LOCKED[name] = file
    return True


def end(name: str) -> None:
    """Let others load the kernel, or compile it."""
    if (file := _LOCKED.pop(name, None)) is not None:
        os.close(file)
