"""Stamps that detect changed inputs of an item without reading them again.

A stamp is text that changes between runs when its file or array changes. Where that
cannot be had for certain there is none, and the item is read again. A state is a weaker stamp, for
one run: it is quick, and it is there for every file.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

#: Nanoseconds: file systems note the time of a change in steps of at most this.
_TICK = 20 * 10**6
#: But older ones (FAT, HFS+, ext3) in whole seconds, or two.
_SECOND = 10**9
#: File systems in memory, where a write through a memory map never sets a time.
_MEMORY = frozenset({"tmpfs", "ramfs"})
#: What a file that is not there has as its state.
GONE = "gone"


def file_stamp(path: str | Path) -> str | None:
    """Return inode, size and times of change of a file; None if they may not show a change.

    Someone may write to the file through a memory map. The first write to a page sets the times,
    later ones do not until the page has been written back; so it is written back here. On a file
    system in memory no write through a map ever sets a time: None. None too for a file that was
    changed just now: after another change its times could be the same. A copy has another stamp:
    the time at which a file was put in its place (ctime) cannot be set.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            if not _read_only(file):
                os.fsync(file)
            now = time.time_ns()
            stat = os.fstat(file)
        finally:
            os.close(file)
    except OSError:
        return None
    if _kind(stat.st_dev) in _MEMORY:
        return None
    changed = max(stat.st_mtime_ns, stat.st_ctime_ns)
    tick = _TICK if stat.st_ctime_ns % _SECOND else 2 * _SECOND
    if now - changed < tick:
        return None
    return f"{stat.st_ino} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}"


#: `states`: of the files that this thread has looked at in `one_look`.
_look = threading.local()


def file_state(path: str | Path) -> str:
    """Return inode, size and times of change of a file as they are now, `GONE` without a file.

    Inside `one_look`, as they were when it was first asked for the file.
    """
    states: dict[str | Path, str] | None = getattr(_look, "states", None)
    if states is None:
        return _state_now(path)
    if path not in states:
        states[path] = _state_now(path)
    return states[path]


@contextmanager
def one_look() -> Iterator[None]:
    """Look at each file once in this thread until the context ends: many items may share it."""
    if getattr(_look, "states", None) is not None:
        yield
        return
    _look.states = {}
    try:
        yield
    finally:
        _look.states = None


def _state_now(path: str | Path) -> str:
    try:
        stat = Path(path).stat()
    except OSError:
        return GONE
    # Some file systems in user space give a file a new inode whenever they look.
    inode = 0 if _kind(stat.st_dev).startswith("fuse") else stat.st_ino
    return f"{inode} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}"


def _read_only(file: int) -> bool:
    """Return whether the file system of a file takes no writes; some of these refuse a sync."""
    return bool(os.fstatvfs(file).f_flag & os.ST_RDONLY)


@lru_cache(maxsize=64)
def _kind(device: int) -> str:
    """Return the kind of the file system of a device, such as ext4; empty if it is not known."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    number = f"{os.major(device)}:{os.minor(device)}"
    kinds = [line.partition(" - ")[2].split(" ")[0] for line in mounts if number in line.split()]
    return kinds[-1] if kinds else ""


def combined_stamp(stamps: Iterable[str | None], *details: object) -> str | None:
    """Return one stamp for several and for the given texts; None if one is None."""
    digest = hashlib.sha256(repr(details).encode())
    for stamp in stamps:
        if stamp is None:
            return None
        digest.update(f"\n{stamp}".encode())
    return digest.hexdigest()[:32]
