"""What is printed to stdout: that it arrives, and how wide it is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from uqeval.errors import OutputError

if TYPE_CHECKING:
    from rich.console import Console


@contextmanager
def printing() -> Iterator[None]:
    """Raises `OutputError` where what is printed cannot be written; a reader may go."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"stdout: cannot be written: {error.strerror}.") from error


def console(width: int = 200) -> Console:
    """Stdout for tables: as wide as the terminal, or `width`, as a pipe has none."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else width)
