"""States of items that were counted before, in blocks of one file or two."""

from __future__ import annotations

import pytest

from uqeval.stores.states.blocks import Block, Blocks, KnownStates, Layer, PackedItems

MOST = 100


def block(first: int, *states: bytes) -> Block:
    return Block(first, len(states), lambda: PackedItems.of(list(states)).data)


def damaged() -> bytes:
    raise OSError("cannot be read")


def test_an_item_is_found_in_its_block() -> None:
    known = KnownStates([Layer(Blocks([block(3, b"d"), block(0, b"a", b"b")]))], MOST)
    assert known == {0: b"a", 1: b"b", 3: b"d"}
    assert 2 not in known and "0" not in known
    with pytest.raises(KeyError):
        known[2]
    assert known.of(range(2)) == [b"a", b"b"]


def test_the_first_file_that_has_an_item_gives_it() -> None:
    new = Layer(Blocks([block(1, b"new")]))
    old = Layer(Blocks([block(0, b"x", b"y", b"z")]), {0: 2, 1: 0, 5: 1})
    known = KnownStates([new, old], MOST)
    assert known == {0: b"z", 1: b"new", 5: b"y"}


def test_only_items_of_a_whole_block_in_order_are_taken_as_they_are_packed() -> None:
    blocks = Blocks([block(0, b"a", b"b")])
    known = KnownStates([Layer(blocks)], MOST)
    assert known.packed(range(2)) == PackedItems.of([b"a", b"b"])
    assert known.packed(range(1)) is None
    swapped = KnownStates([Layer(blocks, {0: 1, 1: 0})], MOST)
    assert swapped.packed(range(2)) is None
    assert swapped.of(range(2)) == [b"b", b"a"]


def test_a_damaged_block_is_as_one_that_is_not_there() -> None:
    known = KnownStates([Layer(Blocks([Block(0, 2, damaged), Block(2, 1, lambda: b"x")]))], MOST)
    for item in range(3):
        with pytest.raises(KeyError):
            known[item]
    with pytest.raises(KeyError):
        known.packed(range(2))


@pytest.mark.parametrize(
    ("firsts", "items"), [([0, 2], 3), ([0, 1], 3), ([1, 2], 3), ([0], 3), ([], 1)]
)
def test_blocks_that_leave_out_or_repeat_items(firsts: list[int], items: int) -> None:
    blocks = Blocks([block(first, b"a", b"b") for first in firsts])
    assert not blocks.cover(items)


def test_blocks_that_have_each_item_once() -> None:
    assert Blocks().cover(0)
    assert Blocks([block(2, b"c"), block(0, b"a", b"b")]).cover(3)
