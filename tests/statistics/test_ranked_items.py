"""Items in bins of ranks: threads share their tiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqeval.statistics.ranked_items import RankedItems


class Tile:
    """A tile; another thread adds one while its bytes are counted."""

    def __init__(self, tiles: dict[Any, Any]) -> None:
        self.tiles = tiles

    @property
    def nbytes(self) -> int:
        self.tiles[object()] = self
        return 8


def test_another_thread_may_add_a_tile() -> None:
    ranked = RankedItems(
        2, np.arange(3), np.array([0, 1, 1], "i4"), np.array([0, 1, 2], "i4"),
        {"counts": np.array([[1, 2, 3]])},
    )  # fmt: skip
    tiles: dict[Any, Any] = ranked._dense
    tiles["another"] = Tile(tiles)
    np.testing.assert_array_equal(ranked.tile("counts", 0, False), [[1, 0, 0], [0, 2, 3]])
    assert len(tiles) == 3


def test_items_without_pixels_have_totals_of_no_tile() -> None:
    empty = np.zeros(0, "i4")
    ranked = RankedItems(2, np.arange(0), empty, empty, {"counts": np.zeros((3, 0), "i8")})
    states = ranked.sets(lambda make, key: np.zeros((4, 0)), 4, {})
    assert states.tiles.totals("counts").shape == (4, 3, 0)
