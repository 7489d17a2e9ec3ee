"""Passes over all items: read maps, tally them, fold the states in the order of items.

Threads belong here. Work is handed out batch by batch and folded in order of items, never in order
of arrival, so that the result has the same bits for any number of workers.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from uqeval.engine.scratch import Scratch
from uqeval.errors import UsageError

if TYPE_CHECKING:
    from uqeval.maps.sources import Source
    from uqeval.tallies import Tally
    from uqeval.tallies._contract import State


class Stopped(Exception):
    """Work was abandoned because the run ends early."""


@dataclass(frozen=True)
class Resources:
    """How many workers at most, and how many bytes of tiles and maps they may hold together."""

    workers: int
    memory: int


#: Told what has happened: bytes read, and items done.
Progress = Callable[[int, int], None]


def workers_within(source: Source, resources: Resources) -> int:
    """How many workers fit the memory. Raises `UsageError` where one does not, with what it needs."""
    largest = max(source.batches(), key=source.batch_bytes)
    need = source.batch_bytes(largest)
    if need > resources.memory:
        raise UsageError(
            f"--memory {_mb(resources.memory)} does not hold one decoded chunk of {source.where} "
            f"with its accumulators and maps, which takes {_mb(need)}. Give --memory {_mb(need)}, "
            "or store smaller chunks (`uqeval convert` rewrites a store)."
        )
    return max(1, min(resources.workers, resources.memory // max(need, 1), len(source.batches())))


def run_pass(
    source: Source,
    scratch: Scratch,
    tallies: Sequence[Tally],
    workers: int,
    progress: Progress,
    keep: Callable[[int, Tally, bytes], None],
) -> dict[Tally, State]:
    """Count `tallies` over all items; returns their totals, and gives each item's state to `keep`."""
    stopping = threading.Event()

    def heartbeat(nbytes: int) -> None:
        if stopping.is_set():
            raise Stopped
        progress(nbytes, 0)

    def work(batch: range) -> list[list[bytes]]:
        found = scratch.read(source, batch, heartbeat)
        packed = [[tally.pack(tally.state_of(maps)) for tally in tallies] for maps in found]
        progress(0, len(batch))
        return packed

    totals = {tally: tally.empty() for tally in tallies}
    pending: deque[tuple[range, Future[list[list[bytes]]]]] = deque()
    remaining = iter(source.batches())
    with ThreadPoolExecutor(workers, thread_name_prefix="uqeval") as pool:
        try:
            while True:
                while len(pending) < workers + 1 and (batch := next(remaining, None)) is not None:
                    pending.append((batch, pool.submit(work, batch)))
                if not pending:
                    return totals
                batch, future = pending.popleft()
                for item, states in zip(batch, future.result(), strict=True):
                    for tally, data in zip(tallies, states, strict=True):
                        tally.merge(totals[tally], tally.unpack(data))
                        keep(item, tally, data)
        finally:
            stopping.set()
            for _, future in pending:
                future.cancel()


def _mb(n: int) -> str:
    return f"{-(-n // 10**6)}MB"
