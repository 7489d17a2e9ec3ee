"""Exact scores by rank of slices, from the counts that a run has made for each slice.

From the states of items, ranks are found in bins, and bins of equal mass are those of the set. A
run that knows its slices also ranks the pixels of each slice, and saves the totals with the states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uqeval.metrics._driver import of_items, replayed
from uqeval.statistics.saved_counts import saved_result

if TYPE_CHECKING:
    from uqeval.metrics._evaluation import Evaluation, TallyResult
    from uqeval.statistics.merged_states import MergedStates
    from uqeval.tallies._contract import Tally


class ExactSlices:
    """Reader of the results of `Evaluation.of_slice` for slices of a run."""

    def __init__(self, states: MergedStates, evaluations: Mapping[str, Evaluation[Any]]) -> None:
        self._states = states
        self._evaluations = {
            key: evaluation for key, evaluation in evaluations.items() if evaluation.ranks_slices
        }
        #: States of items, from which each slice takes its own.
        self._of_items: dict[Tally, TallyResult | None] = {}

    def results(self, items: Sequence[int]) -> dict[str, Any]:
        """Return the results for some items, by key of the evaluation; only those of which the
        states have all counts. Raises `StoreError`."""
        names = self._states.index["items"]
        running = replayed(
            {key: of_items(e.of_slice(), items, names) for key, e in self._evaluations.items()},
            self._counted,
        )
        running.close()
        return {key: exact for key, exact in running.results.items() if exact is not None}

    def _counted(self, tally: Tally) -> TallyResult | None:
        if not tally.keeps_items:
            return saved_result(self._states, tally)
        if tally not in self._of_items:
            self._of_items[tally] = saved_result(self._states, tally)
        return self._of_items[tally]
