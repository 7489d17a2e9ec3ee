"""Pixels by predicted class and uncertainty: Ma et al. 2024, §10.1.1, Figures 4 and 5."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uqeval.arrays import Array, Maps, State, np
from uqeval.maps.names import void_of
from uqeval.tallies._fields import Field
from uqeval.tallies._values import OfUncertainty, Uncertainty


@dataclass(frozen=True)
class AccuracyByUncertainty(OfUncertainty):
    """Non-void pixels, all and right ones, [predicted class, interval between `edges`].

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

    def flaw(self, state: State) -> str | None:
        if (state["correct"] > state["pixels"]).any():
            return "more right pixels than pixels"
        return None

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        from uqeval.kernels.items import count_by_uncertainty_of_items

        count_by_uncertainty_of_items(
            first, self.uncertainty.values(maps).reshape(-1), maps["label"].reshape(-1),
            maps["prediction"].reshape(-1), void_of(self.classes),
            np.array(self.edges, np.float32), *state.values(),
        )  # fmt: skip
