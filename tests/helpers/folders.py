"""Where tests write: into memory if there is room, or on a disk if they must."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

import pytest

from uqeval.stores.watch import is_in_memory

#: The folder in memory of Linux, and the free bytes that it must have. The tests use 300 MB.
_MEMORY, _ROOM = Path("/dev/shm"), 2 << 30


def use_memory() -> None:
    """Let this process and those that it starts write temporary files into memory, unless the user
    has set TMPDIR: small files on a disk take more time than the rest of many tests."""
    if "TMPDIR" in os.environ or not os.access(_MEMORY, os.W_OK):
        return
    state = os.statvfs(_MEMORY)
    # Some tests compile libraries and run scripts.
    if state.f_bavail * state.f_frsize >= _ROOM and not state.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = str(_MEMORY)
        tempfile.tempdir = None


def on_disk() -> Path | None:
    """Return a writable folder on a disk; None if none is known."""
    folders = (Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp"), Path.cwd())
    return next(
        (f for f in folders if os.access(f, os.W_OK) and not is_in_memory(f.stat().st_dev)), None
    )


@contextmanager
def made_in(factory: pytest.TempPathFactory, name: str) -> Iterator[Path]:
    """Yield a new folder, which is the working folder while a module makes its data there."""
    folder = factory.mktemp(name)
    with chdir(folder):
        yield folder
