"""Waiting for what is not there yet."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from uqeval.errors import StoreError

T = TypeVar("T")

#: Seconds of waiting for something that is damaged or missing before anybody is told.
_SILENT = 2.0


@dataclass(frozen=True)
class Patience:
    """Whether and how long to wait for what is not there yet, in seconds.

    Looks every `poll`; gives up after `timeout`, None: never. `tell` is told what is waited for.
    """

    follow: bool = False
    poll: float = 0.2
    timeout: float | None = None
    tell: Callable[[str], None] = lambda _: None

    def wait_for(self, attempt: Callable[[], T | None]) -> T | None:
        """What `attempt` gives, None if it gives nothing in time.

        A `StoreError` that it raises is raised here once there is nothing to wait for.
        """
        began, warned = time.monotonic(), False
        while True:
            try:
                if (result := attempt()) is not None or not self.follow:
                    return result
                error = None
            except StoreError as caught:
                if not self.follow:
                    raise
                error = caught
            waited = time.monotonic() - began
            if self.timeout is not None and waited >= self.timeout:
                if error is not None:
                    raise error
                return None
            if error is not None and waited > _SILENT and not warned:
                warned = True
                self.tell(f"waiting: {error}")
            time.sleep(self.poll)
