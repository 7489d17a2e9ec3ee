"""Output files: check that they can be written, and write them."""

from __future__ import annotations

import os
from pathlib import Path

from uqeval.disk.files import resolved, stream_of, write_stream
from uqeval.disk.locks import clear_beside
from uqeval.disk.publishing import write_file
from uqeval.errors import OutputError, cut


def check_writable(path: str | Path) -> None:
    """Raise `OutputError` now for a file that could not be written later."""
    target = Path(path)
    if not str(path):
        raise OutputError("an output file is given as ''; give the name of a file.")
    if (stream := stream_of(path)) is not None:
        try:
            os.fstat(stream)
        except OSError as error:
            raise OutputError(f"{cut(path)}: cannot be written: {error.strerror}.") from None
        return
    try:
        target.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:  # a loop of links, a name that is too long
        raise OutputError(f"{cut(path)}: cannot be written: {error.strerror}.") from None
    if target.is_dir():
        raise OutputError(f"{cut(path)}: is a folder; give the name of a file.")
    folder = target.parent
    if not folder.is_dir():
        raise OutputError(
            f"{cut(path)}: the folder {cut(folder)} does not exist; make it, or name another."
        )
    if not os.access(folder, os.W_OK):
        raise OutputError(f"{cut(path)}: the folder {cut(folder)} cannot be written to.")


def write(path: str | Path, content: str | bytes) -> None:
    """Replace `path` by `content`, synced to disk, or not at all. Raises `OutputError`."""
    target = Path(path)
    # Names may hold half a character (a lone surrogate), which UTF-8 cannot say.
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    try:
        if (stream := stream_of(path)) is not None:
            write_stream(stream, data)
        elif target.exists() and not target.is_file():  # a named pipe, a device
            target.write_bytes(data)
        else:
            clear_beside(resolved(target))  # what a killed process has left
            write_file(target, data)
    except OSError as error:
        raise OutputError(f"{cut(path)}: cannot be written: {error.strerror or error}.") from error
