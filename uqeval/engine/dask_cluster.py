"""Connect to the Dask cluster of a run, and check the versions of its workers."""

from __future__ import annotations

import logging
import re
import signal
import uuid
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from uqeval.engine import remote
from uqeval.engine.dask_executor import DaskExecutor, Workers
from uqeval.engine.options import RunOptions, usable_cpus
from uqeval.engine.remote import Run, versions
from uqeval.errors import UsageError, cut, quoted
from uqeval.inputs import Inputs

#: Seconds to wait for a scheduler, and for its first worker.
_PATIENCE = 30.0


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block SIGINT in this thread, and for good in the threads and processes that start meanwhile.

    A terminal sends Ctrl+C to all processes of a run. Workers would print tracebacks, while this
    process ends them. It gets a blocked SIGINT at the end.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # if a worker started it, that would get SIGINT again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class DaskCluster:
    """The cluster at an address: tcp://…, scheduler-file:PATH, local:N, or that of a client.

    `option` names it in messages. Raises `UsageError` if Dask is not installed, no scheduler
    answers, there are no workers, or their versions differ from those of this process.
    """

    def __init__(self, address: Any, option: str = "--dask") -> None:
        self._address = address
        self._option = option
        self._open = ExitStack()
        self.client: Any = None
        self._workers: Workers

    def __enter__(self) -> DaskCluster:
        try:
            import distributed
        except ImportError:
            raise UsageError(
                "counting on a Dask cluster needs the package `distributed`: "
                "pip install distributed."
            ) from None
        # Dask would also print these errors, which this class raises.
        logger = logging.getLogger("distributed")
        self._open.callback(logger.setLevel, logger.level)
        logger.setLevel(logging.CRITICAL)
        try:
            if isinstance(self._address, distributed.Client):
                self.client = self._address
                self._refuse_unusable()
            elif isinstance(self._address, str):
                self.client = self._open.enter_context(self._connected(self._address))
            else:
                raise UsageError(
                    f"{self._option} {quoted(self._address)}; expected a distributed.Client."
                )
            self._workers = Workers(self.client)
            self._check_workers()
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def _refuse_unusable(self) -> None:
        """Raise `UsageError` for a client of the user that cannot be waited for here."""
        if self.client.asynchronous:
            raise UsageError(
                f"{self._option}: this asynchronous distributed.Client needs the event loop of "
                "this thread, which would wait for itself. Pass a distributed.Client without "
                "asynchronous=True, or call uqeval in another thread: await "
                "asyncio.to_thread(uqeval.evaluate, …), with a client that was awaited."
            )
        if self.client.status in ("closing", "closed"):
            raise UsageError(
                f"{self._option}: the distributed.Client is closed. Pass one that is connected."
            )

    def _connected(self, address: str) -> Any:
        import dask
        from distributed import Client, LocalCluster

        if match := re.fullmatch(r"local:([1-9][0-9]{0,3})", address):
            workers = int(match[1])
            self._open.enter_context(dask.config.set({"logging.distributed": "critical"}))
            try:
                with _interrupts_blocked():
                    cluster = LocalCluster(
                        n_workers=workers, threads_per_worker=1, processes=True, memory_limit=0,
                        host="127.0.0.1", dashboard_address="127.0.0.1:0",
                        silence_logs=logging.CRITICAL,
                    )  # fmt: skip
                    self._open.enter_context(cluster)
            except RuntimeError as error:
                raise UsageError(
                    f"{self._option} {address}: its workers do not start ({cut(error)}). Each "
                    "worker imports the main script: put its code under "
                    '`if __name__ == "__main__":`.'
                ) from None
            return Client(cluster, set_as_default=False)
        arguments: dict[str, Any] = {"address": address}
        if address.startswith("scheduler-file:"):
            path = Path(address.removeprefix("scheduler-file:"))
            if not path.is_file():
                raise UsageError(
                    f"{self._option} {cut(address)}: there is no such file. Start `dask scheduler "
                    f"--scheduler-file {path}` first, or give the address of a scheduler."
                )
            arguments = {"scheduler_file": str(path)}
        elif not re.fullmatch(r"[a-z]+://.+", address):
            raise UsageError(
                f"{self._option} {quoted(address)}; expected the address of a scheduler, such as "
                "tcp://host:8786, scheduler-file:PATH, or local:N."
            )
        try:
            return Client(**arguments, timeout=_PATIENCE, set_as_default=False)
        # Dask raises OSError, TimeoutError, ValueError and other errors.
        except Exception as error:
            raise UsageError(
                f"{self._option} {cut(address)}: no scheduler answers there "
                f"({type(error).__name__}: {cut(error)}). Start one with `dask scheduler` "
                "and workers with `dask worker ADDRESS --nthreads 1`, or use --dask local:N."
            ) from None

    def _check_workers(self) -> None:
        try:
            self.client.wait_for_workers(1, timeout=_PATIENCE)
        except Exception:  # of the version of Dask
            raise UsageError(
                f"{self._option} {cut(self._address)}: the scheduler has no workers. Start some "
                "with `dask worker ADDRESS --nthreads 1`."
            ) from None
        required = versions()
        problems = [
            f"{self._workers.named(address)}: " + ", ".join(
                f"{name} {installed.get(name)}" for name in required
                if installed.get(name) != required[name]
            )
            for address, installed in self.client.run(remote.versions).items()
            if installed != required
        ]  # fmt: skip
        if problems:
            listed_problems = "; ".join(problems[:5])
            raise UsageError(
                f"{len(problems)} Dask workers have other versions than this process "
                f"({', '.join(f'{name} {text}' for name, text in required.items())}): "
                f"{listed_problems}. Results could differ; install the same versions everywhere."
            )

    @property
    def workers(self) -> int:
        """Return the number of workers, at most one second old."""
        return self._workers.count

    def executor(self, inputs: Inputs, options: RunOptions, maps: Collection[str]) -> DaskExecutor:
        """Return the executor of a run that reads these maps.

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
        return DaskExecutor(self._workers, run, inputs)
