"""Sets of items: each kind has the sums, the extremes and the means of its weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from uqeval.statistics import all_but, weighting
from uqeval.statistics.all_but import AllBut
from uqeval.statistics.item_values import SparseValues
from uqeval.statistics.sets_of_units import InUnits
from uqeval.statistics.weighting import Each, ItemSets, Subset, Weighting

RNG = np.random.default_rng(4)
MANY = RNG.random((12, 5)) < 0.3
VALUES = {
    "counts": RNG.integers(0, 99, (12, 5)),
    "sums": RNG.normal(size=(12, 5)),
    "infinite": np.where(RNG.random((12, 5)) < 0.1, np.inf, RNG.random((12, 5))),
    "few": RNG.normal(size=(12, 5)) * MANY,
}
UNIT_OF = np.array([0, 1, -1, 2, 2, 0, 1, 1, -1, 3, 3, 0])
DRAWN = RNG.integers(0, 4, (6, 4))
KINDS: dict[str, Callable[[], ItemSets]] = {
    "all": lambda: Subset(range(12), 12),
    "some": lambda: Subset([7, 1, 5], 12),
    "each": lambda: Each(np.arange(4)).at(np.array([7, 1, 5, 0]), 12),
    "all but one": lambda: AllBut(np.arange(9)).at(np.array([0, 2, 1, 3, 5, 8, 7, 6, 11]), 12),
    "part": lambda: AllBut(np.arange(12)).part(slice(5, 9)),
    "drawn": lambda: Weighting(DRAWN).at(np.array([3, 9, 2, 11]), 12),
    "signs": lambda: Weighting(RNG.integers(0, 2, (3, 12)) * 2 - 1),
    "groups drawn": lambda: InUnits(Weighting(DRAWN), UNIT_OF, 4),
    "all but a group": lambda: InUnits(AllBut(np.arange(4)), UNIT_OF, 4),
    "kept": lambda: Weighting(DRAWN).at(np.arange(4), 12).only(np.arange(12) % 2 == 0),
    "kept of each": lambda: Each(np.arange(12)).only(np.arange(12) % 3 == 0),
    "kept of groups": lambda: InUnits(Each(np.arange(4)), UNIT_OF, 4).only(np.arange(12) > 2),
}


@pytest.mark.parametrize("name", KINDS)
def test_sums_are_those_of_the_weights(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_but, "_GRID", 3)
    sets = KINDS[name]()
    weights = sets.dense(12)
    assert weights.shape == (sets.sets, 12) and weights.any()
    for kind, values in VALUES.items():
        if kind == "infinite" and name == "signs":
            continue
        terms = weights[:, :, None] * np.where(weights[:, :, None] != 0, values, 0)
        with np.errstate(invalid="ignore"):
            found = sets.sums(values)
        np.testing.assert_allclose(found, terms.sum(1), rtol=1e-12, atol=1e-12, err_msg=kind)
        sparse = SparseValues.of(values)
        np.testing.assert_array_equal(sparse.array(), values)
        np.testing.assert_allclose(sets.sums(sparse), found, rtol=1e-12, atol=1e-12, err_msg=kind)


@pytest.mark.parametrize("name", [name for name in KINDS if name != "signs"])
@pytest.mark.parametrize("undefined", [0.0, 0.4, 1.0])
def test_quantiles_are_those_of_the_items(name: str, undefined: float) -> None:
    rng = np.random.default_rng(8)
    values = rng.integers(0, 9, 12) / 8
    values[rng.random(12) < undefined] = rng.choice([np.nan, np.inf, -np.inf])
    sets, shares = KINDS[name](), [0.0, 0.13, 0.5, 0.9, 1.0]
    found = sets.quantiles(values, shares)
    for own, weights in zip(found, sets.dense(12), strict=True):
        times = np.where(np.isfinite(values), weights, 0)
        chosen = np.repeat(values, times)
        expected = np.quantile(chosen, shares) if chosen.size else np.full(5, np.nan)
        np.testing.assert_allclose(own, expected, rtol=1e-12)


def test_sums_of_a_slice_have_the_bits_of_its_items_alone() -> None:
    """They read no other items: of many slices, each would read all items of the set."""
    rng = np.random.default_rng(5)
    values, weights = rng.normal(size=(3000, 7)), rng.integers(0, 4, (50, 40))
    places = np.sort(rng.choice(3000, 40, replace=False))
    expected = Weighting(weights).sums(values[places])
    placed = Weighting(weights).at(places, 3000)
    np.testing.assert_array_equal(placed.sums(values), expected)
    np.testing.assert_array_equal(
        placed.part(slice(5, 9)).sums(values), Weighting(weights[5:9]).sums(values[places])
    )


@pytest.mark.parametrize("name", KINDS)
def test_weights_of_the_items_that_sets_have(name: str) -> None:
    sets = KINDS[name]()
    items, weights = sets.weights_of_items(12)
    dense = np.zeros((sets.sets, 12), np.int64)
    dense[:, items] = weights
    np.testing.assert_array_equal(dense, sets.dense(12))
    assert "each" not in name or weights.shape == (sets.sets, sets.sets)


@pytest.mark.parametrize("name", [name for name in KINDS if name != "signs"])
def test_extremes_and_means_are_those_of_the_weights(name: str) -> None:
    sets = KINDS[name]()
    weights, values = sets.dense(12), VALUES["sums"]
    for best, identity in ((np.maximum, -np.inf), (np.minimum, np.inf)):
        expected = [best.reduce(values[row > 0], axis=0, initial=identity) for row in weights]
        np.testing.assert_array_equal(sets.extremes(best, values, identity), expected)
    for numbers in (values[:, 0], values):
        numbers = np.where(RNG.random(numbers.shape) < 0.2, np.nan, numbers)
        repeated = np.repeat(weights, numbers[0].size, axis=1)
        known = np.isfinite(numbers.reshape(-1))
        with np.errstate(invalid="ignore"):
            mean = repeated[:, known] @ numbers.reshape(-1)[known] / repeated[:, known].sum(1)
        np.testing.assert_allclose(sets.mean(numbers), mean, rtol=1e-12)


@pytest.mark.parametrize("name", KINDS)
def test_parts_are_some_of_the_sets(name: str) -> None:
    sets = KINDS[name]()
    weights = sets.dense(12)
    for rows in (slice(0, 1), slice(2, 5), slice(0, 100)):
        np.testing.assert_array_equal(sets.part(rows).dense(12), weights[rows])
        assert sets.part(rows).sets == len(weights[rows])
    places = np.arange(12)[::-1] + 3
    moved: Any = sets.at(places, 17).dense(17)
    np.testing.assert_array_equal(moved[:, places], weights)
    assert moved.sum() == weights.sum()


@pytest.mark.parametrize("kind", ["i8", "f4"])
def test_counts_of_all_but_one_are_exact(kind: str) -> None:
    counts = RNG.integers(0, 2**17, (100, 3)).astype(kind)
    sets = AllBut(np.arange(100))
    expected = (1 - np.eye(100, dtype=np.int64)) @ counts.astype(np.int64)
    for values in (counts, SparseValues.of(counts)):
        sums = sets.part(slice(30, 60)).sums(values)
        assert sums.dtype == counts.dtype
        np.testing.assert_array_equal(sums, expected[30:60])


def test_parts_of_all_but_one_do_not_depend_on_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits in any order of the parts, for sums that are not exact."""
    monkeypatch.setattr(all_but, "_GRID", 16)
    values = RNG.normal(size=(100, 3))
    whole = AllBut(np.arange(100))
    slices = [slice(first, first + 7) for first in range(0, 100, 7)]
    once = [whole.part(rows).sums(values) for rows in slices]
    again = [AllBut(np.arange(100)).part(rows).sums(values) for rows in slices[::-1]][::-1]
    for found, expected in zip(once, again, strict=True):
        assert found.tobytes() == expected.tobytes()
    np.testing.assert_allclose(np.concatenate(once), whole.sums(values), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("places", [np.arange(12), np.arange(12)[::-1].copy()])
@pytest.mark.parametrize("kept_bytes", [0, 1 << 20])
def test_sums_that_are_computed_once_are_those_of_the_same_numbers(
    places: NDArray[np.int64], kept_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weighting, "_KEPT_SUMS", kept_bytes)
    drawn = Weighting(RNG.integers(0, 4, (6, 12)).astype(np.int8))
    first = drawn.at(places, 12)
    for values in (VALUES["sums"], VALUES["counts"], SparseValues.of(VALUES["few"])):
        found = first.sums(values)
        assert (drawn.at(places, 12).sums(values) is found) == (kept_bytes > 0)
        with pytest.raises(ValueError, match="read-only"):
            found += 1
    for _ in range(20):  # others may lie where numbers that are no longer used lay
        values = RNG.normal(size=(12, 5))
        expected = first.dense(12) @ values
        np.testing.assert_allclose(first.sums(values), expected, rtol=1e-12, atol=1e-12)
        del values
