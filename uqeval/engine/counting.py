"""Count the tallies of a pass in worker threads.

Most tallies have a state per item; large ones are added up directly.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from uqeval.maps.views import WHOLE

if TYPE_CHECKING:
    from uqeval.maps.reduction import Maps
    from uqeval.maps.views import View
    from uqeval.tallies import Tally
    from uqeval.tallies._contract import State, Thin

    #: The state of one tally for one item, and its packed form if it is retained.
    Found = tuple[Thin, bytes | None]


class Counting:
    """Counter of the states of `tallies` in one pass.

    Packs the states of `retained` tallies, and uses the `cached` states of an earlier run. Tallies
    that do not depend on the order of items and are not retained are counted `together`, in one
    state per worker. The tallies `apart` have one state per item; the caller takes care of their
    order.
    """

    def __init__(
        self,
        tallies: Sequence[Tally],
        retained: Collection[Tally],
        cached: Mapping[Tally, Mapping[int, bytes]],
    ) -> None:
        self.apart = [t for t in tallies if t in retained or not t.any_order]
        self._together = [t for t in tallies if t not in self.apart]
        self._kept, self._known = retained, cached
        self._plain = {tally: tally.in_view(WHOLE) for tally in self.apart}
        self._own = threading.local()
        self._parts: list[dict[Tally, State]] = []

    def known_of(self, batch: range) -> list[list[Found]] | None:
        """Return the cached states of a batch; None if one is missing or damaged."""
        is_cached = (item in self._known.get(tally, ()) for tally in self.apart for item in batch)
        if self._together or not all(is_cached):
            return None
        try:
            return [[self._taken(tally, item) for tally in self.apart] for item in batch]
        except (KeyError, ValueError):
            return None

    def _taken(self, tally: Tally, item: int) -> Found:
        data = self._known[tally][item]
        return tally.thin(tally.load(data)), data if tally in self._kept else None

    def states_of(self, maps: Maps) -> list[Found]:
        """The states of one item of the tallies apart; those together are counted on the way.

        The maps of each view are made once.
        """
        new_states, empty = self._worker()
        maps_of_views: dict[View, Maps] = {}
        #: States of the item by view, which tallies of that view may read.
        states_of_views: dict[View, dict[Tally, State]] = {}
        for view in dict.fromkeys(tally.view for tally in (*new_states, *self.apart)):
            maps_of_views[view], states_of_views[view] = view.maps(maps), {}
        for tally, state in new_states.items():
            tally.update(state, maps_of_views[tally.view])
        results: list[Found] = []
        for tally in self.apart:
            view_maps, plain = maps_of_views[tally.view], self._plain[tally]
            thin = None if tally in self._kept else plain.thin_of(view_maps)
            if thin is not None:
                results.append((thin, None))
                continue
            states = states_of_views[tally.view]
            if tally in empty and plain not in states:
                states[plain] = empty[tally]
                plain.update(states[plain], view_maps)
            state = plain.state_of(view_maps, states)
            results.append((tally.thin(state), tally.pack(state) if tally in self._kept else None))
        empty.clear()
        for tally, (thin, _) in zip(self.apart, results, strict=True):
            states, plain = states_of_views[tally.view], self._plain[tally]
            if plain in states and tally.clear(states[plain], thin):
                empty[tally] = states[plain]
        return results

    def together(self) -> dict[Tally, State]:
        """Return the totals of the tallies counted together, after all workers are done."""
        first, *other_parts = self._parts or [{tally: tally.empty() for tally in self._together}]
        for part_states in other_parts:
            for tally, state in part_states.items():
                tally.merge(first[tally], state)
        return first

    def _worker(self) -> tuple[dict[Tally, State], dict[Tally, State]]:
        """Return a worker's states: totals of many items, and empty states for reuse."""
        if not hasattr(self._own, "states"):
            self._own.states = {tally: tally.empty() for tally in self._together}, {}
            self._parts.append(self._own.states[0])
        states: tuple[dict[Tally, State], dict[Tally, State]] = self._own.states
        return states
