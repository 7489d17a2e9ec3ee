"""Units of resampling: their weights, their order, frozen draws."""

from __future__ import annotations

import numpy as np
import pytest
from saved_runs import weights_of

from uqeval.errors import UsageError
from uqeval.statistics import draws as module
from uqeval.statistics.draws import Resampling

ITEMS = tuple(f"item_{i}" for i in range(9))


def test_each_draw_has_as_many_units() -> None:
    weights = weights_of(Resampling(ITEMS, 500))
    assert weights.shape == (500, 9) and (weights.sum(1) == 9).all()
    assert np.abs(weights.mean(0) - 1).max() < 0.2


def test_groups_are_drawn_whole() -> None:
    groups = tuple("ccaabbbdd")
    weights = weights_of(Resampling(groups, 300, unit="group"))
    for name in "abcd":
        own = weights[:, [i for i, g in enumerate(groups) if g == name]]
        assert (own == own[:, :1]).all()
    assert Resampling(groups).units == 4


def test_the_order_of_items_does_not_matter() -> None:
    order = [4, 0, 8, 2, 1, 7, 3, 6, 5]
    plain, turned = Resampling(ITEMS, 200, 3), Resampling(tuple(ITEMS[i] for i in order), 200, 3)
    assert (weights_of(plain)[:, order] == weights_of(turned)).all()
    for sets in ("without", "alone"):
        ours, theirs = (weights_of(r, sets) for r in (plain, turned))
        assert (ours[:, order] == theirs).all()


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Resampling(ITEMS, 300, 5)
    whole = weights_of(own)
    monkeypatch.setattr(module, "_BLOCK", 60)
    assert (weights_of(own) == whole).all()


def test_frozen_draws() -> None:
    """PCG64 and NumPy's multinomial numbers: a change would change every published interval."""
    weights = weights_of(Resampling(tuple("abcdef"), 100, 7))
    assert weights[:3].tolist() == FROZEN
    assert (weights_of(Resampling(tuple("abcdef"), 100, 8))[:3] != weights[:3]).any()


FROZEN = [[1, 2, 1, 0, 1, 1], [2, 0, 2, 1, 0, 1], [0, 1, 1, 1, 2, 1]]


def test_leaving_out_and_alone() -> None:
    own = Resampling(tuple("bbac"))
    assert weights_of(own, "without").tolist() == [
        [1, 1, 0, 1],
        [0, 0, 1, 1],
        [1, 1, 1, 0],
    ]
    assert weights_of(own, "whole").tolist() == [[1, 1, 1, 1]]
    assert weights_of(own, "alone").tolist() == [[0, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1]]
    assert own.only([1, 3]).unit_of == ("b", "c")


def test_swaps_of_few_units_are_all_there_are() -> None:
    found = np.concatenate(list(Resampling(tuple("aabc")).swapped(None, 0)))
    assert len(found) == 8 == len({tuple(row) for row in found.tolist()})
    assert (found[:, 0] == found[:, 1]).all() and set(found.ravel()) == {0, 1}
    many = np.concatenate(list(Resampling(tuple(map(str, range(20)))).swapped(1000, 0)))
    assert many.shape == (1000, 20) and 0.45 < many.mean() < 0.55
    # 2^13 are fewer than 10,000: also the first of them are random, as a test may stop there.
    units = tuple(f"{unit:02}" for unit in range(13) for _ in range(1000))
    first = next(Resampling(units).swapped(10_000, 0))
    assert (first.mean(axis=0) > 0.3).all() and (first.mean(axis=0) < 0.7).all()


@pytest.mark.parametrize(("draws", "seed"), [(99, 0), (100_001, 0), (200, -1)])
def test_refusals(draws: int, seed: int) -> None:
    with pytest.raises(UsageError, match="expected"):
        Resampling(ITEMS, draws, seed)
