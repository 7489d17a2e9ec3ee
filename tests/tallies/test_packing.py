"""States of items packed together have the bytes of each packed alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from uqeval.tallies._fields import CountedItems, Field
from uqeval.tallies._packing import _MANY_ENTRIES, Packing

if TYPE_CHECKING:
    from uqeval.tallies._fields import Thin

ROWS, BINS = 4, 1 << 13
PACKING = Packing(
    "x", {"pixels": Field((ROWS, BINS), "int64"), "sum": Field((3,), "float64")}, added=()
)


def items(*entries: int) -> list[Thin]:
    """States with so many entries each."""
    rng = np.random.default_rng(0)
    return [
        [
            (np.sort(rng.choice(ROWS * BINS, n, replace=False)), rng.integers(1, 2**40, n)),
            (None, rng.normal(size=3)),
        ]
        for n in entries
    ]


@pytest.mark.parametrize(
    "entries",
    [(0, 0), (0, 5, 1), (_MANY_ENTRIES, _MANY_ENTRIES), (_MANY_ENTRIES + 1, 2 * _MANY_ENTRIES, 0)],
)
def test_many_and_few_entries_have_the_bytes_of_one_by_one(entries: tuple[int, ...]) -> None:
    states = items(*entries)
    packed = PACKING.pack_items(CountedItems.of(states))
    assert packed == [PACKING.pack(state) for state in states]
    for data, state in zip(packed, states, strict=True):
        for (places, values), (expected_places, expected) in zip(
            PACKING.unpack(data), state, strict=True
        ):
            assert (places is None) == (expected_places is None)
            if places is not None:
                np.testing.assert_array_equal(places, expected_places)
            np.testing.assert_array_equal(values, expected)
