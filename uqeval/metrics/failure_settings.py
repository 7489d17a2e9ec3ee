"""Settings of failure detection."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from uqeval.metrics.pavpu_settings import PavpuSettings, checked_log_base, unused_base
from uqeval.metrics.thresholds import Rule, rule_text
from uqeval.settings import Settings, definition_of, documented, option, same_option

if TYPE_CHECKING:
    from uqeval.tallies._values import Uncertainty

#: The fields that depend on the threshold.
_THRESHOLDED = ("undetected_error_rate", "uncertainty_threshold")


@documented
@dataclass(frozen=True)
class FailureSettings(Settings):
    """All settings of failure detection."""

    # fmt: off
    uncertainty: str = same_option(PavpuSettings, "uncertainty", panel=None)
    threshold: str | float = option(
        "mean", "Uncertainty threshold for undetected errors: mean of the pixels; median or "
        "pNN of the 4×4 patches; range:T; max-surplus; or a number.",
        metavar="RULE", common=True, normal=rule_text, changes_only=_THRESHOLDED)
    threshold_from: str | None = same_option(
        PavpuSettings, "threshold_from", panel=None, changes_only=_THRESHOLDED)
    log_base: float | str = option(
        math.e, "Base of the entropies, and so the unit of thresholds. With classes (their "
        "number), entropies lie in [0, 1].",
        metavar="e|2|classes", several=False, shown="e", changes_only=_THRESHOLDED)
    definition: str = definition_of(Settings.definitions)
    # fmt: on

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.log_base != "classes":
            object.__setattr__(self, "log_base", checked_log_base(self.log_base))
        object.__setattr__(self, "threshold", str(self.threshold))
        Rule.parse(self.threshold)

    def unused(self, in_region: bool = True) -> set[str]:
        return super().unused(in_region) | unused_base(self.uncertainty)

    def ranked(self, classes: int) -> Uncertainty:
        """Return the uncertainty that ranks the pixels, for this number of classes."""
        from uqeval.tallies._values import Uncertainty

        base = float(classes) if self.log_base == "classes" else float(self.log_base)
        return Uncertainty(self.uncertainty, base)
