"""Sums of the proper scores: Brier 1950, and the negative log-likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uqeval.arrays import Array, Maps, State
from uqeval.tallies._contract import Tally
from uqeval.tallies._fields import Counts, Field
from uqeval.tallies._values import void_of


@dataclass(frozen=True)
class ProperScores(Tally):
    """Over the non-void pixels: `sums` [2] of -ln max(p̄_y, clip) and of Σ_c (p̄_c - y_c)².

    `counts` [3]: pixels, those with p̄_y < clip, and those where p̄_y is no probability (negative,
    or above 2).
    """

    id: ClassVar[str] = "proper_scores"
    inputs = ("label", "label_probability", "brier")
    fields: ClassVar[dict[str, Field]] = {
        "counts": Field((3,), "int64"),
        "sums": Field((2,), "float64", signed=True),
    }
    classes: int
    clip: float

    def flaw(self, state: State) -> str | None:
        counts = state["counts"]
        clipped = (counts[..., 1:] > counts[..., :1]).any()
        return "more clipped pixels than pixels" if clipped else None

    def evaluated(self, state: State) -> Counts:
        return state["counts"][..., 0]

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        from uqeval.kernels.items import sum_scores_of_items

        flat = [maps[name].reshape(-1) for name in ("label_probability", "brier", "label")]
        sum_scores_of_items(first, *flat, void_of(self.classes), self.clip, *state.values())
