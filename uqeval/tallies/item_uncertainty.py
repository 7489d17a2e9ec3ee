"""One number for the uncertainty of a whole item: a percentile, a patch, or the pixels above a
threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uqeval.arrays import Maps, State, np
from uqeval.maps.names import void_of
from uqeval.tallies._contract import Tally
from uqeval.tallies._fields import Counts, Field, Flaws
from uqeval.tallies._values import OfUncertainty, Uncertainty
from uqeval.tallies.item_errors import statistics
from uqeval.tallies.patches import Patches
from uqeval.tallies.rank_keys import between, ranks_of


@dataclass(frozen=True)
class ItemPercentile(OfUncertainty):
    """A percentile of the uncertainty of an item's non-void pixels, interpolated linearly.

    State: `pixels`, and `value`, -∞ without pixels; of several items the largest.
    """

    id: ClassVar[str] = "item_percentile"
    evaluates = "pixels"
    fields: ClassVar[dict[str, Field]] = {
        "pixels": Field((1,), "int64"),
        "value": Field((1,), "float64", "max"),
    }
    uncertainty: Uncertainty
    classes: int
    percentile: float

    def update(self, state: State, maps: Maps) -> None:
        values = self.uncertainty.values(maps)[maps["label"] != void_of(self.classes)]
        ranks = ranks_of(values.size, self.percentile, "linear")
        if ranks is None:
            return
        lower, upper, weight = ranks
        value = between(*statistics(values, lower, upper), weight)
        state["pixels"] += values.size
        state["value"][...] = max(state["value"][0], value)


@dataclass(frozen=True)
class ItemPatchMaximum(Tally):
    """The largest mean uncertainty of the patches of an item.

    State: `patches` with a valid pixel, and `value`, -∞ without; of several items the largest.
    """

    id: ClassVar[str] = "item_patch_maximum"
    fields: ClassVar[dict[str, Field]] = {
        "patches": Field((1,), "int64"),
        "value": Field((1,), "float64", "max"),
    }
    patches: Patches

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("label", self.patches.uncertainty.name)

    def update(self, state: State, maps: Maps) -> None:
        # Patches need a prediction for their accuracy, which is not used here.
        table = self.patches.table({**maps, "prediction": maps["label"]})
        mean = table["mean"][table["category"] >= 0]
        if mean.size:
            state["patches"] += mean.size
            state["value"][...] = max(state["value"][0], float(mean.max()))


@dataclass(frozen=True)
class AboveThreshold(OfUncertainty):
    """Non-void pixels with an uncertainty above the threshold, or on it; compared as float32.

    If the threshold is None, no pixel is above it. State: `counts` [pixels, above, above or on it];
    `total`, the sum of the uncertainties of the last.
    """

    id: ClassVar[str] = "above_threshold"
    fields: ClassVar[dict[str, Field]] = {
        "counts": Field((3,), "int64"),
        "total": Field((1,), "float64", signed=True),
    }
    uncertainty: Uncertainty
    classes: int
    threshold: float | None

    def flaws(self, state: State) -> Flaws:
        pixels, above, reaching = (state["counts"][..., i] for i in range(3))
        more = (above > reaching) | (reaching > pixels)
        yield "more pixels above the threshold than pixels", more

    def evaluated(self, state: State) -> Counts:
        return state["counts"][..., 0]

    def update(self, state: State, maps: Maps) -> None:
        values = self.uncertainty.values(maps)[maps["label"] != void_of(self.classes)]
        threshold = np.float32(np.nan if self.threshold is None else self.threshold)
        reaching = values[values >= threshold]
        above = np.count_nonzero(reaching > threshold)
        state["counts"] += (values.size, above, reaching.size)
        state["total"] += reaching.sum(dtype=np.float64)
