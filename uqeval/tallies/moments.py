"""Count, sum and extremes of an uncertainty, for `mean` and `range` thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uqeval.arrays import Array, Maps, State
from uqeval.tallies._contract import Tally
from uqeval.tallies._fields import Field
from uqeval.tallies._values import Uncertainty, void_of


@dataclass(frozen=True)
class Moments(Tally):
    """Count, sum, minimum and maximum of the uncertainty of non-void pixels, by label [class]."""

    id: ClassVar[str] = "moments"
    evaluates = "count"
    uncertainty: Uncertainty
    classes: int

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("label", self.uncertainty.name)

    @property
    def fields(self) -> dict[str, Field]:
        shape = (self.classes,)
        return {
            "count": Field(shape, "int64"),
            "total": Field(shape, "float64", signed=True),
            "least": Field(shape, "float64", "min"),
            "most": Field(shape, "float64", "max"),
        }

    def flaw(self, state: State) -> str | None:
        nonempty = state["count"] > 0
        if (state["least"] > state["most"])[nonempty].any():
            return "a minimum above the maximum"
        return None

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        from uqeval.kernels.items import measure_items

        value, label = self.uncertainty.values(maps).reshape(-1), maps["label"].reshape(-1)
        measure_items(first, value, label, void_of(self.classes), *state.values())
