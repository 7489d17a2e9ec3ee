"""Gaps between confidence and accuracy on a fine grid of confidences.

Linear binning (Wand & Jones 1995, Kernel Smoothing, appendix D.2): each pixel is shared between its
two nearest nodes, so that sums and first moments are those of the pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uqeval.arrays import Array, Maps, State, np
from uqeval.maps.names import void_of
from uqeval.tallies._contract import Tally
from uqeval.tallies._fields import Field, Flaws

#: Intervals between the nodes k / 4096 of the grid.
FINE = 4096


@dataclass(frozen=True)
class FineGaps(Tally):
    """Sums of the gaps between accuracy and confidence on a fine grid, over non-void pixels.

    - `gaps` [node]: sums of hit - confidence at the nodes k / 4096. A gap is divided between the
      two nearest nodes, in proportion to the distances. Confidences above 1 count as 1.
    - `absolute` [1]: the sum of |hit - confidence|
    - `pixels` [1]

    The confidence is that of the top label. With `positive`, it is the probability of class 1, and
    the hit is the label 1.
    """

    id: ClassVar[str] = "fine_gaps"
    evaluates = "pixels"
    checks_columns: ClassVar[bool] = True
    fields: ClassVar[dict[str, Field]] = {
        "pixels": Field((1,), "int64"),
        "absolute": Field((1,), "float64"),
        "gaps": Field((FINE + 1,), "float64", signed=True),
    }
    classes: int
    positive: bool = False

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("label", "mean_probs") if self.positive else ("label", "prediction", "confidence")

    def flaws(self, state: State) -> Flaws:
        pixels, absolute = state["pixels"][..., 0], state["absolute"][..., 0]
        # A confidence may be a little above 1 by rounding: 2 is the limit of other tallies, too.
        yield "a sum of gaps that its pixels cannot have", ~(absolute <= 2.0 * pixels)
        total = np.abs(state["gaps"]).sum(axis=-1)
        yield "gaps with a greater sum than that of their pixels", ~(total <= absolute * (1 + 1e-9))

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        from uqeval.kernels.calibration import add_fine_gaps

        value, hit, label = self._flat(maps)
        add_fine_gaps(first, value, hit, label, void_of(self.classes), *state.values())

    def _flat(self, maps: Maps) -> tuple[Array, Array, Array]:
        """Return confidences, hits uint8 and labels, all [i]."""
        label = maps["label"]
        value = maps["mean_probs"][1] if self.positive else maps["confidence"]
        hit = label == (1 if self.positive else maps["prediction"])
        return value.reshape(-1), hit.view(np.uint8).reshape(-1), label.reshape(-1)
