"""Threads in the order of items; one that fails does not leave the others waiting."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from uqeval.maps.video import ItemOrder


class CalledOff(Exception):
    """The error that `check` raises after the run has ended."""


def nothing() -> None:
    pass


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_items_come_in_order(workers: int) -> None:
    order: list[int] = []

    def work(item: int) -> None:
        time.sleep(random.random() * 2e-3)
        with turnstile.turn(item, nothing):
            order.append(item)

    for items in (range(30), range(20, 30)):
        order.clear()
        turnstile = ItemOrder(items.start)
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(work, items))
        assert order == list(items)


def test_one_is_inside_at_a_time() -> None:
    turnstile, inside = ItemOrder(), threading.Lock()

    def work(item: int) -> None:
        with turnstile.turn(item, nothing):
            assert inside.acquire(blocking=False)
            time.sleep(1e-3)
            inside.release()

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(work, range(10)))


def test_a_failure_calls_the_others_off() -> None:
    turnstile, stopping = ItemOrder(), threading.Event()

    def check() -> None:
        if stopping.is_set():
            raise CalledOff

    def work(item: int) -> None:
        try:
            with turnstile.turn(item, check):
                if item == 2:
                    raise ValueError("damaged")
        except ValueError:
            stopping.set()
            raise

    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(work, item) for item in range(4)]
        errors = [future.exception(timeout=10) for future in futures]
    assert [type(error) for error in errors] == [type(None), type(None), ValueError, CalledOff]
