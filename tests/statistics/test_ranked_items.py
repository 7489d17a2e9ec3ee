"""Items in bins of ranks: threads share their tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from uqeval.statistics import ranked_items
from uqeval.statistics.ranked_items import RankedItems, weighted_by
from uqeval.statistics.swapping import Halves, Swaps
from uqeval.statistics.weighting import Weighting


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


def sparse_items(most: int) -> RankedItems:
    """Return 40 items of which each has a tenth of 700 bins."""
    rng = np.random.default_rng(0)
    item, column = np.nonzero(rng.random((40, 700)) < 0.1)
    fields = {
        "pixels": rng.integers(1, most, (2, item.size)),
        "errors": rng.random((1, item.size)),
    }
    return RankedItems._sorted(40, np.arange(700), item, column, fields)


@pytest.mark.parametrize("most", [5, 2**22])
@pytest.mark.parametrize("weight", [3, 100])
def test_sums_of_entries_are_those_of_arrays(
    most: int, weight: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = Weighting(np.random.default_rng(1).integers(-weight, weight, (9, 40)))
    arrays = sparse_items(most)
    monkeypatch.setattr(ranked_items, "_FEW", 0)
    entries = sparse_items(most)
    assert entries.is_sparse and not entries.is_large
    expected = arrays.whole("pixels", weighted_by(sets), 9)
    np.testing.assert_array_equal(entries.whole("pixels", weighted_by(sets), 9), expected)
    of_errors = [own.whole("errors", weighted_by(sets), 9) for own in (entries, arrays)]
    np.testing.assert_allclose(*of_errors, rtol=0, atol=1e-11)


@pytest.mark.parametrize("most", [5, 2**22])
def test_swaps_of_entries_are_those_of_arrays(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    swaps = Swaps(np.random.default_rng(1).integers(0, 2, (9, 20), np.int8))
    arrays = sparse_items(most)
    expected = [arrays.whole("pixels", fold, 9) for fold in swaps.folds({})]
    of_errors = [arrays.whole("errors", fold, 9) for fold in swaps.folds({})]
    monkeypatch.setattr(ranked_items, "_FEW", 0)
    entries = sparse_items(most)
    halves: dict[tuple[Any, ...], Halves | None] = {}
    for run, fold in enumerate(swaps.folds(halves)):
        np.testing.assert_array_equal(entries.whole("pixels", fold, 9), expected[run])
        found = entries.whole("errors", fold, 9)
        np.testing.assert_allclose(found, of_errors[run], rtol=0, atol=1e-12)
    assert None not in halves.values()
