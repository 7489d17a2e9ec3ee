"""Wait for inputs that do not exist yet."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from uqeval.errors import StoreError

T = TypeVar("T")

#: Seconds before a message about a damaged or missing input.
_SILENT = 2.0


@dataclass(frozen=True)
class Patience:
    """How long to wait for missing inputs, in seconds.

    Checks every `poll` seconds. Stops waiting after `timeout` (None: never). `tell` is called with
    a message about the missing input.
    """

    follow: bool = False
    poll: float = 0.2
    timeout: float | None = None
    tell: Callable[[str], None] = lambda _: None

    def wait_for(self, attempt: Callable[[], T | None]) -> T | None:
        """Return the result of `attempt`; None if it returns nothing in time.

        Raises the `StoreError` of `attempt` once waiting is over.
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
