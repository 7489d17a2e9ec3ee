"""Work on the items of a run on the workers of a Dask cluster. Only this module imports Dask.

The client keeps the plan of the run: it hands out jobs of some items, and merges their states in
the order of items, so the results have the same bits as those of threads. Dask runs a job again
elsewhere when its worker dies.
"""

from __future__ import annotations

import logging
import math
import re
import time
import uuid
from collections import deque
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.engine import remote
from uqeval.engine.jobs import Known, jobs_of, known, received
from uqeval.engine.options import usable_cpus
from uqeval.engine.remote import CountTallies, Done, Failed, Job, Run, do, forget, versions
from uqeval.errors import ClusterError, UqevalError, UsageError, cut, quoted

if TYPE_CHECKING:
    from uqeval.engine.options import RunOptions
    from uqeval.engine.passes import Items, Turn
    from uqeval.engine.remote import Work
    from uqeval.inputs import Inputs
    from uqeval.maps.contract import MapSource

#: Seconds to wait for a scheduler, and for its first worker.
_PATIENCE = 30.0
#: Seconds after which it is looked whether a job waits for a worker that is dead.
_PATIENCE_FOR_HOME = 2.0
#: Jobs that wait at each worker, so that none is idle while results travel.
_QUEUED = 4


class DaskCluster:
    """The cluster at an address: tcp://…, scheduler-file:PATH, local:N, or that of a client.

    Raises `UsageError` where Dask is not installed, no scheduler answers, there are no workers, or
    their versions differ from those of this process.
    """

    def __init__(self, address: Any) -> None:
        self._address = address
        self._open = ExitStack()
        self.client: Any = None
        self._workers, self._counted_at = 0, -math.inf

    def __enter__(self) -> DaskCluster:
        try:
            import distributed
        except ImportError:
            raise UsageError(
                "counting on a Dask cluster needs the package `distributed`: "
                "pip install distributed."
            ) from None
        # This class raises the errors that Dask would print, too.
        logger = logging.getLogger("distributed")
        self._open.callback(logger.setLevel, logger.level)
        logger.setLevel(logging.CRITICAL)
        try:
            if isinstance(self._address, distributed.Client):
                self.client = self._address
            else:
                self.client = self._open.enter_context(self._connected(str(self._address)))
            self._check_workers()
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def _connected(self, address: str) -> Any:
        import dask
        from distributed import Client, LocalCluster

        if match := re.fullmatch(r"local:([1-9][0-9]{0,3})", address):
            workers = int(match[1])
            self._open.enter_context(dask.config.set({"logging.distributed": "critical"}))
            try:
                cluster = LocalCluster(
                    n_workers=workers, threads_per_worker=1, processes=True, memory_limit=0,
                    host="127.0.0.1", dashboard_address="127.0.0.1:0",
                    silence_logs=logging.CRITICAL,
                )  # fmt: skip
            except RuntimeError as error:
                raise UsageError(
                    f"--dask {address}: its workers do not start ({cut(error)}). They import the "
                    "program again: in a Python script, put what it does under "
                    '`if __name__ == "__main__":`.'
                ) from None
            self._open.enter_context(cluster)
            return Client(cluster, set_as_default=False)
        arguments: dict[str, Any] = {"address": address}
        if address.startswith("scheduler-file:"):
            path = Path(address.removeprefix("scheduler-file:"))
            if not path.is_file():
                raise UsageError(
                    f"--dask {cut(address)}: there is no such file. Start `dask scheduler "
                    f"--scheduler-file {path}` first, or give the address of a scheduler."
                )
            arguments = {"scheduler_file": str(path)}
        elif not re.fullmatch(r"[a-z]+://.+", address):
            raise UsageError(
                f"--dask {quoted(address)}; expected the address of a scheduler, such as "
                "tcp://host:8786, scheduler-file:PATH, or local:N."
            )
        try:
            return Client(**arguments, timeout=_PATIENCE, set_as_default=False)
        # Dask raises OSError, TimeoutError, ValueError and errors of its own.
        except Exception as error:
            raise UsageError(
                f"--dask {cut(address)}: no scheduler answers there ({type(error).__name__}: "
                f"{cut(error)}). Start one with `dask scheduler` and workers with `dask worker "
                "ADDRESS --nthreads 1`, or use --dask local:N."
            ) from None

    def _check_workers(self) -> None:
        try:
            self.client.wait_for_workers(1, timeout=_PATIENCE)
        except Exception:  # of the version of Dask
            raise UsageError(
                f"--dask {cut(self._address)}: the scheduler has no workers. Start some with "
                "`dask worker ADDRESS --nthreads 1`."
            ) from None
        own = versions()
        problems = [
            f"{self._named(address)}: " + ", ".join(
                f"{name} {found.get(name)}" for name in own if found.get(name) != own[name]
            )
            for address, found in self.client.run(remote.versions).items() if found != own
        ]  # fmt: skip
        if problems:
            shown = "; ".join(problems[:5])
            raise UsageError(
                f"{len(problems)} Dask workers have other versions than this process "
                f"({', '.join(f'{name} {text}' for name, text in own.items())}): {shown}. Results "
                "could differ; install the same versions everywhere."
            )

    @property
    def workers(self) -> int:
        """Return the number of workers, as of a second ago at most."""
        now = time.monotonic()
        if now - self._counted_at > 1:
            self._workers, self._counted_at = len(self.addresses()), now
        return self._workers

    def addresses(self) -> Mapping[str, Any]:
        """Return what the scheduler knows of its workers, by address."""
        known: Mapping[str, Any] = self.client.scheduler_info(n_workers=-1)
        if "workers" not in known:
            raise _gone("no answer")
        workers: Mapping[str, Any] = known["workers"]
        return workers

    def _named(self, address: str) -> str:
        """Return a worker as messages call it: its address, and the name of its host."""
        host = self.addresses().get(address, {}).get("host", "")
        return f"worker {address}" + (f" on {host}" if host and host not in address else "")

    def executor(self, inputs: Inputs, options: RunOptions, maps: Collection[str]) -> DaskExecutor:
        """Return what counts the items of a run that reads these maps.

        Raises `UsageError` for arrays in memory.
        """
        assert inputs.recipe is not None
        threads = options.workers
        if threads is None and str(self._address).startswith("local:"):
            threads = max(usable_cpus() // max(self.workers, 1), 1)
        run = Run(
            uuid.uuid4().hex, inputs.recipe.with_absolute_paths(), tuple(sorted(maps)), threads,
            options.memory, inputs.fingerprint, versions(),
        )  # fmt: skip
        return DaskExecutor(self, run, inputs.source)


class DaskExecutor:
    """Works on the items of one run; see `engine.clusters.ClusterExecutor`."""

    def __init__(self, cluster: DaskCluster, run: Run, source: MapSource) -> None:
        self._cluster, self._run, self._source = cluster, run, source
        #: The worker that has the maps of some items.
        self._homes: dict[range, str] = {}

    def count(self, turn: Turn) -> Generator[Items, None, None]:
        """Yield the states of the items of a turn, in order.

        Raises the errors of `each`.
        """
        counting = turn.counting
        work = CountTallies(counting.tallies, tuple(counting.sent), turn.scratch.keeping)
        # States that depend on the items before: a job of them cannot be split.
        carries_on = any(tally.carries_on for tally in counting.tallies)
        ends = set(turn.source.chain_ends() if carries_on else turn.blocks.stops())
        jobs = (
            (items, known(turn, items) or work)
            for items in jobs_of(turn.source, self._cluster.workers, ends)
        )
        with closing(self._in_order(jobs, splits=not carries_on)) as results:
            for items, done in results:
                if isinstance(done, Known):
                    yield from done.states
                    turn.progress(0, len(items))
                else:
                    yield from received(turn, items, done)

    def each(
        self, work: Work, batches: Iterable[range] | None = None
    ) -> Generator[tuple[range, Any, int], None, None]:
        """Yield what `work` gives for items in a row, in order: their range, the value, the bytes.

        `batches`: what to work on, a job each; by default all items. Raises the errors of workers,
        with their name; `ClusterError` for items whose workers died again and again, and for a
        scheduler that is gone.
        """
        if batches is None:
            batches = jobs_of(self._source, self._cluster.workers)
        with closing(self._in_order((items, work) for items in batches)) as results:
            for items, done in results:
                assert isinstance(done, Done)
                yield items, done.value, done.nbytes

    def _in_order(
        self, jobs: Iterator[tuple[range, Work | Known]], splits: bool = True
    ) -> Generator[tuple[range, Done | Known], None, None]:
        """Yield the results of jobs, in order. `splits`: whether a job may be done in parts."""
        from distributed import CancelledError
        from distributed.comm import CommClosedError
        from distributed.scheduler import KilledWorker

        waiting: deque[tuple[range, Work | Known, Any]] = deque()
        try:
            while True:
                limit = _QUEUED * max(self._cluster.workers, 1)
                while len(waiting) < limit and (job := next(jobs, None)) is not None:
                    waiting.append(self._sent(*job))
                if not waiting:
                    return
                items, work, future = waiting.popleft()
                if isinstance(work, Known):
                    yield items, work
                    continue
                try:
                    done, home = self._result(items, work, future)
                except KilledWorker:
                    if len(items) == 1 or not splits:
                        raise _killed(self._source, items) from None
                    for item in reversed(items):  # one of them is to blame
                        waiting.appendleft(self._sent(range(item, item + 1), work))
                    continue
                if isinstance(done, Failed):
                    raise done.error(self._cluster._named(home))
                self._homes[items] = home
                yield items, done
        except (CancelledError, CommClosedError, OSError, TimeoutError) as error:
            raise _gone(type(error).__name__) from None
        finally:
            self._cancel([future for *_, future in waiting if future is not None])

    def _sent(self, items: range, work: Work | Known) -> tuple[range, Work | Known, Any]:
        return items, work, None if isinstance(work, Known) else self._submit(items, work)

    def _result(self, items: range, work: Work, future: Any) -> tuple[Done | Failed, str]:
        """Return what a job gives, and its worker.

        Dask may leave a job without a worker that preferred one which has died: it is sent again.
        """
        while True:
            try:
                result: tuple[Done | Failed, str] = future.result(timeout=_PATIENCE_FOR_HOME)
                return result
            except TimeoutError:
                home = self._homes.get(items)
                if home is not None and home not in self._cluster.addresses():
                    del self._homes[items]
                    future.cancel()
                    future = self._submit(items, work)

    def end(self) -> None:
        """Let the workers close the stores of the run, and delete its maps."""
        with suppress(Exception):  # the scheduler is gone, and its workers with it
            self._cluster.client.run(forget, self._run.id, on_error="ignore")

    def _cancel(self, futures: list[Any]) -> None:
        with suppress(Exception):  # the client is closed, and its futures with it
            self._cluster.client.cancel(futures)

    def _submit(self, items: range, work: Work) -> Any:
        home = self._homes.get(items)
        return self._cluster.client.submit(
            _on_worker, Job(self._run, items, work), pure=False, key=f"uqeval-{uuid.uuid4().hex}",
            workers=None if home is None else [home], allow_other_workers=home is not None,
        )  # fmt: skip


def _on_worker(job: Job) -> tuple[Done | Failed, str]:
    """Do a job; return what it gives, and the address of this worker."""
    from distributed import get_worker

    worker = get_worker()
    return do(job, worker.state.nthreads), worker.address


def _gone(reason: str) -> ClusterError:
    return ClusterError(
        f"the Dask scheduler is gone ({reason}). Start the cluster again, and run the same "
        "command; where it has --resume, that goes on from what was counted."
    )


def _killed(source: MapSource, items: range) -> UqevalError:
    names = source.names
    shown = f"item {cut(names[items[0]])}"
    if len(items) > 1:
        shown = f"items {cut(names[items[0]])} to {cut(names[items[-1]])}"
    return ClusterError(
        f"{source.where}: the workers that read {shown} died each time. Most often the "
        "memory of the worker does not hold it: give a smaller --memory, or workers with more, and "
        "look at their logs."
    )
