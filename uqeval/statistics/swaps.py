"""Do two models differ? They change places, unit by unit, and the difference is computed again.

If the models are equally good, each item could as well have come from the other one: the share of
random swaps whose difference is at least the observed one is the p-value. No store is opened: the
saved states of both models are summed in other combinations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from uqeval.statistics.draws import Resampling
from uqeval.statistics.scoring import Scoring

if TYPE_CHECKING:
    from pathlib import Path

    from uqeval.tallies import Tally

#: At most so many random swaps; all of them where the units allow no more than `EVERY`.
MOST = 2000
EVERY = 4096
#: So many swaps with at least the observed difference end a test early (Besag & Clifford 1991).
ENOUGH = 20


@dataclass(frozen=True)
class SwapTest:
    """A two-sided p-value, the smallest one that is possible, and how many swaps were made."""

    p: float
    least: float
    swaps: int


def least_p(units: int) -> float:
    """Return the smallest p-value that swaps of so many units can give."""
    return 2.0 ** (1 - units) if 2**units <= EVERY else 1 / (MOST + 1)


def swap_tests(
    one: Scoring,
    other: Scoring,
    places: Sequence[Sequence[int]],
    resampling: Resampling,
    addresses: Sequence[str],
) -> dict[str, SwapTest]:
    """Return the test of every address that both runs have, over the same items of both.

    `places` says where these items stand in each run. Scores whose tallies differ in shape, and
    undefined ones, have none.
    """
    pair = _Pair.of(one, other, places)
    if pair is None or resampling.units < 2:
        return {}
    observed = pair.differences(np.ones((1, resampling.items), np.int64), addresses)[0]
    hits = dict.fromkeys(
        (own for own, value in zip(addresses, observed, strict=True) if np.isfinite(value)), 0
    )
    threshold = {own: abs(v) * (1 - 1e-12) for own, v in zip(addresses, observed, strict=True)}
    exact = 2**resampling.units <= EVERY
    made = dict.fromkeys(hits, 0)
    active = list(hits)
    for block in resampling.swapped(EVERY if exact else MOST, resampling.seed):
        if not active:
            break
        found = np.abs(pair.differences(block, active))
        for column, own in enumerate(active):
            values = found[:, column]
            hits[own] += int((values[np.isfinite(values)] >= threshold[own]).sum())
            made[own] += len(block)
        active = [own for own in active if exact or hits[own] < ENOUGH]
    extra = 0 if exact else 1  # of all swaps the observed order is one already
    least = least_p(resampling.units)
    return {
        own: SwapTest(min(1.0, (hits[own] + extra) / (made[own] + extra)), least, made[own])
        for own in hits
    }


@dataclass(frozen=True)
class _Pair:
    """Two runs over 2n items each: their own n items and then those of the other run."""

    ours: Scoring
    theirs: Scoring

    @classmethod
    def of(cls, one: Scoring, other: Scoring, places: Sequence[Sequence[int]]) -> _Pair | None:
        mixed = []
        for (a, at), (b, bt) in (
            ((one, places[0]), (other, places[1])), ((other, places[1]), (one, places[0])),
        ):  # fmt: skip
            partner = _partners(a, b)
            if partner is None:
                return None
            mixed.append(Scoring(_Mixed(a, at, b, bt, partner)))
        return cls(*mixed)

    def differences(
        self, keeps: NDArray[np.int64], addresses: Sequence[str]
    ) -> NDArray[np.float64]:
        """Scores of the first model less those of the second, [swap, address]: each holds its own
        items where `keeps` [swap, item] is 1, those of the other where it is 0."""
        weights = np.concatenate([keeps, 1 - keeps], axis=1)
        return self.ours.table(weights, addresses) - self.theirs.table(weights, addresses)


def _partners(one: Scoring, other: Scoring) -> dict[str, Tally] | None:
    """The tally of the other run for each of the first, by its parameters; None if they differ."""
    found: dict[str, Tally] = {}
    for key, again in one.agains.items():
        theirs = other.agains.get(key)
        if theirs is None or len(theirs.tallies) != len(again.tallies):
            return None
        for mine, own in zip(again.tallies, theirs.tallies, strict=True):
            if type(mine) is not type(own) or mine.fields != own.fields:
                return None
            found[repr(mine.parameters())] = own
    return found


@dataclass(frozen=True)
class _Mixed:
    """The states of some items of one run, then those of the same items of another."""

    one: Scoring
    places: Sequence[int]
    other: Scoring
    other_places: Sequence[int]
    partner: Mapping[str, Tally]
    evaluated: dict[int, tuple[int, str]] = field(default_factory=dict)

    @property
    def path(self) -> Path | str:
        return self.one.path

    @property
    def index(self) -> dict[str, Any]:
        records = [self.one.records[i] for i in self.places]
        records += [self.other.records[i] for i in self.other_places]
        names = [f"{k}/{i}" for k in (0, 1) for i in range(len(self.places))]
        sizes = [self.one.index["facts"]["sizes"][i] for i in self.places]
        sizes += [self.other.index["facts"]["sizes"][i] for i in self.other_places]
        facts = self.one.index["facts"] | {"sizes": sizes}
        return {**self.one.index, "items": names, "records": records, "facts": facts}

    def states(self, parameters: Mapping[str, Any]) -> Iterator[bytes]:
        tally = next(t for t in self.one.tallies if t.parameters() == parameters)
        packed = self.one.packed(tally)
        yield from (packed[i] for i in self.places)
        own = self.partner[repr(parameters)]
        theirs = self.other.packed(own)
        yield from (tally.pack(own.unpack(theirs[i])) for i in self.other_places)
