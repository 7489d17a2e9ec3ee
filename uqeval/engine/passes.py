"""Run passes over all items: read maps, count tallies, merge states in the order of items.

States are merged in the order of items, not of arrival. So the result has the same bits for any
number of workers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, groupby
from typing import TYPE_CHECKING

from uqeval.arrays import Maps, State
from uqeval.engine.counting import Counted, Counting, Total
from uqeval.engine.options import shown_size
from uqeval.engine.scratch import Scratch
from uqeval.errors import UsageError
from uqeval.stores.states.blocks import ItemBlocks, KnownStates, PackedItems
from uqeval.threads import in_order

if TYPE_CHECKING:
    from uqeval.maps.contract import MapSource
    from uqeval.tallies._contract import Tally


@dataclass(frozen=True)
class Resources:
    """Maximum number of workers, and of bytes for their tiles and maps."""

    workers: int
    memory: int


#: Called with the bytes read and items done since the last call.
Progress = Callable[[int, int], None]


def workers_within(
    source: MapSource,
    resources: Resources,
    scratch: Scratch | None = None,
    batches: Sequence[range] | None = None,
) -> int:
    """Return how many workers fit the memory when they read the source or the `scratch`.

    `batches`: the batches that they read, by default all. Raises `UsageError` with the memory of
    one worker if none fits.
    """
    scratch = scratch or Scratch(0, enabled=False)
    batches = source.batches() if batches is None else batches
    need = max(scratch.batch_bytes(source, batch) for batch in batches)
    if need > resources.memory:
        raise UsageError(
            f"--memory {shown_size(resources.memory)} is too small for one decoded chunk of "
            f"{source.where} with its accumulators and maps, which takes {shown_size(need)}. Give "
            f"--memory {shown_size(need)}, or evaluate fewer metrics, or store smaller chunks "
            "(`uqeval convert` rewrites a store)."
        )
    return max(1, min(resources.workers, resources.memory // max(need, 1), len(batches)))


#: The index of the first of consecutive items, and their states by tally.
Items = tuple[int, list[Counted]]


@dataclass(frozen=True)
class Turn:
    """One read of a source: the tallies to count, and the cache of maps.

    `workers` threads take `memory` bytes together. `batches`: the parts of the source to read;
    `blocks`: the items that are counted and saved together.
    """

    source: MapSource
    scratch: Scratch
    counting: Counting
    workers: int
    memory: int
    progress: Progress
    batches: Sequence[range]
    blocks: ItemBlocks

    @property
    def names(self) -> set[str]:
        """Return the maps that its tallies read."""
        return {name for tally in self.counting.tallies for name in tally.reads}


def blocks_of(source: MapSource) -> ItemBlocks:
    """Return the blocks of items that are counted and saved together."""
    return ItemBlocks(map(source.size, range(source.items)), source.classes)


#: Counts the items of a turn: yields their states in order, by `counting.apart`.
Executor = Callable[[Turn], Generator[Items, None, None]]


def run_pass(
    source: MapSource,
    scratch: Scratch,
    tallies: Sequence[Tally],
    workers: int,
    progress: Progress,
    keep: Callable[[int, Tally, PackedItems], None],
    retained: Collection[Tally] | None = None,
    cached: Mapping[Tally, KnownStates] | None = None,
    memory: int = 0,
    executor: Executor | None = None,
) -> dict[Tally, State]:
    """Count `tallies` over all items; return their totals.

    `keep` gets packed states, and the number of the first item; only of the `retained` tallies if
    given. `cached`: states of an earlier run. Does not read a batch with all states cached. If the
    state of an item depends on the items before, uses the cache for all batches or none. Batches
    of small items are read together within `memory` bytes of all workers. `executor`: who counts,
    by default threads of this process.
    """
    retained = tallies if retained is None else retained
    cached = {} if cached is None else cached
    counting = Counting(tallies, retained, cached)
    carries_on = any(tally.carries_on for tally in tallies)
    batches = source.batches()
    blocks = blocks_of(source)
    if carries_on and any(
        counting.known_of(range(job[0].start, job[-1].stop)) is None
        for job in _jobs(batches, blocks)
    ):
        counting = Counting(tallies, retained, {})
    turn = Turn(source, scratch, counting, workers, memory, progress, batches, blocks)
    totals = {tally: Total(tally) for tally in counting.apart}
    with closing((executor or count_in_threads)(turn)) as results:
        for first, counted in results:
            for tally, (states, packed) in zip(counting.apart, counted, strict=True):
                if states is not None:
                    totals[tally].fold_items(states)
                if packed is not None:
                    keep(first, tally, packed)
    totals |= counting.together()
    for tally, total in counting.totals.items():
        totals[tally].merge(total)
    return {tally: total.state() for tally, total in totals.items()}


def count_in_threads(turn: Turn) -> Generator[Items, None, None]:
    """Count the items of a turn in threads of this process."""
    source, scratch, counting, names = turn.source, turn.scratch, turn.counting, turn.names
    blocks = turn.blocks
    #: Keeps a frame of a video until both of its pairs have used it.
    skip: Callable[[range], None] = getattr(source, "skip", lambda _: None)
    #: Each pass reads a video in order, from its first pair; a job of a cluster reads its part.
    begin: Callable[[range], None] = getattr(source, "begin", lambda _: None)
    begin(range(turn.batches[0].start, turn.batches[-1].stop))
    if scratch.reads_again(source):
        source.need(names)

    def may_be_known(batch: range) -> bool:
        return scratch.has_cache or counting.is_cached(batch)

    def work(batches: Sequence[range], check: Callable[[], None]) -> list[Items]:
        def heartbeat(nbytes: int) -> None:
            check()
            turn.progress(nbytes, 0)

        results: list[Items] = []
        waiting = _Waiting(counting, blocks, results)

        def take_known(items: range) -> bool:
            """Take the cached states of some items; return False if there are not all."""
            known = [(i[0], counting.known_of(i)) for i in blocks.split(items)]
            states = [(first, counted) for first, counted in known if counted is not None]
            if len(states) < len(known):
                return False
            check()
            skip(items)
            waiting.count()
            results.extend(states)
            turn.progress(0, len(items))
            return True

        if not counting.wants(job := range(batches[0].start, batches[-1].stop)):
            skip(job)
            turn.progress(0, len(job))
            return [(job.start, counting.nothing())]
        for is_known, group in groupby(batches, counting.is_cached):
            run = list(group)
            # A block of saved states is unpacked once for all of its items.
            if is_known and take_known(range(run[0].start, run[-1].stop)):
                continue
            for batch in _joined(run, source, turn.memory // turn.workers, may_be_known):
                if not is_known or not take_known(batch):
                    waiting.add_all(batch, scratch.read(source, batch, heartbeat, names))
                    turn.progress(0, len(batch))
        waiting.count()
        return results

    with closing(in_order(work, _jobs(turn.batches, blocks), turn.workers)) as results:
        yield from chain.from_iterable(result for _, result in results)


class _Waiting:
    """Queue of items of one block, which are counted together."""

    def __init__(self, counting: Counting, blocks: ItemBlocks, results: list[Items]) -> None:
        self._counting, self._blocks, self._results = counting, blocks, results
        self._first = 0
        self._maps: Sequence[Maps] = []

    def add_all(self, items: range, maps: Sequence[Maps]) -> None:
        """Queue items; count all queued items after the last item of a block."""
        for part in self._blocks.split(items):
            own = maps[part.start - items.start : part.stop - items.start]
            if not self._maps:
                self._first, self._maps = part.start, own
            else:
                self._maps = [*self._maps, *own]
            if part.stop == self._blocks.of(part.start).stop:
                self.count()

    def count(self) -> None:
        """Count the queued items."""
        if self._maps:
            self._results.append((self._first, self._counting.states_of(self._maps, self._first)))
        self._maps = []


def _joined(
    batches: Sequence[range], source: MapSource, most_bytes: int, is_alone: Callable[[range], bool]
) -> list[range]:
    """Return the batches; join those that are faster to read together, up to a number of bytes.

    A batch that `is_alone` is not joined, because it may not have to be read.
    """
    joined: list[range] = []
    joins = False
    for batch in batches:
        was, joins = joins, not is_alone(batch)
        joined_batch = range(joined[-1].start, batch.stop) if was and joins else batch
        if (
            was
            and joins
            and source.joins(joined_batch)
            and source.batch_bytes(joined_batch) <= most_bytes
        ):
            joined[-1] = joined_batch
        else:
            joined.append(batch)
    return joined


def _jobs(batches: Sequence[range], blocks: ItemBlocks) -> Iterator[list[range]]:
    """Yield the batches of one job, which a worker reads in order: those with items of one block,
    or a single one.
    """
    job: list[range] = []
    for batch in batches:
        if job and not (batch.start == job[-1].stop and batch.start in blocks.of(job[0].start)):
            yield job
            job = []
        job.append(batch)
    if job:
        yield job
