"""Settings of n-MeRCI, and the presets of published definitions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from uqeval.errors import UsageError
from uqeval.maps.names import lambda_of
from uqeval.metrics._numbers import SigmaSettings
from uqeval.settings import definition_of, documented, option

#: What each definition in use changes of the defaults, which are Moukari et al.'s paper. The one
#: public implementation sorts by λ, keeps the first int(N·α) pixels, and takes λ, MAE, mean σ and
#: the largest error of those alone.
DEFINITIONS: dict[str, dict[str, Any]] = {
    "paper": {},
    "trimmed-mae": {"mae": "trimmed"},
    "public-code": {"interpolation": "truncated", "over": "kept"},
}
_CHOICES = "Details of the definition"
_BY_DEPTH = ("by_depth", "by_depth_mean")
#: The fields that depend on the MAE that is used, on the pixels of the means, and on α.
_SCORED = ("nmerci", "curve", *_BY_DEPTH)
_MEANS = ("mae_trimmed", "merci", *_SCORED)
_AT_ALPHA = ("alpha", "lambda", "max_alpha", *_MEANS)


@documented
@dataclass(frozen=True)
class NmerciSettings(SigmaSettings):
    """All settings of n-MeRCI; the defaults are those of Moukari et al. 2019."""

    definitions = DEFINITIONS

    # fmt: off
    alpha: float = option(
        95.0, "Percentage of pixels whose error the scaled uncertainty must cover. Repeat for "
        "variants.",
        metavar="PERCENT", above=0, most=100, shown="95", common=True, changes_only=_AT_ALPHA)
    depth_step: float | None = option(
        None, "Also score each interval of the target of this width, with its own percentiles.",
        metavar="STEP", above=0, below=math.inf, several=False, common=True,
        changes_only=_BY_DEPTH)
    interpolation: str = option(
        "linear", "Interpolation of percentiles: linear, inverted_cdf, or truncated (the last "
        "of the first int(N·(α/100)) values, in floating point).",
        choices=("linear", "inverted_cdf", "truncated"), panel=_CHOICES, changes_only=_AT_ALPHA)
    over: str = option(
        "all", "Compute means over all pixels, or only over those with λ up to λ^α (kept).",
        choices=("all", "kept"), panel=_CHOICES, changes_only=_MEANS)
    mae: str = option(
        "full", "Use the MAE of all pixels (full), or only of errors up to max^α (trimmed).",
        choices=("full", "trimmed"), panel=_CHOICES, changes_only=_SCORED)
    definition: str = definition_of(DEFINITIONS)
    # fmt: on

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "alpha", float(self.alpha))
        if self.over == "kept" and self.mae == "trimmed":
            raise UsageError("--over kept takes every mean over the kept pixels; leave out --mae.")

    @property
    def trimmed_by(self) -> str:
        """Return the map whose percentile selects the pixels of a trimmed mean."""
        return lambda_of(self.sigma) if self.over == "kept" else "error"
