"""Planes of items, each chunk decoded once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from scenes import Chunked

from uqeval.stores.array import ItemArray
from uqeval.stores.planes import Planes


def planes_of(array: Chunked, **options: Any) -> Planes:
    count = array.shape[array.axes.index("item")]
    return Planes([ItemArray(array, i) for i in range(count)], **options)


DATA = np.arange(7 * 4 * 5).reshape(7, 4, 5)


@pytest.mark.parametrize("chunks", [(1, 4, 5), (1, 2, 3), (3, 4, 5), (7, 1, 1), (9, 4, 5)])
def test_each_chunk_is_read_once(chunks: Any) -> None:
    array = Chunked(DATA, chunks, ("item", "y", "x"))
    planes = planes_of(array)
    for i in range(7):
        np.testing.assert_array_equal(planes.read(i), DATA[i])
        assert planes.size(i) == (4, 5)
        assert planes.where_of(i) == "chunked array"
    assert array.every_chunk_once()


@pytest.mark.parametrize("step", [1, 2, 3, 7, 9])
@pytest.mark.parametrize("items", [range(7), range(2, 6), range(4, 5)], ids=str)
def test_planes_read_together_are_the_planes(step: int, items: range) -> None:
    array = Chunked(DATA.transpose(1, 0, 2), (4, step, 5), ("y", "item", "x"))
    planes = planes_of(array)
    np.testing.assert_array_equal(planes.read_together(items), DATA[items])
    assert len(planes.read_together(items)) == len(items)


def test_planes_of_several_arrays_or_in_another_order_are_read_together() -> None:
    first, second = (Chunked(DATA + k, axes=("item", "y", "x")) for k in (0, 1000))
    places = [(first, 3), (first, 2), (second, 3), (second, 4)]
    planes = Planes([ItemArray(array, index) for array, index in places])
    expected = np.stack([DATA[3], DATA[2], DATA[3] + 1000, DATA[4] + 1000])
    for items in (range(4), range(2), range(1, 3), range(2, 4)):
        np.testing.assert_array_equal(planes.read_together(items), expected[items])
    alone = Planes([ItemArray(Chunked(plane, axes=("y", "x")), None) for plane in DATA[:3]])
    np.testing.assert_array_equal(alone.read_together(range(1, 3)), DATA[1:3])


@pytest.mark.parametrize("axes", [("y", "x", "item"), ("x", "item", "y"), ("item", "x", "y")])
def test_any_order_of_axes(axes: tuple[str, ...]) -> None:
    data = DATA.transpose([("item", "y", "x").index(a) for a in axes])
    planes = planes_of(Chunked(data, [2, 2, 2], axes))
    for i in range(7):
        np.testing.assert_array_equal(planes.read(i), DATA[i])


def test_planes_of_classes() -> None:
    data = np.arange(3 * 4 * 5 * 2).reshape(3, 4, 5, 2)
    planes = planes_of(Chunked(data, axes=("item", "y", "x", "class")), channels=True)
    np.testing.assert_array_equal(planes.read(1), data[1].transpose(2, 0, 1))
    assert planes.size(1) == (4, 5)


def test_items_of_their_own_arrays() -> None:
    arrays = [Chunked(DATA[0], axes=("y", "x")), Chunked(DATA[1, :2].T, axes=("x", "y"))]
    planes = Planes([ItemArray(array, None) for array in arrays])
    np.testing.assert_array_equal(planes.read(0), DATA[0])
    np.testing.assert_array_equal(planes.read(1), DATA[1, :2])
    assert [planes.size(i) for i in range(2)] == [(4, 5), (2, 5)]
    assert planes.kept_bytes() == 0
    assert planes.arrays == arrays


def test_items_in_another_order() -> None:
    array = Chunked(DATA, (2, 4, 5), ("item", "y", "x"))
    planes = Planes([ItemArray(array, i) for i in (6, 0, 3)])
    for i, k in enumerate((6, 0, 3)):
        np.testing.assert_array_equal(planes.read(i), DATA[k])
    assert planes.arrays == [array]


def test_few_chunks_are_kept() -> None:
    array = Chunked(DATA, (2, 4, 5), ("item", "y", "x"))
    planes = planes_of(array)
    assert planes.kept_bytes() == 2 * 2 * 20 * 8
    for i in (0, 2, 4, 6, 0):
        planes.read(i)
    assert array.reads[0, 0, 0] == 2
    assert planes_of(Chunked(DATA, (1, 4, 5), ("item", "y", "x"))).kept_bytes() == 0


def test_threads_read_a_chunk_once() -> None:
    array = Chunked(np.arange(40 * 6).reshape(40, 2, 3), (40, 2, 3), ("item", "y", "x"))
    planes = planes_of(array)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(planes.read, range(40)))
    np.testing.assert_array_equal(found, array.data)
    assert array.every_chunk_once()
