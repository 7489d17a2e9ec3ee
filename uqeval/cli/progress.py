"""Progress bar on stderr: items done, bytes per second, time left; only on a terminal."""

from __future__ import annotations

import sys
import threading
from typing import Any

from uqeval.engine.options import Progress, Silent


def progress_for(quiet: bool) -> Progress:
    """Return a progress bar on a terminal, else a silent listener."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        return Silent()
    return _Bar()


class _Bar:
    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True)
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
        self._bar.start()

    def advance(self, nbytes: int, items: int) -> None:
        with self._lock:
            task = self._bar.tasks[0]
            self._bar.update(self._items, advance=items, nbytes=task.fields["nbytes"] + nbytes)

    def end(self) -> None:
        self._bar.stop()


def _rate_column() -> Any:
    """Return a column with the decoded bytes per second."""
    from rich import filesize
    from rich.progress import ProgressColumn, Task
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            seconds = task.elapsed or 0.0
            if seconds < 0.1 or not task.fields["nbytes"]:  # maps kept from an earlier pass
                return Text("")
            speed = filesize.decimal(int(task.fields["nbytes"] / seconds))
            return Text(f"{speed}/s", style="progress.data.speed")

    return Rate()
