"""Pixels by class, for pixel accuracy and IoU; and by predicted class and uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uqeval.arrays import Array, Maps, State, np
from uqeval.maps.names import void_of
from uqeval.tallies._contract import Tally
from uqeval.tallies._fields import Counts, Field, Flaws
from uqeval.tallies._values import OfUncertainty, Uncertainty


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

    def flaws(self, state: State) -> Flaws:
        right, predicted = state["correct"], state["predicted"]
        more = (right > state["labelled"]) | (right > predicted)
        yield "more right pixels than labelled or predicted ones", more
        more = predicted.sum(axis=-1) > self.evaluated(state)
        yield "more predicted than labelled pixels", more

    def pixels(self, state: State) -> Counts:
        return self.evaluated(state) + state["void"][..., 0]

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        from uqeval.kernels.items import count_classes_of_items

        count_classes_of_items(
            first, maps["label"].reshape(-1), maps["prediction"].reshape(-1),
            void_of(self.classes), *state.values(),
        )  # fmt: skip


@dataclass(frozen=True)
class AccuracyByUncertainty(OfUncertainty):
    """Non-void pixels, all and right ones, [predicted class, interval between `edges`]: Ma et al.
    2024, §10.1.1, Figures 4 and 5.

    A pixel's interval is the number of edges (as float32) below its uncertainty.
    """

    id: ClassVar[str] = "accuracy_by_uncertainty"
    beside = ("label", "prediction")
    uncertainty: Uncertainty
    classes: int
    edges: tuple[float, ...]

    @property
    def fields(self) -> dict[str, Field]:
        shape = (self.classes, len(self.edges) + 1)
        return {"pixels": Field(shape, "int64"), "correct": Field(shape, "int64")}

    def flaws(self, state: State) -> Flaws:
        yield "more right pixels than pixels", state["correct"] > state["pixels"]

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        from uqeval.kernels.items import count_by_uncertainty_of_items

        count_by_uncertainty_of_items(
            first, self.uncertainty.values(maps).reshape(-1), maps["label"].reshape(-1),
            maps["prediction"].reshape(-1), void_of(self.classes),
            np.array(self.edges, np.float32), *state.values(),
        )  # fmt: skip
