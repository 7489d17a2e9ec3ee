"""Resampling of items in units, which are drawn with replacement or left out one at a time.

The unit is the item, since the pixels of one image are not independent; or a group of items (a
drive, a city, a patient); or, in a video, a batch of neighbouring pairs or a sequence. Units are
drawn in the order of their names, so that the order of items does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from uqeval.arrays import Ints
from uqeval.settings import check_value, default_of
from uqeval.statistics.all_but import AllBut
from uqeval.statistics.options import CutOptions
from uqeval.statistics.sets_of_units import InUnits
from uqeval.statistics.weighting import Each, ItemSets, Subset, Weighting

DRAWS: int = default_of(CutOptions, "draws")
GENERATOR = "PCG64"
#: The largest numbers of weights and of swaps that are made at a time.
_BLOCK = 1 << 21


def generator(seed: int) -> np.random.Generator:
    """Return the generator that all draws use: PCG64."""
    return np.random.Generator(np.random.PCG64(seed))


@lru_cache(maxsize=64)  # the scores of a video have few different batches
def _codes(unit_of: tuple[str, ...]) -> Ints:
    """Return the index of each item's unit, in the order of the units' names."""
    codes = np.unique(np.array(unit_of), return_inverse=True)[1].reshape(-1)
    codes.setflags(write=False)
    return codes


@dataclass(frozen=True)
class Resampling:
    """Units of resampling: `unit_of` names the unit of each item.

    `unit` is "item", "group", "batch" or "sequence". `draws` and `seed` are of the bootstrap. In a
    video `lag1` is the autocorrelation of neighbouring pairs and `effective` the number of
    independent pairs that carry as much information; `problem`: the reason why there is no
    interval. `sequences`: the sequence of each pair, where each score has units of its own
    (`Samples.of_score`). `strata` names the set of each item where units are drawn within sets,
    such as in-distribution and out-of-distribution items; no unit is in two.

    Raises `UsageError` for draws or a seed that `CutOptions` does not allow.
    """

    unit_of: tuple[str, ...]
    draws: int = DRAWS
    seed: int = 0
    unit: str = "item"
    lag1: float | None = None
    effective: float | None = None
    problem: str | None = None
    strata: tuple[str, ...] | None = None
    sequences: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_value(CutOptions, "draws", self.draws)
        check_value(CutOptions, "seed", self.seed)

    @property
    def items(self) -> int:
        """Return the number of items."""
        return len(self.unit_of)

    @cached_property
    def codes(self) -> Ints:
        """Return the index of each item's unit, in the order of the units' names."""
        return _codes(self.unit_of)

    @cached_property
    def units(self) -> int:
        """Return the number of units."""
        return int(self.codes.max()) + 1 if self.items else 0

    @property
    def correlation(self) -> dict[str, float | None]:
        """Return the record of how far neighbouring pairs are alike; empty without a video."""
        return {} if self.effective is None else {"lag1": self.lag1, "effective": self.effective}

    def only(self, items: Sequence[int]) -> Resampling:
        """Return the units of some of the items."""
        units, strata, sequences = (
            None if own is None else tuple(own[i] for i in items)
            for own in (self.unit_of, self.strata, self.sequences)
        )
        assert units is not None
        return replace(self, unit_of=units, strata=strata, sequences=sequences)

    @cached_property
    def stratum_of(self) -> Ints:
        """Return the index of each unit's stratum; 0 for all without strata."""
        numbers = np.zeros(self.units, np.int64)
        if self.strata is not None:
            codes = np.unique(np.array(self.strata), return_inverse=True)[1].reshape(-1)
            numbers[self.codes] = codes
        return numbers

    @property
    def members(self) -> list[Ints]:
        """Return the units of each stratum."""
        return [np.flatnonzero(self.stratum_of == k) for k in np.unique(self.stratum_of)]

    def least(self, is_defined: NDArray[np.bool_]) -> int:
        """Return the smallest number of defined units of a stratum, over strata that have some."""
        counts = [int(is_defined[own].sum()) for own in self.members]
        return min((count for count in counts if count), default=0)

    def whole(self) -> ItemSets:
        """Return the set of all units."""
        return Subset(np.arange(self.units), self.units)

    def alone(self) -> ItemSets:
        """Return one set per unit, with only this unit."""
        return Each(np.arange(self.units))

    def without(self) -> ItemSets:
        """Return one set per unit, with all other units."""
        return AllBut(np.arange(self.units))

    def drawn(self) -> Iterator[Weighting]:
        """Yield random sets of units: how often each unit is in each draw, in blocks.

        The same for the same seed, whatever the size of a block.
        """
        rng = generator(self.seed)
        rows = max(_BLOCK // max(self.units, 1), 1)
        for first in range(0, self.draws, rows):
            counts = self._counts(rng, min(rows, self.draws - first))
            yield Weighting(counts.astype(np.min_scalar_type(-int(counts.max(initial=0)) - 1)))

    def of_items(self, units: ItemSets, places: Sequence[int], items: int) -> ItemSets:
        """Return sets of units as sets of `items` items, of which those at `places` are
        resampled."""
        at = np.asarray(places, np.int64)
        if self.is_of_items:
            return units.at(at[np.argsort(self.codes)], items)
        unit_of = np.full(items, -1)
        unit_of[at] = self.codes
        return InUnits(units, unit_of, self.units)

    @property
    def is_of_items(self) -> bool:
        """Return whether each item is a unit."""
        return self.units == self.items

    def swapped(self, count: int | None, seed: int) -> Iterator[NDArray[np.int8]]:
        """Yield weights [swap, item]: 1 where an item keeps its model, 0 where the two models
        change places, by whole units, in blocks. `count`: how many random ones; None: all 2^units
        of them, of which the first few are no random ones.
        """
        if count is None:
            every = (np.arange(2**self.units)[:, None] >> np.arange(self.units)) & 1
            assignments = every.astype(np.int8)
            for first in range(0, len(assignments), self._rows):
                yield assignments[first : first + self._rows, self.codes]
            return
        rng = generator(seed)
        step = min(self._rows, 256)  # blocks are small, so that a clear case ends early
        for first in range(0, count, step):
            signs = rng.integers(0, 2, (min(step, count - first), self.units))
            yield signs.astype(np.int8)[:, self.codes]

    @property
    def _rows(self) -> int:
        return max(_BLOCK // max(self.items, 1), 1)

    def _counts(self, rng: np.random.Generator, draws: int) -> Ints:
        counts = np.zeros((draws, self.units), np.int64)
        for units in self.members:
            counts[:, units] = rng.multinomial(
                units.size, np.full(units.size, 1 / units.size), draws
            )
        return counts
