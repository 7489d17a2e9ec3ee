"""Do two models differ? They change places, unit by unit, and the difference is computed again.

If the models are equally good, each item could as well have come from the other one: the share of
random swaps whose difference is at least the observed one is the p-value. No store is opened: the
saved states of both models are summed in other combinations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from uqeval.statistics.draws import Resampling
from uqeval.statistics.scoring import Scoring
from uqeval.statistics.stacked import Stacked

if TYPE_CHECKING:
    from pathlib import Path

    from uqeval.metrics._columns import SetStates
    from uqeval.metrics._evaluation import Evaluation
    from uqeval.tallies import Tally

#: At most so many random swaps; all of them where the units allow no more than `EVERY`.
MOST = 10_000
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
    if resampling.units < 2:
        return {}
    pair = _Pair.of(one, other, places)
    addresses = [own for own in addresses if pair.has(own)]
    if not addresses:
        return {}
    both = pair.scores(np.ones((1, resampling.items), np.int64), addresses)[:, 0]
    observed = np.abs(both[0] - both[1])
    hits = dict.fromkeys(
        (own for own, value in zip(addresses, observed, strict=True) if np.isfinite(value)), 0
    )
    # Sums in another order may differ in the last places.
    rounding = 1e-12 * np.abs(both).max(axis=0)
    threshold = dict(zip(addresses, observed - rounding, strict=True))
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


class _Pair:
    """Two runs over 2n items each: the n items of one and then those of the other.

    The states of both are read once; each run scores them by its own settings.
    """

    def __init__(
        self,
        one: Scoring,
        other: Scoring,
        places: Sequence[Sequence[int]],
        partner: Mapping[Tally, Tally],
    ) -> None:
        back = {theirs: mine for mine, theirs in partner.items()}
        first, second = _Source(one, places[0], partner), _Source(other, places[1], back)

        def beside(tally: Tally) -> Stacked:
            stacks = [one.stacked(tally), other.stacked(partner[tally])]
            if stacks[0].is_centred:
                return Stacked.of(_Mixed(first, second, first), tally)
            return Stacked.beside(stacks, places)

        self.ours = Scoring(_Mixed(first, second, first), beside)
        self.theirs = Scoring(
            _Mixed(first, second, second), lambda tally: self.ours.stacked(back[tally])
        )
        self._back = back

    @classmethod
    def of(cls, one: Scoring, other: Scoring, places: Sequence[Sequence[int]]) -> _Pair:
        """Return the pair, by the tallies that have the same shape in both."""
        return cls(one, other, places, _partners(one, other))

    def has(self, address: str) -> bool:
        """Return whether both runs have a score, of tallies of the same shape."""
        keys = [own.key_of(address) for own in (self.ours, self.theirs)]
        if keys[0] is None or keys[0] != keys[1]:
            return False
        tallies = [_tallies(own.evaluations[keys[0]]) for own in (self.ours, self.theirs)]
        back = [self._back.get(own) for own in tallies[1]]
        return back == tallies[0]

    def differences(
        self, keeps: NDArray[np.int64], addresses: Sequence[str]
    ) -> NDArray[np.float64]:
        """Scores of the first model less those of the second, [swap, address]: each holds its own
        items where `keeps` [swap, item] is 1, those of the other where it is 0."""
        scores = self.scores(keeps, addresses)
        found: NDArray[np.float64] = scores[0] - scores[1]
        return found

    def scores(self, keeps: NDArray[np.int64], addresses: Sequence[str]) -> NDArray[np.float64]:
        """Scores of both models, [model, swap, address]."""
        weights = np.concatenate([keeps, 1 - keeps], axis=1)
        known: dict[tuple[Tally, int], tuple[SetStates, SetStates]] = {}

        def ours(tally: Tally, rows: slice) -> SetStates:
            known[tally, rows.start] = self.ours.stacked(tally).swapped(keeps[rows])
            return known[tally, rows.start][0]

        def theirs(tally: Tally, rows: slice) -> SetStates:
            return known.pop((self._back[tally], rows.start))[1]

        return np.stack([
            self.ours.table(weights, addresses, ours),
            self.theirs.table(1 - weights, addresses, theirs),
        ])  # fmt: skip


def _partners(one: Scoring, other: Scoring) -> dict[Tally, Tally]:
    """The tally of the other run for each of the first that has one of the same shape."""
    found: dict[Tally, Tally] = {}
    for key, evaluation in one.evaluations.items():
        if key not in other.evaluations:
            continue
        pairs = zip(_tallies(evaluation), _tallies(other.evaluations[key]), strict=False)
        for mine, own in pairs:
            free = mine not in found and own not in found.values()
            if free and type(mine) is type(own) and mine.fields == own.fields:
                found[mine] = own
    return found


def _tallies(evaluation: Evaluation[Any]) -> list[Tally]:
    """All tallies of a variant or part: those that are folded, those that are read item by item."""
    over = evaluation.over_items()
    return [*evaluation.tallies(), *(tally for tally, _ in over.of_states.values())]


@dataclass(frozen=True)
class _Source:
    """Some items of a run, and the tally of the other run for each of its own."""

    scoring: Scoring
    places: Sequence[int]
    partner: Mapping[Tally, Tally]

    def packed(self, tally: Tally) -> Iterator[bytes]:
        states = self.scoring.packed(tally)
        return (states[i] for i in self.places)


@dataclass(frozen=True)
class _Mixed:
    """The states of some items of one run, then those of the same items of another.

    What it takes to score them is of the run `by`, whose tallies have partners of the same shape in
    the other: their packed states are alike.
    """

    one: _Source
    other: _Source
    by: _Source
    evaluated: dict[tuple[int, str], tuple[int, str]] = field(default_factory=dict)

    @property
    def path(self) -> Path | str:
        return self.by.scoring.path

    @cached_property
    def index(self) -> dict[str, Any]:
        records, sizes = [], []
        for own in (self.one, self.other):
            records += [own.scoring.records[i] for i in own.places]
            sizes += [own.scoring.index["facts"]["sizes"][i] for i in own.places]
        names = [f"{k}/{i}" for k in (0, 1) for i in range(len(self.one.places))]
        index = self.by.scoring.index
        info = index["facts"] | {"sizes": sizes}
        return {**index, "items": names, "records": records, "facts": info}

    def states(self, parameters: Mapping[str, Any]) -> Iterator[bytes]:
        tally = next(own for own in self.by.partner if own.parameters() == parameters)
        for own in (self.one, self.other):
            yield from own.packed(tally if own is self.by else self.by.partner[tally])
