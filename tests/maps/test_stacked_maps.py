"""Maps of several small items in common arrays."""

from __future__ import annotations

import numpy as np
import pytest
from scenes import ALL_MAPS, Chunked, all_same, chunked_source, labels, softmax

from uqeval.engine.scratch import Scratch
from uqeval.engine.strips import Strip
from uqeval.maps.contract import StackedMaps

N, T, C, H, W = 12, 3, 4, 2, 3


def source(items_in_chunk: int = 6, **more: object) -> object:
    """A source of small items, with every map of probabilities that `more` does not name."""
    array = Chunked(softmax(0, N, T, C, H, W, dtype="f2"), (items_in_chunk, T, C, H, W))
    return chunked_source(array, truth=labels(0, N, H, W, classes=C), **more)


@pytest.mark.parametrize("names", [None, ALL_MAPS])
def test_small_items_share_arrays(names: tuple[str, ...] | None) -> None:
    """Their maps are those of one item after another, to the bit."""
    small = source()
    if names is not None:
        small.want([*names, "label"])
    batch = small.batches()[1]
    together = small.read(batch)
    assert isinstance(together, StackedMaps) and len(together) == len(batch) == 6
    all_same(list(together), [small.read(range(i, i + 1))[0] for i in batch])
    assert not isinstance(small.read(range(3, 4)), StackedMaps)


def test_a_line_has_the_pixels_of_all_items() -> None:
    small = source()
    small.want([*ALL_MAPS, "label"])
    together = small.read(small.batches()[0])
    assert isinstance(together, StackedMaps)
    line, apart = Strip.of(together[1:5]), Strip.of([together[i] for i in range(1, 5)])
    assert line.first.tolist() == apart.first.tolist() == [0, 6, 12, 18, 24]
    for name in together.arrays:
        assert line[name].dtype == apart[name].dtype and line[name].flags.c_contiguous
        np.testing.assert_array_equal(line[name], apart[name], strict=True)
    joined = StackedMaps.joined([together[:2], together[2:]])
    all_same(list(joined), list(together))


@pytest.mark.parametrize("held", [N, 6, 3, 0])
def test_kept_arrays_are_read_back(held: int) -> None:
    """All batches fit in memory, only the first, or none, whose items are kept in files."""
    small = source()
    plain = [maps for batch in small.batches() for maps in small.read(batch)]
    memory = held * sum(values.nbytes for values in plain[0].values())
    with Scratch(memory) as scratch:
        for again in range(3):
            found = []
            for batch in small.batches():
                maps = scratch.read(small, batch, lambda _: None, small.wanted | {"label"})
                is_held = batch.stop <= held
                assert isinstance(maps, StackedMaps) == (again == 0 or is_held)
                found += list(maps)
            all_same(found, plain)
        part = scratch.read(small, range(2, 4), lambda _: None, small.wanted | {"label"})
        all_same(list(part), plain[2:4])
