"""Scores of sets of items of one or several runs: all, all but a unit, a single unit, draws."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from uqeval.arrays import Floats
from uqeval.metrics._contract import IntervalKind
from uqeval.records.addresses import Address, number_at
from uqeval.statistics.blocks import in_threads
from uqeval.statistics.draws import Resampling
from uqeval.statistics.kinds import DRAWN, kind_of, metric_at
from uqeval.statistics.methods import are_equal
from uqeval.statistics.scoring import Scoring
from uqeval.statistics.set_scores import SetScores
from uqeval.statistics.units import resampling_of_video
from uqeval.statistics.weighting import ItemSets, Subset

if TYPE_CHECKING:
    from uqeval.metrics._columns import SetStates
    from uqeval.statistics.stacked import Stacked
    from uqeval.tallies._contract import Tally

#: The largest number of weights in the cache; larger draws are made again for each variant.
_KEPT = 1 << 25
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
    #: The results of these items of a single run, without bins where they are known.
    results: Mapping[str, Any] | None = None
    _draws: list[ItemSets] = field(default_factory=list)
    #: By address: of each block of sets, the scores of each run.
    _known: dict[Sets, dict[str, list[list[SetScores]]]] = field(default_factory=dict)
    #: The scores that are computed together, by what they have in common.
    _groups: dict[tuple[Any, ...], dict[str, None]] = field(default_factory=dict)
    _units: dict[tuple[int, Tally], Stacked] = field(default_factory=dict)
    #: By levels and runs, then address: the shares of a score that may be the true one (`flips`).
    shares: dict[tuple[tuple[float, ...], tuple[int, ...]], dict[str, tuple[float, ...]]] = field(
        default_factory=dict
    )
    _joining: Lock = field(default_factory=Lock)
    #: The samples of the same items in other units.
    _in_units: dict[tuple[str, ...], Samples] = field(default_factory=dict)

    @classmethod
    def of_run(
        cls, scoring: Scoring, resampling: Resampling, items: Sequence[int] | None = None
    ) -> Samples:
        """Return the samples of some items of one run (None: all)."""
        positions = tuple(range(scoring.items)) if items is None else tuple(items)
        resampling_of_items = resampling if items is None else resampling.only(positions)
        return cls([scoring], [positions], resampling_of_items)

    def of_score(
        self, address: str, series_of: Callable[[Floats], Sequence[Floats]] = list
    ) -> Samples:
        """Return the samples in the units of the score at an address.

        The batches of a video are long compared with the autocorrelation time of what each pair
        adds to the score: the scores without each pair, which `series_of` makes series of (by
        default one for each run) from an array [run, pair]. The pairs of one score may be alike
        over longer than those of another. Pairs without the score are left out. No score has more
        independent pairs than the headline: what a rare class adds is spread over few pairs, from
        which their autocorrelation cannot be seen. Other units are those of all scores.
        """
        sequences = self.resampling.sequences
        if sequences is None:
            return self
        by_item = self.by_item
        alone, without = (
            by_item.scores(sets, address)[:, by_item.resampling.codes]
            for sets in ("alone", "without")
        )
        if np.isfinite(alone).any():  # a correlation has no value of a single pair
            without = np.where(np.isfinite(alone), without, np.nan)
        with np.errstate(all="ignore"):
            series = [_additions(own) for own in series_of(without)]
        own = resampling_of_video(
            series, sequences, self.resampling.draws, self.resampling.seed,
            self.resampling.effective,
        )  # fmt: skip
        return self._in(own)

    @cached_property
    def by_item(self) -> Samples:
        """Return the samples of the same items, each of which is a unit."""
        names = tuple(self.runs[0].names[i] for i in self.places[0])
        return self._in(Resampling(names, self.resampling.draws, self.resampling.seed))

    def _in(self, resampling: Resampling) -> Samples:
        """Return the samples in other units. Those in the same units share their scores."""
        self._in_units.setdefault(self.resampling.unit_of, self)
        if resampling.unit_of not in self._in_units:
            self._in_units[resampling.unit_of] = Samples(
                self.runs, self.places, resampling, self.named, self.results,
                _in_units=self._in_units,
            )  # fmt: skip
        return replace(self._in_units[resampling.unit_of], resampling=resampling)

    def scores(self, sets: Sets, address: str) -> Floats:
        """Return the score at an address of each of the sets, [run, set]."""
        if address not in self._known.get(sets, {}):
            self._score(sets, self.beside(sets, address))
        blocks = self._known[sets][address]
        return np.concatenate([[scores[address] for scores in runs] for runs in blocks], axis=1)

    def _score(self, sets: Sets, addresses: Iterable[str]) -> None:
        """Compute the scores that are not known, together: they share sums of states."""
        known = self._known.setdefault(sets, {})
        missing = [address for address in addresses if address not in known]
        if missing:
            known |= dict.fromkeys(missing, self._blocks(self.sets(sets), missing))

    def sets(self, sets: Sets) -> Sequence[ItemSets] | Iterable[ItemSets]:
        """Return sets of units, in blocks; draws are made once, if they are few."""
        if sets != "drawn":
            return [getattr(self.resampling, sets)()]
        if self.resampling.units * self.resampling.draws > _KEPT:
            return self.resampling.drawn()
        if not self._draws:
            self._draws.extend(self.resampling.drawn())
        return self._draws

    def beside(self, sets: Sets, address: str) -> list[str]:
        """Return the scores of the same variant that are computed together.

        For draws and for all but one unit: only named scores whose intervals need the same sets.
        For the whole set: all scores of the same part, which need the same states.
        """
        key, part, needs = Address.parse(address).key, None, None
        if sets in ("drawn", "without"):
            needs = sets, _needs(kind_of(address), sets)
        elif sets == "whole" and self.named is not None:
            part = self.runs[0].key_of(address)
        group = key, part, needs
        if group not in self._groups:
            self._groups[group] = dict.fromkeys(self._together(*group))
        together = self._groups[group]
        return [*together] if address in together else [*together, address]

    def _together(
        self, key: str, part: str | None, needs: tuple[Sets, bool] | None
    ) -> Iterator[str]:
        """Yield the named scores of a variant, and with a `part` all scores of this part.

        `needs`: only those whose intervals need these sets (True), or do not need them (False).
        """
        scoring = self.runs[0]

        def is_asked(text: str) -> bool:
            if self.named is None or text in self.named:
                return True
            return part is not None and scoring.key_of(text) == part

        for text in filter(is_asked, scoring.addresses_of(key)):
            kind = None if needs is None else kind_of(text)
            if needs is None or (kind and _needs(kind, needs[0]) == needs[1]):
                yield text

    def value(self, address: str, run: int = 0) -> float:
        """Return the score of all items, NaN where it is undefined."""
        return float(self.scores("whole", address)[run, 0])

    def exact(self, address: str, run: int = 0) -> float | None:
        """Return the score of all items without bins; None if it is not known, or undefined."""
        scoring = self.runs[run]
        if self.results is not None:
            place = scoring.path_in_results(address)
            return None if place is None else number_at(self.results, place)
        return scoring.exact(address) if self.is_whole(run) else None

    def is_whole(self, run: int = 0) -> bool:
        """Return whether they are all items of a run."""
        places = self.places[run]
        return len(places) == self.runs[run].items == len(set(places))

    def defined(self, address: str, runs: Sequence[int] = (0,)) -> NDArray[np.bool_]:
        """Return the units from which the score at an address is computed, in all of some runs.

        They are those in which the score is defined, or those of the kind that its metric names
        (`Metric.units_with`) of which there are fewest. If no unit is of this kind but the score is
        defined, such as the AURC without wrong pixels, it is computed from all units.
        """
        own, *kinds = self._alone(address, runs)
        found: NDArray[np.bool_] = np.logical_and.reduce(own)
        if not kinds:
            return found
        in_all: list[NDArray[np.bool_]] = [np.logical_and.reduce(kind) for kind in kinds]
        rarest = min(in_all, key=np.count_nonzero)
        return rarest if rarest.any() else found

    def contributing(self, address: str, runs: Sequence[int]) -> NDArray[np.bool_]:
        """Return the units that can change the score at an address in any of some runs: those in
        which it is defined, or that are of a kind that its metric names."""
        found: NDArray[np.bool_] = np.logical_or.reduce(np.concatenate(self._alone(address, runs)))
        return found

    def _alone(self, address: str, runs: Sequence[int]) -> list[NDArray[np.bool_]]:
        """Return whether each single unit has the score at an address, then whether it is of each
        kind that its metric names: [run, unit]."""

        def alone(scored: str) -> Floats:
            return self.scores("alone", scored)[list(runs)]

        metric, parsed = metric_at(address), Address.parse(address)
        units_with = () if metric is None else metric.units_with
        # A kind is a score that is defined, or counts of which one is above 0.
        addresses_of_kinds = [
            [parsed.beside(name).within for name in ([kind] if isinstance(kind, str) else kind)]
            for kind in units_with
        ]
        needed = [address, *chain.from_iterable(addresses_of_kinds)]
        if not self._known.get("alone", {}).keys() >= set(needed):
            self._score("alone", dict.fromkeys([*self.beside("alone", address), *needed]))
        kinds = [
            np.isfinite(alone(addresses[0]))
            if isinstance(kind, str)
            else np.logical_or.reduce([alone(count) > 0 for count in addresses])
            for kind, addresses in zip(units_with, addresses_of_kinds, strict=True)
        ]
        return [np.isfinite(alone(address)), *kinds]

    def _blocks(
        self, blocks: Iterable[ItemSets], addresses: Sequence[str]
    ) -> list[list[SetScores]]:
        """Return scores of blocks of sets of units: of each block, those of each run."""
        # Unpacking the states takes as long as scoring them: threads read several runs at once.
        in_threads(lambda scoring: scoring.read(addresses), list(dict.fromkeys(self.runs)))
        runs = list(zip(self.runs, self.places, strict=True))
        return [
            in_threads(lambda run: self._of_run(*run, block, addresses), runs)  # noqa: B023
            for block in blocks
        ]

    def _of_run(
        self, scoring: Scoring, positions: Sequence[int], block: ItemSets, addresses: Sequence[str]
    ) -> SetScores:
        if isinstance(block, Subset):  # all items once, with the bits of the run
            return scoring.scores(Subset(positions, scoring.items), addresses)
        sets = self.resampling.of_items(block, positions, scoring.items)
        if self.resampling.is_of_items:
            return scoring.scores(sets, addresses)

        def states_of(tally: Tally, rows: slice) -> SetStates:
            return self.states(scoring, positions, tally, block.part(rows))

        return scoring.scores(sets, addresses, states_of)

    def states(
        self, scoring: Scoring, positions: Sequence[int], tally: Tally, block: ItemSets
    ) -> SetStates:
        """Return the states of sets of units of one run.

        The items of a unit have one weight: their states are added up once, not in each set.
        """
        return self.stacked(scoring, positions, tally).sets(self.placed(scoring, positions, block))

    def placed(self, scoring: Scoring, positions: Sequence[int], block: ItemSets) -> ItemSets:
        """Return sets of units as sets of the rows of `stacked` for one run."""
        if self.resampling.is_of_items:
            return self.resampling.of_items(block, positions, scoring.items)
        return block

    def stacked(self, scoring: Scoring, positions: Sequence[int], tally: Tally) -> Stacked:
        """Return the states of one run: of its items, or of units of several items."""
        if self.resampling.is_of_items:
            return scoring.stacked(tally)
        key = (id(scoring), tally)
        with self._joining:
            if key not in self._units:
                unit_of = np.full(scoring.items, -1)
                unit_of[list(positions)] = self.resampling.codes
                self._units[key] = scoring.stacked(tally).by_unit(unit_of, self.resampling.units)
            return self._units[key]


def _additions(without: Floats) -> Floats:
    """Return what each item adds to a score, from the scores without it: of a mean over items, the
    value of the item minus the mean. NaN for items whose scores are."""
    defined = without[np.isfinite(without)]
    if not defined.size or are_equal(defined):  # but for rounding
        return np.where(np.isfinite(without), 0.0, np.nan)
    additions: Floats = (len(without) - 1) * (defined.mean() - without)
    return additions


def _needs(kind: IntervalKind | None, sets: Sets) -> bool:
    """Return whether the interval of a kind of score needs these sets of units by default."""
    return kind in DRAWN if sets == "drawn" else kind not in DRAWN or kind == "positive"
