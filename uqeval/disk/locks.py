"""Locks of outputs and temporary files, and removal of the files of killed processes.

The lock of an output is a hidden file in the same folder. Its process keeps it locked; the system
releases the lock when the process ends. The file contains the process id. If the file system has no
locks, the lock counts as held while this process runs on this machine.

The name of a temporary file ends with the id of its process, which keeps the file locked. The file
is removed only if the process has ended and the lock is free. Ids are valid on one machine only. A
process that started after the file was written is another process, even with the same id.
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

from uqeval.disk.files import open_file, resolved
from uqeval.errors import OutputError, cut

#: Bytes of a final name that a hidden name repeats: names are limited to 255 bytes.
_NAME_BYTES = 200
#: The number of attempts to lock a file that other processes remove meanwhile.
_TRIES = 1000
#: Seconds by which the clocks of processes and files may differ.
_SLACK = 2.0
#: The file in a temporary folder that its process keeps locked.
OWNER = "owner"


def hold(file: int) -> None:
    """Lock an open file until it is closed, if the file system supports locks."""
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def own_name(path: Path) -> Path:
    """Return the temporary name under which this process writes `path`."""
    return path.with_name(f"{path.name}.{os.getpid()}")


def hidden(path: Path, ending: str) -> Path:
    """Return a hidden path in the same folder: the name, shortened if too long, and an ending."""
    name = os.fsencode(path.name)[:_NAME_BYTES].decode(errors="ignore")
    return path.with_name(f".{name}.{ending}")


def clear(path: Path) -> None:
    """Remove temporary files next to `path` whose processes have ended; `own_name` names them."""
    _clear(path.parent, f"{path.name}.", re.compile("([0-9]{1,19})"))


def clear_beside(path: Path) -> None:
    """Remove temporary files beside `path` whose processes have ended; `publishing.beside` names
    them.
    """
    _clear(path.parent, hidden(path, "").name, re.compile("([0-9]{1,19})-[0-9]{1,19}"))


def temporary_folder(home: str | Path | None = None) -> tuple[Path, int]:
    """Return a new temporary folder in `home`, and the descriptor of a file in it that names the
    owner.

    `home`: by default the system's temporary folder. After the descriptor is closed and the process
    has ended, the next call with this `home` removes the folder.
    """
    home = Path(tempfile.gettempdir() if home is None else home)
    for folder in home.glob("uqeval-*-*"):
        match = re.match("uqeval-([0-9]{1,19})-", folder.name)
        if match and _is_abandoned(folder, int(match[1])):
            shutil.rmtree(folder, ignore_errors=True)
    try:
        folder_path = Path(tempfile.mkdtemp(prefix=f"uqeval-{os.getpid()}-", dir=home))
    except OSError as error:
        raise OutputError(
            f"{cut(home)} cannot hold temporary files: {error.strerror}. Give a folder that "
            "exists, or set TMPDIR to one with space."
        ) from None
    owner = os.open(folder_path / OWNER, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    hold(owner)
    return folder_path, owner


def remove_temporary(folder: Path, owner: int) -> None:
    """Remove a `temporary_folder`. In a fork of the process that made it, only close the file."""
    os.close(owner)
    if folder.name.startswith(f"uqeval-{os.getpid()}-"):
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def temporary(home: str | Path | None = None) -> Iterator[Path]:
    """Yield a `temporary_folder` that is removed at the end."""
    folder, owner = temporary_folder(home)
    try:
        yield folder
    finally:
        remove_temporary(folder, owner)


def started(process: int) -> float | None:
    """Return the start time of a process in seconds since 1970; None if unknown."""
    try:
        ticks = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[19]
        boot = re.search(rb"^btime ([0-9]+)", Path("/proc/stat").read_bytes(), re.MULTILINE)
        return int(boot[1]) + int(ticks) / os.sysconf("SC_CLK_TCK") if boot else None
    except (OSError, ValueError, IndexError):
        return None


def is_gone(process: int, since: float) -> bool:
    """Return whether a process that lived at the time `since` has ended.

    A process with the same id that started later is another process.
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
        if match and _is_abandoned(leftover, int(match[1])):
            if leftover.is_dir():
                shutil.rmtree(leftover, ignore_errors=True)
            else:
                with suppress(OSError):
                    leftover.unlink()


def _is_abandoned(path: Path, process: int) -> bool:
    """Return whether the process that made a file or folder has ended, and no other locks it.

    What this user cannot read is not abandoned, nor a folder whose owner is no regular file.
    """
    try:
        owner = path / OWNER
        place = owner if owner.exists() else path  # a file, or its removal stopped half-way
        if not is_gone(process, place.stat().st_mtime):
            return False
        if place.is_dir():
            return True
        with open_file(place) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


#: Locks that this process holds: by lock file, the process and the descriptor.
_held: dict[Path, tuple[int, int]] = {}


@contextmanager
def locked(output: str | Path) -> Iterator[None]:
    """Hold the lock of an output inside the context; the process may already hold it.

    First remove temporary files of killed processes. Raises `OutputError` with the id of the
    process that holds the lock.
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
        if not _acquire(file, output):
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
    files = [path.parent / stem, *path.parent.glob(f"{glob.escape(stem)}.*")]
    return [file for file in files if file != path and file.is_file() and holds(file)]


def release_all() -> None:
    """Release all locks that this process holds."""
    for file, (process, _) in list(_held.items()):
        if process == os.getpid():
            release(file)


def release(file: Path) -> None:
    """Release one lock, as `lock` returned it. In a fork of its process, only close the file."""
    process, descriptor = _held.pop(file)
    if process == os.getpid():
        with suppress(OSError):
            file.unlink()  # while it is locked, so that no process holds it
        with suppress(OSError):  # a forked process may have the file open, too
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def _acquire(file: Path, output: str | Path) -> bool:
    """Lock a lock file and note it in `_held`; return False if it cannot be created, and on file
    systems where it is another file each time that its path is looked up."""
    for _ in range(_TRIES):
        try:
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError:
            return False  # writing the output itself says why
        try:
            if not _is_free(descriptor):
                raise _refusal(output, os.pread(descriptor, 200, 0))
            if _is_same_file(file, descriptor):
                owner = f"{os.getpid()} {started(os.getpid()) or 0:.0f} {os.uname().nodename}\n"
                with suppress(OSError):  # a full disk: a lock without process id
                    os.ftruncate(descriptor, 0)
                    os.pwrite(descriptor, owner.encode(), 0)
                _held[file] = os.getpid(), descriptor
                return True
        except BaseException:  # an interrupt, too
            if file not in _held:
                os.close(descriptor)
            raise
        os.close(descriptor)  # its process has ended and removed it meanwhile
    return False


def _is_free(descriptor: int) -> bool:
    """Lock an open file; return False if another process holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # this file system has no locks
        return not _may_be_alive(os.pread(descriptor, 200, 0))
    return True


def _remove_unheld(file: Path) -> None:
    """Remove a lock file that no process holds, because an interrupt came right after it was
    created.
    """
    with suppress(OSError):
        descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_same_file(file, descriptor):
                file.unlink()
        finally:
            os.close(descriptor)


def _is_same_file(file: Path, descriptor: int) -> bool:
    """Return whether an open file is still the one at a path."""
    with suppress(OSError):
        return file.stat().st_ino == os.fstat(descriptor).st_ino
    return False


def _may_be_alive(owner: bytes) -> bool:
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
        f"{output}: {who} of uqeval writes to it now. {stop}, or name another output."
    )
