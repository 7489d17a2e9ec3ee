"""Machine settings of a run, sizes in bytes, and the listener to its progress."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from uqeval.errors import UsageError, quoted
from uqeval.settings import Settings, documented, shared_option

if TYPE_CHECKING:
    from collections.abc import Collection

    from uqeval.inputs import Inputs
    from uqeval.statistics.options import CutOptions

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
          "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}  # fmt: skip


def parse_memory(size: str | int) -> int:
    """Return the bytes of a size such as 512MB, or of a number. Raises `UsageError`."""
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([A-Za-z]*)\s*", str(size))
    unit = _UNITS.get(match[2].upper()) if match else None
    if match is None or unit is None:
        raise UsageError(f"--memory {quoted(size)}; expected a size such as 512MB, 2GB or 1GiB.")
    return int(float(match[1]) * unit) if match[2] or "." in match[1] else int(match[1])


def shown_size(n: int) -> str:
    """Return `n` bytes as a size for --memory, rounded up if that adds less than a tenth."""
    for unit, name in ((10**6, "MB"), (10**3, "kB")):
        if n >= 10 * unit or (n and n % unit == 0):
            return f"{-(-n // unit)}{name}"
    return f"{n}B"


_RUN = "Running"


@runtime_checkable
class Progress(Protocol):
    """Listener for the progress of a run."""

    def begin(self, activity: str, items: int) -> None:
        """Start a pass over `items` items."""

    def advance(self, nbytes: int, items: int) -> None:
        """Count bytes read and items done; several threads call it."""

    def end(self) -> None:
        """End the pass."""


class Silent:
    """Listener that does nothing."""

    def begin(self, activity: str, items: int) -> None: ...

    def advance(self, nbytes: int, items: int) -> None: ...

    def end(self) -> None: ...


class Cluster(Protocol):
    """Processes that count the items of runs."""

    @property
    def workers(self) -> int:
        """Return the number of workers now."""

    def executor(self, inputs: Inputs, options: RunOptions, maps: Collection[str]) -> Any:
        """Return the executor (`engine.scheduler.ClusterExecutor`) of a run that reads these maps.
        Raises `UsageError`."""


@documented
@dataclass(frozen=True)
class MachineOptions(Settings):
    """Machine options of a run. Raises `UsageError` for invalid values."""

    # fmt: off
    workers: int | None = shared_option(
        None, "Number of threads.", panel=_RUN, least=1, shown="usable CPUs")
    memory: int | str = shared_option(
        "512MB", "Memory for tiles and maps, such as 512MB or 2GiB.", metavar="SIZE", panel=_RUN,
        common=True)
    dask: str | None = shared_option(
        None, "Count on the workers of a Dask cluster: the address of its scheduler, such as "
        "tcp://host:8786; scheduler-file:PATH; or local:N for N worker processes here. --workers "
        "and --memory are then those of each worker.", metavar="ADDRESS", panel=_RUN)
    # fmt: on

    def __post_init__(self) -> None:
        super().__post_init__()
        parse_memory(self.memory)

    def run(self, **settings: Any) -> RunOptions:
        """Return the options of a run on this machine, with the `settings` of `RunOptions`."""
        return RunOptions(self.workers, parse_memory(self.memory), **settings)


@documented
@dataclass(frozen=True)
class ResumableOptions(MachineOptions):
    """Machine settings of a run that can be resumed."""

    # fmt: off
    resume: bool = shared_option(
        False, "Continue the same command after an interruption (with -o FILE).", panel=_RUN,
        in_file=False)
    # fmt: on

    def run(self, **settings: Any) -> RunOptions:
        return super().run(resume=self.resume, **settings)


@dataclass
class RunOptions:
    """Machine settings of a run, and the outputs that it leaves."""

    workers: int | None = None
    memory: int = 512 * 10**6
    states: str | Path | None = None
    progress: Progress = field(default_factory=Silent)
    resume: bool = False
    cut: CutOptions | None = None
    cluster: Cluster | None = None

    def __post_init__(self) -> None:
        """Raise `UsageError` for a number of workers that is not allowed."""
        MachineOptions(workers=self.workers)

    def threads(self) -> int:
        """Return the number of threads."""
        return usable_cpus() if self.workers is None else self.workers


def usable_cpus() -> int:
    """Return the number of CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
