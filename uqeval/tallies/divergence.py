"""KL divergence to a reference predictive distribution, summed over pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uqeval.arrays import Maps, State
from uqeval.maps.names import of_reference, void_of
from uqeval.tallies._contract import Tally
from uqeval.tallies._fields import Counts, Field


@dataclass(frozen=True)
class Divergence(Tally):
    """Sum of the finite divergences, and pixels where it is finite and infinite, each [1].

    `kind`: "classes" compares mean probabilities, clipped at `clip` from below and renormalised if
    that is above 0; "regression" Gaussians, where both are evaluated.
    """

    id: ClassVar[str] = "divergence"
    kind: str = "classes"
    clip: float = 0.0

    @property
    def inputs(self) -> tuple[str, ...]:
        of_kind = ("mean_probs",) if self.kind == "classes" else ("label", "mean", "sigma")
        return (*of_kind, *(of_reference(name) for name in of_kind))

    @property
    def fields(self) -> dict[str, Field]:
        count = Field((1,), "int64")
        return {"total": Field((1,), "float64", signed=True), "finite": count, "infinite": count}

    def pixels(self, state: State) -> Counts:
        return state["finite"][..., 0] + state["infinite"][..., 0]

    def update(self, state: State, maps: Maps) -> None:
        from uqeval.kernels.divergence import kl_categorical, kl_gaussian

        inputs = [maps[name] for name in self.inputs]
        if self.kind == "classes":
            kl_categorical(*inputs, self.clip, *state.values())
        else:
            kl_gaussian(*inputs, void_of(1), *state.values())
