"""Scores of any set of items, items taken several times too, read off saved states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from uqeval.errors import StoreError
from uqeval.statistics.checked_states import checked_states
from uqeval.statistics.places import addresses_of, pick, put
from uqeval.statistics.stacked import Stacked
from uqeval.statistics.variants import agains_of
from uqeval.statistics.weighted import correlation, mean

if TYPE_CHECKING:
    from uqeval.metrics._again import Again
    from uqeval.statistics.checked_states import StatesSource
    from uqeval.tallies import Tally
    from uqeval.tallies._contract import State

#: Numbers of folded states that are held at a time.
_CHUNK = 1 << 24


class Scoring:
    """Scores of sets of items from the states of one run or of several that were joined.

    `index` as `uqeval.stores.states` has it; `packed(parameters)` the states of a tally, in the
    order of `index["items"]`. Raises `StoreError` for states that do not belong to their index.
    """

    def __init__(self, states: StatesSource) -> None:
        self._source = states
        self.index = states.index
        self.path = states.path
        self.names: tuple[str, ...] = tuple(self.index["items"])
        self.records: list[dict[str, Any]] = self.index["records"]
        try:
            self.agains = agains_of(self.index)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise StoreError(
                f"{states.path}: is damaged: its index cannot be scored ({error!r}). "
                "Evaluate again."
            ) from None
        self._stacked: dict[Tally, Stacked] = {}
        self._of_states: dict[tuple[str, str], NDArray[np.float64]] = {}
        for key, again in self.agains.items():
            for tally in again.tallies:
                if tally not in self._stacked:
                    self._stacked[tally] = Stacked(
                        tally, (s for _, s in checked_states(states, tally))
                    )
            for name, (tally, read) in again.of_states.items():
                rows = [read(state) for _, state in checked_states(states, tally)]
                self._of_states[key, name] = np.array(rows, np.float64)

    @property
    def items(self) -> int:
        """How many items there are."""
        return len(self.names)

    @property
    def tallies(self) -> list[Tally]:
        """The tallies whose states are scored."""
        return list(self._stacked)

    def packed(self, tally: Tally) -> list[bytes]:
        """The packed states of a tally, in the order of items. Raises `StoreError`."""
        return list(self._source.states(tally.parameters()))

    def whole(self, items: Sequence[int] | None = None) -> dict[str, dict[str, Any]]:
        """The results of some items (None: all), with curves, by the keys of a report."""
        weights = np.zeros((1, self.items), np.int64)
        weights[0, list(range(self.items)) if items is None else list(items)] = 1
        (found,) = self._results(weights, whole=True, keys=set(self.agains))
        return found

    @cached_property
    def addresses(self) -> dict[str, tuple[Any, ...]]:
        """All scores of the set by address, and where they stand in the results."""
        return dict(addresses_of(self.whole()))

    def table(self, weights: NDArray[np.int64], addresses: Sequence[str]) -> NDArray[np.float64]:
        """The scores at `addresses` of each row of `weights` [set, item]: [set, address], NaN where
        they are undefined. Only the variants that the addresses name are scored."""
        wanted: dict[Any, Any] = {}
        for column, address in enumerate(addresses):
            *parents, last = self.addresses.get(address, (address,))
            place = wanted
            for name in parents:
                place = place.setdefault(name, {})
            place[last] = column
        found = np.full((len(weights), len(addresses)), np.nan)
        results_of_sets = self._results(weights, whole=False, keys=self._keys(wanted))
        for row, results in zip(found, results_of_sets, strict=True):
            pick(results, wanted, row)
        return found

    def gaps(
        self, address: str, items: Sequence[int]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], bool] | None:
        """The signed gaps [item, bin] of some items of a score that is a sum of absolute gaps, the
        weights [bin] of their sums, and whether the score is the largest; None for other scores."""
        head, *place = self.addresses[address]
        for key, below in ((head, place), (f"{head}/{place[0]}", place[1:])):
            gaps = self.agains[key].gaps.get(tuple(below)) if key in self.agains else None
            if gaps is not None:
                break
        else:
            return None
        weights = np.zeros((1, self.items), np.int64)
        weights[0, list(items)] = 1
        tallies = self.agains[key].tallies
        rows = []
        for item in items:
            one = np.zeros((1, self.items), np.int64)
            one[0, item] = 1
            rows.append(gaps.signed(self._states(one, tallies)))
        return np.array(rows), gaps.weights(self._states(weights, tallies)), gaps.largest

    def _states(self, weights: NDArray[np.int64], tallies: Sequence[Tally]) -> dict[Tally, State]:
        stacked = ((tally, self._stacked[tally]) for tally in tallies)
        return {tally: own.state(own.folded(weights), 0) for tally, own in stacked}

    def _keys(self, wanted: Mapping[str, Any]) -> set[str]:
        """The variants and parts that hold what is wanted, and those that hold these parts."""
        found = set()
        for key in self.agains:
            head, _, part = key.partition("/")
            if head in wanted and (not part or part in wanted[head]):
                found.add(key)
        return found

    def _results(
        self, weights: NDArray[np.int64], whole: bool, keys: set[str]
    ) -> Iterator[dict[str, dict[str, Any]]]:
        agains = {key: again for key, again in self.agains.items() if key in keys}
        tallies = dict.fromkeys(tally for again in agains.values() for tally in again.tallies)
        stacked = {tally: self._stacked[tally] for tally in tallies}
        most = max((own.numbers for own in stacked.values()), default=1)
        step = max(_CHUNK // max(most, 1), 1)
        for first in range(0, len(weights), step):
            part = weights[first : first + step]
            folded = {tally: own.folded(part) for tally, own in stacked.items()}
            kept = {
                (key, tally): self._stacked[tally].folded(part * self._kept(key).astype(np.int64))
                for key, again in agains.items() if again.leaves_out is not None
                for tally in again.kept_only
            }  # fmt: skip
            means = self._means(part, agains)
            for row in range(len(part)):
                states = {
                    tally: self._stacked[tally].state(sums, row) for tally, sums in folded.items()
                }
                own = {
                    (key, tally): self._stacked[tally].state(sums, row)
                    for (key, tally), sums in kept.items()
                }
                yield self._of(agains, states, own, {k: v[row] for k, v in means.items()}, whole)

    def _of(
        self,
        agains: Mapping[str, Again],
        states: Mapping[Tally, State],
        kept: Mapping[tuple[str, Tally], State],
        means: Mapping[tuple[str, str], float],
        whole: bool,
    ) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for key, again in agains.items():
            own = {tally: kept.get((key, tally), states[tally]) for tally in again.tallies}
            record = again.scores(own, whole)
            for name in (*again.means, *again.correlations, *again.of_states):
                put(record, name, float(means[key, name]))
            head, _, part = key.partition("/")
            if part:
                found[head][part] = record
            else:
                found[key] = record
        return found

    def _means(
        self, weights: NDArray[np.int64], agains: Mapping[str, Again]
    ) -> dict[tuple[str, str], NDArray[np.float64]]:
        """What is a mean of, or a correlation between, fields of the items' records: [set]."""
        found = {}
        for key, again in agains.items():
            w = weights * self._kept(key)
            for name, field in again.means.items():
                found[key, name] = mean(w, self._column(key, field))
            for name, (x, y) in again.correlations.items():
                found[key, name] = correlation(w, self._column(key, x), self._column(key, y))
            for name in again.of_states:
                values = self._of_states[key, name]
                each = np.repeat(weights, values.shape[1], axis=1)
                found[key, name] = mean(each, values.reshape(-1))
        return found

    def _kept(self, key: str) -> NDArray[np.float64]:
        """1 for each item that the means of a variant are over, 0 for the others."""
        kept = np.ones(self.items)
        if (name := self.agains[key].leaves_out) is not None:
            kept -= self._column(key, name)
        return np.nan_to_num(kept)

    def _column(self, key: str, field: str) -> NDArray[np.float64]:
        """A field of the items' records, NaN where it is undefined."""
        values = [record.get(key, {}).get(field) for record in self.records]
        return np.array([np.nan if v is None else float(v) for v in values])
