"""Jobs of a pass on a cluster: the items of each, and its results."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uqeval.engine.passes import Items, Turn
    from uqeval.engine.remote import Counts, Done
    from uqeval.maps.contract import MapSource

#: The smallest number of jobs per worker in a pass, so that all workers end at about the same time;
#: the largest number of bytes that a job of several items reads; and the number of jobs in a pass
#: above which jobs are larger, because the scheduler takes some milliseconds for each.
_JOBS_A_WORKER, _MOST_BYTES, _MANY_JOBS = 8, 256 * 10**6, 10_000


@dataclass(frozen=True)
class Known:
    """States of an earlier run, which need no job."""

    states: list[Items]


def jobs_of(
    source: MapSource, workers: int, ends: Collection[int] | None = None
) -> Iterator[range]:
    """Yield the items of each job in order: whole batches, and up to one of the `ends`."""
    stops = {batch.stop for batch in source.batches()}
    stops = stops if ends is None else stops & set(ends)
    most = -(-source.items // (_JOBS_A_WORKER * max(workers, 1)))
    least = source.items // _MANY_JOBS
    start = last = 0
    for stop in sorted({*stops, source.items}):
        is_full = stop - start > most or (
            stop - start > least and source.batch_bytes(range(start, stop)) > _MOST_BYTES
        )
        if is_full and last > start:
            yield range(start, last)
            start = last
        last = stop
    if last > start:
        yield range(start, last)


def known(turn: Turn, items: range) -> Known | None:
    """Return states of an earlier run, if all items have some."""
    blocks = [(block[0], turn.counting.known_of(block)) for block in turn.blocks.split(items)]
    known_blocks = [(first, states) for first, states in blocks if states is not None]
    return Known(known_blocks) if len(known_blocks) == len(blocks) else None


def received(turn: Turn, items: range, done: Done) -> Iterator[Items]:
    """Yield the states that a worker has counted, and add up its totals."""
    counts: Counts = done.value
    if counts.is_read:
        turn.scratch.reads(items)
    turn.scratch.not_cached.update(done.not_cached)
    turn.progress(done.nbytes, len(items))
    counting = turn.counting
    counting.add_totals({counting.tallies[n]: total for n, total in counts.totals.items()})
    for first, packed in counts.states:
        yield first, counting.received(dict(zip(counting.sent, packed, strict=True)))
