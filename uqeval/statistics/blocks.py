"""Score many sets in blocks of rows, by several threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from uqeval.statistics.blas import one_blas_thread

#: The largest number of threads. Each scores one block at a time.
_THREADS = 4


def in_blocks(
    score: Callable[[Any, slice], None], tasks: Sequence[tuple[Any, int]], sets: int
) -> None:
    """Call `score(task, rows)` for all blocks of rows of each task.

    `tasks`: the tasks, and the number of sets in a block of each. `sets`: the number of sets."""
    calls = [
        (task, slice(first, first + step)) for task, step in tasks for first in range(0, sets, step)
    ]
    with one_blas_thread():
        if len(calls) == 1:
            score(*calls[0])
            return
        with ThreadPoolExecutor(min(os.cpu_count() or 1, _THREADS)) as pool:
            list(pool.map(lambda call: score(*call), calls))
