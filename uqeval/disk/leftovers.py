"""Temporary files beside an output, which remain if their process is killed.

Such a file has the id of its process at the end of its name, and is locked while the process lives.
It is removed only if the process is gone and the lock is free. Ids hold on one machine only, and
some file systems have no locks. A process of the same id that began after the file is another one.
"""

from __future__ import annotations

import fcntl
import glob
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

#: Bytes of a final name that a hidden name repeats: names are limited to 255 bytes.
_NAME_BYTES = 200
#: Seconds by which the clocks of processes and files may differ.
_SLACK = 2.0
#: The file in a temporary folder that its process holds locked.
OWNER = "owner"


def hold(file: int) -> None:
    """Lock an open file until it is closed, if the file system supports locks."""
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def own_name(path: Path) -> Path:
    """Return the temporary name under which this process writes `path`."""
    return path.with_name(f"{path.name}.{os.getpid()}")


def hidden(path: Path, ending: str) -> Path:
    """Return a hidden name beside `path`: its own, as far as names may be long, and an ending."""
    name = os.fsencode(path.name)[:_NAME_BYTES].decode(errors="ignore")
    return path.with_name(f".{name}.{ending}")


def clear(path: Path) -> None:
    """Remove temporary files beside `path` whose processes have ended; `own_name` names them."""
    _clear(path.parent, f"{path.name}.", re.compile("([0-9]{1,19})"))


def clear_beside(path: Path) -> None:
    """Remove temporary files beside `path` whose processes have ended; `publishing.beside` names
    them.
    """
    _clear(path.parent, hidden(path, "").name, re.compile("([0-9]{1,19})-[0-9]{1,19}"))


def temporary_folder() -> tuple[Path, int]:
    """Return a new temporary folder and the descriptor of a file in it that says who owns it.

    The next call removes it once the descriptor is closed and its process is gone.
    """
    home = Path(tempfile.gettempdir())
    for folder in home.glob("uqeval-*-*"):
        match = re.match("uqeval-([0-9]{1,19})-", folder.name)
        owner_file = folder / OWNER
        place = owner_file if owner_file.exists() else folder  # its removal failed half-way
        if match and _is_left(place, int(match[1])):
            shutil.rmtree(folder, ignore_errors=True)
    folder_path = Path(tempfile.mkdtemp(prefix=f"uqeval-{os.getpid()}-"))
    owner = os.open(folder_path / OWNER, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    hold(owner)
    return folder_path, owner


@contextmanager
def temporary() -> Iterator[Path]:
    """Yield a `temporary_folder` that is removed at the end."""
    folder, owner = temporary_folder()
    try:
        yield folder
    finally:
        os.close(owner)
        shutil.rmtree(folder, ignore_errors=True)


def started(process: int) -> float | None:
    """Return when a process began, in seconds since 1970; None where that is not known."""
    try:
        ticks = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[19]
        boot = re.search(rb"^btime ([0-9]+)", Path("/proc/stat").read_bytes(), re.MULTILINE)
        return int(boot[1]) + int(ticks) / os.sysconf("SC_CLK_TCK") if boot else None
    except (OSError, ValueError, IndexError):
        return None


def is_gone(process: int, since: float) -> bool:
    """Return whether a process that lived at the time `since` has ended.

    One of the same id that began later is another.
    """
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return process > 0
    except (OSError, OverflowError):
        pass
    began = started(process)
    return began is not None and began > since + _SLACK


def _clear(folder: Path, start: str, ending: re.Pattern[str]) -> None:
    for leftover in folder.glob(f"{glob.escape(start)}*"):
        match = ending.fullmatch(leftover.name.removeprefix(start))
        if match and _is_left(leftover, int(match[1])):
            if leftover.is_dir():
                shutil.rmtree(leftover, ignore_errors=True)
            else:
                with suppress(OSError):
                    leftover.unlink()


def _is_left(path: Path, process: int) -> bool:
    """Return whether the process that made a file or folder is gone, and no other has it locked."""
    try:
        if not is_gone(process, path.stat().st_mtime):
            return False
        if path.is_dir():
            return True
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
