"""Score many sets in blocks of rows, by several threads, each with one thread of the linear algebra
library.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from threading import Lock, local
from typing import Any, TypeVar

from uqeval.threads import Threads

T = TypeVar("T")
U = TypeVar("U")

#: The largest number of threads. Each scores one block at a time.
_THREADS = 4


class _Share(local):
    """The number of threads that the current thread may use, itself included."""

    threads = min(os.cpu_count() or 1, _THREADS)


_share = _Share()
_lock = Lock()
_limits: list[Any] = []
_users = 0


def in_blocks(
    score: Callable[[Any, slice], None], tasks: Sequence[tuple[Any, int]], sets: int
) -> None:
    """Call `score(task, rows)` for all blocks of rows of each task.

    `tasks`: the tasks, and the number of sets in a block of each. `sets`: the number of sets."""
    calls = [
        (task, slice(first, first + step)) for task, step in tasks for first in range(0, sets, step)
    ]
    with one_blas_thread():
        in_threads(lambda call: score(*call), calls)


def in_threads(work: Callable[[T], U], jobs: Sequence[T]) -> list[U]:
    """Return `work(job)` of all jobs, computed by several threads. A single job starts none.

    Jobs that call this function share the threads: there are never more than `_THREADS`.
    """
    threads = min(_share.threads, len(jobs))
    if threads < 2:
        return [work(job) for job in jobs]
    share = _share.threads // threads

    def begin() -> None:
        _share.threads = share

    with Threads(threads, begin=begin) as pool:
        return pool.map(work, jobs)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Restrict matrix products of the process to the calling thread inside the context.

    uqeval scores blocks of sets in its own threads. If each started threads of the library, all
    would wait for each other. The last thread to leave the context restores the number.
    """
    global _users
    with _lock:
        if not _users:
            _limits.append(_libraries().limit(limits=1, user_api="blas"))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                _limits.pop().restore_original_limits()


@cache
def _libraries() -> Any:
    """Return the libraries that are loaded."""
    import numpy  # noqa: F401 - loads its library
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
