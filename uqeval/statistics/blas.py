"""Limit the threads of NumPy's linear algebra library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

_lock = Lock()
_limits: list[Any] = []
_users = 0


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Restrict matrix products of the process to the calling thread inside the context.

    Threads of ours score blocks of sets. If each started threads of the library, all would wait for
    each other. The last thread to leave the context restores the number.
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
