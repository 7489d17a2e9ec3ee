"""Work on some items in another process: the code of a worker, for any kind of cluster.

A worker opens the stores itself. It keeps the maps of items that it has read for later passes;
other workers read these items again. It sends packed states, never maps.
"""

from __future__ import annotations

import platform
import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

from uqeval import errors
from uqeval.engine.counting import Counting, Total
from uqeval.engine.passes import Resources, Turn, blocks_of, count_in_threads, workers_within
from uqeval.engine.scratch import Scratch
from uqeval.errors import ChangedError, UqevalError, UsageError, cut
from uqeval.inputs import Inputs
from uqeval.inputs.opened import Recipe, last_digits, map_cache_of, stamps_of
from uqeval.inputs.opening import open_again
from uqeval.stores.states.blocks import ItemBlocks, PackedItems
from uqeval.tallies._contract import Tally

#: Packages on which the bits of results or the messages between processes depend.
_DISTRIBUTIONS = (
    "uqeval", "numpy", "numba", "zarr", "numcodecs", "opencv-python-headless", "dask",
    "distributed",
)  # fmt: skip

#: The number of runs whose maps a worker keeps; maps of other runs are made again.
_MOST_RUNS = 4


@cache
def _versions() -> tuple[tuple[str, str], ...]:
    by_package = {"python": platform.python_version()}
    for name in _DISTRIBUTIONS:
        try:
            by_package[name] = version(name)
        except PackageNotFoundError:
            by_package[name] = "not installed"
    return tuple(by_package.items())


def versions() -> dict[str, str]:
    """Return the versions of Python and of these packages in this process."""
    return dict(_versions())


@dataclass(frozen=True)
class Run:
    """Settings that all jobs of a run share.

    `maps`: names of all maps of the run. `workers`: threads of one worker, `memory` its bytes for
    tiles and maps. `fingerprint`: of the stores as the client sees them.
    """

    id: str
    recipe: Recipe
    maps: tuple[str, ...]
    workers: int | None
    memory: int
    fingerprint: str
    versions: Mapping[str, str]


class Work(Protocol):
    """The work on the items of a job, which the client sends to a worker."""

    def __call__(self, opened: Opened) -> Any:
        """Return the result, which is sent to the client. Raises `UqevalError`."""


@dataclass(frozen=True)
class Job:
    """Some items of a run, and the work to do."""

    run: Run
    items: range
    work: Work


@dataclass
class Opened:
    """The stores of a run, opened by a worker, and the `batches` of them that a job reads.

    `scratch` keeps maps; `workers` threads may take `memory` bytes together. `blocks`: the items
    that are counted together.
    """

    inputs: Inputs
    scratch: Scratch
    items: range
    batches: Sequence[range]
    blocks: ItemBlocks
    workers: int
    memory: int
    nbytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def advance(self, nbytes: int, items: int) -> None:
        """Count bytes that are read; several threads call it."""
        with self._lock:
            self.nbytes += nbytes


@dataclass(frozen=True)
class Done:
    """The result of a job; `nbytes`: the bytes that it read.

    `last_digits`: those of exp and log on the worker. `flow_seconds`: the time of the flow of a
    video. `not_cached`: items whose maps the cache refused.
    """

    value: Any
    nbytes: int
    last_digits: str
    flow_seconds: Mapping[str, float] = field(default_factory=dict)
    not_cached: Collection[int] = ()


@dataclass(frozen=True)
class Failed:
    """An error that ended a job: the name of its class, and its message."""

    kind: str
    message: str

    def error(self, where: str) -> UqevalError:
        """Return the error for the client; its message starts with `where`."""
        kind = getattr(errors, self.kind, UqevalError)
        is_ours = isinstance(kind, type) and issubclass(kind, UqevalError)
        return (kind if is_ours else UqevalError)(f"{where}: {self.message}")


class _RunState:
    """The state of one run in a worker: opened inputs and their maps."""

    def __init__(self, inputs: Inputs, scratch: Scratch) -> None:
        self.inputs, self.scratch = inputs, scratch
        self._batches = inputs.source.batches()
        self._starts = [batch.start for batch in self._batches]
        self.blocks = blocks_of(inputs.source)

    def batches(self, items: range) -> Sequence[range]:
        """Return the batches of some items."""
        first, stop = (bisect_left(self._starts, item) for item in (items.start, items.stop))
        return self._batches[first:stop]

    def close(self) -> None:
        self.scratch.__exit__()


_runs: OrderedDict[str, _RunState] = OrderedDict()
#: One job at a time, because each job has its own threads.
_busy = threading.Lock()


def run_job(job: Job, threads: int = 1) -> Done | Failed:
    """Run a job with `threads` threads, unless the run has a number of workers."""
    with _busy:
        try:
            return _do(job, threads)
        except UqevalError as error:
            return Failed(type(error).__name__, str(error))
        except (OSError, MemoryError) as error:  # the disk or the memory of this machine
            return Failed("ClusterError", f"{type(error).__name__}: {cut(error)}")


def close_run(run: str) -> None:
    """Close the stores of a run, and delete its maps."""
    with _busy:
        if (opened := _runs.pop(run, None)) is not None:
            opened.close()


def _do(job: Job, threads: int) -> Done:
    run = job.run
    if (different := differences(run.versions)) != "":
        raise UsageError(f"other versions than the client's: {different}. Install the same.")
    cached = _run_state(run)
    opened = Opened(
        cached.inputs, cached.scratch, job.items, cached.batches(job.items), cached.blocks,
        run.workers or threads, run.memory,
    )  # fmt: skip
    before = dict(cached.inputs.flow_seconds or {})
    with cached.inputs.session():
        value = job.work(opened)
    after = cached.inputs.flow_seconds or {}
    seconds = {name: total - before.get(name, 0.0) for name, total in after.items()}
    not_cached = cached.scratch.not_cached.intersection(job.items)
    return Done(value, opened.nbytes, last_digits(), seconds, not_cached)


@dataclass(frozen=True)
class Counts:
    """The counts of a job.

    `totals`: by number of the tally, for tallies that add up exactly. `states`: the first of
    consecutive items, and their states of the `sent` tallies, None where the view of a tally has
    none of the items. `is_read`: the items were read, not taken from maps of an earlier pass.
    """

    totals: dict[int, bytes]
    states: list[tuple[int, list[PackedItems | None]]]
    is_read: bool


@dataclass(frozen=True)
class CountTallies:
    """Counts tallies of one source. Sends the states of items of the `sent` tallies, and totals of
    the others.

    `keeping`: later passes need the maps.
    """

    tallies: tuple[Tally, ...]
    sent: tuple[Tally, ...]
    keeping: bool

    def __call__(self, opened: Opened) -> Counts:
        """Return the states of the items."""
        inputs, scratch = opened.inputs, opened.scratch
        batches, blocks = opened.batches, opened.blocks
        scratch.keeping = self.keeping
        source = self.tallies[0].view.source(inputs.source)
        if source is not inputs.source:  # its maps are not kept
            items = opened.items
            batches = [batch for batch in source.batches() if batch.start in items]
            blocks = blocks_of(source)
            source.want(sorted({name for tally in self.tallies for name in tally.reads}))
            scratch = Scratch(0, False, watch=inputs.watch)
        counted: set[int] = set()
        scratch.reads = counted.update
        resources = Resources(opened.workers, opened.memory)
        workers = workers_within(source, resources, scratch, batches)
        counting = Counting(self.tallies, self.sent, {})
        turn = Turn(
            source, scratch, counting, workers, opened.memory, opened.advance, batches, blocks
        )
        totals = {tally: Total(tally) for tally in counting.apart if tally.adds_exactly}
        states = []
        for first, counted_items in count_in_threads(turn):
            for tally, (own_states, _) in zip(counting.apart, counted_items, strict=True):
                if tally in totals and own_states is not None:
                    totals[tally].fold_items(own_states)
            if self.sent:
                counted_tallies = zip(counting.apart, counted_items, strict=True)
                packed = [own.packed for tally, own in counted_tallies if tally in self.sent]
                states.append((first, packed))
        totals |= counting.together()
        packed_totals = {
            n: tally.pack(totals[tally].state())
            for n, tally in enumerate(self.tallies) if tally in totals
        }  # fmt: skip
        return Counts(packed_totals, states, bool(counted))


def differences(expected: Mapping[str, str]) -> str:
    """Return the differences of versions from those expected, as text; empty if there are none."""
    versions_here = versions()
    return ", ".join(
        f"{name} {versions_here.get(name)}, the client has {text}"
        for name, text in expected.items()
        if versions_here.get(name) != text
    )


def _run_state(run: Run) -> _RunState:
    """Return the opened stores of a run."""
    if run.id not in _runs:
        while len(_runs) >= _MOST_RUNS:
            _runs.popitem(last=False)[1].close()
        inputs = open_again(run.recipe)
        if inputs.fingerprint != run.fingerprint:
            raise ChangedError(
                f"{' + '.join(inputs.paths())} differs from what the client has opened. Give "
                "paths at which all hosts see the same stores, and write to none of them."
            )
        inputs.source.want(sorted(run.maps))
        cache = map_cache_of(inputs, stamps_of(inputs)) if inputs.map_cache is not None else None
        scratch = Scratch(run.memory // 4, inputs.keeps_maps, cache, watch=inputs.watch)
        _runs[run.id] = _RunState(inputs, scratch)
    _runs.move_to_end(run.id)
    return _runs[run.id]
