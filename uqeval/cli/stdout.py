"""The standard streams: detection of lost output, and the width of stdout."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from uqeval.errors import OutputError

if TYPE_CHECKING:
    from rich.console import Console

#: 128 + SIGPIPE, as shells report a program that a closed pipe has ended.
BROKEN_PIPE = 141


class _Stream:
    """Text stream that detects failed writes and passes all else to `inner`."""

    def __init__(self, inner: TextIO) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each line."""
        for line in lines:
            self.write(line)

    def write(self, text: str) -> int:
        """Write text; see the subclasses."""
        return self._inner.write(text)


class _Stdout(_Stream):
    """Stdout that raises errors of writing.

    Raises `OutputError` if it cannot be written, and `BrokenPipeError` if its reader closed it.
    `lost` is the error.
    """

    def __init__(self, inner: TextIO, closed_by_caller: bool) -> None:
        super().__init__(inner)
        self._closed = closed_by_caller
        self.lost: BrokenPipeError | OutputError | None = None

    def write(self, text: str) -> int:
        """Write text."""
        with self._checked():
            if self._closed and text:
                raise OutputError(
                    "stdout: is closed, and the result goes there. Leave it open, redirect it to a "
                    "file (> FILE), or give -o FILE --quiet."
                )
            return self._inner.write(text)
        raise AssertionError("not reached")

    def flush(self) -> None:
        """Write what is buffered."""
        with self._checked():
            self._inner.flush()

    @contextmanager
    def _checked(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError as error:
            self.lost = error
            _lead_nowhere(self._inner.fileno())  # what is still buffered, too
            raise
        except OutputError as error:
            self.lost = error
            raise
        except OSError as error:
            # What is buffered would fail again when the process ends.
            _lead_nowhere(self._inner.fileno())
            self.lost = OutputError(
                f"stdout: cannot be written: {error.strerror or error}. Write elsewhere, such as "
                "with -o FILE --quiet."
            )
            raise self.lost from error


class _Stderr(_Stream):
    """Stderr that drops text that cannot be written."""

    def write(self, text: str) -> int:
        """Write text."""
        with suppress(OSError):
            return self._inner.write(text)
        return len(text)

    def flush(self) -> None:
        """Write what is buffered."""
        try:
            self._inner.flush()
        except OSError:
            _lead_nowhere(self._inner.fileno())


def guard_streams() -> None:
    """Replace `sys.stdout` and `sys.stderr` by streams that detect lost output.

    Opens /dev/null for descriptors 0 to 2 that the caller closed. Otherwise a file could get such a
    number, and with it the output of libraries.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            _lead_nowhere(number)
    closed = sys.stdout is None
    out, err = (
        Path(os.devnull).open("w") if stream is None else stream  # noqa: SIM115 - to the end
        for stream in (sys.stdout, sys.stderr)
    )
    for stream in (out, err):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names may hold what the locale cannot
    sys.stdout = cast("TextIO", _Stdout(out, closed))
    sys.stderr = cast("TextIO", _Stderr(err))


def _lead_nowhere(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere != number:
        os.dup2(nowhere, number)
        os.close(nowhere)


def lost_output() -> BrokenPipeError | OutputError | None:
    """Return the error that lost some output of stdout; None if all was written."""
    return getattr(sys.stdout, "lost", None)


@contextmanager
def printing() -> Iterator[None]:
    """Print results in this context; continue the work if the reader of stdout closed it.

    The command then ends with the status of `lost_output`, unless the work itself failed. Raises
    `OutputError` if stdout cannot be written for another reason.
    """
    try:
        yield
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit, OutputError) as error:  # Rich exits where a pipe is broken
        is_our_error = getattr(sys.stdout, "_closed", False) or isinstance(
            lost_output(), BrokenPipeError
        )
        if not is_our_error:
            raise
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise


def console(width: int = 200) -> Console:
    """Return a console on stdout, as wide as the terminal, or `width` for pipes."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else width)
