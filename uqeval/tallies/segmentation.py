"""Pixels by class, for pixel accuracy and IoU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uqeval.arrays import Array, Maps, State
from uqeval.maps.names import void_of
from uqeval.tallies._contract import Tally
from uqeval.tallies._fields import Counts, Field


@dataclass(frozen=True)
class ClassCounts(Tally):
    """Non-void pixels [class] by label, by prediction, and right ones; void pixels [1]."""

    id: ClassVar[str] = "class_counts"
    evaluates = "labelled"
    counts_void: ClassVar[bool] = True
    inputs = ("label", "prediction")
    classes: int

    @property
    def fields(self) -> dict[str, Field]:
        per_class = Field((self.classes,), "int64")
        return {
            "labelled": per_class,
            "predicted": per_class,
            "correct": per_class,
            "void": Field((1,), "int64"),
        }

    def flaw(self, state: State) -> str | None:
        right = state["correct"]
        if (right > state["labelled"]).any() or (right > state["predicted"]).any():
            return "more right pixels than labelled or predicted ones"
        more = (state["predicted"].sum(axis=-1) > self.evaluated(state)).any()
        return "more predicted than labelled pixels" if more else None

    def pixels(self, state: State) -> Counts:
        return self.evaluated(state) + state["void"][..., 0]

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        from uqeval.kernels.items import count_classes_of_items

        count_classes_of_items(
            first, maps["label"].reshape(-1), maps["prediction"].reshape(-1),
            void_of(self.classes), *state.values(),
        )  # fmt: skip
