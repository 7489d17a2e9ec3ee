"""Items that are read together are at consecutive positions of one array, in any order of items."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scenes import Chunked

from uqeval.stores.array import ItemArray
from uqeval.stores.batches import batch_ends, follow


def volume(slices: int, in_chunk: int) -> Chunked:
    values = np.zeros((slices, 2, 2), "f4")
    array = Chunked(values, (in_chunk, 2, 2), ("item", "y", "x"))
    array.axes = ("item", "y", "x")
    return array


@given(st.data())
def test_batches_are_runs_of_one_chunk_and_cover_all_items(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 4)), min_size=1))
    parts = [
        ItemArray(array, index)
        for array in (volume(*size) for size in sizes)
        for index in range(array.shape[0])
    ]
    order = data.draw(st.permutations(parts))
    ends = batch_ends([order])
    assert ends[0] == 0 and ends[-1] == len(order) and ends == sorted(set(ends))
    for item, (before, after) in enumerate(pairwise(order), 1):
        follows = after == ItemArray(before.array, before.index + 1)
        assert follow(order)[item - 1] == follows
        if item not in ends:
            chunk = before.array.chunks[0]
            assert follows and before.index // chunk == after.index // chunk


def test_a_run_in_one_chunk_is_one_batch() -> None:
    first, second = volume(4, 2), volume(2, 2)
    parts = [ItemArray(a, i) for a, i in ((first, 2), (first, 3), (second, 1), (first, 0))]
    assert batch_ends([parts]) == [0, 2, 3, 4]
    assert batch_ends([parts, [ItemArray(volume(1, 1), 0) for _ in parts]]) == [0, 1, 2, 3, 4]
