"""Scores of the same items in one run or several: of all, without a unit, of a unit, of draws."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from uqeval.records.addresses import Address
from uqeval.statistics.draws import Resampling
from uqeval.statistics.kinds import DRAWN, kind_of
from uqeval.statistics.scoring import Scoring

if TYPE_CHECKING:
    from uqeval.metrics._columns import SetStates
    from uqeval.statistics.stacked import Stacked
    from uqeval.tallies import Tally

#: Weights of so many numbers are kept (32 MB), else made again for each variant.
_KEPT = 1 << 22
#: Which sets of items are scored: all once; all but one unit; one unit alone; random draws.
Sets = Literal["whole", "without", "alone", "drawn"]


@dataclass(frozen=True)
class Samples:
    """Items in the states of some runs: `places` has their places in each.

    `resampling` is of these items, in their order. Scores of one variant are computed together when
    the first of them is read: those that are `named` (None: all).
    """

    runs: Sequence[Scoring]
    places: Sequence[Sequence[int]]
    resampling: Resampling
    named: Collection[str] | None = None
    _made: dict[Sets, list[NDArray[np.int64]]] = field(default_factory=dict)
    _known: dict[Sets, dict[str, NDArray[np.float64]]] = field(default_factory=dict)
    _units: dict[tuple[int, Tally], Stacked] = field(default_factory=dict)
    _joining: Lock = field(default_factory=Lock)

    @classmethod
    def of_run(
        cls, scoring: Scoring, resampling: Resampling, items: Sequence[int] | None = None
    ) -> Samples:
        """Return the samples of some items of one run (None: all)."""
        positions = tuple(range(scoring.items)) if items is None else tuple(items)
        resampling_of_items = resampling if items is None else resampling.only(positions)
        return cls([scoring], [positions], resampling_of_items)

    def of(self, sets: Sets, address: str) -> NDArray[np.float64]:
        """Return the score at an address of each of the sets, [run, set]."""
        scores = self._known.setdefault(sets, {})
        if address not in scores:
            addresses = [
                missing for missing in self._beside(sets, address) if missing not in scores
            ]
            table = self.table(self._weights(sets), addresses)
            scores |= {scored: table[:, :, i] for i, scored in enumerate(addresses)}
        return scores[address]

    def _weights(self, sets: Sets) -> Iterable[NDArray[np.int64]]:
        """Return weights [set, item] in blocks; small ones are made once."""
        if self.resampling.items * self.resampling.draws > _KEPT:
            return getattr(self.resampling, sets)()  # type: ignore[no-any-return]
        if sets not in self._made:
            self._made[sets] = list(getattr(self.resampling, sets)())
        return self._made[sets]

    def _beside(self, sets: Sets, address: str) -> list[str]:
        """Return the scores of the same variant that are computed together.

        Of draws, and of all but one unit, only those whose intervals need the same sets. Only those
        that are named; of the whole set all of the same part, which need the same states.
        """
        scoring = self.runs[0]
        kinds = {text: kind_of(text) for text in scoring.addresses_of(Address.parse(address).key)}
        if self.named is not None:
            part = scoring.key_of(address)
            kinds = {
                text: kind for text, kind in kinds.items()
                if text in self.named or (sets == "whole" and scoring.key_of(text) == part)
            }  # fmt: skip
        addresses = list(kinds)
        if sets in ("drawn", "without"):
            needs_draws = kind_of(address) in DRAWN
            addresses = [
                text for text, kind in kinds.items() if kind and (kind in DRAWN) == needs_draws
            ]
        return list(dict.fromkeys([*addresses, address]))

    def value(self, address: str, run: int = 0) -> float:
        """Return the score of all items, NaN where it is undefined."""
        return float(self.of("whole", address)[run, 0])

    def table(
        self, weights: Iterable[NDArray[np.int64]], addresses: Sequence[str]
    ) -> NDArray[np.float64]:
        """Return scores by blocks of weights [set, item]: [run, set, address]."""
        blocks = [
            np.stack(
                [
                    self._of_run(scoring, positions, block, addresses)
                    for scoring, positions in zip(self.runs, self.places, strict=True)
                ]
            )
            for block in weights
        ]
        return np.concatenate(blocks, axis=1)

    def _of_run(
        self,
        scoring: Scoring,
        positions: Sequence[int],
        block: NDArray[np.int64],
        addresses: Sequence[str],
    ) -> NDArray[np.float64]:
        of_all = np.zeros((len(block), scoring.items), np.int64)
        of_all[:, list(positions)] = block
        if len(block) == 1 or 2 * self.resampling.units > self.resampling.items:
            return scoring.table(of_all, addresses)
        # The items of a unit have one weight: their states are added up once, not in each set.
        of_units = block[:, np.unique(self.resampling.codes, return_index=True)[1]]

        def sets(tally: Tally, rows: slice) -> SetStates:
            return self._joined(scoring, positions, tally).sets(of_units[rows])

        return scoring.table(of_all, addresses, sets)

    def _joined(self, scoring: Scoring, positions: Sequence[int], tally: Tally) -> Stacked:
        """Return the states of the units of one run."""
        key = (id(scoring), tally)
        with self._joining:
            if key not in self._units:
                unit_of = np.full(scoring.items, -1)
                unit_of[list(positions)] = self.resampling.codes
                self._units[key] = scoring.stacked(tally).by_unit(unit_of, self.resampling.units)
            return self._units[key]
