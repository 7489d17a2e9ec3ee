"""Threads that an interrupt always ends.

`Condition`, `Event` and `concurrent.futures` of Python are written in Python. An interrupt can come
just after one of them has taken its lock. Then the lock is never released, and all threads that
need it wait forever. To prevent this, signals are deferred while the main thread uses these
classes, and results are passed in a `SimpleQueue`, which is written in C.

`Thread.start` waits until the new thread runs. Where memory is short, that thread may end first,
and the wait never ends. So signals are deferred for some seconds at most.
"""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from queue import Empty, SimpleQueue
from time import monotonic
from types import FrameType
from typing import Any, Generic, TypeVar

from uqeval.errors import NO_THREAD, ThreadError

T = TypeVar("T")
Job = TypeVar("Job")
Result = TypeVar("Result")

#: Signals that end a command.
SIGNALS: tuple[int, ...] = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(Exception):
    """Signal to a worker that the run ends early."""


#: Seconds for which signals are deferred.
_PATIENCE = 30.0


class _Deferred:
    """Handler that notes signals as long as it `waits`; later ones go to the former `handlers`."""

    def __init__(self) -> None:
        self.waits = True
        self.until = monotonic() + _PATIENCE
        self.noted: list[int] = []
        self.handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.waits and monotonic() < self.until:
            self.noted.append(number)
        else:
            self.handlers[number](number, frame)


@contextmanager
def _starting() -> Iterator[None]:
    """Start a thread in the block. Raises `ThreadError` at a limit of threads."""
    try:
        with uninterrupted():
            yield
    except RuntimeError as error:
        if str(error) != "can't start new thread":
            raise
        raise ThreadError(NO_THREAD) from error


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Defer signals to the end of the block, which must be short, but at most for some seconds.

    Does nothing in other threads than the main one, since Python handles no signals there.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    deferred = _Deferred()
    try:
        for number in SIGNALS:
            handler = signal.getsignal(number)
            while isinstance(handler, _Deferred) and not handler.waits:  # was not restored
                handler = handler.handlers[number]
            if callable(handler):
                deferred.handlers[number] = handler
                signal.signal(number, deferred)
        yield
    finally:
        # If a handler raises before all are restored, `deferred` passes later signals on.
        deferred.waits = False
        for number, handler in deferred.handlers.items():
            signal.signal(number, handler)
        for number in deferred.noted:
            signal.raise_signal(number)


class Event:
    """An event, as `threading.Event`; an interrupt can end `wait`. Only one thread waits."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        """Let the event happen."""
        self._queue.put(None)

    def wait(self, seconds: float) -> bool:
        """Wait for the event. Return whether it has happened."""
        try:
            self._queue.get(timeout=seconds)
        except Empty:
            return False
        return True


class Answer(Generic[T]):
    """The result of a job that a thread computes."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._queue: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()
        self._is_dropped = False

    def compute(self) -> None:
        """Compute the result, unless it was dropped. The thread calls this."""
        if self._is_dropped:
            return
        try:
            self._queue.put((self._work(), None))
        except BaseException as error:
            self._queue.put((None, error))

    def drop(self) -> None:
        """Do not compute the result, unless a thread has begun with it."""
        self._is_dropped = True

    def result(self, seconds: float | None = None) -> T:
        """Wait for the result, and return it or raise the error of the job. Call it once.

        Raises `TimeoutError` if there is none after some seconds.
        """
        try:
            result, error = self._queue.get(timeout=seconds)
        except Empty:
            raise TimeoutError from None
        if error is None:
            return result  # type: ignore[return-value]
        try:
            raise error
        finally:
            del error  # its traceback holds this frame


def within(seconds: float, work: Callable[[], T]) -> T:
    """Return `work()`, computed in a thread of its own.

    Raises `TimeoutError` if it takes longer; then the thread goes on, but the process may end.
    Raises `ThreadError` at a limit of threads.
    """
    answer = Answer(work)
    with _starting():
        threading.Thread(target=answer.compute, name="uqeval", daemon=True).start()
    return answer.result(seconds)


class Threads:
    """Several threads. The end of a `with` block waits for their jobs.

    Each thread calls `begin` when it starts.
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
        """Compute `work()` in a thread. Raises `ThreadError` at a limit of threads."""
        answer = Answer(work)
        with _starting():
            self._pool.submit(answer.compute)
        return answer

    def in_order(
        self, work: Callable[[Job, Callable[[], None]], Result], jobs: Iterable[Job]
    ) -> Generator[tuple[Job, Result], None, None]:
        """Yield each job with its result, in the order of jobs.

        `work` gets the job, and a function to call regularly: it raises `Stopped` if the iteration
        has ended early. At most one result more than there are threads waits to be taken.
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
    work: Callable[[Job, Callable[[], None]], Result], jobs: Iterable[Job], workers: int
) -> Generator[tuple[Job, Result], None, None]:
    """Yield each job with its result, as `Threads.in_order` does with as many new threads."""
    with Threads(workers) as threads, closing(threads.in_order(work, jobs)) as results:
        yield from results
