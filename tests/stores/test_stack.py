"""Stacks cut into tiles that follow the chunks."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenes import Chunked, stack_of

from uqeval.errors import StoreError
from uqeval.stores.array import ItemArray, follow
from uqeval.stores.stack import Box, batch_ends

AXES = ("item", "sample", "class", "y", "x")


def numbered(*shape: int, dtype: str = "f4") -> Any:
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


def gathered(stack: Any) -> list[Any]:
    """All items put together again from their tiles."""
    items = [
        np.full((stack.samples, stack.classes, *stack.size(i)), -1.0) for i in range(stack.items)
    ]
    for batch in stack.batches():
        for box in stack.boxes(batch[0]):
            for tile in stack.tiles(batch, box):
                t, c = tile.values.shape[:2]
                place = (
                    slice(tile.t0, tile.t0 + t), slice(tile.c0, tile.c0 + c),
                    slice(box.y0, box.y1), slice(box.x0, box.x1),
                )  # fmt: skip
                assert (items[tile.item][place] == -1).all()
                items[tile.item][place] = tile.values
    return items


@given(st.data())
def test_tiles_make_up_the_stack_and_read_each_chunk_once(data: st.DataObject) -> None:
    shape = [data.draw(st.integers(1, 5)) for _ in range(5)]
    members = []
    for _ in range(data.draw(st.integers(1, 3))):
        shape[1] = data.draw(st.integers(1, 4))
        order = data.draw(st.permutations(range(5)))
        chunks = [data.draw(st.integers(1, n + 1)) for n in shape]
        values = numbered(*shape)
        members.append(
            (
                values,
                Chunked(
                    values.transpose(order), [chunks[k] for k in order], [AXES[k] for k in order]
                ),
            )
        )
    stack = stack_of(*(array for _, array in members))
    assert stack.samples == sum(values.shape[1] for values, _ in members)
    joint = np.concatenate([values for values, _ in members], axis=1)
    np.testing.assert_array_equal(gathered(stack), joint)
    assert all(array.every_chunk_once() for _, array in members)


def test_tiles_come_in_ascending_order() -> None:
    stack = stack_of(Chunked(numbered(2, 4, 6, 3, 3), (2, 2, 4, 3, 3)))
    (batch,) = stack.batches()
    (box,) = stack.boxes(0)
    found = [(tile.t0, tile.c0, tile.item) for tile in stack.tiles(batch, box)]
    assert found == [(t, c, i) for t in (0, 2) for c in (0, 4) for i in (0, 1)]
    assert not stack.tiling(0).whole
    assert stack.tiling(0).splits_classes


def test_logits_come_with_all_their_classes() -> None:
    stack = stack_of(Chunked(numbered(1, 2, 6, 3, 3), (1, 1, 2, 3, 3)), kind="logits")
    assert not stack.tiling(0).splits_classes
    (box,) = stack.boxes(0)
    assert [tile.values.shape for tile in stack.tiles(range(1), box)] == [(1, 6, 3, 3)] * 2


def test_boxes_are_made_of_whole_chunks_of_every_member() -> None:
    stack = stack_of(
        Chunked(numbered(1, 1, 2, 12, 7), (1, 1, 2, 2, 7)),
        Chunked(numbered(1, 1, 2, 12, 7), (1, 1, 2, 3, 4)),
    )
    assert stack.boxes(0) == (Box(0, 6, 0, 7), Box(6, 12, 0, 7))
    assert stack.boxes(0)[0].pixels == 42
    assert not stack.tiling(0).whole


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [([1], [1] * 5), ([2], [2, 2, 1]), ([2, 3], [5]), ([9], [5]), ([1, 2], [2, 2, 1])],
)
def test_items_that_share_chunks_form_a_batch(chunks: list[int], expected: list[int]) -> None:
    members = [Chunked(numbered(5, 1, 2, 2, 2), (n, 1, 2, 2, 2)) for n in chunks]
    batches = stack_of(*members).batches()
    assert [len(batch) for batch in batches] == expected
    assert [i for batch in batches for i in batch] == list(range(5))


def test_items_of_their_own_arrays() -> None:
    axes = ("sample", "class", "y", "x")
    sizes = [(3, 4), (5, 2)]
    arrays = [Chunked(numbered(2, 3, *size), (1, 2, 2, 2), axes) for size in sizes]
    stack = stack_of(arrays)
    assert [stack.size(i) for i in range(2)] == sizes
    for found, array in zip(gathered(stack), arrays, strict=True):
        np.testing.assert_array_equal(found, array.data)
        assert array.every_chunk_once()


def test_bytes_of_the_largest_tile() -> None:
    stack = stack_of(Chunked(numbered(4, 5, 3, 10, 9, dtype="f2"), (2, 2, 3, 4, 9)))
    assert stack.tile_bytes(range(2)) == 2 * 2 * 3 * 4 * 9 * 2


def test_one_dtype_and_scale_are_uniform() -> None:
    shape = (1, 1, 2, 2, 2)
    u8 = [Chunked(np.ones(shape, "u1"), scale=s) for s in (0.5, 0.5, 0.25)]
    assert stack_of(*u8[:2]).uniform
    assert not stack_of(*u8).uniform
    assert not stack_of(u8[0], Chunked(np.ones(shape, "u2"), scale=0.5)).uniform
    assert not stack_of(Chunked(np.ones(shape, "f2")), Chunked(np.ones(shape, "f4"))).uniform


@pytest.mark.parametrize("scale", [None, 0, -1.0, 1.5, "1", True])
def test_integers_need_a_scale(scale: Any) -> None:
    array = Chunked(np.ones((1, 1, 2, 2, 2), "u1"), scale=scale)
    with pytest.raises(StoreError, match=r"scale .* expected a number in \(0, 1\]"):
        stack_of(array).scale(array)


@pytest.mark.parametrize("dtype", ["i1", "i8", "?"])
def test_dtypes_that_are_no_probabilities(dtype: str) -> None:
    with pytest.raises(StoreError, match="expected float16"):
        stack_of(Chunked(np.ones((1, 1, 2, 2, 2), dtype)))


def test_what_must_agree() -> None:
    one = Chunked(numbered(2, 2, 3, 4, 4))
    with pytest.raises(StoreError, match=r"store 1 holds 1 item, store 0 holds 2"):
        stack_of(one, Chunked(numbered(1, 2, 3, 4, 4)))
    with pytest.raises(StoreError, match=r"item 0 has .*\(4, 4, 4\).*\(3, 4, 4\)"):
        stack_of(one, Chunked(numbered(2, 2, 4, 4, 4)))
    axes = ("sample", "class", "y", "x")
    for shape, what in (((3, 3, 4, 4), "samples"), ((2, 4, 4, 4), "classes")):
        with pytest.raises(StoreError, match=f"item 0 has .* {what}, item 1 has"):
            stack_of(
                [Chunked(numbered(2, 3, 4, 4), axes=axes), Chunked(numbered(*shape), axes=axes)]
            )


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
