"""Threads that an interrupt always ends.

`threading.Condition`, and with it `Event` and `concurrent.futures`, are written in Python. Python
may raise an interrupt right after they have taken their lock; then nobody releases the lock, and
threads that need it wait forever. So signals wait while the main thread uses them, and results
arrive in a `SimpleQueue`, which is written in C.
"""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from queue import SimpleQueue
from types import FrameType
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Job = TypeVar("Job")
Result = TypeVar("Result")

#: Signals whose handlers may raise an exception.
_SIGNALS: tuple[int, ...] = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(Exception):
    """Signal to a worker that the run ends early."""


class _Deferred:
    """Handler that notes signals while it `waits`, and then passes them on to the `handlers`."""

    def __init__(self) -> None:
        self.waits = True
        self.noted: list[int] = []
        self.handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.waits:
            self.noted.append(number)
        else:
            self.handlers[number](number, frame)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Handle signals that arrive in the block at its end. The block must be short.

    Only the main thread handles signals, so in other threads this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    deferred = _Deferred()
    try:
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            while isinstance(handler, _Deferred) and not handler.waits:  # was not restored
                handler = handler.handlers[number]
            if callable(handler):
                deferred.handlers[number] = handler
                signal.signal(number, deferred)
        yield
    finally:
        # A handler may raise here before all are restored: `deferred` passes later signals on.
        deferred.waits = False
        for number, handler in deferred.handlers.items():
            signal.signal(number, handler)
        for number in deferred.noted:
            signal.raise_signal(number)


class Answer(Generic[T]):
    """The result of a job that a thread computes."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._queue: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()
        self._is_dropped = False

    def compute(self) -> None:
        """Compute the result in a thread, unless nobody needs it any more."""
        if self._is_dropped:
            return
        try:
            self._queue.put((self._work(), None))
        except BaseException as error:
            self._queue.put((None, error))

    def drop(self) -> None:
        """Do not compute the result if no thread has begun with it."""
        self._is_dropped = True

    def result(self) -> T:
        """Wait for the result, and return it or raise the error of the job. Call it once."""
        result, error = self._queue.get()
        if error is None:
            return result  # type: ignore[return-value]
        try:
            raise error
        finally:
            del error  # its traceback holds this frame


class Threads:
    """A number of threads; as a context manager, waits at the end until they have ended.

    `begin` is called at the start of each thread.
    """

    def __init__(
        self, count: int, name: str = "uqeval", begin: Callable[[], None] | None = None
    ) -> None:
        self.count = count
        self._pool = ThreadPoolExecutor(count, name, begin)

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def start(self, work: Callable[[], T]) -> Answer[T]:
        """Let a thread call `work`."""
        answer = Answer(work)
        with uninterrupted():
            self._pool.submit(answer.compute)
        return answer

    def in_order(
        self, work: Callable[[Job, Callable[[], None]], Result], jobs: Iterable[Job]
    ) -> Generator[tuple[Job, Result], None, None]:
        """Yield each job with its result, in the order of jobs.

        At most one result more than there are threads waits. `work` receives the job, and a
        function that it must call regularly; it raises `Stopped` if the iteration has ended early.
        """
        has_ended = False

        def check() -> None:
            if has_ended:
                raise Stopped

        def started(job: Job) -> Answer[Result]:
            return self.start(lambda: work(job, check))

        pending: deque[tuple[Job, Answer[Result]]] = deque()
        try:
            for job in jobs:
                pending.append((job, started(job)))
                if len(pending) > self.count:
                    job, answer = pending.popleft()
                    yield job, answer.result()
            while pending:
                job, answer = pending.popleft()
                yield job, answer.result()
        finally:
            has_ended = True
            for _, answer in pending:
                answer.drop()

    def map(self, work: Callable[[Job], Result], jobs: Iterable[Job]) -> list[Result]:
        """Return the results of all jobs, in their order."""
        with closing(self.in_order(lambda job, _: work(job), jobs)) as results:
            return [result for _, result in results]


def in_order(
    jobs: Iterable[Job], work: Callable[[Job, Callable[[], None]], Result], workers: int
) -> Generator[tuple[Job, Result], None, None]:
    """Yield each job with its result, as `Threads.in_order`, computed by threads of their own."""
    with Threads(workers) as threads, closing(threads.in_order(work, jobs)) as results:
        yield from results
