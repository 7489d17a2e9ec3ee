"""How often items are drawn: sums, whole groups, blocks, seeds."""

from __future__ import annotations

import numpy as np
import pytest
from saved_runs import weights_of

from uqeval.errors import UsageError
from uqeval.statistics.draws import Resampling, block_size


@pytest.mark.parametrize("items", [1, 2, 7, 50])
def test_items(items: int) -> None:
    weights = weights_of(Resampling(500), items)
    assert weights.shape == (500, items) and weights.dtype == np.int64
    assert (weights >= 0).all() and (weights.sum(axis=1) == items).all()


def test_every_item_is_as_likely() -> None:
    weights = weights_of(Resampling(20_000), 5)
    assert weights.mean(axis=0) == pytest.approx(np.ones(5), abs=0.03)
    assert weights.var(axis=0) == pytest.approx(np.full(5, 0.8), abs=0.04)  # binomial(5, 1/5)
    assert np.cov(weights.T)[0, 1] == pytest.approx(-0.2, abs=0.04)


def test_a_seed_says_all() -> None:
    first, again, other = (weights_of(Resampling(200, seed), 9) for seed in (3, 3, 4))
    assert (first == again).all() and (first != other).any()


@pytest.mark.parametrize("how", [{}, {"groups": tuple("aabcc")}, {"sequences": tuple("aaabb")}])
@pytest.mark.parametrize("most", [1, 5 * 7, 5 * 199])
def test_blocks_of_draws_are_the_same_draws(
    monkeypatch: pytest.MonkeyPatch, how: dict[str, tuple[str, ...]], most: int
) -> None:
    (whole,) = Resampling(200, 3, **how).weights(5)
    monkeypatch.setattr("uqeval.statistics.draws._BLOCK", most)
    parts = list(Resampling(200, 3, **how).weights(5))
    assert max(part.size for part in parts) <= max(most, 5)
    assert (np.concatenate(parts) == whole).all()
    alone = list(Resampling(200, 3, **how).alone(5))
    assert max(part.size for part in alone) <= max(most, 5)


def test_groups_are_drawn_whole() -> None:
    groups = tuple("abacbbad")
    weights = weights_of(Resampling(300, groups=groups), 8)
    for name in set(groups):
        own = weights[:, [g == name for g in groups]]
        assert (own == own[:, :1]).all()
    firsts = weights[:, [groups.index(name) for name in "abcd"]]
    assert (firsts.sum(axis=1) == 4).all()
    assert Resampling(groups=groups).units(8) == 4 and Resampling(groups=groups).unit == "group"


def test_blocks_are_neighbours_of_one_sequence() -> None:
    sequences = tuple("a" * 20 + "b" * 7)
    drawn = Resampling(4000, sequences=sequences)
    weights = weights_of(drawn, 27)
    assert drawn.unit == "block" and drawn.units(27) == 9
    assert (weights.sum(axis=1) == 27).all()
    # Circular: the ends of a sequence are as likely as its middle, and drawn together.
    assert weights.mean(axis=0) == pytest.approx(np.ones(27), abs=0.1)
    cov = np.corrcoef(weights.T)
    assert cov[0, 1] > 0.5 and cov[0, 19] > 0.5 and cov[20, 26] > 0.5
    assert abs(cov[19, 20]) < 0.15 and abs(cov[0, 10]) < 0.15


def test_blocks_of_a_sequence_that_is_shorter_go_round() -> None:
    sequences = tuple("a" * 26 + "b")
    weights = weights_of(Resampling(500, sequences=sequences), 27)
    assert (weights.sum(axis=1) == 27).all() and set(weights[:, 26] % 3) == {0}


@pytest.mark.parametrize(("items", "size"), [(1, 1), (2, 2), (8, 2), (9, 3), (27, 3), (28, 4),
                                             (1000, 10), (1001, 11), (10**6, 100)])  # fmt: skip
def test_block_sizes(items: int, size: int) -> None:
    assert block_size(items) == size


def test_some_of_the_items() -> None:
    own = Resampling(100, groups=tuple("aabbc")).only([1, 2, 4])
    assert own.groups == ("a", "b", "c") and weights_of(own, 3).shape == (100, 3)
    assert Resampling(100, sequences=tuple("aabb")).only([3, 0]).sequences == ("b", "a")


def test_each_by_itself() -> None:
    (alone,) = Resampling().alone(3)
    assert (alone == np.eye(3)).all()
    (alone,) = Resampling(groups=("x", "y", "x")).alone(3)
    assert alone.tolist() == [[1, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize("draws", [0, 99, 100_001])
def test_too_few_or_too_many(draws: int) -> None:
    with pytest.raises(UsageError, match="--draws"):
        Resampling(draws)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(UsageError, match="--seed -1"):
        Resampling(seed=-1)


def test_of_many_items_few_draws_are_held() -> None:
    assert next(Resampling().weights(100_000)).shape == (20, 100_000)
    assert next(Resampling().weights(10_000_000)).shape == (1, 10_000_000)
