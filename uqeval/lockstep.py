"""Advancing all plans of a run together: one pass over the items for all that they ask for next."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from uqeval.errors import DataError
from uqeval.inputs import Inputs

if TYPE_CHECKING:
    from uqeval.engine.scratch import Scratch
    from uqeval.metrics._plan import Counted, Plan, Section
    from uqeval.run import RunOptions
    from uqeval.stores.states import StatesWriter
    from uqeval.tallies import Tally


class Lockstep:
    """Advances plans together; counts the bytes read, the passes, and the workers that fitted."""

    def __init__(self, inputs: Inputs, options: RunOptions) -> None:
        self.inputs = inputs
        self.options = options
        self.bytes_read = 0
        self.passes = 0
        self.workers = 0
        self._lock = threading.Lock()
        self._counted = 0

    def run(self, plans: Mapping[str, Plan]) -> dict[str, Section]:
        """The sections of all plans, by key. Raises `UqevalError`; nothing is left behind then."""
        from uqeval.engine.scratch import Scratch

        finished: dict[str, Section] = {}
        asked = {key: next(plan) for key, plan in plans.items()}
        with ExitStack() as stack:
            scratch = stack.enter_context(Scratch(self.options.memory // 4))
            states = self._states(stack)
            while asked:
                tallies = list(dict.fromkeys(t for wanted in asked.values() for t in wanted))
                counted = self._pass(tallies, scratch, states)
                self._refuse_void(counted)
                for key in list(asked):
                    mine = {tally: counted[tally] for tally in asked[key]}
                    try:
                        asked[key] = plans[key].send(mine)
                    except StopIteration as stop:
                        finished[key] = stop.value
                        del asked[key]
            if states is not None:
                states.finish(self.inputs.source.names, self.inputs.fingerprint)
        return {key: finished[key] for key in plans}

    def _refuse_void(self, counted: Mapping[Tally, Counted]) -> None:
        for tally, found in counted.items():
            if tally.id == "class_counts" and not found.total["labelled"].any():
                labels = self.inputs.record["labels"]["path"]
                raise DataError(
                    f"{labels}: nothing is left to evaluate: all labels of the "
                    f"{self.inputs.source.items} items are ignore_index {self.inputs.ignore_index} "
                    "(void). Check --ignore-index and how the labels were written."
                )

    def _states(self, stack: ExitStack) -> StatesWriter | None:
        if self.options.states is None:
            return None
        from uqeval.stores.states import StatesWriter

        return stack.enter_context(StatesWriter(self.options.states))

    def _pass(
        self, tallies: Sequence[Tally], scratch: Scratch, states: StatesWriter | None
    ) -> dict[Tally, Counted]:
        """Count some tallies over all items."""
        from uqeval.engine.passes import Resources, run_pass, workers_within
        from uqeval.metrics._plan import Counted

        source, progress = self.inputs.source, self.options.progress
        workers = workers_within(source, Resources(self.options.threads(), self.options.memory))
        self.workers = max(self.workers, workers)
        # Apart for each pass: a plan may ask for what another has asked for before.
        numbers = {tally: self._counted + i for i, tally in enumerate(tallies)}
        self._counted += len(tallies)
        items: dict[Tally, list[bytes]] = {tally: [] for tally in tallies}

        def keep(item: int, tally: Tally, data: bytes) -> None:
            if tally.keeps_items:
                items[tally].append(data)
            if states is not None:
                states.add(numbers[tally], tally.parameters(), item, data)

        def advance(nbytes: int, done: int) -> None:
            with self._lock:
                self.bytes_read += nbytes
            progress.advance(nbytes, done)

        self.passes += 1
        progress.begin(f"pass {self.passes}", source.items)
        try:
            totals = run_pass(source, scratch, tallies, workers, advance, keep)
        finally:
            progress.end()
        return {tally: Counted(totals[tally], items[tally]) for tally in tallies}
