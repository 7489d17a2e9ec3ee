"""Failure detection: wrong pixels that the uncertainty does not flag, and the ranks of an item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uqeval.arrays import Array, Maps, State, np
from uqeval.maps.names import void_of
from uqeval.tallies._errors import Error
from uqeval.tallies._fields import Counts, Field, Flaws
from uqeval.tallies._values import OfUncertainty, Uncertainty


@dataclass(frozen=True)
class Undetected(OfUncertainty):
    """Non-void pixels, wrong ones, and wrong ones whose uncertainty is not above the threshold.

    The threshold is compared as float32; if it is None, the last count has no meaning. State:
    `counts` [class of label, 3].
    """

    id: ClassVar[str] = "undetected"
    beside = ("label", "prediction")
    uncertainty: Uncertainty
    classes: int
    threshold: float | None

    @property
    def fields(self) -> dict[str, Field]:
        return {"counts": Field((self.classes, 3), "int64")}

    def flaws(self, state: State) -> Flaws:
        counts = state["counts"]
        yield "more wrong pixels than pixels", counts[..., 1:] > counts[..., :2]

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


@dataclass(frozen=True)
class ItemFailure(OfUncertainty):
    """Sums for the failure scores of single items. The pixels of a tie count as one bin.

    - `counts`: pixels; wrong pixels; right pixels at least as uncertain as the 95 % most uncertain
      wrong ones
    - `pairs`: twice the pairs of a wrong and a right pixel in the right order, plus the tied pairs
    - `sums`: over wrong pixels, the precision at their rank; over right pixels, the same for the
      certainty; over all pixels, the error rate of the pixels at least as certain

    Merged states describe pairs within items.
    """

    id: ClassVar[str] = "item_failure"
    fields: ClassVar[dict[str, Field]] = {
        "counts": Field((3,), "int64"),
        "pairs": Field((2,), "int64"),
        "sums": Field((3,), "float64"),
    }
    beside = ("label", "prediction")
    uncertainty: Uncertainty
    classes: int

    def flaws(self, state: State) -> Flaws:
        pixels, wrong, bin_count = np.moveaxis(state["counts"], -1, 0)
        pairs, ordered = np.moveaxis(state["pairs"], -1, 0)
        more = (wrong > pixels) | (bin_count > pixels - wrong)
        yield "more wrong or right pixels than pixels", more
        # In float64, since the product of forged counts exceeds int64.
        product = wrong.astype(np.float64) * (pixels - wrong)
        more = (ordered > 2 * pairs) | (pairs > product)
        yield "more pairs than wrong and right pixels make", more
        yield "sums above their pixels", state["sums"] > pixels[..., None] * 1.000001

    def evaluated(self, state: State) -> Counts:
        return state["counts"][..., 0]

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        from uqeval.kernels.items import detect_failures_of_items

        flat = [self.uncertainty.values(maps), Error("zero-one").values(maps), maps["label"]]
        detect_failures_of_items(
            first, *(values.reshape(-1) for values in flat), void_of(self.classes), *state.values()
        )
