"""Count some items in another process: what one worker of a cluster does, whatever the cluster is.

A worker opens the stores itself. The maps of the items that it has read stay with it, for later
passes; a worker that does not have them reads the items again. It sends packed states, never maps.
"""

from __future__ import annotations

import platform
import threading
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

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


@dataclass(frozen=True)
class Job:
    """Some items of a run, to be counted in one pass; `keeping`: later passes need their maps."""

    run: Run
    tallies: tuple[Tally, ...]
    items: range
    keeping: bool


@dataclass(frozen=True)
class Done:
    """The states of a job: the number of the first of some items in a row, and their states by
    tally. `nbytes` were read; `is_read`: not from maps of an earlier pass."""

    states: list[tuple[int, list[PackedItems]]]
    nbytes: int
    is_read: bool


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
class _Opened:
    """What a worker keeps of one run: contents of paths, and inputs and maps by items."""

    contents: dict[str, Contents] = field(default_factory=dict)
    parts: dict[range, tuple[Inputs, Scratch]] = field(default_factory=dict)

    def close(self) -> None:
        for _, scratch in self.parts.values():
            scratch.__exit__(None, None, None)


_runs: OrderedDict[str, _Opened] = OrderedDict()
#: One job at a time: its threads are the engine's own.
_busy = threading.Lock()


def count(job: Job, threads: int = 1) -> Done | Failed:
    """Count the items of a job with `threads` threads, unless the run says how many."""
    with _busy:
        try:
            return _count(job, threads)
        except UqevalError as error:
            return Failed(type(error).__name__, str(error))
        except (OSError, MemoryError) as error:  # the disk or the memory of this machine
            return Failed("ClusterError", f"{type(error).__name__}: {cut(error)}")


def forget(run: str) -> None:
    """Close the stores of a run, and delete its maps."""
    with _busy:
        if (opened := _runs.pop(run, None)) is not None:
            opened.close()


def _count(job: Job, threads: int) -> Done:
    run = job.run
    if (different := differences(run.versions)) != "":
        raise UsageError(f"other versions than the client's: {different}. Install the same.")
    inputs, scratch = _part(run, job.items)
    scratch.keeping = job.keeping
    source = job.tallies[0].view.source(inputs.source)
    counted: set[int] = set()
    nbytes = 0
    lock = threading.Lock()

    def progress(read: int, items: int) -> None:
        nonlocal nbytes
        with lock:
            nbytes += read

    with ExitStack() as stack:
        stack.enter_context(inputs.session())
        if source is not inputs.source:  # its maps are not kept
            source.want(sorted({name for tally in job.tallies for name in tally.reads}))
            scratch = Scratch(0, False, watch=inputs.watch)
        scratch.reads = counted.update
        workers = workers_within(source, Resources(run.workers or threads, run.memory), scratch)
        counting = Counting(job.tallies, job.tallies, {})
        turn = Turn(source, scratch, counting, workers, run.memory, progress)
        states = [
            (job.items.start + first, [packed for _, packed in states if packed is not None])
            for first, states in count_in_threads(turn)
        ]
    return Done(states, nbytes, bool(counted))


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
    opened = _runs.setdefault(run.id, _Opened())
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
