"""Scores of any set of items, with repeats, computed from saved states."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from uqeval.arrays import Array, Floats
from uqeval.disk.files import content_of
from uqeval.keys import Key
from uqeval.metrics._evaluation import Evaluation, put_part
from uqeval.metrics._score_kinds import Gaps, OfFields
from uqeval.records.addresses import Address, addresses_of, number_at, split_fields
from uqeval.records.class_names import called, class_names
from uqeval.statistics.blocks import in_blocks
from uqeval.statistics.checked_states import StatesSource, checked_states
from uqeval.statistics.item_scores import put_kept, set_score
from uqeval.statistics.set_scores import SetScores, Table
from uqeval.statistics.stacked import Stacked
from uqeval.statistics.variants import evaluations_of
from uqeval.statistics.weighting import ItemSets, Subset, sets_at_a_time

if TYPE_CHECKING:
    from uqeval.metrics._columns import SetStates
    from uqeval.tallies._contract import Tally

    #: States of some sets of items of a tally.
    SetsOf = Callable[[Tally, slice], SetStates]

#: Numbers of folded states that are scored at a time, of the sets of one variant (8 MB).
#: A constant, so that the bits of sums do not depend on the memory.
_BLOCK = 1 << 20
#: The largest number of bytes of one state of any tally.
_MOST_BYTES = 1 << 28


@dataclass(frozen=True)
class ColumnsOfKey:
    """Scores of a variant or part: their places in its results, and their columns in a table."""

    key: str
    places: Mapping[tuple[Any, ...], int]
    tallies: tuple[Tally, ...]


class Scoring:
    """Scores of sets of items from the states of one run or of several that were joined.

    `index` as `uqeval.stores.states.saved` has it; `packed(parameters)` the states of a tally, in
    the order of `index["items"]`. The states of a tally are read and checked when a score needs
    them. `shared` gives those that are read already. Raises `StoreError` for states that do not
    belong to their index.
    """

    def __init__(
        self, states: StatesSource, shared: Callable[[Tally], Stacked] | None = None,
        ordered: Callable[[Floats], Floats] | None = None,
    ) -> None:  # fmt: skip
        self._source, self._shared, self._ordered = states, shared, ordered
        self.index = states.index
        self.path = states.path
        self.names: tuple[str, ...] = tuple(self.index["items"])
        self.records: list[dict[str, Any]] = self.index["records"]
        with content_of(states.path):
            self.evaluations = evaluations_of(self.index, states.path)
        self._stacks: dict[Tally, Stacked] = {}
        self._read: dict[tuple[str, str], Floats] = {}
        self._fields: dict[tuple[str, str], Floats] = {}
        self._counted: dict[tuple[str, str], Array | None] = {}
        self._gaps: dict[str, Mapping[tuple[Any, ...], Gaps]] = {}
        self._given: dict[str, bool] = {}
        self._addresses: dict[str, dict[str, tuple[Any, ...]]] = {}

    def called(self, names: Mapping[int, str]) -> Scoring:
        """Return the same scores at addresses with these class names (`records.class_names`)."""
        results = called(self.index["results"], names)
        if results is self.index["results"]:
            return self
        renamed = Scoring(self._source, self.stacked)
        renamed.index = {**self.index, "results": results}
        return renamed

    @property
    def class_names(self) -> dict[int, str]:
        """Return the names of the classes by id; empty if the run has none."""
        return class_names(self.index["results"])

    @property
    def items(self) -> int:
        """Return the number of items."""
        return len(self.names)

    @cached_property
    def place_of(self) -> dict[str, int]:
        """Return the index of each item, by its name."""
        return {name: i for i, name in enumerate(self.names)}

    @property
    def tallies(self) -> list[Tally]:
        """Return the tallies whose states are scored."""
        return list(
            dict.fromkeys(
                t for evaluation in self.evaluations.values() for t in evaluation.tallies()
            )
        )

    def check(self) -> None:
        """Read the states of all tallies. Raises `StoreError` for those that are damaged."""
        for tally in self.tallies:
            self.stacked(tally)

    def packed(self, tally: Tally) -> list[bytes]:
        """Return the state of each item of a tally as bytes. Raises `StoreError`."""
        return list(self._source.states(tally.parameters(), tally.most_bytes))

    def parameters(self) -> list[dict[str, Any]]:
        """Return id and parameters of all tallies with states, also of those that no score
        reads."""
        return self._source.parameters()

    def states(self, parameters: Mapping[str, Any]) -> Iterator[bytes]:
        """Return the packed state of each item of a tally with these parameters, unchecked.

        Raises `StoreError`, also for damaged states.
        """
        with content_of(self.path):
            yield from self._source.states(parameters, _MOST_BYTES)

    def whole(
        self, items: Sequence[int] | None = None, exact: Mapping[str, Any] | None = None
    ) -> dict[str, dict[str, Any]]:
        """Return the results of some items (None: all), with curves, by the keys of a report.

        `exact`: the results of `Evaluation.exact` for these items, as far as they are known.
        """
        chosen = range(self.items) if items is None else items
        return self._whole(Subset(chosen, self.items), self.evaluations, exact or {})

    @property
    def addresses(self) -> dict[str, tuple[Any, ...]]:
        """Return all numbers of the run's results: their paths in the results, by address."""
        heads = dict.fromkeys(Key.parse(key).whole for key in self.evaluations)
        return {k: v for head in heads for k, v in self.addresses_of(head).items()}

    def addresses_of(self, key: str) -> dict[str, tuple[Any, ...]]:
        """Return the numbers of one variant: their paths in the results, by address."""
        if key not in self._addresses:
            results = {key: self.index["results"].get(key, {})} if key in self.evaluations else {}
            with content_of(self.path):
                self._addresses[key] = dict(addresses_of(results))
        return self._addresses[key]

    def path_in_results(self, address: str) -> tuple[Any, ...] | None:
        """Return the path of a score in the results, after its key; None if not in the states."""
        return self.addresses_of(Address.parse(address).key).get(address)

    def exact(self, address: str) -> float | None:
        """Return a score as the run computed it from pixels, not from states."""
        place = self.path_in_results(address)
        return None if place is None else number_at(self.index["results"], place)

    def gives(self, address: str) -> bool:
        """Return whether the states give a score, if the run has a value of it.

        They do not hold the ranks of the pixels of each class, for example.
        """
        if address not in self._given:
            # All scores of a variant or part share sums of states.
            key, beside = self.key_of(address), self.addresses_of(Address.parse(address).key)
            texts = dict.fromkeys([address, *(t for t in beside if self.key_of(t) == key)])
            everything = Subset(range(self.items), self.items)
            defined = [text for text in texts if self.exact(text) is not None]
            scores = self.scores(everything, defined)
            self._given |= dict.fromkeys(texts, True)
            self._given |= {text: bool(np.isfinite(scores[text][0])) for text in defined}
        return self._given[address]

    def key_of(self, address: str) -> str | None:
        """Return the key of the variant or part of a score; None if the states cannot score it."""
        place = self.path_in_results(address)
        return None if place is None else self._evaluation_at(place)[0]

    def table(self, sets: ItemSets, addresses: Sequence[str]) -> Floats:
        """Return the scores at `addresses` of sets of items, [set, address]."""
        scores = self.scores(sets, addresses)
        table = np.empty((sets.sets, len(addresses)))
        for column, address in enumerate(addresses):
            table[:, column] = scores[address]
        return table

    def scores(
        self, sets: ItemSets, addresses: Sequence[str], states_of: SetsOf | None = None
    ) -> SetScores:
        """Return the scores at `addresses` of sets of items, NaN where they are undefined. Only
        scores at these addresses are computed.

        `states_of(tally, rows)`: the states of some of the sets, where they are known.
        """
        scores = SetScores(sets.sets)
        tasks = []
        for own in self.columns(addresses):
            table = scores.add([addresses[column] for column in own.places.values()])
            places = {place: i for i, place in enumerate(own.places)}
            tasks.append((replace(own, places=places), table))

        def score(task: tuple[ColumnsOfKey, Table], rows: slice) -> None:
            columns, table = task
            part = sets.part(rows)
            states = {
                tally: states_of(tally, rows) if states_of else self.stacked(tally).sets(part)
                for tally in columns.tallies
            }
            block = np.full((part.sets, len(columns.places)), np.nan)
            self.fill(block, columns, part, states)
            table.put(rows.start, block)

        in_blocks(score, [(task, self.block(task[0])) for task in tasks], sets.sets)
        for _, table in tasks:
            table.close()
        return scores

    def tallies_of(self, address: str) -> tuple[Tally, ...]:
        """Return the tallies that a score reads; none if the states cannot score it."""
        place = self.path_in_results(address)
        if place is None:
            return ()
        key, below = self._evaluation_at(place)
        evaluation = self.evaluations[key]
        of_states = evaluation.over_items().of_states.get(".".join(map(str, below)))
        of_items = () if of_states is None else (of_states[0],)
        return (*evaluation.tallies_of(set(map(str, below))), *of_items)

    def columns(self, addresses: Sequence[str]) -> list[ColumnsOfKey]:
        """Return the columns of a table of `addresses` by variant or part."""
        by_key: dict[str, dict[tuple[Any, ...], int]] = {}
        for column, address in enumerate(addresses):
            place = self.path_in_results(address)
            if place is not None:
                key, below = self._evaluation_at(place)
                by_key.setdefault(key, {})[below] = column
        return [
            ColumnsOfKey(key, columns, tuple(self.evaluations[key].tallies()))
            for key, columns in by_key.items()
        ]

    def read(self, addresses: Sequence[str]) -> None:
        """Read the states that the scores at `addresses` need. Raises `StoreError`."""
        for columns in self.columns(addresses):
            for tally in columns.tallies:
                self.stacked(tally)

    def block(self, columns: ColumnsOfKey) -> int:
        """Return the number of sets that are scored at a time."""
        numbers = sum(self.stacked(tally).numbers for tally in columns.tallies)
        return max(_BLOCK // max(numbers, 1), 1)

    def fill(
        self,
        scores: Floats,
        columns: ColumnsOfKey,
        sets: ItemSets,
        states: Mapping[Tally, SetStates],
    ) -> None:
        """Put the scores of a variant or part into a table [set, address]; `states` are of the
        sets of items, at least of the tallies that these scores read.
        """
        scored = self._columns(columns.key, sets, states, columns.places)
        for place, column in columns.places.items():
            if place in scored:
                scores[:, column] = scored[place]

    def gaps(self, address: str) -> tuple[str, Gaps] | None:
        """Return the key of a score that is a sum of absolute gaps, and its gaps; None for other
        scores, and for those that the run does not have.
        """
        place = self.path_in_results(address)
        if place is None:
            return None
        key, below = self._evaluation_at(place)
        if key not in self._gaps:
            self._gaps[key] = self.evaluations[key].gaps()
        gaps = self._gaps[key].get(below)
        return None if gaps is None else (key, gaps)

    def _evaluation_at(self, place: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
        """Return the key of the variant or part that a place in the results is of, and the place in
        it.
        """
        head, first, *remainder = place
        part_key = self._parts_by_field.get((head, first), f"{head}/{first}")
        if part_key not in self.evaluations:
            return head, (first, *remainder)
        return part_key, (first, *remainder) if self.evaluations[part_key].flat else tuple(
            remainder
        )

    @cached_property
    def _parts_by_field(self) -> dict[tuple[str, Any], str]:
        """Return the keys of flat parts, by the key of the whole and a field of the part."""
        return {
            (Key.parse(key).whole, field): key
            for key, evaluation in self.evaluations.items()
            if evaluation.flat
            for field in evaluation.flat_fields
        }

    def stacked(self, tally: Tally) -> Stacked:
        """Return the states of all items of a tally, read and checked when they are first
        needed.
        """
        if tally not in self._stacks:
            loaded = self._shared(tally) if self._shared else Stacked.of(self._source, tally)
            self._stacks[tally] = loaded
        return self._stacks[tally]

    def _columns(
        self,
        key: str,
        sets: ItemSets,
        states: Mapping[Tally, SetStates],
        places: Collection[tuple[Any, ...]],
    ) -> dict[tuple[Any, ...], Array]:
        """Return numbers of a variant or part by their places, each [set]: at least those at
        `places` that it has."""
        evaluation = self.evaluations[key]
        evaluation_states = {t: states[t] for t in evaluation.tallies() if t in states}
        over = evaluation.over_items()
        if over.leaves_out is not None:
            kept_sets = self._kept(key, sets)
            evaluation_states |= {
                t: self.stacked(t).sets(kept_sets) for t in over.kept_only if t in states
            }
        with np.errstate(all="ignore"):  # 0/0 is undefined: NaN
            results = dict(
                evaluation.columns(evaluation_states, {str(place[0]) for place in places})
            )
        means = self._means(sets, {key: evaluation}, places)
        return results | {split_fields(name): values for (_, name), values in means.items()}

    def _whole(
        self, items: ItemSets, evaluations: Mapping[str, Evaluation[Any]], exact: Mapping[str, Any]
    ) -> dict[str, dict[str, Any]]:
        """Return the results of one set of items, with curves."""
        results: dict[str, dict[str, Any]] = {}
        means = self._means(items, evaluations)
        for key, evaluation in evaluations.items():
            states, over = {}, evaluation.over_items()
            for tally in evaluation.tallies():
                stacked = self.stacked(tally)
                own = self._kept(key, items) if tally in over.kept_only else items
                states[tally] = stacked.state(stacked.folded(own), 0)
            record = evaluation.scores(states, exact.get(key))
            for name in over.names:
                set_score(record, name, float(means[key, name][0]))
            for name, field in over.counts.items():
                counted = items.only(self._column(key, field) == 1) if field else items
                record[name] = _number_of_items(counted, self.items)
            if over.kept:
                put_kept(record, over, _number_of_items(self._kept(key, items), self.items))
            own_key = Key.parse(key)
            if own_key.part:
                put_part(results[own_key.whole], own_key.part, record, evaluation.flat)
            else:
                results[key] = record
        return results

    def _means(
        self,
        sets: ItemSets,
        evaluations: Mapping[str, Evaluation[Any]],
        places: Collection[tuple[Any, ...]] | None = None,
    ) -> dict[tuple[str, str], Floats]:
        """Return the scores from fields of the items' records, each [set]; only those at `places`
        (None: all)."""
        means = {}
        for key, evaluation in evaluations.items():
            over = evaluation.over_items()
            names = over.names
            if places is not None:
                names = tuple(name for name in names if split_fields(name) in places)
            kept_sets = self._kept(key, sets) if names else sets
            for name in names:
                if name in over.means:
                    means[key, name] = kept_sets.mean(self._column(key, over.means[name]))
                elif name in over.of_fields:
                    means[key, name] = self._of_fields(key, name, over.of_fields[name], kept_sets)
                elif name in over.of_states:
                    means[key, name] = sets.mean(self._of_states(key, name))
            means |= self._quantiles(key, [n for n in names if n in over.quantiles], kept_sets)
        return means

    def _quantiles(
        self, key: str, names: Sequence[str], sets: ItemSets
    ) -> dict[tuple[str, str], Floats]:
        """Return quantiles of fields of the items' records, each [set]; those of one field
        together."""
        of_names = self.evaluations[key].over_items().quantiles
        by_field: dict[str, dict[str, float]] = {}
        for name in names:
            field, share = of_names[name]
            by_field.setdefault(field, {})[name] = share
        found: dict[tuple[str, str], Floats] = {}
        for field, shares in by_field.items():
            columns = sets.quantiles(self._column(key, field), [*shares.values()]).T
            found |= {(key, name): column for name, column in zip(shares, columns, strict=True)}
        return found

    def _of_fields(self, key: str, name: str, of_fields: OfFields, sets: ItemSets) -> Floats:
        """Return a score of fields of the items' records [set], for some sets at a time."""
        if (key, name) not in self._counted:
            records = (record.get(key, {}) for record in self.records)
            self._counted[key, name] = of_fields.counted(records)
        if (is_counted := self._counted[key, name]) is not None:
            sets = sets.only(is_counted)

        def column(field: str) -> Floats:
            values = self._column(key, field)
            if self._ordered is None or field not in of_fields.by_order:
                return values
            return self._ordered(
                values if is_counted is None else np.where(is_counted, values, np.nan)
            )

        values = [column(field) for field in of_fields.fields]
        without = of_fields.without
        if without is not None:
            found = sets.without_each(
                self.items, (self, key, name), lambda is_counted: without(is_counted, *values)
            )
            if found is not None:
                return found
        step = sets_at_a_time(self.items)
        scores = []
        for first in range(0, sets.sets, step):
            items, weights = sets.part(slice(first, first + step)).weights_of_items(self.items)
            scores.append(of_fields.score(weights, *(column[items] for column in values)))
        return np.concatenate(scores) if scores else np.zeros(0)

    def _of_states(self, key: str, name: str) -> Floats:
        """Return the values computed from the states of single items, [item, value]."""
        if (key, name) not in self._read:
            tally, read_values = self.evaluations[key].over_items().of_states[name]
            rows = [read_values(state) for _, state in checked_states(self._source, tally)]
            self._read[key, name] = np.array(rows, np.float64)
        return self._read[key, name]

    def _kept(self, key: str, sets: ItemSets) -> ItemSets:
        """Return the sets without the items that a variant leaves out of its means."""
        name = self.evaluations[key].over_items().leaves_out
        return sets if name is None else sets.only(self._column(key, name) == 0)

    def _column(self, key: str, field: str) -> Floats:
        """Return a field of the items' records, NaN where it is undefined."""
        if (key, field) not in self._fields:
            values = [record.get(key, {}).get(field) for record in self.records]
            self._fields[key, field] = np.array([np.nan if v is None else v for v in values], float)
        return self._fields[key, field]


def _number_of_items(sets: ItemSets, items: int) -> int:
    """Return how many items the first set has, of a run with `items`; repeats count."""
    return int(sets.sums(np.ones((items, 1), np.int64))[0, 0])
