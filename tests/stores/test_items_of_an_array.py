"""Items of one array, which are made when they are read."""

from __future__ import annotations

import numpy as np
import pytest

from uqeval.stores.array import ItemArray, ItemsOf, arrays_of
from uqeval.stores.files.numpy_array import in_memory
from uqeval.stores.stack import Member
from uqeval.stores.watched_parts import PartsByItem, WatchedText

ARRAY = in_memory(np.zeros((9, 2, 3, 4), np.float32))
ARRAY.axes = ("item", "class", "y", "x")


def test_items_are_those_of_a_list() -> None:
    items, expected = ItemsOf(ARRAY, range(9)), [ItemArray(ARRAY, index) for index in range(9)]
    assert list(items) == expected and len(items) == 9
    assert [items[i] for i in range(-9, 9)] == [expected[i] for i in range(-9, 9)]
    for rows in (slice(2, 5), slice(None, None, -2), slice(7, 100)):
        assert list(items[rows]) == expected[rows]
        assert list(items[rows][::2]) == expected[rows][::2]
    with pytest.raises(IndexError):
        items[9]


def test_arrays_are_each_named_once() -> None:
    other = in_memory(np.zeros((3, 3)))
    items = [ItemArray(other, 0), *ItemsOf(ARRAY, range(2)), ItemArray(other, 2)]
    assert arrays_of(items) == [other, ARRAY]
    assert arrays_of(ItemsOf(ARRAY, range(5))) == [ARRAY]
    assert arrays_of(ItemsOf(ARRAY, range(0))) == arrays_of(()) == []


def test_arrays_of_a_member() -> None:
    items = ItemsOf(ARRAY, range(9))
    member = Member(items)
    assert member.arrays == [ARRAY] and member.array_of(8) is ARRAY
    assert ARRAY.length("class") == 2 and ARRAY.length("sample") == 1
    other = in_memory(np.zeros((5, 3, 4), np.float32))
    other.axes = ("class", "y", "x")
    mixed = Member([*items[:2], ItemArray(other, None)])
    assert mixed.arrays == [ARRAY, other] and mixed.array_of(2) is other


def test_sources_of_each_item() -> None:
    text, items = WatchedText("probs labels"), ItemsOf(ARRAY, range(9))
    columns = [items, list(items[::-1])]
    sources, expected = (
        PartsByItem(text, columns),
        [(text, *two) for two in zip(*columns, strict=True)],
    )
    assert list(sources) == expected and len(sources) == 9
    assert sources[3] == expected[3] and list(sources[6:]) == expected[6:]
    with pytest.raises(ValueError, match="items"):
        PartsByItem(text, [items, items[:3]])
