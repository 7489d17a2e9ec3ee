"""Threads, and interrupts at every step of the main thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from command import run_script

from uqeval.errors import DataError, ThreadError
from uqeval.threads import in_order, within

JOBS = range(0, 24, 2)

#: Raises a signal at one step of `used` in the main thread, for each step in turn. Ends with status
#: 1 and the stacks of all threads if one of them waits forever.
INTERRUPTING = """
import faulthandler, os, signal, sys, threading
from uqeval.threads import Threads, in_order

def in_pieces():
    for _, total in in_order(lambda job, check: (check(), sum(range(job)))[1], range(4), 2):
        pass

def mapped():
    with Threads(2) as threads:
        threads.map(lambda job: sum(range(job)), range(4))

used = {{"in_order": in_pieces, "map": mapped}}[{used!r}]

class Terminated(BaseException): ...

def end(number, frame):
    raise Terminated

signal.signal(signal.SIGTERM, end)

def steps(at, number):
    "Count the steps up to the one that raises the signal."
    count = 0
    def step(frame, event, argument):
        nonlocal count
        # Where Python handles signals: as a function starts, and after a function of C.
        if event not in ("call", "c_return"):
            return
        count += 1
        if count == at:
            sys.setprofile(None)
            signal.raise_signal(number)
    sys.setprofile(step)
    try:
        used()
    finally:
        sys.setprofile(None)
    return count

most = steps(0, 0)
before = threading.active_count()
interrupted = 0
for at in range(1, most + 1):
    faulthandler.dump_traceback_later(10, exit=True)
    number = signal.SIGINT if at % 2 else signal.SIGTERM
    try:
        steps(at, number)
    except (KeyboardInterrupt, Terminated) as error:
        assert isinstance(error, KeyboardInterrupt) == (number == signal.SIGINT), at
        interrupted += 1
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join()
    for later, kind in ((signal.SIGTERM, Terminated), (signal.SIGINT, KeyboardInterrupt)):
        try:
            signal.raise_signal(later)
        except kind:
            continue
        raise AssertionError((later, at))
faulthandler.cancel_dump_traceback_later()
assert most > 100 and interrupted > 0.9 * most, (most, interrupted)
print("ended")
"""


@pytest.mark.parametrize("used", ["in_order", "map"])
def test_an_interrupt_at_any_step_ends_all_threads(tmp_path: Any, used: str) -> None:
    done = run_script(INTERRUPTING.format(used=used), tmp_path)
    assert (done.status, done.stdout) == (0, "ended\n"), done.stderr


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_come_in_order(workers: int) -> None:
    def work(job: int, check: Callable[[], None]) -> int:
        time.sleep(0.004 if job % 4 else 0)
        return job * 10

    found = list(in_order(work, JOBS, workers))
    assert found == [(job, job * 10) for job in JOBS]


def test_few_results_wait() -> None:
    begun: list[int] = []

    def work(job: int, check: Callable[[], None]) -> None:
        begun.append(job)

    done = in_order(work, JOBS, 2)
    next(done)
    time.sleep(0.05)
    assert len(begun) <= 3 + 1
    done.close()


def test_an_early_end_stops_the_work() -> None:
    waiting = threading.Event()
    stopped: list[str] = []

    def work(job: int, check: Callable[[], None]) -> None:
        if job == 0:
            waiting.wait(5)
            raise DataError("item 0 is bad")
        waiting.set()
        try:
            for _ in range(1000):
                check()
                time.sleep(0.005)
        except BaseException as error:
            stopped.append(type(error).__name__)
            raise

    before = threading.active_count()
    with pytest.raises(DataError, match="item 0 is bad"):
        list(in_order(work, JOBS, 3))
    assert stopped and set(stopped) == {"Stopped"}
    assert threading.active_count() == before


def test_a_limit_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    start, most = threading.Thread.start, [2]

    def limited(thread: threading.Thread) -> None:
        most[0] -= 1
        if most[0] < 0:
            raise RuntimeError("can't start new thread")
        start(thread)

    before = threading.active_count()
    monkeypatch.setattr(threading.Thread, "start", limited)
    with pytest.raises(ThreadError, match="starts no further thread") as caught:
        list(in_order(lambda job, check: time.sleep(0.01), JOBS, 5))
    assert threading.active_count() == before
    with pytest.raises(ThreadError, match=r"`ulimit -u`"):
        within(5, list)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_signals_are_not_deferred_forever(tmp_path: Any) -> None:
    script = """
import signal
from uqeval import threads

signal.signal(signal.SIGINT, signal.default_int_handler)
reached = []
for threads._PATIENCE in (30.0, 0.0):
    try:
        with threads.uninterrupted():
            signal.raise_signal(signal.SIGINT)
            reached.append(threads._PATIENCE)
    except KeyboardInterrupt:
        reached.append("interrupted")
print(reached)
"""
    done = run_script(script, tmp_path)
    assert (done.status, done.stdout) == (0, "[30.0, 'interrupted', 'interrupted']\n"), done.stderr
