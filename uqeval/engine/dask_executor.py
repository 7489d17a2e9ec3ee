"""Work on the items of a run on the workers of a Dask cluster.

The client keeps the plan of the run: it hands out jobs of some items, and merges their states in
the order of items, so the results have the same bits as those of threads. Dask runs a job again
elsewhere when its worker dies.
"""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from collections import defaultdict, deque
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any

from uqeval.engine.passes import Items, Turn
from uqeval.engine.remote import (
    Counts,
    CountTallies,
    Done,
    Failed,
    Job,
    Run,
    Work,
    close_run,
    run_job,
)
from uqeval.errors import ClusterError, UqevalError, cut, listed
from uqeval.inputs import Inputs
from uqeval.inputs.opened import last_digits
from uqeval.threads import Event

if TYPE_CHECKING:
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


#: Seconds between checks for jobs whose worker is dead.
_PATIENCE_FOR_HOME = 0.5
#: Timeout in seconds for results, at first, and for the end of a run on workers. Dask would wait 30
#: seconds for a worker that has just died.
_PATIENCE = 10.0
#: Seconds without any worker after which a run ends.
_ALONE = 120.0
#: The largest number of jobs in flight per worker, so that no worker waits for the client. New jobs
#: are sent when half of them have ended, because a message costs Dask more than a job in it.
_QUEUED = 8
#: Maximum number of results fetched at once, because all are in memory.
_AT_ONCE = 16


class Workers:
    """The workers of a Dask client."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._count, self._counted_at = 0, -math.inf

    @property
    def count(self) -> int:
        """Return the number of workers, at most a second old."""
        now = time.monotonic()
        if now - self._counted_at > 1:
            self._count, self._counted_at = len(self.addresses()), now
        return self._count

    def addresses(self) -> Mapping[str, Any]:
        """Return the scheduler's information about its workers, by address."""
        known: Mapping[str, Any] = self.client.scheduler_info(n_workers=-1)
        if "workers" not in known:
            raise _gone("no answer")
        return known["workers"]

    def named(self, address: str) -> str:
        """Return the address and host name of a worker, for messages."""
        host = self.addresses().get(address, {}).get("host", "")
        return f"worker {address}" + (f" on {host}" if host and host not in address else "")


class DaskExecutor:
    """Executor of one run; see `engine.scheduler.ClusterExecutor`."""

    def __init__(self, workers: Workers, run: Run, inputs: Inputs) -> None:
        self._workers, self._run, self._inputs = workers, run, inputs
        #: The worker that has the maps of some items.
        self._homes: dict[range, str] = {}
        #: The digests of `last_digits` on the workers, and the warning about other ones.
        self.last_digits: set[str] = set()
        self._other_workers: list[str] = []
        self._warning = ""
        self._patience = _PATIENCE

    def count(self, turn: Turn) -> Generator[Items, None, None]:
        """Yield the states of the items of a turn, in order.

        Raises the errors of `each`.
        """
        counting = turn.counting
        work = CountTallies(counting.tallies, tuple(counting.sent), turn.scratch.keeping)
        # States that depend on earlier items: their jobs cannot be split.
        carries_on = any(tally.carries_on for tally in counting.tallies)
        ends = set(turn.source.chain_ends() if carries_on else turn.blocks.stops())
        jobs = (
            (items, known(turn, items) or work)
            for items in jobs_of(turn.source, self._workers.count, ends)
        )
        with closing(self._in_order(jobs, splits=not carries_on)) as results:
            for items, outcome in results:
                if isinstance(outcome, Known):
                    yield from outcome.states
                    turn.progress(0, len(items))
                else:
                    yield from received(turn, items, outcome)

    def each(
        self, work: Work, batches: Iterable[range] | None = None
    ) -> Generator[tuple[range, Any, int], None, None]:
        """Yield the results of `work` on ranges of items, in order: range, value, bytes read.

        `batches`: the items of each job; by default all items. Raises the errors of workers, with
        their name; `ClusterError` for items whose workers died repeatedly, and if the scheduler has
        ended.
        """
        if batches is None:
            batches = jobs_of(self._inputs.source, self._workers.count)
        with closing(self._in_order((items, work) for items in batches)) as results:
            for items, outcome in results:
                assert isinstance(outcome, Done)
                yield items, outcome.value, outcome.nbytes

    def _in_order(
        self, jobs: Iterator[tuple[range, Work | Known]], splits: bool = True
    ) -> Generator[tuple[range, Done | Known], None, None]:
        """Yield the results of jobs, in order. `splits`: whether a job can be split."""
        from distributed import CancelledError
        from distributed.comm import CommClosedError
        from distributed.scheduler import KilledWorker

        waiting: deque[_Sent] = deque()
        try:
            while True:
                limit = _QUEUED * max(self._workers.count, 1)
                if len(waiting) <= limit // 2:
                    waiting.extend(self._sent(list(islice(jobs, limit - len(waiting)))))
                if not waiting:
                    return
                first = waiting.popleft()
                items, work = first.items, first.work
                if isinstance(work, Known):
                    yield items, work
                    continue
                try:
                    outcome, home = first.result or self._result(items, work, first.future)
                except KilledWorker:
                    if len(items) == 1 or not splits:
                        raise _killed(self._inputs.source, items) from None
                    # One of these items may have killed the worker.
                    single_items = [(range(item, item + 1), work) for item in items]
                    waiting.extendleft(reversed(self._sent(single_items)))
                    continue
                if isinstance(outcome, Failed):
                    raise outcome.error(self._workers.named(home))
                self._homes[items] = home
                self._note_digits(home, outcome.last_digits)
                if (flow_seconds := self._inputs.flow_seconds) is not None:
                    for name, seconds in outcome.flow_seconds.items():
                        flow_seconds[name] = flow_seconds.get(name, 0.0) + seconds
                yield items, outcome
                self._fetch(waiting)
        except (CancelledError, CommClosedError, OSError, TimeoutError) as error:
            raise _gone(type(error).__name__) from None
        finally:
            self._cancel([sent.future for sent in waiting if sent.future is not None])

    def _note_digits(self, home: str, digits: str) -> None:
        """Warn of a worker whose results have other last digits than those of this process."""
        self.last_digits.add(digits)
        if digits == last_digits() or home in self._other_workers:
            return
        self._other_workers.append(home)
        warnings = self._inputs.warnings
        if self._warning in warnings:
            warnings.remove(self._warning)
        self._warning = (
            "Dask workers run on another kind of processor than this process: "
            f"{listed(sorted(self._other_workers))}. Their exp and log differ in the last digits, "
            "so the last digits of results may differ from a run on one kind of machine, and from "
            "run to run. For equal digits, use workers with the same processor as this machine."
        )
        warnings.append(self._warning)

    def _sent(self, jobs: Sequence[tuple[range, Work | Known]]) -> list[_Sent]:
        """Send jobs, each to the worker that has their maps; nothing is sent for known states."""
        sent = [_Sent(items, work) for items, work in jobs]
        by_home: defaultdict[str | None, list[_Sent]] = defaultdict(list)
        for job in sent:
            if not isinstance(job.work, Known):
                by_home[self._homes.get(job.items)].append(job)
        for home, jobs_of_worker in by_home.items():
            futures = self._submit([(job.items, job.work) for job in jobs_of_worker], home)
            for job, future in zip(jobs_of_worker, futures, strict=True):
                job.future = future
        return sent

    def _fetch(self, waiting: deque[_Sent]) -> None:
        """Fetch some results of the first jobs that have ended, in one message.

        Waits until the results that were fetched before are used.
        """
        if not waiting or waiting[0].result is not None:
            return
        ended = list(islice(takewhile(_has_ended, waiting), _AT_ONCE))
        if len(ended) > 1:
            # A worker with some of them may have died: `_result` handles each.
            with suppress(Exception):
                futures = [sent.future for sent in ended]
                for sent, result in zip(ended, self._gathered(futures), strict=True):
                    sent.result = result

    def _result(self, items: range, work: Work, future: Any) -> tuple[Done | Failed, str]:
        """Return the result of a job, and its worker.

        Dask may not assign a job whose preferred worker has died, and may wait long for a result of
        a dead worker. Then the job is sent again.
        """
        while True:
            ended = Event()
            future.add_done_callback(lambda _, ended=ended: ended.set())
            had_workers = time.monotonic()
            while not ended.wait(_PATIENCE_FOR_HOME):
                if self._workers.count:
                    had_workers = time.monotonic()
                elif time.monotonic() - had_workers > _ALONE:
                    raise ClusterError(
                        f"the Dask scheduler has had no worker for {_ALONE:g} s. {_AGAIN}"
                    )
                home = self._homes.get(items)
                if home is not None and home not in self._workers.addresses():
                    del self._homes[items]
                    break
            else:
                try:
                    return self._gathered([future])[0]
                except TimeoutError:
                    self._homes.pop(items, None)
            self._cancel([future])
            (future,) = self._submit([(items, work)], None)

    def _gathered(self, futures: list[Any]) -> list[Any]:
        """Return the results of jobs that have ended. Raises Dask's errors and `TimeoutError`. Each
        timeout doubles the next one, because the network may be slow.
        """
        client = self._workers.client

        async def gathered() -> Any:
            task = asyncio.ensure_future(client.gather(futures, asynchronous=True))
            # Not `wait_for`: Dask shares requests, so that one that is cancelled ends others.
            finished, _ = await asyncio.wait({task}, timeout=self._patience)
            if not finished:
                self._patience *= 2
                task.add_done_callback(lambda task: task.cancelled() or task.exception())
                raise TimeoutError
            return task.result()

        return client.sync(gathered)

    def end(self) -> None:
        """Let the workers close the stores of the run, and delete its maps."""

        async def close_on_workers() -> None:
            client = self._workers.client
            await asyncio.wait_for(
                client.run(close_run, self._run.id, on_error="ignore"), _PATIENCE
            )

        with suppress(Exception):  # the scheduler and its workers have ended
            self._workers.client.sync(close_on_workers)

    def _cancel(self, futures: list[Any]) -> None:
        with suppress(Exception):  # the client and its futures are closed
            self._workers.client.cancel(futures)

    def _submit(self, jobs: Sequence[tuple[range, Any]], home: str | None) -> list[Any]:
        return self._workers.client.map(
            _on_worker, [Job(self._run, items, work) for items, work in jobs], pure=False,
            key=[f"uqeval-{uuid.uuid4().hex}" for _ in jobs],
            workers=None if home is None else [home], allow_other_workers=home is not None,
        )  # fmt: skip


@dataclass
class _Sent:
    """A job in flight, and its result after it is fetched."""

    items: range
    work: Work | Known
    future: Any = None
    result: tuple[Done | Failed, str] | None = None


def _has_ended(sent: _Sent) -> bool:
    """Return whether a job has a result; it has none if its worker was killed."""
    return sent.future is not None and bool(sent.future.status == "finished")


def _on_worker(job: Job) -> tuple[Done | Failed, str]:
    """Run a job; return its result and the address of this worker."""
    from distributed import get_worker

    worker = get_worker()
    return run_job(job, worker.state.nthreads), worker.address


def _gone(reason: str) -> ClusterError:
    return ClusterError(f"the connection to the Dask scheduler is lost ({reason}). {_AGAIN}")


_AGAIN = "Start the cluster again and repeat the command, with --resume if the command has it."


def _killed(source: MapSource, items: range) -> UqevalError:
    names = source.names
    item_text = f"item {cut(names[items[0]])}"
    if len(items) > 1:
        item_text = f"items {cut(names[items[0]])} to {cut(names[items[-1]])}"
    return ClusterError(
        f"{source.where}: the workers that read {item_text} died each time. Most often a "
        "worker runs out of memory: give a smaller --memory, or start workers with more, and look "
        "at their logs."
    )
