"""Scores of the same items in one run or several: of all, without a unit, of a unit, of draws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from uqeval.statistics.draws import Resampling
from uqeval.statistics.scoring import Scoring

#: Which sets of items are scored: all once; all but one unit; one unit alone; random draws.
Sets = Literal["whole", "without", "alone", "drawn"]


@dataclass(frozen=True)
class Samples:
    """Items in the states of some runs: `places` says where they stand in each.

    `resampling` is of these items, in their order. Scores of one variant are computed together when
    the first of them is asked for.
    """

    runs: Sequence[Scoring]
    places: Sequence[Sequence[int]]
    resampling: Resampling
    _known: dict[tuple[Sets, str], dict[str, NDArray[np.float64]]] = field(default_factory=dict)

    @classmethod
    def of_run(
        cls, scoring: Scoring, resampling: Resampling, items: Sequence[int] | None = None
    ) -> Samples:
        """Return the samples of some items of one run (None: all)."""
        places = tuple(range(scoring.items)) if items is None else tuple(items)
        own = resampling if items is None else resampling.only(places)
        return cls([scoring], [places], own)

    def of(self, sets: Sets, address: str) -> NDArray[np.float64]:
        """Return the score at an address of each of the sets, [run, set]."""
        key = self._key(address)
        if (sets, key) not in self._known:
            addresses = [own for own in self.runs[0].addresses if self._key(own) == key]
            addresses += [] if address in addresses else [address]
            table = self.table(getattr(self.resampling, sets)(), addresses)
            self._known[sets, key] = {own: table[:, :, i] for i, own in enumerate(addresses)}
        known = self._known[sets, key]
        if address not in known:
            known[address] = self.table(getattr(self.resampling, sets)(), [address])[:, :, 0]
        return known[address]

    def value(self, address: str, run: int = 0) -> float:
        """Return the score of all items, NaN where it is undefined."""
        return float(self.of("whole", address)[run, 0])

    def _key(self, address: str) -> str:
        places = self.runs[0].addresses.get(address)
        return str(places[0]) if places else address

    def table(
        self, weights: Iterable[NDArray[np.int64]], addresses: Sequence[str]
    ) -> NDArray[np.float64]:
        """Return scores by blocks of weights [set, item]: [run, set, address]."""
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
