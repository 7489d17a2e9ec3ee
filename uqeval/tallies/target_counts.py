"""Counts of targets: evaluated, zero and negative."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uqeval.arrays import Array, Maps, State
from uqeval.maps.names import TARGET_COUNTS
from uqeval.tallies._contract import Tally
from uqeval.tallies._fields import Field


@dataclass(frozen=True)
class TargetCounts(Tally):
    """`counts` [3]: evaluated targets, those that are exactly 0, those below 0."""

    id: ClassVar[str] = "target_counts"
    inputs = (TARGET_COUNTS,)
    fields: ClassVar[dict[str, Field]] = {"counts": Field((3,), "int64")}

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        state["counts"] += maps[TARGET_COUNTS].reshape(-1, 3)
