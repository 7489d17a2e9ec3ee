"""The use case `warmup`: run commands on small inputs, so that their kernels are compiled."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

from uqeval.disk.locks import temporary
from uqeval.errors import OutputError, UsageError, cut
from uqeval.usecases.compiling import compiling_ahead
from uqeval.usecases.warmup.recipes import command_lines

_VARIABLE = "NUMBA_CACHE_DIR"


@dataclass(frozen=True)
class Warmup:
    """The kernels of a command: those compiled now, and those from the cache.

    A kernel counts once for each combination of dtypes.
    """

    command: str
    compiled: int
    loaded: int
    seconds: float


def check_cache_folder() -> None:
    """Raise `OutputError` if compiled kernels cannot be saved, `UsageError` if none are compiled.

    Creates the folder `NUMBA_CACHE_DIR`.
    """
    from uqeval.kernels import _jit

    if _jit.IS_INTERPRETED:
        raise UsageError(
            "NUMBA_DISABLE_JIT is set, so nothing is compiled. Unset it: env -u NUMBA_DISABLE_JIT "
            "uqeval warmup"
        )
    if (folder := os.environ.get(_VARIABLE)) is None:
        import uqeval.kernels.samples  # noqa: F401  # any kernel tells the folder

        folders = _jit.cache_folders()
        if folders and not any(folders.values()):
            raise OutputError(
                f"no folder for compiled loops is writable: neither {cut(next(iter(folders)))} "
                "nor a folder in your home. Name a writable folder: NUMBA_CACHE_DIR=DIR uqeval "
                "warmup"
            )
        return
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise OutputError(
            f"{_VARIABLE}={cut(folder)}: cannot be written: {error.strerror or error}. Expected a "
            "folder to which compiled loops can be saved. Name a writable folder: "
            f"{_VARIABLE}=DIR uqeval warmup"
        ) from error


def warm_up(commands: Sequence[str], run: Callable[[Sequence[str]], None]) -> list[Warmup]:
    """Run each command on small inputs of all dtypes; `run` runs one command line.

    Raises `OutputError` if a kernel cannot be saved.
    """
    from uqeval.kernels import _jit, _saved
    from uqeval.usecases.warmup.data import write_inputs

    results: list[Warmup] = []
    known: set[str] = set()
    # This process compiles all kernels, so that the results count them.
    with compiling_ahead((), 1), temporary() as folder:
        out = folder / "out"
        out.mkdir()
        write_inputs(folder)
        with chdir(folder):
            for command in commands:
                began, (compiled, loaded) = time.perf_counter(), _jit.compiled_and_loaded()
                for line in command_lines(command):
                    if line not in known:
                        known.add(line)
                        run(line.format(out=out).split())
                        _check_saved(_saved.NOT_SAVED)
                now = _jit.compiled_and_loaded()
                seconds = time.perf_counter() - began
                results.append(Warmup(command, now[0] - compiled, now[1] - loaded, seconds))
    return results


def _check_saved(errors: Sequence[OSError]) -> None:
    if errors:
        error = errors[0]
        place = os.environ.get(_VARIABLE) or error.filename or "the cache"
        raise OutputError(
            f"{cut(place)}: a compiled loop cannot be saved: {error.strerror or error}. Free some "
            f"space, or name another folder: {_VARIABLE}=DIR uqeval warmup"
        )
