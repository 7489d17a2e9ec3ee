"""Pixels by class: what pixel accuracy and IoU are read from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from uqeval.tallies._contract import Field, Tally
from uqeval.tallies._values import void_of

if TYPE_CHECKING:
    from uqeval.tallies._contract import Maps, State


@dataclass(frozen=True)
class ClassCounts(Tally):
    """Non-void pixels [class] by label, by prediction, and right ones; void pixels [1]."""

    id: ClassVar[str] = "class_counts"
    classes: int

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("label", "prediction")

    @property
    def fields(self) -> dict[str, Field]:
        each = Field((self.classes,), "int64")
        return {"labelled": each, "predicted": each, "correct": each, "void": Field((1,), "int64")}

    def update(self, state: State, maps: Maps) -> None:
        from uqeval.kernels.counting import count_classes

        count_classes(
            maps["label"], maps["prediction"], void_of(self.classes),
            state["labelled"], state["predicted"], state["correct"], state["void"],
        )  # fmt: skip
