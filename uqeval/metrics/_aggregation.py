"""The uncertainty of a whole item: how the uncertainties of its pixels become one number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uqeval.arrays import State
from uqeval.errors import UsageError, number_in, quoted
from uqeval.settings import number_text

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally
    from uqeval.tallies._values import Uncertainty

SPELLINGS = "mean, sum, max, pNN (p0 … p100), patch-max, share or mean-above"
_WORDS = ("mean", "sum", "max", "patch-max", "share", "mean-above")
#: How a column of a table of items is named, in place of an aggregation.
COLUMN = "column:"
VOID = "no pixel of the item is evaluated"


@dataclass(frozen=True)
class Aggregation:
    """One of `SPELLINGS`; `percentile` is that of pNN.

    mean, sum, max: of the pixels. patch-max: the largest mean of a patch. share: of the pixels
    above the threshold. mean-above: mean of the pixels that reach the threshold, 0 without any.
    """

    name: str
    percentile: float | None = None

    @classmethod
    def parse(cls, text: str, option: str = "--confidence") -> Aggregation:
        """Return the aggregation of this name. Raises `UsageError`."""
        if (aggregation := cls.find(text)) is None:
            raise UsageError(f"{option} {quoted(text)} is not valid; expected {SPELLINGS}.")
        return aggregation

    @classmethod
    def find(cls, text: str) -> Aggregation | None:
        """Return the aggregation of this name; None for another text."""
        if text in _WORDS:
            return cls(text)
        try:
            percentile = number_in(text[1:]) if text[:1] == "p" else math.nan
        except ValueError:
            return None
        return cls(text, percentile) if 0 <= percentile <= 100 else None

    @property
    def needs_threshold(self) -> bool:
        """Return whether pixels are compared with a threshold."""
        return self.name in ("share", "mean-above")

    def tally(
        self, uncertainty: Uncertainty, classes: int, patch: int, threshold: float | None
    ) -> Tally:
        """Return the tally of single items that `value` reads; `patch`: the side of a patch."""
        from uqeval.tallies.item_uncertainty import AboveThreshold, ItemPatchMaximum, ItemPercentile
        from uqeval.tallies.patches import Patches
        from uqeval.tallies.ranks import Moments

        if self.percentile is not None:
            return ItemPercentile(uncertainty, classes, self.percentile)
        if self.name == "patch-max":
            return ItemPatchMaximum(Patches(uncertainty, classes, patch, stride=1))
        if self.needs_threshold:
            return AboveThreshold(uncertainty, classes, threshold)
        return Moments(uncertainty, classes)

    def value(self, state: State) -> float | None:
        """Return the uncertainty of an item from its state; None without an evaluated pixel."""
        if "value" in state:
            value = float(state["value"][0])
            return value if math.isfinite(value) else None
        if self.needs_threshold:
            pixels, above, reaching = state["counts"].tolist()
            if not pixels:
                return None
            if self.name == "share":
                return float(above / pixels)
            return float(state["total"][0]) / reaching if reaching else 0.0
        return _of_moments(self.name, state)


def aggregation_text(text: str) -> str:
    """Return the one spelling of an aggregation, such as p90 for p90.0; another text as it is."""
    aggregation = Aggregation.find(text)
    percentile = None if aggregation is None else aggregation.percentile
    return text if percentile is None else f"p{number_text(percentile)}"


def _of_moments(name: str, state: State) -> float | None:
    pixels = int(state["count"].sum())
    if not pixels:
        return None
    if name == "max":
        return float(state["most"].max())
    total = math.fsum(state["total"].tolist())
    return total if name == "sum" else total / pixels


def check_patch(aggregation: Aggregation, patch: int, info: Any) -> None:
    """Raise `UsageError` for a patch that is larger than an item."""
    if aggregation.name != "patch-max":
        return
    for name, (height, width) in info.names_and_sizes:
        if patch > min(height, width):
            raise UsageError(
                f"--patch {patch} is larger than item {name} of {info.where}, which is "
                f"{height}×{width} (height×width); give a smaller patch."
            )
