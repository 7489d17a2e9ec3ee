"""Threads that an interrupt always ends.

`Condition`, `Event` and `concurrent.futures` of Python are written in Python. An interrupt can come
just after one of them has taken its lock. Then the lock is never released, and all threads that
need it wait forever. To prevent this, jobs and results are passed in a `SimpleQueue`, which is
written in C, and signals are deferred where a library uses these classes in the main thread.

`Thread.start` waits until the new thread runs. If memory is short, that thread may end first, and
the wait never ends. So threads are started here without `threading.Thread`. What a thread holds is
deleted when it ends, however it ends; weak references to that report the end.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from queue import Empty, SimpleQueue
from time import monotonic
from types import FrameType
from typing import Any, Generic, TypeVar
from weakref import WeakSet, ref

from uqeval.errors import NO_THREAD, ThreadError

T = TypeVar("T")
Job = TypeVar("Job")
Result = TypeVar("Result")

#: Signals that end a command.
SIGNALS: tuple[int, ...] = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


#: Seconds for which signals are deferred. A block that takes longer may wait forever.
_PATIENCE = 30.0


class Stopped(Exception):
    """Signal to a worker that the run ends early."""


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
def uninterrupted() -> Iterator[None]:
    """Defer signals to the end of the block, which must be short, but at most for some seconds.

    Does nothing in other threads than the main one, since Python handles no signals there.
    """
    if threading.get_ident() != threading.main_thread().ident:
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
        self._queue: SimpleQueue[tuple[T | None, BaseException | None] | ref[Any]] = SimpleQueue()
        self._is_dropped = False
        self._end: ref[_Job] | None = None

    def compute(self) -> None:
        """Compute the result, unless it was dropped. The thread calls this."""
        if self._is_dropped:
            return
        try:
            self._queue.put((self._work(), None))
        except BaseException as error:
            self._queue.put((None, error))

    def job(self) -> _Job:
        """Return the job for the thread. If it is deleted before its end, `result` raises."""
        job = _Job(self.compute)
        self._end = ref(job, self._queue.put)
        return job

    def drop(self) -> None:
        """Do not compute the result, unless a thread has begun with it."""
        self._is_dropped = True

    def result(self, seconds: float | None = None) -> T:
        """Wait for the result, and return it or raise the error of the job. Call it once.

        Raises `TimeoutError` if there is none after some seconds, and `MemoryError` if the thread
        has ended without one.
        """
        try:
            answer = self._queue.get(timeout=seconds)
        except Empty:
            raise TimeoutError from None
        if isinstance(answer, ref):
            raise MemoryError("a thread ended before its job, because memory is short")
        result, error = answer
        if error is None:
            return result  # type: ignore[return-value]
        try:
            raise error
        finally:
            del error, answer  # its traceback holds this frame


class _Job:
    """A job for a thread."""

    __slots__ = ("__weakref__", "compute")

    def __init__(self, compute: Callable[[], None]) -> None:
        self.compute = compute


class _Thread:
    """What a thread holds as long as it runs; at its start, also its first job."""

    __slots__ = ("__weakref__", "begin", "first")

    def __init__(self, begin: Callable[[], None] | None, first: _Job) -> None:
        self.begin = begin
        self.first: _Job | None = first


def _start(function: Callable[..., None], *arguments: Any) -> None:
    """Call a function in a new thread, without waiting for the thread.

    Raises `ThreadError` at a limit of threads.
    """
    try:
        start_new_thread(function, arguments)
    except RuntimeError as error:
        raise ThreadError(NO_THREAD) from error


def _compute(job: _Job) -> None:
    job.compute()


def _work(thread: _Thread, jobs: SimpleQueue[_Job | None], idle: SimpleQueue[None]) -> None:
    """Do jobs until there is None."""
    if (trace := threading.gettrace()) is not None:  # of a debugger, or of `coverage`
        sys.settrace(trace)
    begin, job, thread.first = thread.begin, thread.first, None
    del thread  # the traceback of a job's error can hold this frame; the new thread still holds it
    if begin is not None:
        begin()
    while job is not None:
        job.compute()
        job = None  # delete it before the wait
        idle.put(None)
        job = jobs.get()
    jobs.put(None)  # for the other threads


def within(seconds: float, work: Callable[[], T]) -> T:
    """Return `work()`, computed in a thread of its own.

    Raises `TimeoutError` if it takes longer; then the thread goes on, but the process may end.
    Raises `ThreadError` at a limit of threads.
    """
    answer = Answer(work)
    _start(_compute, answer.job())
    return answer.result(seconds)


class Threads:
    """Several threads. The end of a `with` block waits for their jobs.

    Each thread calls `begin` when it starts.
    """

    def __init__(self, count: int, begin: Callable[[], None] | None = None) -> None:
        self.count = count
        self._begin = begin
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._idle: SimpleQueue[None] = SimpleQueue()
        self._threads: list[ref[_Thread]] = []
        self._ended: SimpleQueue[ref[_Thread]] = SimpleQueue()
        self._process = os.getpid()

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Wait for the jobs, and end the threads. A forked process does not have them."""
        self._jobs.put(None)
        while self._process == os.getpid() and any(thread() for thread in self._threads):
            self._ended.get()

    def __del__(self) -> None:
        with suppress(AttributeError):  # `__init__` was interrupted
            self._jobs.put(None)

    def start(self, work: Callable[[], T]) -> Answer[T]:
        """Compute `work()` in a thread. Raises `ThreadError` at a limit of threads."""
        answer = Answer(work)
        try:
            self._idle.get_nowait()
        except Empty:
            if len(self._threads) < self.count:
                self._add(answer.job())
                return answer
        self._jobs.put(answer.job())
        return answer

    def _add(self, first: _Job) -> None:
        """Start a thread with its first job."""
        thread = _Thread(self._begin, first)
        end = ref(thread, self._ended.put)
        with uninterrupted():
            _start(_work, thread, self._jobs, self._idle)
            self._threads.append(end)
            _used.add(self)
            del thread  # an interrupt's traceback holds this frame

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


#: Objects whose threads were started.
_used: WeakSet[Threads] = WeakSet()


@atexit.register
def _end_all() -> None:
    """Wait for all jobs, such as a download whose result nobody needs: Python, when it ends, stops
    threads in the middle of a library's function, which can abort the process.
    """
    for threads in list(_used):
        threads.end()


def in_order(
    work: Callable[[Job, Callable[[], None]], Result], jobs: Iterable[Job], workers: int
) -> Generator[tuple[Job, Result], None, None]:
    """Yield each job with its result, as `Threads.in_order` does with as many new threads."""
    with Threads(workers) as threads, closing(threads.in_order(work, jobs)) as results:
        yield from results
