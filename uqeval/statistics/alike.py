"""Scores of the same items in one run or in several, over draws that are alike for all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from uqeval.statistics.draws import Resampling
from uqeval.statistics.scoring import Scoring


@dataclass(frozen=True)
class Alike:
    """Items in the states of some runs: `places` says where they stand in each.

    `resampling` is of these items, in their order. Weights are made and used up in blocks, so that
    what is held does not grow with the number of draws.
    """

    runs: Sequence[Scoring]
    places: Sequence[Sequence[int]]
    resampling: Resampling

    @property
    def items(self) -> int:
        """How many items are drawn."""
        return len(self.places[0])

    def values(self, addresses: Sequence[str]) -> NDArray[np.float64]:
        """The scores of all items, each taken once, [run, address]."""
        whole = np.ones((1, self.items), np.int64)
        return self._scores([whole], addresses)[:, 0]

    def draws(self, addresses: Sequence[str]) -> NDArray[np.float64]:
        """The scores of each draw, [run, draw, address]."""
        return self._scores(self.resampling.weights(self.items), addresses)

    def units_with(self, addresses: Sequence[str]) -> NDArray[np.int64]:
        """How many units have a score of their own in all runs, [address]."""
        alone = self._scores(self.resampling.alone(self.items), addresses)
        there = np.isfinite(alone).all(axis=0).sum(axis=0)
        # Items of a block are no independent ones.
        found: NDArray[np.int64] = -(-there * self.resampling.units(self.items) // alone.shape[1])
        return found

    def _scores(
        self, weights: Iterable[NDArray[np.int64]], addresses: Sequence[str]
    ) -> NDArray[np.float64]:
        """Scores by blocks of weights [set, item]: [run, set, address]."""
        blocks = [
            np.stack([
                self._of_run(scoring, places, block, addresses)
                for scoring, places in zip(self.runs, self.places, strict=True)
            ])
            for block in weights
        ]  # fmt: skip
        return np.concatenate(blocks, axis=1)

    @staticmethod
    def _of_run(
        scoring: Scoring, places: Sequence[int], block: NDArray[np.int64], addresses: Sequence[str]
    ) -> NDArray[np.float64]:
        of_all = np.zeros((len(block), scoring.items), np.int64)
        of_all[:, list(places)] = block
        return scoring.table(of_all, addresses)


@dataclass(frozen=True)
class Units:
    """How many units have the score at each of some addresses, counted when it is first asked."""

    alike: Alike
    addresses: Sequence[str]

    def __call__(self, column: int) -> int:
        return int(self._counted[column])

    @cached_property
    def _counted(self) -> NDArray[np.int64]:
        return self.alike.units_with(self.addresses)
