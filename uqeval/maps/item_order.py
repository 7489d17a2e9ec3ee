"""A gate that lets threads pass in the order of their items."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Seconds between checks whether the run has ended.
_PATIENCE = 0.1


class ItemOrder:
    """Lets threads process items in order: `first`, `first` + 1, …

    Items are assigned in order, so the thread that others wait for is always running. If it fails,
    `check` raises in the threads that wait.
    """

    def __init__(self, first: int = 0) -> None:
        self._next = first
        self._moved = threading.Condition()

    @contextmanager
    def turn(self, item: int, check: Callable[[], None]) -> Iterator[None]:
        """Wait until all items before `item` are done; at the end, release the next item.

        `check` is called while waiting, and raises to stop.
        """
        with self._moved:
            while self._next != item:
                self._moved.wait(_PATIENCE)
                check()
        yield
        with self._moved:
            self._next = item + 1
            self._moved.notify_all()
