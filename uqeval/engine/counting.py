"""Count the tallies of a pass in worker threads.

Most tallies have a state per item; large ones are added up directly. The pixels of small items are
concatenated and counted in one call per tally. Sums are sparse while few of their numbers are used:
counts by rank have a million bins, and the pixels of small data, or of a region, are in few of
them. To clear, add and search all bins takes longer than to count the pixels.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from uqeval.arrays import Array, Maps, State
from uqeval.engine.strips import ItemsInView, Strip
from uqeval.maps.contract import WHOLE, StackedMaps, View
from uqeval.stores.states.blocks import KnownStates, PackedItems
from uqeval.tallies._fields import CountedItems, Field, SparseState, Thin

if TYPE_CHECKING:
    from uqeval.tallies._contract import KnownItems, Tally

#: Sums of fields with at least so many numbers are sparse, up to one entry for some numbers: an
#: entry takes longer than a number.
_LEAST_NUMBERS, _NUMBERS_PER_ENTRY = 1 << 16, 4
#: Sparse states that wait to be added together. Those of an item of one pixel take 600 bytes.
_MOST_PARTS = 4096

#: The smallest number of items to count in one call: fewer cost more in compilation.
_WORTHWHILE = 8
#: Entries are sorted by place, unless a field has fewer numbers for each entry than this.
_NUMBERS_ADDED = 16


class Total:
    """The sum of states of a tally, added in order: the same bits as `Tally.fold` of each."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        fields = tally.packing.fields.values()
        numbers = [math.prod(field.shape) for field in fields]
        is_sparse = min(numbers) >= _LEAST_NUMBERS and {field.merge for field in fields} == {"sum"}
        self._dense: State | None = None if is_sparse else tally.empty()
        self._parts: list[Thin] = []
        self._entries, self._most_entries = 0, sum(numbers) // _NUMBERS_PER_ENTRY
        self._summed_entries = 0  # of the first part, the sum of earlier ones

    def update(self, maps: Maps) -> None:
        """Add the maps of an item."""
        counted = self._tally.count_item(maps) if self._dense is None else None
        if counted is None:
            self._tally.update(self._as_dense(), maps)
        else:
            self._add(counted.thin(0))

    def fold_items(self, counted: CountedItems) -> None:
        """Add the states of several items."""
        if self._dense is not None:
            self._tally.fold_items(self._dense, counted)
            return
        if not any(field.values.size for field in counted.fields):
            return  # most items have no pixel in the view of another set
        for item in range(counted.items):
            self._add(counted.thin(item))

    def merge(self, other: Total) -> None:
        """Add another total."""
        if other._dense is not None:
            self._tally.merge(self._as_dense(), other._dense)
        for thin in other._parts:
            self._add(thin)

    def merge_state(self, state: State) -> None:
        """Add a state."""
        self._tally.merge(self._as_dense(), state)

    def _add(self, thin: Thin) -> None:
        if self._dense is not None:
            self._tally.fold(self._dense, thin)
            return
        self._parts.append(thin)
        self._entries += sum(values.size for _, values in thin)
        if self._entries > self._most_entries:
            self._as_dense()
        elif len(self._parts) > _MOST_PARTS and 4 * self._entries > 5 * self._summed_entries:
            self._parts = [[*self._sums()]]
            self._entries = self._summed_entries = sum(v.size for _, v in self._parts[0])

    def _as_dense(self) -> State:
        """Return the sum so far as arrays, which all later states are added to."""
        if self._dense is None:
            self._dense = self._tally.empty()
            for thin in self._parts:
                self._tally.fold(self._dense, thin)
            self._parts = []
        return self._dense

    def state(self) -> State:
        """Return the sum."""
        if self._dense is not None:
            return self._dense
        return cast("State", SparseState(self._tally.packing.fields, self._sums()))

    def _sums(self) -> list[tuple[Array, Array]]:
        """Return the places and values of the sum of the sparse states, of each field."""
        return [
            _summed(field, [thin[number] for thin in self._parts])
            for number, field in enumerate(self._tally.packing.fields.values())
        ]


def _summed(field: Field, parts: Sequence[tuple[Array | None, Array]]) -> tuple[Array, Array]:
    """Return places, ascending, and the sums of the values at each, added in the order of parts."""
    places = np.concatenate([np.zeros(0, np.int64), *(at for at, _ in parts if at is not None)])
    values = np.concatenate([np.zeros(0, field.dtype), *(own for _, own in parts)])
    if places.size * _NUMBERS_ADDED > math.prod(field.shape):
        sums: Array = np.zeros(math.prod(field.shape), field.dtype)
        np.add.at(sums, places, values)
        is_used = np.zeros(sums.size, bool)
        is_used[places] = True
        places = np.flatnonzero(is_used)
        return places, sums[places]
    order = np.argsort(places, kind="stable")
    places, values = places[order], values[order]
    is_first = np.ones(places.size, bool)
    np.not_equal(places[1:], places[:-1], out=is_first[1:])
    first = np.flatnonzero(is_first)
    if not first.size:
        return places, values
    if field.dtype.startswith("float"):  # one after another: `reduceat` adds in pairs
        return places[first], np.bincount(np.cumsum(is_first) - 1, values)
    return places[first], np.add.reduceat(values, first, dtype=field.dtype)


class Counted(NamedTuple):
    """The states of consecutive items of one tally, also packed if they are retained.

    `states`: None if the view of the tally has none of the items, or if they are in the totals of
    another process (see `Counting.add_totals`).
    """

    states: CountedItems | None
    packed: PackedItems | None


@dataclass(frozen=True)
class ItemsOfView:
    """Maps of the items that a view has, and their `places` among the items that are counted.

    `strip`: the same pixels in one row; None for few items.
    """

    maps: Sequence[Maps]
    places: Sequence[int]
    strip: Strip | None

    @classmethod
    def of(cls, maps: Sequence[Maps], first: int, chosen: frozenset[int] | None) -> ItemsOfView:
        """Return the `chosen` of some items (None: all), whose first has the number `first`."""
        places: Sequence[int] = range(len(maps))
        if chosen is not None:
            places = [place for place in places if first + place in chosen]
            maps = (
                maps.only(places)
                if isinstance(maps, StackedMaps)
                else [maps[place] for place in places]
            )
        return cls(maps, places, Strip.of(maps) if len(places) >= _WORTHWHILE else None)


class Counting:
    """Counter of the states of `tallies` in one pass.

    Packs the states of `retained` tallies, and uses the `cached` states of an earlier run. Counts
    tallies that do not depend on the order of items and are not retained `together`, in one state
    per worker. The tallies `apart` have one state per item, which the caller merges in order.
    """

    def __init__(
        self,
        tallies: Sequence[Tally],
        retained: Collection[Tally],
        cached: Mapping[Tally, KnownStates],
    ) -> None:
        self.tallies = tuple(tallies)
        self._retained, self._known = set(retained), cached
        self.apart = [t for t in tallies if t in self._retained or not t.any_order]
        per_item = set(self.apart)
        self._together = [t for t in tallies if t not in per_item]
        self._views = list(dict.fromkeys(tally.view for tally in (*self._together, *self.apart)))
        self._plain = [tally.in_view(WHOLE) for tally in self.apart]
        self._read = {
            view: set().union(*(tally.reads for tally in tallies if tally.view == view))
            for view in self._views
        }
        self._own = threading.local()
        self._parts: list[list[Total]] = []
        #: Totals of items that other processes have counted.
        self.totals: dict[Tally, Total] = {}

    @property
    def sent(self) -> list[Tally]:
        """Return the tallies whose states another process sends by item, not only their totals."""
        return [t for t in self.apart if t in self._retained or not t.adds_exactly]

    def add_totals(self, packed: Mapping[Tally, bytes]) -> None:
        """Add totals of items that another process has counted.

        Raises `ValueError` for invalid bytes.
        """
        for tally, data in packed.items():
            self.totals.setdefault(tally, Total(tally)).merge_state(tally.load(data))

    def received(self, packed: Mapping[Tally, PackedItems | None]) -> list[Counted]:
        """Return the states of some items that another process has `sent`, by `apart`.

        Raises `ValueError` for invalid bytes.
        """
        return [self._received(tally, packed.get(tally)) for tally in self.apart]

    def _received(self, tally: Tally, packed: PackedItems | None) -> Counted:
        retained = packed if tally in self._retained else None
        if packed is None or tally.adds_exactly:
            return Counted(None, retained)
        states = [tally.thin(tally.load(data)) for data in packed.states(tally.most_bytes)]
        return Counted(CountedItems.of(states), retained)

    def is_cached(self, items: range) -> bool:
        """Return whether the cache has states of some items, even if these are damaged."""
        return not self._together and all(
            tally in self._known and self._known[tally].has(items) for tally in self.apart
        )

    def known_of(self, items: range) -> list[Counted] | None:
        """Return the cached states of some items; None if one is missing or damaged."""
        if not self.is_cached(items):
            return None
        try:
            return [self._known_states(tally, items) for tally in self.apart]
        except (KeyError, ValueError):
            return None

    def _known_states(self, tally: Tally, items: range) -> Counted:
        known = self._known[tally]
        data = known.of(items)
        states = tally.load_items(data).counted
        is_retained = tally in self._retained
        return Counted(states, known.packed(items) or PackedItems.of(data) if is_retained else None)

    def wants(self, items: range) -> bool:
        """Return whether a view of the tallies has some of the items."""
        return any(view.items is None or not view.items.isdisjoint(items) for view in self._views)

    def nothing(self) -> list[Counted]:
        """Return the states of items that no view has, of the tallies `apart`."""
        return [Counted(None, None) for _ in self.apart]

    def states_of(self, items: Sequence[Maps], first: int) -> list[Counted]:
        """Return the states of consecutive items of the tallies `apart`; count the others
        `together`. `first`: the number of the first item.

        The maps of each view are made once. All items are small, or there is only one.
        """
        views = self._items_of_views(items, first)
        worker = self._worker()
        for tally, total in zip(self._together, worker.totals, strict=True):
            strip = views[tally.view].strip
            for maps in (
                [strip] if strip is not None and tally.pixelwise else views[tally.view].maps
            ):
                total.update(maps)
        results: list[CountedItems | None] = []
        #: States by view, which tallies of that view may read (`Tally.count_items`).
        known: dict[View, KnownItems] = {view: {} for view in self._views}
        for tally, plain in zip(self.apart, self._plain, strict=True):
            strip, known_items = views[tally.view].strip, known[tally.view]
            if strip is not None and plain not in known_items:
                counted = plain.count_items(strip, strip.first, known_items)
                if counted is not None:
                    known_items[plain] = counted
            results.append(known_items.get(plain))
        by_item = [i for i, result in enumerate(results) if result is None]
        if by_item:
            self._count_by_item(by_item, views, len(items), worker.empty, results)
        return [
            Counted(states, None if states is None else self._packed(tally, states))
            for tally, states in zip(self.apart, results, strict=True)
        ]

    def _items_of_views(self, items: Sequence[Maps], first: int) -> dict[View, ItemsOfView]:
        """Return the items of each view; views of some items share the maps of their inner view."""
        whole = ItemsOfView.of(items, first, None)
        of_all: dict[View, Sequence[Maps]] = {WHOLE: items}
        views: dict[View, ItemsOfView] = {WHOLE: whole}
        for view in self._views:
            inner = view.of_all_items
            if inner not in of_all:
                of_all[inner] = ItemsInView(inner, items)
            if view not in views:
                strip = None if whole.strip is None else whole.strip.in_view(view, self._read[view])
                views[view] = (
                    ItemsOfView.of(of_all[inner], first, view.items)
                    if strip is None
                    else ItemsOfView(of_all[inner], range(len(items)), strip)
                )
        return views

    def _count_by_item(
        self,
        which: Sequence[int],
        views: Mapping[View, ItemsOfView],
        items: int,
        empty: dict[Tally, State],
        results: list[CountedItems | None],
    ) -> None:
        """Put the states of some tallies `apart` into the results, counted one item after
        another; None if a view has none of the items."""
        maps_of_items: list[dict[View, Maps]] = [{} for _ in range(items)]
        for view in dict.fromkeys(self.apart[i].view for i in which):
            for place, maps in zip(views[view].places, views[view].maps, strict=True):
                maps_of_items[place][view] = maps
        states_of_items = [self._states_of_item(which, maps, empty) for maps in maps_of_items]
        for i, states in zip(which, zip(*states_of_items, strict=True), strict=True):
            counted = [own for own in states if own is not None]
            results[i] = CountedItems.joined(counted) if counted else None

    def _packed(self, tally: Tally, states: CountedItems) -> PackedItems | None:
        if tally not in self._retained:
            return None
        return PackedItems.of(tally.packing.pack_items(states))

    def _states_of_item(
        self, which: Sequence[int], maps_of_views: Mapping[View, Maps], empty: dict[Tally, State]
    ) -> list[CountedItems | None]:
        """Return the states of one item of some tallies `apart`, None if their view does not have
        it; `empty` states are reused."""
        #: States of the item by view, which tallies of that view may read.
        known_of_views: dict[View, KnownItems] = {view: {} for view in maps_of_views}
        results: list[CountedItems | None] = []
        for i in which:
            view, plain = self.apart[i].view, self._plain[i]
            if view not in maps_of_views:
                results.append(None)
                continue
            known = known_of_views[view]
            if plain not in known:
                known[plain] = _state_of_item(plain, maps_of_views[view], known, empty)
            results.append(known[plain])
        return results

    def together(self) -> dict[Tally, Total]:
        """Return the totals of the tallies counted together, after all workers are done."""
        first, *other_parts = self._parts or [list(map(Total, self._together))]
        for part in other_parts:
            for total, part_total in zip(first, part, strict=True):
                total.merge(part_total)
        return dict(zip(self._together, first, strict=True))

    def _worker(self) -> _Worker:
        """Return a worker's totals of many items, and its empty states for reuse."""
        if not hasattr(self._own, "worker"):
            self._own.worker = _Worker(list(map(Total, self._together)), {})
            self._parts.append(self._own.worker.totals)
        return self._own.worker


class _Worker(NamedTuple):
    totals: list[Total]
    empty: dict[Tally, State]


def _state_of_item(
    tally: Tally, maps: Maps, known: KnownItems, empty: dict[Tally, State]
) -> CountedItems:
    """Return the state of one item; `known` as in `Tally.count_items`, `empty` as in `Counting`."""
    if (counted := tally.count_item(maps, known)) is not None:
        return counted
    state = empty.pop(tally, None) or tally.empty()
    tally.update(state, maps)
    thin = tally.thin(state)
    if tally.clear(state, thin):
        empty[tally] = state
    return CountedItems.of([thin])
