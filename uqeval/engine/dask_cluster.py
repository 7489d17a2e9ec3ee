"""Connect to the Dask cluster of a run, and check the versions of its workers."""

from __future__ import annotations

import asyncio
import logging
import re
import signal
import uuid
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from uqeval.disk.files import parse_json, read_bytes
from uqeval.engine import remote
from uqeval.engine.dask_executor import DaskExecutor, Workers
from uqeval.engine.options import RunOptions, usable_cpus
from uqeval.engine.remote import Run, versions
from uqeval.errors import UsageError, cut, quoted
from uqeval.inputs import Inputs
from uqeval.threads import within

#: Seconds to wait for a scheduler, and for its first worker.
_PATIENCE = 30.0
#: The largest size of a scheduler file in bytes: it lists all workers.
_MOST_FILE = 1 << 26


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


class _Silence(Exception):
    """A server that accepts a connection and then does not answer."""


async def _greet(address: str) -> None:
    from distributed import Security
    from distributed.comm import connect

    # Dask's time limit ends when the connection is accepted.
    greeting = connect(address, timeout=_PATIENCE, **Security().get_connection_args("client"))
    comm = await asyncio.wait_for(greeting, _PATIENCE + 1)
    await comm.close()


def _refuse_silence(address: str) -> None:
    """Raise `_Silence` if a server does not answer as a scheduler, and the errors of Dask."""
    import dask

    has_loader = dask.config.get("distributed.client.security-loader", None) is not None
    if has_loader or not re.match(r"(tcp|tls|wss?)://", address):
        return  # certificates that only a client loads; and connections of other kinds
    try:
        # In a thread: this one may run an event loop, such as that of a notebook.
        within(_PATIENCE + 3, lambda: asyncio.run(_greet(address)))
    except TimeoutError:
        raise _Silence from None


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
        except Exception as error:  # such as of psutil, which needs /proc
            raise UsageError(
                f"the package `distributed` cannot be loaded: {cut(error)}. Where /proc is not "
                "mounted, count without Dask."
            ) from error
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
        at = address
        if address.startswith("scheduler-file:"):
            path = Path(address.removeprefix("scheduler-file:").strip())
            at = self._address_in(path)
            arguments = {"scheduler_file": str(path)}
        elif not re.fullmatch(r"[a-z]+://.+", address):
            raise UsageError(
                f"{self._option} {quoted(address)}; expected the address of a scheduler, such as "
                "tcp://host:8786, scheduler-file:PATH, or local:N."
            )
        self._refuse_secrets(at)
        try:
            _refuse_silence(at)
            return Client(**arguments, timeout=_PATIENCE, set_as_default=False)
        except _Silence:
            raise UsageError(
                f"{self._option} {cut(address)}: a server accepts connections there, but does not "
                f"answer as a Dask scheduler within {_PATIENCE:g} s. Check the port: 8786 is the "
                "scheduler's by default, and 8787 that of its dashboard. Else the scheduler is "
                "stopped or overloaded: restart it."
            ) from None
        # Dask raises OSError, TimeoutError, ValueError and other errors.
        except Exception as error:
            raise UsageError(
                f"{self._option} {cut(address)}: no scheduler answers there "
                f"({type(error).__name__}: {cut(error)}). Check the port (8787 is that of the "
                "dashboard), or start one with `dask scheduler` and workers with `dask worker "
                "ADDRESS --nthreads 1`, or use --dask local:N."
            ) from None

    def _address_in(self, path: Path) -> str:
        """Return the address in a scheduler file. Raises `UsageError` for another file."""
        where = f"{self._option} {cut(f'scheduler-file:{path}')}"
        remedy = (
            f"Start `dask scheduler --scheduler-file {cut(path)}`, or give the address of a "
            "scheduler."
        )
        if not path.is_file():
            raise UsageError(f"{where}: there is no such file. {remedy}")
        try:
            record = parse_json(read_bytes(path, _MOST_FILE), finite=False)
        except OSError as error:
            raise UsageError(f"{where} cannot be read: {error.strerror}. {remedy}") from None
        except (ValueError, RecursionError) as error:
            flaw = "it is empty" if path.stat().st_size == 0 else f"it is not JSON ({cut(error)})"
            raise UsageError(f"{where} is not a scheduler file: {flaw}. {remedy}") from None
        address = record.get("address") if isinstance(record, dict) else None
        if not isinstance(address, str) or not re.fullmatch(r"[a-z]+://.+", address):
            raise UsageError(
                f"{where} is not a scheduler file: it has no `address` of a scheduler. {remedy}"
            )
        return address

    def _refuse_secrets(self, address: str) -> None:
        """Raise `UsageError` for an address with a user or a query, which Dask would repeat in the
        text of its errors."""
        scheme, _, place = address.partition("://")
        bare = re.sub(r"[?#].*", "", place, flags=re.DOTALL).rpartition("@")[2]
        if bare != place:
            raise UsageError(
                f"{self._option} {cut(f'{scheme}://{bare}')}: the address has a user, a password "
                "or a query (left out here), which Dask does not use. Leave them out; for TLS, use "
                "tls:// and the certificates of Dask's configuration."
            )

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
