"""Compile kernels ahead, in other processes, while an evaluation starts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from uqeval.disk.locks import temporary

if TYPE_CHECKING:
    from uqeval.inputs import Inputs

#: The largest number of processes: more take longer to load than to compile.
_MOST = 3
#: Up to this number of kernels, compiling takes no longer than starting a process.
_FEW = 2
_IS_ACTIVE = Lock()


def evaluations_on(inputs: Inputs, families: Iterable[str]) -> list[str]:
    """Return the names of the evaluations of these families in `kernels.ahead`."""
    arrays = inputs.record["predictions"][0]["arrays"]
    stored = next((f"{name} {array['dtype']}" for name, array in arrays.items()), "")
    return [f"{family} of {stored}" for family in families]


@contextmanager
def compiling_ahead(evaluations: Sequence[str], threads: int) -> Iterator[None]:
    """Let other processes compile the kernels of evaluations inside the context, if several are
    missing.

    All processes together use `threads` cores; with one core, this process compiles all kernels.
    Nested contexts have no effect.
    """
    if not _IS_ACTIVE.acquire(blocking=False):
        yield
        return
    try:
        with ExitStack() as stack:
            count = min(threads - 1, _MOST)
            # The executable of a frozen application is not Python.
            if count > 0 and not getattr(sys, "frozen", False) and _is_needed(evaluations):
                with suppress(OSError):  # no folder for temporary files
                    folder = stack.enter_context(temporary())
                    stack.enter_context(_processes(folder, evaluations, count))
            yield
    finally:
        _IS_ACTIVE.release()


@contextmanager
def _processes(folder: Path, evaluations: Sequence[str], count: int) -> Iterator[None]:
    """Run `count` processes, each of which compiles its part; they lock files in `folder`."""
    from uqeval.kernels import _saved

    _saved.share(folder)
    processes = _started(folder, evaluations, count)
    try:
        yield
    finally:
        _saved.share(None)
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def _started(folder: Path, evaluations: Sequence[str], count: int) -> list[subprocess.Popen[bytes]]:
    quiet, processes = subprocess.DEVNULL, []
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    for part in range(count):
        place = [str(folder), str(part), str(count)]
        arguments = ["-P", "-m", "uqeval.kernels.ahead", *place, *evaluations]
        with suppress(OSError):  # too many processes: this one compiles
            processes.append(
                subprocess.Popen(
                    [sys.executable, *arguments],
                    stdin=quiet, stdout=quiet, stderr=quiet, env=environment,
                )
            )  # fmt: skip
    return processes


def _is_needed(evaluations: Sequence[str]) -> bool:
    """Return whether several kernels are not in the cache, though they could be saved."""
    from uqeval.kernels import _jit, _saved, ahead

    kernels = [] if _jit.IS_INTERPRETED else map(ahead.kernel_named, ahead.needed(evaluations))
    missing = [kernel for kernel in kernels if not _saved.is_cached(kernel)]
    return len(missing) > _FEW and _saved.is_saved(missing[0])
