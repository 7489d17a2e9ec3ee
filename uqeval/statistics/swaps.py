"""Permutation test of two models: swap them unit by unit and recompute the difference.

If the models are equally good, each item could as well have come from the other one: the share of
random swaps whose difference is at least the observed one is the p-value. Swaps that leave a score
undefined do not count: given that it is defined, all others are equally likely. No store is opened:
the saved states of both models are summed in other combinations.

Scores that read only the order of an uncertainty are those of its ranks within each model: the
uncertainties of two models may have other scales, in which items of both together would have
another order (Venkatraman & Begg 1996). But one image may move the ranks of its model. Scores that
few ranks decide (`Metric.of_few_ranks`) have the larger p-value of two tests: swaps of ranks, and
of the uncertainties as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from uqeval.arrays import Floats
from uqeval.statistics.blocks import in_blocks, in_threads
from uqeval.statistics.checked_states import Evaluated
from uqeval.statistics.draws import Resampling
from uqeval.statistics.kinds import metric_at
from uqeval.statistics.scoring import ColumnsOfKey, Scoring
from uqeval.statistics.stacked import Stacked
from uqeval.statistics.swap_partners import all_tallies, partners_of, problem_of
from uqeval.statistics.swapping import Swaps
from uqeval.statistics.weighting import Subset

if TYPE_CHECKING:
    from pathlib import Path

    from uqeval.tallies._contract import Tally

#: The largest number of random swaps. If at most `EVERY` swaps are possible, all are made.
MOST = 10_000
EVERY = 4096
#: The largest number of blocks of swaps that are scored at a time.
_MOST_BLOCKS = 8
#: A test ends early after this number of swaps with at least the observed difference (Besag &
#: Clifford 1991), if these are at least this share of the swaps. A smaller share is near the levels
#: at which verdicts are decided, where 20 would give a p-value with an error of 22 %.
ENOUGH, CLEAR = 20, 0.2


@dataclass(frozen=True)
class NoTest:
    """Why a score has no test of swaps."""

    reason: str


@dataclass(frozen=True)
class SwapTest:
    """A two-sided p-value, and the number of swaps in which the score is defined."""

    p: float
    swaps: int


def least_p(units: int) -> float:
    """Return the smallest p-value that swaps of this number of units can give."""
    return 2.0 ** (1 - units) if 2**units <= EVERY else 1 / (MOST + 1)


def swap_tests(
    first: Scoring,
    second: Scoring,
    positions: Sequence[Sequence[int]],
    resampling: Resampling,
    addresses: Sequence[str],
) -> dict[str, SwapTest | NoTest]:
    """Return the test of every address that both runs have, over the same items of both, or why it
    has none.

    `positions` has the places of these items in each run. Undefined scores are left out. So are all
    for units with a `problem`, which are not independent: they have no intervals either.
    """
    if resampling.units < 2 or resampling.problem:
        return {}
    partners = partners_of(first, second, addresses)
    reasons = {address: problem_of(first, second, partners, address) for address in addresses}
    untested: dict[str, SwapTest | NoTest] = {
        address: NoTest(reason) for address, reason in reasons.items() if reason
    }
    if untested and len(untested) < len(addresses):
        # In one run, two variants may have the same tally: its partner is that of the first one.
        untested = swap_tests(first, second, positions, resampling, [*untested])
    addresses = [address for address in addresses if reasons[address] is None]
    if not addresses:
        return {**untested}
    in_threads(lambda scoring: scoring.read(addresses), [first, second])
    pair = _Pair(first, second, positions, partners)
    tests = _tests(pair, resampling, addresses)
    of_few = [address for address in tests if (m := metric_at(address)) and m.of_few_ranks]
    if of_few:
        as_they_are = _Pair(first, second, positions, partners, by_rank=False)
        for address, test in _tests(as_they_are, resampling, of_few).items():
            tests[address] = max(test, tests[address], key=lambda own: own.p)
    return untested | tests


def _tests(pair: _Pair, resampling: Resampling, addresses: Sequence[str]) -> dict[str, SwapTest]:
    """Return the test of every address whose observed difference is defined."""
    is_exact = 2**resampling.units <= EVERY
    counts = _counts(pair, resampling.items, addresses, is_exact)
    active = list(counts)
    for blocks in _growing(resampling.swapped(None if is_exact else MOST, resampling.seed)):
        if not active:
            break
        differences = np.abs(pair.differences(np.concatenate(blocks), active))
        ends = np.cumsum([len(block) for block in blocks])[:-1]
        for address, column in zip(active, differences.T, strict=True):
            for values in np.split(column, ends):
                counts[address].add(values)
        active = [address for address in active if not counts[address].is_decided]
    return {address: count.test() for address, count in counts.items()}


@dataclass
class _Count:
    """Counter of the swaps with a difference, and of those with at least `threshold`."""

    threshold: float
    is_exact: bool
    hits: int = 0
    swaps: int = 0

    @property
    def is_decided(self) -> bool:
        """Return whether no more swaps are needed."""
        return not self.is_exact and self.hits >= max(ENOUGH, CLEAR * self.swaps)

    def add(self, differences: Floats) -> None:
        """Count the differences [swap] of a block of swaps."""
        if not self.is_decided:
            defined = differences[np.isfinite(differences)]
            self.hits += int((defined >= self.threshold).sum())
            self.swaps += len(defined)

    def test(self) -> SwapTest:
        """Return the test; of random swaps the observed order counts as one."""
        extra = 0 if self.is_exact else 1
        p = min(1.0, (self.hits + extra) / (self.swaps + extra))
        return SwapTest(p, self.swaps)


def _counts(pair: _Pair, items: int, addresses: Sequence[str], is_exact: bool) -> dict[str, _Count]:
    """Return a count for each score whose observed difference is defined."""
    scores = pair.scores(np.ones((1, items), np.int8), addresses)[:, 0]
    observed = np.abs(scores[0] - scores[1])
    # Sums in another order may differ in the last digits.
    thresholds = observed - 1e-12 * np.abs(scores).max(axis=0)
    return {
        address: _Count(float(threshold), is_exact)
        for address, value, threshold in zip(addresses, observed, thresholds, strict=True)
        if np.isfinite(value)
    }


def _growing(blocks: Iterator[NDArray[np.int8]]) -> Iterator[list[NDArray[np.int8]]]:
    """Yield the blocks, more and more at a time: a clear case ends early, others are scored in few
    large products.
    """
    count = 1
    while group := list(islice(blocks, count)):
        yield group
        count = min(2 * count, _MOST_BLOCKS)


class _Pair:
    """Two runs over the same n items, as 2n items: those of the first, then of the second.

    The states of both are read once. Each run scores them with its own settings. `by_rank`: where
    only the order of uncertainties counts, they are the ranks within each run.
    """

    def __init__(
        self,
        first_scoring: Scoring,
        second_scoring: Scoring,
        positions: Sequence[Sequence[int]],
        partner: Mapping[Tally, Tally],
        by_rank: bool = True,
    ) -> None:
        partner_of_second = {
            second_tally: first_tally for first_tally, second_tally in partner.items()
        }
        first, second = (
            _Source(first_scoring, positions[0], partner),
            _Source(second_scoring, positions[1], partner_of_second),
        )

        def stack_pair(tally: Tally) -> Stacked:
            stacks = [first_scoring.stacked(tally), second_scoring.stacked(partner[tally])]
            if stacks[0].is_centred:
                return Stacked.of(_Mixed(first, second, first), tally)
            return Stacked.paired(stacks, positions, _factor(first, second, tally), by_rank)

        def ranked(values: Floats) -> Floats:
            return np.concatenate([_mean_ranks(own) for own in np.split(values, 2)])

        ordered = ranked if by_rank else None
        self.ours = Scoring(_Mixed(first, second, first), stack_pair, ordered)
        self.theirs = Scoring(
            _Mixed(first, second, second),
            lambda tally: self.ours.stacked(partner_of_second[tally]), ordered,
        )  # fmt: skip
        self._back = partner_of_second

    def differences(self, keeps_models: NDArray[np.int8], addresses: Sequence[str]) -> Floats:
        """Return the scores of the first model minus those of the second, [swap, address].

        Where `keeps_models` [swap, item] is 1, each model has its own item; where it is 0, that of
        the other.
        """
        scores = self.scores(keeps_models, addresses)
        return scores[0] - scores[1]

    def scores(self, keeps_models: NDArray[np.int8], addresses: Sequence[str]) -> Floats:
        """Return scores of both models, [model, swap, address]."""
        scores = np.full((2, len(keeps_models), len(addresses)), np.nan)

        def score(pair: tuple[ColumnsOfKey, ColumnsOfKey], rows: slice) -> None:
            swaps = Swaps(keeps_models[rows])
            first, second = {}, {}
            for tally in pair[1].tallies:
                partner = self._back[tally]
                first[partner], second[tally] = self.ours.stacked(partner).swapped(swaps)
            runs = zip(
                (self.ours, self.theirs), pair, swaps.weightings, (first, second), strict=True
            )
            for run, (scoring, columns, weighting, states) in enumerate(runs):
                scoring.fill(scores[run, rows], columns, weighting, states)

        pairs = self._columns(addresses)
        steps = in_threads(lambda pair: self.ours.block(pair[0]), pairs)
        in_blocks(score, [*zip(pairs, steps, strict=True)], len(keeps_models))
        return scores

    def _columns(self, addresses: Sequence[str]) -> list[tuple[ColumnsOfKey, ColumnsOfKey]]:
        """Return the columns of both runs, with the tallies that have a partner: others are of
        options of one run, and none of these scores reads them."""
        both = zip(self.ours.columns(addresses), self.theirs.columns(addresses), strict=True)
        pairs = []
        for first, second in both:
            theirs = tuple(tally for tally in second.tallies if tally in self._back)
            ours = tuple(self._back[tally] for tally in theirs)
            pairs.append((replace(first, tallies=ours), replace(second, tallies=theirs)))
        return pairs


@dataclass(frozen=True)
class _Source:
    """Some items of a run, and for each of its tallies that of the other run."""

    scoring: Scoring
    places: Sequence[int]
    partner: Mapping[Tally, Tally]

    def packed(self, tally: Tally) -> Iterator[bytes]:
        states = self.scoring.packed(tally)
        return (states[i] for i in self.places)

    def mean_uncertainty(self, tally: Tally) -> float:
        """Return that of the items together."""
        states = self.scoring.stacked(tally).sets(Subset(self.places, self.scoring.items))
        return float(tally.mean_uncertainty(states.fields)[0])


def _factor(first: _Source, second: _Source, tally: Tally) -> float:
    """Return by which factor the uncertainties of the second model are multiplied, so that their
    mean is that of the first; 1 if scores of the tally depend on the factor."""
    for evaluation in first.scoring.evaluations.values():
        tallies = all_tallies(evaluation)
        scales = [own for own in tallies if own.has_scale and own in first.partner]
        if tally in tallies and scales:
            mean = first.mean_uncertainty(scales[0])
            other = second.mean_uncertainty(first.partner[scales[0]])
            return mean / other if 0 < mean < np.inf and 0 < other < np.inf else 1.0
    return 1.0


def _mean_ranks(values: Floats) -> Floats:
    """Return the mean rank of each value among those that are not NaN, from 0 to 1."""
    ascending = np.sort(values[np.isfinite(values)])
    first, last = (np.searchsorted(ascending, values, side) for side in ("left", "right"))
    ranks: Floats = (first + last) / (2 * max(ascending.size, 1))
    return np.where(np.isfinite(values), ranks, np.nan)


@dataclass(frozen=True)
class _Mixed:
    """The states of some items of one run, then those of the same items of another.

    They are scored with the settings of the run `by`. Its tallies have partners of the same shape
    in the other run, so their packed states have the same format.
    """

    one: _Source
    other: _Source
    by: _Source
    evaluated: Evaluated = field(default_factory=dict)

    @property
    def path(self) -> Path | str:
        return self.by.scoring.path

    @cached_property
    def index(self) -> dict[str, Any]:
        records, sizes = [], []
        for states in (self.one, self.other):
            records += [states.scoring.records[i] for i in states.places]
            sizes += [states.scoring.index["facts"]["sizes"][i] for i in states.places]
        names = [f"{k}/{i}" for k in (0, 1) for i in range(len(self.one.places))]
        index = self.by.scoring.index
        info = index["facts"] | {"sizes": sizes}
        return {**index, "items": names, "records": records, "facts": info}

    def parameters(self) -> list[dict[str, Any]]:
        return [tally.parameters() for tally in self.by.partner]

    def states(self, parameters: Mapping[str, Any], most: int) -> Iterator[bytes]:
        tally = next(
            first_tally for first_tally in self.by.partner if first_tally.parameters() == parameters
        )
        for saved_states in (self.one, self.other):
            yield from saved_states.packed(
                tally if saved_states is self.by else self.by.partner[tally]
            )
