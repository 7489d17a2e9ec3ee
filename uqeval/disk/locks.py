"""Output locks: a second process that writes to the same output is refused at its start.

The lock is a hidden file beside the output, locked for as long as its process lives: the system
takes the lock away when the process ends, however it ends. The file says which process it is. Where
the file system has no locks, a process of this machine that lives and is the one named holds it.
"""

from __future__ import annotations

import fcntl
import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from uqeval.disk.files import resolved
from uqeval.disk.leftovers import clear_beside, hidden, is_gone, started
from uqeval.errors import OutputError

#: Locks that this process holds: by lock file, the process and the descriptor.
_held: dict[Path, tuple[int, int]] = {}


@contextmanager
def locked(output: str | Path) -> Iterator[None]:
    """Hold the lock of an output inside the context; this process may hold it already.

    What killed processes have left beside the output is removed first. Raises `OutputError` with
    the id of the process that holds the lock.
    """
    lock_file = lock(output)
    try:
        yield
    finally:
        if lock_file:
            release(lock_file)


def lock(output: str | Path) -> Path | None:
    """Hold the lock of an output until `release_all`. Return None if this process already holds it.

    Raises as `locked` does.
    """
    target = resolved(output)
    file = hidden(target, "lock")
    if _held.get(file, (0, 0))[0] == os.getpid():
        return None
    try:
        if not _take(file, output):
            return None
    except (KeyboardInterrupt, SystemExit):
        _remove_unheld(file)
        raise
    clear_beside(target)
    return file


def holds(output: str | Path) -> bool:
    """Return whether this process holds the lock of an output."""
    file = hidden(resolved(output), "lock")
    return _held.get(file, (0, 0))[0] == os.getpid()


def held_beside(path: Path, stem: str) -> list[Path]:
    """Return the other files in a folder, `stem` or `stem.*`, whose lock this process holds."""
    files = [path.with_name(stem), *path.parent.glob(f"{glob.escape(stem)}.*")]
    return [file for file in files if file != path and file.is_file() and holds(file)]


def release_all() -> None:
    """Release all locks that this process holds."""
    for file, (process, _) in list(_held.items()):
        if process == os.getpid():
            release(file)


def release(file: Path) -> None:
    """Release one lock, as `lock` returned it."""
    _, descriptor = _held.pop(file)
    with suppress(OSError):
        file.unlink()  # while it is locked, so that no process holds it
    with suppress(OSError):  # a forked process may have the file open, too
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def _take(file: Path, output: str | Path) -> bool:
    """Lock a lock file and note it in `_held`; return False if it cannot be created."""
    while True:
        try:
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError:
            return False  # writing the output itself says why
        try:
            if not _is_free(descriptor):
                raise _refusal(output, os.pread(descriptor, 200, 0))
            if _is_there(file, descriptor):
                owner = f"{os.getpid()} {started(os.getpid()) or 0:.0f} {os.uname().nodename}\n"
                with suppress(OSError):  # on a full disk the lock holds without a name
                    os.ftruncate(descriptor, 0)
                    os.pwrite(descriptor, owner.encode(), 0)
                _held[file] = os.getpid(), descriptor
                return True
        except BaseException:  # an interrupt, too
            if file not in _held:
                os.close(descriptor)
            raise
        os.close(descriptor)  # its process has ended and removed it meanwhile


def _is_free(descriptor: int) -> bool:
    """Lock an open file; return False if another process holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return not _lives(os.pread(descriptor, 200, 0))
    return True


def _remove_unheld(file: Path) -> None:
    """Remove a lock file that no process holds, because an interrupt came right after it was
    created.
    """
    with suppress(OSError):
        descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_there(file, descriptor):
                file.unlink()
        finally:
            os.close(descriptor)


def _is_there(file: Path, descriptor: int) -> bool:
    """Return whether an open file is still the one at a path."""
    with suppress(OSError):
        return file.stat().st_ino == os.fstat(descriptor).st_ino
    return False


def _lives(owner: bytes) -> bool:
    """Return whether the process that a lock file names may be alive."""
    words = owner.decode("utf-8", "replace").split()
    if len(words) != 3 or not (words[0].isdecimal() and words[1].isdecimal()):
        return False
    if words[2] != os.uname().nodename:
        return True
    return not is_gone(int(words[0]), float(words[1]) + 1)


def _refusal(output: str | Path, owner: bytes) -> OutputError:
    words = owner.decode("utf-8", "replace").split()
    who, stop = "another process", "Wait until it has ended"
    if len(words) == 3 and words[0].isdecimal():
        same_host = words[2] == os.uname().nodename
        who = f"process {words[0]}" + ("" if same_host else f" on {words[2][:64]}")
        stop += f", or stop it (kill {words[0]})"
    return OutputError(
        f"{output}: {who} of uqeval writes to it now. {stop}, or give another output with -o."
    )
