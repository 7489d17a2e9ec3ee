"""How a run uses the machine, and whom it tells how far it is."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from uqeval.errors import UsageError

if TYPE_CHECKING:
    from uqeval.statistics.options import CutOptions


class Progress(Protocol):
    """What is told of a run while it goes on."""

    def begin(self, what: str, items: int) -> None:
        """A pass over `items` items begins."""

    def advance(self, nbytes: int, items: int) -> None:
        """Bytes were read, items are done; called from several threads."""

    def end(self) -> None:
        """The pass is over."""


class Silent:
    """Tells nobody."""

    def begin(self, what: str, items: int) -> None: ...

    def advance(self, nbytes: int, items: int) -> None: ...

    def end(self) -> None: ...


@dataclass
class RunOptions:
    """How a run uses the machine, and what it leaves behind."""

    workers: int | None = None
    memory: int = 512 * 10**6
    states: str | Path | None = None
    progress: Progress = field(default_factory=Silent)
    resume: bool = False
    cut: CutOptions | None = None

    def threads(self) -> int:
        """How many threads are asked for. Raises `UsageError` for less than one."""
        if self.workers is None:
            return usable_cpus()
        if type(self.workers) is not int or self.workers < 1:
            raise UsageError(
                f"--workers {self.workers!r}; expected a whole number of threads, at least 1."
            )
        return self.workers


def usable_cpus() -> int:
    """CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
