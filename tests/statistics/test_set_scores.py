from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from uqeval.arrays import Floats
from uqeval.statistics import set_scores
from uqeval.statistics.set_scores import SetScores

SETS, WIDTH, BLOCK = 1000, 200, 64
NAMES = [str(i) for i in range(WIDTH)]


def table(differing: float, seed: int = 0) -> Floats:
    """Return numbers [set, column] that are those of their column but for a share of them."""
    rng = np.random.default_rng(seed)
    most = rng.choice([0.25, -0.0, np.nan, 1e300], WIDTH)
    others = rng.choice([0.5, 0.0, np.nan, -np.nan, -1e-300], (SETS, WIDTH))
    return np.where(rng.random((SETS, WIDTH)) < differing, others, most)


def stored(numbers: Floats) -> SetScores:
    """Return the scores of blocks that three threads put in another order."""
    scores = SetScores(SETS)
    place = scores.add(NAMES)
    firsts = np.random.default_rng(1).permutation(np.arange(0, SETS, BLOCK)).tolist()
    with ThreadPoolExecutor(3) as pool:
        blocks = [numbers[first : first + BLOCK].copy() for first in firsts]
        list(pool.map(place.put, firsts, blocks))
    place.close()
    return scores


@pytest.mark.parametrize("small", [0, SETS * WIDTH])
@pytest.mark.parametrize("differing", [0.0, 0.01, 0.24, 0.26, 1.0])
def test_numbers_keep_their_bits(
    differing: float, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(set_scores, "_SMALL", small)
    numbers = table(differing)
    scores = stored(numbers)
    for i, name in enumerate(NAMES):
        own, expected = scores[name], numbers[:, i]
        np.testing.assert_array_equal(own, expected)
        np.testing.assert_array_equal(np.signbit(own[own == 0]), np.signbit(expected[own == 0]))


def test_sets_after_the_first_block_may_all_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_scores, "_SMALL", 0)
    numbers = np.concatenate([np.zeros((BLOCK, WIDTH)), table(1.0)[BLOCK:]])
    scores = SetScores(SETS)
    place = scores.add(NAMES)
    for first in range(0, SETS, BLOCK):
        place.put(first, numbers[first : first + BLOCK].copy())
    place.close()
    np.testing.assert_array_equal(np.stack([scores[name] for name in NAMES], axis=1), numbers)


def test_equal_numbers_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_scores, "_SMALL", 0)
    numbers = table(0.01)
    tracemalloc.start()
    scores = stored(numbers)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert scores["0"].size == SETS
    assert kept < numbers.nbytes / 10


def test_scores_that_nobody_put_are_undefined() -> None:
    scores = SetScores(3)
    scores.add(["a"]).close()
    for name in ("a", "b"):
        np.testing.assert_array_equal(scores[name], [np.nan] * 3)
