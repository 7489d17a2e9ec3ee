"""The standard streams: results on stdout, messages and progress on stderr, and lost output."""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

import typer

from uqeval.disk.files import as_given
from uqeval.errors import OutputError, printable
from uqeval.threads import uninterrupted

if TYPE_CHECKING:
    from rich.console import Console

    from uqeval.engine.options import Progress

#: No terminal is as wide.
_LARGEST = 10_000
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
        text = as_given(text)
        with self._checked():
            if self._closed and text:
                raise OutputError(
                    "stdout is closed, so the result cannot be printed. Leave it open, redirect "
                    "it to a file (> FILE), or give -o FILE --quiet."
                )
            return self._inner.write(text)
        raise AssertionError("not reached")

    def flush(self) -> None:
        """Write the buffer."""
        with self._checked():
            self._inner.flush()

    @contextmanager
    def _checked(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError as error:
            self.lost = error
            _redirect_to_null(self._inner.fileno())  # also for text in the buffer
            raise
        except OutputError as error:
            self.lost = error
            raise
        except OSError as error:
            # Otherwise the text in the buffer fails again when the process ends.
            _redirect_to_null(self._inner.fileno())
            self.lost = OutputError(
                f"stdout cannot be written: {error.strerror or error}. Write elsewhere, such as "
                "with -o FILE --quiet."
            )
            raise self.lost from error


class _Stderr(_Stream):
    """Stderr that drops text that cannot be written."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            return self._inner.write(as_given(text))
        return len(text)

    def flush(self) -> None:
        """Write the buffer."""
        try:
            self._inner.flush()
        except OSError:
            _redirect_to_null(self._inner.fileno())


def guard_streams() -> None:
    """Replace `sys.stdout` and `sys.stderr` by streams that detect lost output.

    Opens /dev/null for descriptors 0 to 2 that the caller closed. Otherwise the next file gets such
    a descriptor, and libraries write their output into it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            _redirect_to_null(number)
    closed = sys.stdout is None
    out, err = (
        Path(os.devnull).open("w") if stream is None else stream  # noqa: SIM115 - to the end
        for stream in (sys.stdout, sys.stderr)
    )
    for stream in (out, err):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # for names that the locale cannot encode
    sys.stdout = cast("TextIO", _Stdout(out, closed))
    sys.stderr = cast("TextIO", _Stderr(err))


def _redirect_to_null(number: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    if null != number:
        os.dup2(null, number)
        os.close(null)


def lost_output() -> BrokenPipeError | OutputError | None:
    """Return the error that lost some output of stdout; None if all was written."""
    return getattr(sys.stdout, "lost", None)


@contextmanager
def printing() -> Iterator[None]:
    """Print results in this context; continue the work if stdout cannot be written.

    The command then ends with the status of `lost_output`, unless the work itself failed.
    """
    try:
        yield
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit, OutputError) as error:  # Rich exits where a pipe is broken
        if lost_output() is None:
            raise
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise


def print_text(text: str) -> None:
    """Write a text to stdout. For a terminal, escape the control characters of names in it, which
    the terminal would obey.
    """
    if sys.stdout.isatty():
        text = "\n".join(map(printable, text.split("\n")))
    sys.stdout.write(text)


def console(width: int = 200) -> Console:
    """Return a console on stdout, as wide as the terminal, or `width` for pipes."""
    from rich.console import Console

    # Names such as class:car: are no emoji.
    return Console(width=None if sys.stdout.isatty() else width, emoji=False)


def error_console() -> Console:
    """Return a console on stderr."""
    from rich.console import Console

    return Console(stderr=True, emoji=False)


def tell(text: str) -> None:
    """Print one line on stderr, without control characters."""
    typer.echo(printable(text), err=True)


def silence() -> None:
    """Keep Python, NumPy, Zarr and OpenCV from writing to stderr.

    `python -W …` and PYTHONWARNINGS still show warnings.
    """
    import logging
    import warnings

    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    # Without a handler Python prints what libraries log as warnings.
    logging.getLogger().addHandler(logging.NullHandler())
    os.environ.setdefault("OPENCV_LOG_LEVEL", "SILENT")
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")


def drop_invalid_numbers() -> None:
    """Remove numbers of libraries from the environment that are not positive, or absurd.

    A terminal of 0 columns is one of unknown size. The libraries draw tables without columns or of
    gigabytes, or raise errors. Numba's threads are never used.
    """
    for name in ("COLUMNS", "LINES", "TERMINAL_WIDTH", "NUMBA_NUM_THREADS"):
        text = os.environ.get(name, "")
        if not (text.isascii() and text.isdigit() and 0 < int(text[:100]) < _LARGEST):
            os.environ.pop(name, None)


def warn(texts: Iterable[str], quiet: bool) -> None:
    """Print warnings, unless `quiet`."""
    if not quiet:
        for text in texts:
            tell(f"warning: {text}")


def progress_for(quiet: bool) -> Progress:
    """Return a progress bar on a terminal, else a silent listener."""
    from uqeval.engine.options import Silent

    if quiet or sys.stderr is None or not sys.stderr.isatty():
        return Silent()
    return _Bar()


class _Bar:
    def __init__(self) -> None:
        self._console = error_console()
        self._lock = threading.Lock()
        self._bar: Any = None

    def begin(self, activity: str, items: int) -> None:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
            TextColumn("items"), _rate_column(), TimeRemainingColumn(),
            console=self._console, transient=True,
        )  # fmt: skip
        self._items = self._bar.add_task(activity, total=items, nbytes=0)
        with uninterrupted():  # it starts a thread
            try:
                self._bar.start()
            except RuntimeError:  # at a limit of threads; it has hidden the cursor
                self._bar.stop()
                raise

    def advance(self, nbytes: int, items: int) -> None:
        with self._lock:
            task = self._bar.tasks[0]
            self._bar.update(self._items, advance=items, nbytes=task.fields["nbytes"] + nbytes)

    def end(self) -> None:
        with uninterrupted():
            self._bar.stop()


#: The rate of bytes per second from which it is shown, in place of items per second.
_FAST = 1e6


def rate_text(nbytes: int, items: float, seconds: float) -> str:
    """Return the decoded bytes per second; the items per second of small items; empty below 1."""
    from rich import filesize

    if seconds < 0.1:
        return ""
    if nbytes / seconds >= _FAST:
        return f"{filesize.decimal(int(nbytes / seconds))}/s"
    return f"{items / seconds:,.0f} items/s" if items >= seconds else ""


def _rate_column() -> Any:
    """Return a column with the rate of a task."""
    from rich.progress import ProgressColumn, Task
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            text = rate_text(task.fields["nbytes"], task.completed, task.elapsed or 0.0)
            return Text(text, style="progress.data.speed")

    return Rate()
