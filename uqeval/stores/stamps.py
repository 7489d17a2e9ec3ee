"""Whether what an item was read from is still the same, told without reading it again.

A stamp is text that changes when what it stands for does. Where that cannot be had for certain
there is none: whoever asks reads again.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

#: Nanoseconds: file systems note the time of a change in steps of at most this.
_TICK = 20 * 10**6
#: But older ones (FAT, HFS+, ext3) in whole seconds, or two.
_SECOND = 10**9


def file_stamp(path: str | Path, mapped: bool = False) -> str | None:
    """Which file it is, its size, and when it was changed; None if that may not tell.

    The times of a file that was changed just now would be the same after another change. A copy has
    another stamp: the time at which a file was put in its place (ctime) cannot be set. `mapped`:
    somebody may write to it through a memory map, which sets the times only once its pages have
    been written back; on a file system in memory they never are.
    """
    try:
        if mapped:
            _write_back(path)
        stat = Path(path).stat()
    except OSError:
        return None
    if mapped and _in_memory(stat.st_dev):
        return None
    changed = max(stat.st_mtime_ns, stat.st_ctime_ns)
    tick = _TICK if stat.st_ctime_ns % _SECOND else 2 * _SECOND
    if time.time_ns() - changed < tick:
        return None
    return f"{stat.st_ino} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}"


def _write_back(path: str | Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _in_memory(device: int) -> bool:
    """Whether the file system of a device is one in memory, as far as the system tells."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return False
    number = f"{os.major(device)}:{os.minor(device)}"
    kinds = {line.partition(" - ")[2].split(" ")[0] for line in mounts if number in line.split()}
    return not kinds.isdisjoint({"tmpfs", "ramfs"})


def joined(stamps: Iterable[str | None], *more: object) -> str | None:
    """One stamp of several things, and of what else tells them apart; None if one has none."""
    digest = hashlib.sha256(repr(more).encode())
    for stamp in stamps:
        if stamp is None:
            return None
        digest.update(f"\n{stamp}".encode())
    return digest.hexdigest()[:32]
