"""Frames that several threads ask for: loaded once, dropped after their last use."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from uqeval.maps.frame_ids import Frame, SharedFrames


class Loader:
    """Counts what is loaded; frames of `damaged` cannot be."""

    def __init__(self, damaged: int | None = None, seconds: float = 0.0) -> None:
        self.loaded: list[int] = []
        self.damaged = damaged
        self.seconds = seconds
        self._lock = threading.Lock()

    def __call__(self, index: int) -> Frame:
        with self._lock:
            self.loaded.append(index)
        time.sleep(self.seconds)
        if index == self.damaged:
            raise ValueError(f"frame {index} is damaged")
        return Frame(None, np.full((2, 3), index, np.uint8), (), None)


def uses(count: int, pairs: Any) -> list[int]:
    found = Counter(i for pair in pairs for i in pair)
    return [found[i] for i in range(count)]


PAIRS = [(k, k + 1) for k in range(11)]


@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.parametrize("workers", [1, 4])
def test_each_frame_is_loaded_once_a_pass(sequential: bool, workers: int) -> None:
    load = Loader(seconds=1e-3)
    frames = SharedFrames(load, uses(12, PAIRS), sequential)

    def work(pair: tuple[int, int]) -> list[int]:
        return [int(frames.take(i).grey[0, 0]) for i in pair]

    for _ in range(2):
        load.loaded.clear()
        with ThreadPoolExecutor(workers) as pool:
            assert list(pool.map(work, PAIRS)) == [list(pair) for pair in PAIRS]
        assert sorted(load.loaded) == list(range(12))
        assert not frames._frames, "all are dropped"


@pytest.mark.parametrize("sequential", [False, True])
def test_what_nobody_uses_is_not_loaded(sequential: bool) -> None:
    load = Loader()
    pairs = [(0, 1), (4, 5)]
    frames = SharedFrames(load, uses(8, pairs), sequential)
    for pair in pairs:
        for index in pair:
            frames.take(index)
    assert load.loaded == [0, 1, 4, 5]
    assert not frames._frames


@pytest.mark.parametrize("sequential", [False, True])
def test_pairs_that_are_skipped_are_not_kept(sequential: bool) -> None:
    load = Loader()
    frames = SharedFrames(load, uses(12, PAIRS), sequential)
    for k, pair in enumerate(PAIRS):
        for index in pair:
            frames.take(index) if k >= 7 else frames.skip(index)
    assert load.loaded == [7, 8, 9, 10, 11]
    assert not frames._frames
    for pair in PAIRS:  # another pass
        for index in pair:
            frames.take(index)
    assert load.loaded[5:] == list(range(12)) and not frames._frames


@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.parametrize("damaged", [0, 3, 11])
def test_an_error_reaches_all_who_wait_and_nobody_hangs(sequential: bool, damaged: int) -> None:
    frames = SharedFrames(Loader(damaged, 2e-3), uses(12, PAIRS), sequential)

    def work(pair: tuple[int, int]) -> None:
        for index in pair:
            frames.take(index)

    with ThreadPoolExecutor(6) as pool:
        futures = [pool.submit(work, pair) for pair in PAIRS]
        errors = [future.exception(timeout=10) for future in futures]
    failed = [pair for pair, error in zip(PAIRS, errors, strict=True) if error]
    assert all(str(error) == f"frame {damaged} is damaged" for error in errors if error)
    assert failed and {pair for pair in PAIRS if damaged in pair} <= set(failed)


def test_a_pass_that_is_skipped_whole_is_followed_by_another() -> None:
    frames = SharedFrames(Loader(), uses(12, PAIRS), sequential=True)
    for _ in range(2):
        for pair in PAIRS:
            for index in pair:
                frames.skip(index)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(frames.take, PAIRS[0][0]).result(timeout=10) is not None
