"""What is printed to stdout: that it arrives, and how wide it is."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from uqeval.errors import OutputError

if TYPE_CHECKING:
    from rich.console import Console


@contextmanager
def printing() -> Iterator[None]:
    """Raises `OutputError` where what is printed cannot be written; a reader may go: the rest is
    lost, and the status is that of the work."""
    if sys.stdout is None:  # closed by the caller
        with Path(os.devnull).open("w") as nobody, redirect_stdout(nobody):
            yield
        return
    try:
        yield
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as error:  # the latter is how Rich tells of it
        if not isinstance(error, BrokenPipeError) and not isinstance(
            error.__context__, BrokenPipeError
        ):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        raise OutputError(f"stdout: cannot be written: {error.strerror}.") from error


def console(width: int = 200) -> Console:
    """Stdout for tables: as wide as the terminal, or `width`, as a pipe has none."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else width)
