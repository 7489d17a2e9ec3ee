"""Memory of maps that is taken again."""

from __future__ import annotations

from threading import Thread
from typing import Any

import numpy as np

from uqeval.stores.buffer_pool import BufferPool

SHAPE = (512, 1024)


def place(values: Any) -> int:
    return int(values.__array_interface__["data"][0])


def test_memory_is_taken_again_once_nobody_holds_it() -> None:
    spare = BufferPool()
    first = spare.empty(SHAPE, np.float32)
    assert (first.shape, first.dtype) == (SHAPE, np.float32) and first.flags.c_contiguous
    assert first.flags.aligned and first.flags.writeable
    at, part = place(first), first[3:5].reshape(-1)
    part[...] = 7
    del first
    other = spare.empty(SHAPE, np.float32)
    assert place(other) != at and (part == 7).all()  # a view still holds it
    del part
    assert place(spare.empty((1000, 520), np.float32)) == at  # of about the same size


def test_small_arrays_and_other_sizes() -> None:
    spare = BufferPool()
    assert spare.empty((3, 0), np.uint8).shape == (3, 0)
    spare.empty((2048, 1024), np.float32)
    small = spare.empty(SHAPE, np.float32)
    assert small.base is not None and small.base.base.nbytes < 1.2 * small.nbytes


def test_memory_of_sizes_that_come_no_more_is_let_go() -> None:
    spare = BufferPool()
    for height in range(512, 4096, 64):
        for kind in (np.uint8, np.float32):
            spare.empty((height, 1024), kind)
    free = sum(len(block) for own in spare._free.values() for block in own)
    assert 0 < free < 1.2 * 5 * 4096 * 1024


def test_labels_do_not_free_the_memory_of_chunks() -> None:
    spare = BufferPool()
    chunk = place(spare.empty((64, *SHAPE), np.float16))
    held = []
    for _ in range(100):
        held.append(spare.empty(SHAPE, np.uint8))  # fresh memory each time
        assert place(spare.empty((64, *SHAPE), np.float16)) == chunk


def test_a_large_size_that_comes_no_more_is_let_go() -> None:
    spare = BufferPool()
    spare.empty((64, *SHAPE), np.float16)
    held = [spare.empty(SHAPE, np.uint8) for _ in range(200)]
    assert held and not any(spare._free.values())


def test_sizes_on_both_sides_of_a_bound_share_memory() -> None:
    spare = BufferPool()
    larger = place(spare.empty((577, 1024), np.uint8))
    for height in (575, 577, 575):
        assert place(spare.empty((height, 1024), np.uint8)) == larger


def test_memory_that_is_free_is_let_go() -> None:
    spare = BufferPool()
    used, _ = (spare.empty(SHAPE, np.uint8) for _ in range(2))
    del _
    spare.clear()
    assert not any(spare._free.values())
    at = place(used)
    del used
    assert place(spare.empty(SHAPE, np.uint8)) == at


def test_many_threads() -> None:
    spare, wrong = BufferPool(), []

    def work(value: int) -> None:
        for _ in range(50):
            mine = spare.empty(SHAPE, np.uint8)
            mine[...] = value
            if not (mine == value).all():
                wrong.append(value)

    threads = [Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
