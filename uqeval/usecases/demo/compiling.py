"""Compile ahead of the demo: a second process evaluates two of its stores, whose loops it saves.

Numba compiles one loop at a time in a process. With a second one, the first run of the demo takes
about half as long on two cores. `python -m uqeval.usecases.demo.compiling FOLDER` is that process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def compiling_ahead(home: Path, workers: int | None) -> Iterator[None]:
    """Run the second process meanwhile, if loops are not compiled and there is a core for it."""
    if workers == 1 or (os.cpu_count() or 1) < 2 or not _is_needed():
        yield
        return
    arguments = [sys.executable, "-m", __name__, str(home)]
    quiet, process = subprocess.DEVNULL, None
    with suppress(OSError):  # too many processes: this one compiles all
        process = subprocess.Popen(arguments, stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        yield
    finally:
        if process is not None:
            process.terminate()
            process.wait()


def _is_needed() -> bool:
    """Return whether a loop of each store is not in the cache, though it could be saved."""
    from uqeval.kernels import _jit, ratios, warping

    loops = [ratios.look_at_item, warping.count_pair]
    return not any(map(_jit.is_cached, loops)) and all(map(_jit.is_saved, loops))


def evaluate_stores(home: Path) -> None:
    """Evaluate the film and the depth of a demo, and keep nothing but the compiled loops."""
    from uqeval import evaluate

    evaluate(None, None, {"tc": {"flow": "dis"}}, video=str(home / "film"), workers=1)
    evaluate(str(home / "depth.npz"), metrics="all", workers=1)


if __name__ == "__main__":
    evaluate_stores(Path(sys.argv[1]))
