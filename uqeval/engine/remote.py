"""Work on some items in another process: what one worker of a cluster does, whatever it is.

A worker opens the stores itself. The maps of the items that it has read stay with it, for later
passes; a worker that does not have them reads the items again. It sends packed states, never maps.
"""

from __future__ import annotations

import platform
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Protocol

from uqeval import errors
from uqeval.engine.counting import Counting
from uqeval.engine.passes import Resources, Turn, count_in_threads, workers_within
from uqeval.engine.reuse import map_cache_of, stamps_of
from uqeval.engine.scratch import Scratch
from uqeval.errors import ChangedError, UqevalError, UsageError, cut
from uqeval.inputs.opening import open_again
from uqeval.stores.states.blocks import PackedItems

if TYPE_CHECKING:
    from uqeval.inputs import Inputs
    from uqeval.inputs.opened import Recipe
    from uqeval.stores.contents import Contents
    from uqeval.tallies import Tally

#: Distributions on which the bits of results depend, or the messages between processes.
_DISTRIBUTIONS = (
    "uqeval", "numpy", "numba", "zarr", "numcodecs", "opencv-python-headless", "dask",
    "distributed",
)  # fmt: skip

#: Runs whose maps a worker keeps at once; those of the others are made again.
_MOST_RUNS = 4


def versions() -> dict[str, str]:
    """Return the versions of Python and of what results depend on, in this process."""
    found = {"python": platform.python_version()}
    for name in _DISTRIBUTIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


@dataclass(frozen=True)
class Run:
    """What all jobs of a run share.

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
    """What a worker does with the items of a job; it is sent to the worker."""

    def __call__(self, opened: Opened) -> Any:
        """Return the result, which is sent back. Raises `UqevalError`."""


@dataclass(frozen=True)
class Job:
    """Some items of a run, and what to do with them."""

    run: Run
    items: range
    work: Work


@dataclass
class Opened:
    """The items of a job, opened by a worker: `items` of the set are all those of `inputs`.

    `scratch` keeps their maps; `workers` threads may take `memory` bytes together.
    """

    inputs: Inputs
    scratch: Scratch
    items: range
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
    """What the work of a job gives; `nbytes` were read for it."""

    value: Any
    nbytes: int


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


@dataclass
class _Kept:
    """What a worker keeps of one run: contents of paths, and inputs and maps by items."""

    contents: dict[str, Contents] = field(default_factory=dict)
    parts: dict[range, tuple[Inputs, Scratch]] = field(default_factory=dict)

    def close(self) -> None:
        for _, scratch in self.parts.values():
            scratch.__exit__(None, None, None)


_runs: OrderedDict[str, _Kept] = OrderedDict()
#: One job at a time: its threads are the engine's own.
_busy = threading.Lock()


def do(job: Job, threads: int = 1) -> Done | Failed:
    """Do a job with `threads` threads, unless the run says how many."""
    with _busy:
        try:
            return _do(job, threads)
        except UqevalError as error:
            return Failed(type(error).__name__, str(error))
        except (OSError, MemoryError) as error:  # the disk or the memory of this machine
            return Failed("ClusterError", f"{type(error).__name__}: {cut(error)}")


def forget(run: str) -> None:
    """Close the stores of a run, and delete its maps."""
    with _busy:
        if (opened := _runs.pop(run, None)) is not None:
            opened.close()


def _do(job: Job, threads: int) -> Done:
    run = job.run
    if (different := differences(run.versions)) != "":
        raise UsageError(f"other versions than the client's: {different}. Install the same.")
    inputs, scratch = _part(run, job.items)
    opened = Opened(inputs, scratch, job.items, run.workers or threads, run.memory)
    with inputs.session():
        value = job.work(opened)
    return Done(value, opened.nbytes)


@dataclass(frozen=True)
class Counts:
    """What is counted in a job.

    `totals`: by number of the tally, of those that add up exactly. `states`: the number of the
    first of some items in a row, and their states of the tallies that are `sent`. `is_read`: not
    from maps of an earlier pass.
    """

    totals: dict[int, bytes]
    states: list[tuple[int, list[PackedItems]]]
    is_read: bool


@dataclass(frozen=True)
class CountTallies:
    """Counts tallies of one source; the states of items are `sent` of some, of others the totals.

    `keeping`: later passes need the maps.
    """

    tallies: tuple[Tally, ...]
    sent: tuple[Tally, ...]
    keeping: bool

    def __call__(self, opened: Opened) -> Counts:
        """Return the states of the items."""
        inputs, scratch, first_item = opened.inputs, opened.scratch, opened.items.start
        scratch.keeping = self.keeping
        source = self.tallies[0].view.source(inputs.source)
        if source is not inputs.source:  # its maps are not kept
            source.want(sorted({name for tally in self.tallies for name in tally.reads}))
            scratch = Scratch(0, False, watch=inputs.watch)
        counted: set[int] = set()
        scratch.reads = counted.update
        workers = workers_within(source, Resources(opened.workers, opened.memory), scratch)
        counting = Counting(self.tallies, self.sent, {})
        turn = Turn(source, scratch, counting, workers, opened.memory, opened.advance)
        totals = {tally: tally.empty() for tally in counting.apart if tally.adds_exactly}
        states = []
        for first, counted_items in count_in_threads(turn):
            for tally, (own, _) in zip(counting.apart, counted_items, strict=True):
                if tally in totals and own is not None:
                    tally.fold_items(totals[tally], own)
            if self.sent:
                packed = [packed for _, packed in counted_items if packed is not None]
                states.append((first_item + first, packed))
        totals |= counting.together()
        numbered = enumerate(self.tallies)
        packed_totals = {n: tally.pack(totals[tally]) for n, tally in numbered if tally in totals}
        return Counts(packed_totals, states, bool(counted))


def differences(expected: Mapping[str, str]) -> str:
    """Return the versions of this process that are not as expected, as a text."""
    own = versions()
    return ", ".join(
        f"{name} {own.get(name)}, the client has {text}"
        for name, text in expected.items()
        if own.get(name) != text
    )


def _part(run: Run, items: range) -> tuple[Inputs, Scratch]:
    """Return opened inputs of some items, and where their maps are kept."""
    opened = _runs.setdefault(run.id, _Kept())
    _runs.move_to_end(run.id)
    while len(_runs) > _MOST_RUNS:
        _runs.popitem(last=False)[1].close()
    if items not in opened.parts:
        inputs = open_again(run.recipe, items, opened.contents)
        if inputs.fingerprint != run.fingerprint:
            raise ChangedError(
                f"{' + '.join(inputs.paths())}: differs from what the client has opened. Give "
                "paths at which all hosts see the same stores, and write to none of them."
            )
        inputs.source.want(sorted(run.maps))
        used = sum(scratch.used for _, scratch in opened.parts.values())
        cache = map_cache_of(inputs, stamps_of(inputs)) if inputs.map_cache is not None else None
        scratch = Scratch(
            max(run.memory // 4 - used, 0), inputs.keeps_maps, cache, watch=inputs.watch
        )
        opened.parts[items] = inputs, scratch
    return opened.parts[items]
