"""Run passes over all items: read maps, count tallies, merge states in the order of items.

Only this module starts threads. It hands out batches and merges their states in the order of items,
not of arrival. So the result has the same bits for any number of workers.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from uqeval.engine.counting import Counting
from uqeval.engine.scratch import Scratch
from uqeval.engine.sizes import shown_size
from uqeval.errors import UsageError

if TYPE_CHECKING:
    from uqeval.engine.counting import Found
    from uqeval.maps.contract import MapSource
    from uqeval.tallies import Tally
    from uqeval.tallies._contract import State


Result = TypeVar("Result")


class Stopped(Exception):
    """Signal to a worker that the run ends early."""


@dataclass(frozen=True)
class Resources:
    """Maximum number of workers, and of bytes for their tiles and maps."""

    workers: int
    memory: int


#: Told what has happened: bytes read, and items done.
Progress = Callable[[int, int], None]


def workers_within(source: MapSource, resources: Resources, scratch: Scratch | None = None) -> int:
    """Return how many workers fit the memory when they read the source or the `scratch`.

    Raises `UsageError` with the memory of one worker if none fits.
    """
    scratch = scratch or Scratch(0, enabled=False)
    need = max(scratch.batch_bytes(source, batch) for batch in source.batches())
    if need > resources.memory:
        raise UsageError(
            f"--memory {shown_size(resources.memory)} does not hold one decoded chunk of "
            f"{source.where} with its accumulators and maps, which takes {shown_size(need)}. Give "
            f"--memory {shown_size(need)}, or store smaller chunks (`uqeval convert` rewrites a "
            "store)."
        )
    return max(1, min(resources.workers, resources.memory // max(need, 1), len(source.batches())))


def in_order(
    batches: Sequence[range], work: Callable[[range, Callable[[], None]], Result], workers: int
) -> Generator[tuple[range, Result], None, None]:
    """Yield the results of `work` on each batch in order, computed by several threads.

    At most `workers + 1` results wait. `work` gets a function to call now and then, which raises
    once the iteration has ended early.
    """
    stopping = threading.Event()

    def check() -> None:
        if stopping.is_set():
            raise Stopped

    pending: deque[tuple[range, Future[Result]]] = deque()
    remaining = iter(batches)
    with ThreadPoolExecutor(workers, thread_name_prefix="uqeval") as pool:
        try:
            while True:
                while len(pending) < workers + 1 and (batch := next(remaining, None)) is not None:
                    pending.append((batch, pool.submit(work, batch, check)))
                if not pending:
                    return
                batch, future = pending.popleft()
                yield batch, future.result()
        finally:
            stopping.set()
            for _, future in pending:
                future.cancel()


def run_pass(
    source: MapSource,
    scratch: Scratch,
    tallies: Sequence[Tally],
    workers: int,
    progress: Progress,
    keep: Callable[[int, Tally, bytes], None],
    retained: Collection[Tally] | None = None,
    cached: Mapping[Tally, Mapping[int, bytes]] | None = None,
) -> dict[Tally, State]:
    """Count `tallies` over all items; return their totals.

    `keep` gets the packed state of each item, only of the `retained` tallies if given. `cached`:
    packed states by item from an earlier run. Does not read a batch with all states cached. If the
    state of an item depends on the items before, uses the cache for all batches or none.
    """
    retained = tallies if retained is None else retained
    cached = {} if cached is None else cached

    #: Keeps a frame of a video until both of its pairs have used it.
    skip: Callable[[range], None] = getattr(source, "skip", lambda _: None)

    names = {name for tally in tallies for name in tally.reads}
    if scratch.reads_again(source):
        source.need(names)

    counting = Counting(tallies, retained, cached)
    carries_on = any(tally.carries_on for tally in tallies)
    if carries_on and any(counting.known_of(batch) is None for batch in source.batches()):
        counting = Counting(tallies, retained, {})

    def work(batch: range, check: Callable[[], None]) -> list[list[Found]]:
        def heartbeat(nbytes: int) -> None:
            check()
            progress(nbytes, 0)

        states = counting.known_of(batch)
        if states is not None:
            check()
            skip(batch)
        else:
            maps_of_batch = scratch.read(source, batch, heartbeat, names)
            states = [counting.states_of(maps) for maps in maps_of_batch]
        progress(0, len(batch))
        return states

    totals = {tally: tally.empty() for tally in counting.apart}
    with closing(in_order(source.batches(), work, workers)) as results:
        for batch, result in results:
            for item, states in zip(batch, result, strict=True):
                for tally, (thin, data) in zip(counting.apart, states, strict=True):
                    tally.fold(totals[tally], thin)
                    if data is not None:
                        keep(item, tally, data)
    return totals | counting.together()
