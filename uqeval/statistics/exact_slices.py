"""Exact scores by rank of slices, from the counts that a run has made for each slice.

From the states of items, ranks are found in bins. A run that knows its slices also ranks the pixels
of each slice, and saves the totals with the states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from uqeval.errors import StoreError, cut
from uqeval.metrics._driver import of_items, replayed
from uqeval.metrics._evaluation import TallyResult
from uqeval.statistics.checked_states import StatesSource, checked_items
from uqeval.stores.states.blocks import PackedItems
from uqeval.stores.states.entries import DAMAGED, tally_key

if TYPE_CHECKING:
    from uqeval.metrics._evaluation import Evaluation
    from uqeval.tallies._contract import Tally


class RunStates(StatesSource, Protocol):
    """The states of items, and the totals that one run has saved."""

    def holds(self, parameters: Mapping[str, Any]) -> bool:
        """Return whether there are states of a tally with these parameters."""

    def total_of_run(self, key: str) -> bytes | None:
        """Return the packed total of a tally (`tally_key`); None if it is not saved, or if the
        states are those of several runs.

        Raises the errors of `zipfile`, `KeyError` or `ValueError` for a damaged total.
        """


class ExactSlices:
    """Reader of the results of `Evaluation.exact` for slices of a run."""

    def __init__(self, states: RunStates, evaluations: Mapping[str, Evaluation[Any]]) -> None:
        self._states = states
        self._evaluations = {
            key: evaluation for key, evaluation in evaluations.items() if evaluation.approximate
        }
        #: States of items that slices choose from.
        self._items: dict[Tally, TallyResult] = {}

    def results(self, items: Sequence[int]) -> dict[str, Any]:
        """Return the results for some items, by key of the evaluation; only those of which the
        states have all counts. Raises `StoreError`."""
        names = self._states.index["items"]
        running = replayed(
            {key: of_items(e.exact(), items, names) for key, e in self._evaluations.items()},
            self._counted,
        )
        running.close()
        return {key: exact for key, exact in running.results.items() if exact is not None}

    def _counted(self, tally: Tally) -> TallyResult | None:
        """Return the states of a tally that keeps those of items, else its total; None if they are
        not saved."""
        if not tally.keeps_items:
            return self._total(tally)
        if tally not in self._items:
            if not self._states.holds(tally.parameters()):
                return None
            packed = [data for states, _ in checked_items(self._states, tally) for data in states]
            self._items[tally] = TallyResult({}, packed)
        return self._items[tally]

    def _total(self, tally: Tally) -> TallyResult | None:
        try:
            data = self._states.total_of_run(tally_key(tally.parameters()))
            if data is None:
                return None
            return TallyResult(tally.load(PackedItems(data, 1).states(tally.most_bytes)[0]), ())
        except DAMAGED as error:
            raise StoreError(
                f"{cut(self._states.path)}: the total of {tally.id} is damaged or forged: "
                f"{cut(error)}. Evaluate again."
            ) from None
