"""Compute scores from a states file, as `uqeval.statistics` does, fold by fold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import uqeval
from uqeval.records.addresses import addresses_of
from uqeval.statistics.kinds import metric_at
from uqeval.statistics.stacked import Stacked
from uqeval.statistics.variants import evaluations_of
from uqeval.statistics.weighting import Weighting
from uqeval.stores.states.saved import SavedStates


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
        self.evaluations = evaluations_of(self.saved.index, file)
        self._packed: dict[Any, list[bytes]] = {}

    def states(self, key: str, items: Sequence[int] | None = None) -> dict[Any, Any]:
        """Return the states for the scores of a variant, of some items or of all."""
        chosen = range(len(self.saved.index["items"])) if items is None else items
        found = {}
        for tally in self.evaluations[key].tallies():
            if tally not in self._packed:
                self._packed[tally] = list(self.saved.states(tally.parameters(), tally.most_bytes))
            found[tally] = fold(tally, self._packed[tally], chosen)
        return found

    def scores(self, key: str, items: Sequence[int] | None = None) -> dict[str, Any]:
        """The scores of a variant or part, of some items or of all; `columns` gives the same."""
        found = self.evaluations[key].scores(self.states(key, items))
        chosen = range(len(self.saved.index["items"])) if items is None else items
        self.check_columns(key, chosen, found)
        return found

    def check_columns(self, key: str, items: Sequence[int], expected: Any) -> None:
        """Compare the columns of these items, beside a void set, with their scores."""
        evaluation, count = self.evaluations[key], len(self.saved.index["items"])
        weights = np.stack([np.bincount(items, minlength=count), np.zeros(count, np.int64)])
        sets = Weighting(weights)
        states = {t: Stacked.of(self.saved, t).sets(sets) for t in evaluation.tallies()}
        with np.errstate(all="ignore"):
            columns = evaluation.columns(states, set(expected))
        numbers = dict(addresses_of({key.replace("/", "_"): expected}))
        for address, (_, *place) in numbers.items():
            value = expected
            for name in place:
                value = value[name] if isinstance(value, dict) else row_of(value, name)
            metric = ".".join([key.replace("/", "."), *map(str, place)])
            if tuple(place) not in columns:
                over = evaluation.over_items()
                beside = over.names
                assert (
                    value is None
                    or ".".join(map(str, place)) in beside
                    or (metric_at(metric) is None)
                ), address
                continue
            exact = pytest.approx(
                np.nan if value is None else value,
                rel=1e-9 if place[-1] == "nmse" else 1e-12, abs=1e-15, nan_ok=True,
            )  # fmt: skip
            assert columns[tuple(place)][0] == exact, address

    def results(self, key: str) -> dict[str, Any]:
        """What the report says."""
        head, _, part = key.partition("/")
        found: dict[str, Any] = self.report.results[head]
        return found[part] if part else found


def row_of(rows: list[dict[str, Any]], c: Any) -> dict[str, Any]:
    """The row of a class."""
    return next(row for row in rows if row["class"] == c)


def without(record: dict[str, Any], *fields: str) -> dict[str, Any]:
    """A record without some fields and their reasons."""
    return {k: v for k, v in record.items() if k.removesuffix("_reason") not in fields}
