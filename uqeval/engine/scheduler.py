"""The scheduler: each pass reads every item once for all evaluations of a run.

Threads of this process read the items, or the workers of a cluster.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

from uqeval.arrays import State, np
from uqeval.engine.options import RunOptions, shown_size
from uqeval.errors import UsageError
from uqeval.inputs import Inputs
from uqeval.inputs.opened import last_digits
from uqeval.stores.states.blocks import ItemStates, KnownStates, PackedItems
from uqeval.stores.states.entries import tally_key

if TYPE_CHECKING:
    from uqeval.engine.options import Cluster, MachineOptions
    from uqeval.engine.passes import Items, Turn
    from uqeval.engine.remote import Work
    from uqeval.engine.scratch import Scratch
    from uqeval.maps.contract import MapSource, View
    from uqeval.metrics._evaluation import Passes, TallyResult
    from uqeval.stores.map_cache import MapCache
    from uqeval.stores.states.writer import StatesWriter
    from uqeval.tallies._contract import Tally

#: Minimum bytes for states that are counted together.
_STATES = 64 * 10**6


def cluster_of(
    machine: MachineOptions, client: Any = None
) -> AbstractContextManager[Cluster | None]:
    """Return the cluster of a `distributed.Client` or of `--dask`, for a `with`; None without one.

    Raises `UsageError` if there are both; on entering, if it cannot be reached.
    """
    if client is None and machine.dask is None:
        return nullcontext()
    if client is not None and machine.dask is not None:
        raise UsageError("executor and dask exclude each other; give one of them.")
    from uqeval.engine.dask_cluster import DaskCluster

    return DaskCluster(machine.dask) if client is None else DaskCluster(client, "--executor")


class ClusterExecutor(Protocol):
    """Executor of one run on a cluster. `last_digits`: the digests of its workers."""

    last_digits: set[str]

    def count(self, turn: Turn) -> Generator[Items, None, None]:
        """Yield the states of the items of a turn, in order."""

    def each(
        self, work: Work, batches: Iterable[range] | None = None
    ) -> Generator[tuple[range, Any, int], None, None]:
        """Yield the results of `work` on ranges of items, in order: range, value, bytes read.

        `batches`: the items of each job; by default all items.
        """

    def end(self) -> None:
        """Let the workers close the stores of the run, and delete its maps."""


class Scheduler:
    """Scheduler of all evaluations of a run; counts bytes read, passes and workers."""

    def __init__(
        self,
        inputs: Inputs,
        options: RunOptions,
        states: StatesWriter | None = None,
        cache: MapCache | None = None,
        maps: Collection[str] = (),
        saves_all: bool = False,
    ) -> None:
        """`maps`: names of all maps that the run reads, for workers of a cluster. `saves_all`: also
        save the states of items if the run needs only their total, but totals of shards do not add
        up exactly."""
        self.inputs = inputs
        self.options = options
        self.states = states
        self.cache = cache
        self._saves_all = saves_all
        self.bytes_read = 0
        self.passes = 0
        self.workers = 0
        self._executor: ClusterExecutor | None = (
            None if options.cluster is None else options.cluster.executor(inputs, options, maps)
        )
        self._states = 0
        self._is_read = np.zeros(inputs.source.items, bool)
        self._lock = threading.Lock()

    @property
    def items_reused(self) -> int:
        """Return the number of items whose states or maps come from an earlier run."""
        return int(np.count_nonzero(~self._is_read))

    @property
    def last_digits(self) -> set[str]:
        """Return the digests of exp and log (`reuse.last_digits`) where items were counted."""
        return {last_digits()} if self._executor is None else self._executor.last_digits

    def run(self, passes: Mapping[str, Passes]) -> dict[str, Any]:
        """Count the tallies that the generators request, in passes, and return their results.

        Raises `UqevalError`, after removing all temporary files.
        """
        from uqeval.metrics._driver import LastRequest, Running

        running = Running(passes)
        with self._scratch() as scratch:
            self._check_memory(running.requests, scratch)
            while requests := running.requests:
                group = self._turn(requests)
                over = len(group) == len(requests) and all(
                    type(request) is LastRequest for request in requests.values()
                )
                scratch.keeping = not over
                running.send(self._count(group, requests, scratch), group)
        self.inputs.watch.check_all()
        return {key: running.results[key] for key in passes}

    def run_next(
        self,
        requests: Mapping[str, tuple[Tally, ...]],
        receive: Callable[[Sequence[str], dict[Tally, TallyResult]], None],
    ) -> None:
        """Count the tallies that generators request now, in turns as `run` does.

        `receive` is called after each turn, with the keys of its generators and their counts; only
        those of one turn are in memory. Raises as `run` does.
        """
        remaining = dict(requests)
        with self._scratch() as scratch:
            self._check_memory(remaining, scratch)
            while remaining:
                group = self._turn(remaining)
                scratch.keeping = len(group) < len(remaining)
                receive(group, self._count(group, remaining, scratch))
                remaining = {key: own for key, own in remaining.items() if key not in group}
        self.inputs.watch.check_all()

    @contextmanager
    def _scratch(self) -> Iterator[Scratch]:
        """Keep maps between passes; at the end, delete them and the memory of chunks."""
        from uqeval.engine.scratch import Scratch
        from uqeval.stores.buffer_pool import CHUNKS

        with ExitStack() as stack:
            stack.callback(CHUNKS.clear)
            if self._executor is not None:
                stack.callback(self._executor.end)
            memory, keeps_maps = self.options.memory // 4, self.inputs.keeps_maps
            watch = self.inputs.watch
            yield stack.enter_context(Scratch(memory, keeps_maps, self.cache, self._reads, watch))

    def _count(
        self, group: Sequence[str], requests: Mapping[str, Sequence[Tally]], scratch: Scratch
    ) -> dict[Tally, TallyResult]:
        tallies = list(dict.fromkeys(t for key in group for t in requests[key]))
        self._check_states({key: requests[key] for key in group})
        self._states = sum(map(_state_bytes, tallies))
        return self._pass(tallies, scratch)

    def _turn(self, requests: Mapping[str, Sequence[Tally]]) -> list[str]:
        """Return the first evaluations whose states fit the memory, at least one.

        Evaluations of many regions, or of many subsets of the samples, are counted in several
        turns, and the maps are kept between turns.
        """
        budget = max(self.options.memory // (1 + self.options.threads()), _STATES)
        names: list[str] = []
        counted_tallies: set[Tally] = set()
        for key, tallies in requests.items():
            new_tallies = set(tallies) - counted_tallies
            budget -= sum(_state_bytes(tally) for tally in new_tallies)
            if names and budget < 0:
                break
            names.append(key)
            counted_tallies |= new_tallies
        return names

    def _check_memory(self, requests: Mapping[str, Sequence[Tally]], scratch: Scratch) -> None:
        """Raise `UsageError` before the first pass for all that is known then to need more memory:
        the counts of each evaluation, and one decoded chunk. The message names the larger need.
        """
        from uqeval.engine.passes import Resources, workers_within

        tallies = list(dict.fromkeys(t for requested in requests.values() for t in requested))
        reads = [(source, kept_maps) for source, _, kept_maps in self._reads_of(tallies, scratch)]
        if reads:
            source, kept_maps = max(reads, key=_bytes_to_read)
            counts = max(map(_bytes_to_count, requests.values()))
            if _bytes_to_read((source, kept_maps)) <= max(self.options.memory, counts):
                self._check_states(requests)
            workers_within(source, Resources(1, self.options.memory), kept_maps)

    def _check_states(self, requests: Mapping[str, Sequence[Tally]]) -> None:
        """Raise `UsageError` before allocating counts of an evaluation that do not fit the
        memory."""
        key, tallies = max(requests.items(), key=lambda request: _bytes_to_count(request[1]))
        need = _bytes_to_count(tallies)
        if need > max(self.options.memory, 2 * _STATES):
            source = self.inputs.source
            over = f" over {source.classes:,} classes" if source.kind == "classes" else ""
            raise UsageError(
                f"--memory {shown_size(self.options.memory)} is too small for the counts of "
                f"{key}{over}, which take {shown_size(need)}. "
                f"Give --memory {shown_size(need)}, or evaluate other metrics."
            )

    def _pass(self, tallies: Sequence[Tally], scratch: Scratch) -> dict[Tally, TallyResult]:
        """Count tallies over all items; one read of a source serves all its views.

        A view with another source is read separately, and its maps are not kept. Checks the memory
        of all reads before the first.
        """
        turns = self._reads_of(tallies, scratch)
        workers = self._workers([(source, scratch) for source, _, scratch in turns])
        results: dict[Tally, TallyResult] = {}
        for job, worker_count in zip(turns, workers, strict=True):
            results |= self._read(*job, worker_count)
        return results

    def _reads_of(
        self, tallies: Sequence[Tally], scratch: Scratch
    ) -> list[tuple[MapSource, list[Tally], Scratch]]:
        """Return the sources to read for some tallies, each with its tallies and kept maps."""
        from uqeval.engine.scratch import Scratch

        shared: list[Tally] = []
        by_view: dict[View, tuple[MapSource, list[Tally]]] = {}
        for tally in tallies:
            view = tally.view.read_as
            if view in by_view:
                by_view[view][1].append(tally)
            elif (source := view.source(self.inputs.source)) is self.inputs.source:
                shared.append(tally)
            else:
                by_view[view] = source, [tally]
        turns = [(self.inputs.source, shared, scratch)] if shared else []
        for source, tallies_of_view in by_view.values():
            source.want(sorted({name for tally in tallies_of_view for name in tally.reads}))
            no_scratch = Scratch(0, False, reads=self._reads, watch=self.inputs.watch)
            turns.append((source, tallies_of_view, no_scratch))
        return turns

    def _workers(self, turns: Sequence[tuple[MapSource, Scratch]]) -> list[int]:
        """Return the number of workers per source. Raises `UsageError` with the needed memory."""
        from uqeval.engine.passes import Resources, workers_within

        # Each worker has its own counts, in addition to the total.
        limit = max(self.options.memory, 2 * _STATES) // max(self._states, 1) - 1
        resources = Resources(max(min(self.options.threads(), limit), 1), self.options.memory)

        if len(turns) > 1:  # if none fits, the message names the one that needs most memory
            largest = max(turns, key=_bytes_to_read)
            workers_within(largest[0], resources, largest[1])
        worker_counts = [workers_within(source, resources, scratch) for source, scratch in turns]
        cluster = self.options.cluster
        if not self.workers:  # workers of the first pass, which reads the store
            self.workers = worker_counts[0] if cluster is None else cluster.workers
        return worker_counts

    def _reads(self, batch: range) -> None:
        self._is_read[batch.start : batch.stop] = True

    def _read(
        self, source: MapSource, tallies: Sequence[Tally], scratch: Scratch, workers: int
    ) -> dict[Tally, TallyResult]:
        """Count tallies of one source's maps over all items."""
        from uqeval.engine.passes import run_pass
        from uqeval.metrics._evaluation import TallyResult

        progress = self.options.progress
        states = self.states
        keys = {tally: tally_key(tally.parameters()) for tally in tallies if states is not None}
        saved = {t for t in keys if self._is_saved(t)}
        cached = {t: self._known_items(t, keys[t]) for t in keys if t in saved}
        cached_totals = {t: self._known_total(t, key) for t, key in keys.items() if t not in saved}
        totals = {t: state for t, state in cached_totals.items() if state is not None}
        missing = [t for t in tallies if t not in totals]
        items = {tally: ItemStates(tally.most_bytes) for tally in tallies}

        def keep(first: int, tally: Tally, packed: PackedItems) -> None:
            if tally.keeps_items:
                items[tally].blocks.append(packed)
            if states is not None and tally in saved:
                states.add(keys[tally], first, packed)

        def advance(nbytes: int, items: int) -> None:
            with self._lock:
                self.bytes_read += nbytes
            progress.advance(nbytes, items)

        self.passes += 1
        progress.begin(f"pass {self.passes}", source.items)
        try:
            retained = [t for t in missing if t.keeps_items or t in saved]
            totals |= run_pass(
                source, scratch, missing, workers, advance, keep, retained, cached,
                self.options.memory, None if self._executor is None else self._executor.count,
            )  # fmt: skip
        finally:
            progress.end()
        for tally in cached_totals:
            assert states is not None
            states.add_total(keys[tally], tally.pack(totals[tally]))
        return {tally: TallyResult(totals[tally], items[tally]) for tally in tallies}

    def _is_saved(self, tally: Tally) -> bool:
        """Return whether the states of a tally are saved by item."""
        if tally.view.items is not None:
            return False  # a slice has other items
        return tally.saved or (self._saves_all and not tally.adds_exactly)

    def _known_items(self, tally: Tally, key: str) -> KnownStates:
        """Return states of a tally by item from an earlier run; `key` is its `tally_key`."""
        assert self.states is not None
        if tally.carries_on and not self.states.unchanged:
            return KnownStates((), 0)  # an item's state depends on the items before it
        return self.states.known(key, tally.most_bytes)

    def _known_total(self, tally: Tally, key: str) -> State | None:
        """Return the total of a tally that is not saved by item, if an earlier run of the same
        unchanged items has counted it.
        """
        assert self.states is not None
        try:
            data = self.states.total(key, tally.most_bytes)
            return None if data is None else tally.load(data)
        except ValueError:  # a damaged state is counted again
            return None


def _state_bytes(tally: Tally) -> int:
    """Return the bytes of a state (8 per number) and of counting it."""
    fields = sum(8 * math.prod(field.shape) for field in tally.fields.values())
    return fields + tally.working_bytes


def _bytes_to_count(tallies: Sequence[Tally]) -> int:
    """Return the bytes of the totals of all items, and of the counts of the current item."""
    return 2 * sum(map(_state_bytes, tallies))


def _bytes_to_read(read: tuple[MapSource, Scratch]) -> int:
    """Return the bytes of one decoded chunk of a source with its accumulators and maps."""
    source, scratch = read
    return max(scratch.batch_bytes(source, batch) for batch in source.batches())
