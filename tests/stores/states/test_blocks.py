"""Which items are counted and saved together."""

from __future__ import annotations

import itertools

import pytest

from uqeval.stores.states.blocks import ItemBlocks


def blocks_of(sizes: list[tuple[int, int]], classes: int) -> list[range]:
    blocks = ItemBlocks(sizes, classes)
    return list(blocks.split(range(len(sizes))))


def test_large_items_are_alone_and_small_ones_together() -> None:
    large, small = (1024, 2048), (64, 64)
    assert blocks_of([large] * 3, 19) == [range(1), range(1, 2), range(2, 3)]
    assert [len(block) for block in blocks_of([small] * 30, 19)] == [13, 13, 4]
    assert [len(block) for block in blocks_of([(1, 1)] * 600, 10)] == [256, 256, 88]
    assert blocks_of([small, large, small, small], 1) == [range(1), range(1, 2), range(2, 4)]
    assert blocks_of([], 3) == []


@pytest.mark.parametrize("classes", [0, 1, 1000])
def test_every_item_is_in_one_block(classes: int) -> None:
    sizes = [(1 + i % 40, 1 + (7 * i) % 300) for i in range(1000)]
    blocks, found = ItemBlocks(sizes, classes), blocks_of(sizes, classes)
    assert list(itertools.chain(*found)) == list(range(1000))
    assert all(blocks.of(item) == block for block in found for item in block)


def test_some_items_are_split_at_the_blocks() -> None:
    blocks = ItemBlocks([(1, 1)] * 600, 2)
    assert list(blocks.split(range(250, 520))) == [
        range(250, 256), range(256, 512), range(512, 520)
    ]  # fmt: skip
