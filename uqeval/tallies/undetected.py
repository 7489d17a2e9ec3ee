"""Wrong pixels that the uncertainty does not flag."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uqeval.arrays import Array, Maps, State, np
from uqeval.tallies._contract import Tally
from uqeval.tallies._fields import Counts, Field
from uqeval.tallies._values import Uncertainty, void_of


@dataclass(frozen=True)
class Undetected(Tally):
    """Non-void pixels, wrong ones, and wrong ones whose uncertainty is not above the threshold.

    The threshold is compared as float32; if it is None, the last count has no meaning. State:
    `counts` [class of label, 3].
    """

    id: ClassVar[str] = "undetected"
    uncertainty: Uncertainty
    classes: int
    threshold: float | None

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("label", "prediction", self.uncertainty.name)

    @property
    def fields(self) -> dict[str, Field]:
        return {"counts": Field((self.classes, 3), "int64")}

    def flaw(self, state: State) -> str | None:
        counts = state["counts"]
        if (counts[..., 1:] > counts[..., :2]).any():
            return "more wrong pixels than pixels"
        return None

    def evaluated(self, state: State) -> Counts:
        return state["counts"][..., 0].sum(axis=-1)

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        from uqeval.kernels.items import count_undetected_of_items

        count_undetected_of_items(
            first,
            self.uncertainty.values(maps).reshape(-1),
            maps["prediction"].reshape(-1),
            maps["label"].reshape(-1),
            void_of(self.classes),
            np.float32(np.nan if self.threshold is None else self.threshold),
            state["counts"],
        )
