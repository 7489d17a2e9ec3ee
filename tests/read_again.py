"""Scores read off a states file again, as `uqeval.statistics` does it, fold by fold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uqeval
from uqeval.metrics._again import Again
from uqeval.statistics.variants import agains_of
from uqeval.stores.states import SavedStates


def fold(tally: Any, packed: Sequence[bytes], items: Sequence[int]) -> Any:
    """A state of some items, in this order, repeated ones too."""
    total = tally.empty()
    for item in items:
        tally.merge(total, tally.unpack(packed[item]))
    return total


class Reread:
    """A run, its report and its states."""

    def __init__(self, path: Path, *data: Any, **options: Any) -> None:
        file = path / "states.zip"
        self.report = uqeval.evaluate(*data, states=file, workers=1, **options)
        self.saved = SavedStates(file)
        self.agains: dict[str, Again] = agains_of(self.saved.index)
        self._packed: dict[Any, list[bytes]] = {}

    def states(self, key: str, items: Sequence[int] | None = None) -> dict[Any, Any]:
        """What the scores of a variant take, of some items or of all."""
        chosen = range(len(self.saved.index["items"])) if items is None else items
        found = {}
        for tally in self.agains[key].tallies:
            assert self.saved.holds(tally.parameters()), tally
            if tally not in self._packed:
                self._packed[tally] = list(self.saved.states(tally.parameters()))
            found[tally] = fold(tally, self._packed[tally], chosen)
        return found

    def scores(
        self, key: str, items: Sequence[int] | None = None, whole: bool = True
    ) -> dict[str, Any]:
        """The scores of a variant or part, of some items or of all."""
        return self.agains[key].scores(self.states(key, items), whole)

    def results(self, key: str) -> dict[str, Any]:
        """What the report says."""
        head, _, part = key.partition("/")
        found: dict[str, Any] = self.report.results[head]
        return found[part] if part else found


def without(record: dict[str, Any], *fields: str) -> dict[str, Any]:
    """A record without some fields and their reasons."""
    return {k: v for k, v in record.items() if k.removesuffix("_reason") not in fields}
