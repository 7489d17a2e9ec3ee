"""A gate that lets threads pass in the order of their items."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Seconds between two looks at whether the run has been abandoned.
_PATIENCE = 0.1


class ItemOrder:
    """Item 0 first, then 1, …, whichever thread arrives first.

    Work is handed out in the order of items, so the thread that is waited for is always at work. If
    it fails it never comes out, and those that wait are called off by `check`.
    """

    def __init__(self) -> None:
        self._next = 0
        self._moved = threading.Condition()

    @contextmanager
    def turn(self, item: int, check: Callable[[], None]) -> Iterator[None]:
        """Wait until all items before `item` are done; then let the next item start.

        Item 0 begins anew. `check` is called while waiting, and raises to give up.
        """
        with self._moved:
            if item == 0:
                self._next = 0
            while self._next != item:
                self._moved.wait(_PATIENCE)
                check()
        yield
        with self._moved:
            self._next = item + 1
            self._moved.notify_all()
