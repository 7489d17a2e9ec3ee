"""Files that a process writes beside their place, and that stay there if it is killed.

Such a file has its process's id at the end of its name, and is locked while it lives. Only where
both say so is it nobody's: ids are those of one machine, and locks not of every file system.
"""

from __future__ import annotations

import fcntl
import glob
import os
from contextlib import suppress
from pathlib import Path


def hold(file: int) -> None:
    """Lock an open file for as long as it is open, where the file system can."""
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def own_name(path: Path) -> Path:
    """Where this process writes what is to come to `path`."""
    return path.with_name(f"{path.name}.{os.getpid()}")


def clear(path: Path) -> None:
    """Remove what processes that are gone have left beside `path`."""
    for left in path.parent.glob(f"{glob.escape(path.name)}.*"):
        number = left.name.removeprefix(f"{path.name}.")
        if number.isdecimal() and number.isascii() and _gone(int(number)):
            with suppress(OSError), left.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                left.unlink()


def _gone(process: int) -> bool:
    """Whether there is no process of this id."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return process > 0
    except (OSError, OverflowError):
        return False
    return False
