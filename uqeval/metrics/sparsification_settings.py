"""Settings of sparsification, published presets, and defaults by kind of data."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import uqeval.metrics.sparsification_curves as sc
from uqeval.errors import UsageError, data_of_kind
from uqeval.settings import Settings, definition_of, documented, option

if TYPE_CHECKING:
    from uqeval.tallies.item_curves import Cuts

#: What each definition in use changes of the defaults, which are Gustafsson et al.'s paper.
DEFINITIONS: dict[str, dict[str, Any]] = {
    "paper": {},
    "gustafsson-code": {"keep": "truncate"},
    "mono-uncertainty": {
        "steps": 50, "keep": "quantile", "ties": "together", "normalise": "none", "end": "zero",
        "scope": "item",
    },
    "torch-uncertainty-0.13": {"grid": "every-rank"},
}  # fmt: skip

ERRORS = {"classes": ("brier", "zero-one"), "regression": ("rmse", "mse", "mae", "abs-rel", "a1")}
UNCERTAINTY = {"classes": "entropy", "regression": "sigma"}


_CHOICES = "Details of the definition"


@documented
@dataclass(frozen=True)
class SparsificationSettings(Settings):
    """All settings of sparsification; the defaults are those of Gustafsson et al. 2020."""

    definitions = DEFINITIONS

    # fmt: off
    uncertainty: str = option(
        "", "Uncertainty map: entropy, mutual_information, confidence, …; sigma for "
        "regression; or any map of the store. Repeat for variants.",
        metavar="NAME", shown="entropy; sigma for regression", common=True)
    error: str = option(
        "", "Error measure: brier or zero-one for classes; rmse, mse, mae, abs-rel or a1 (the "
        "share of depths that are wrong by a factor of 1.25 or more) for regression. Repeat for "
        "variants.",
        choices=(*ERRORS["classes"], *ERRORS["regression"]), shown="brier; rmse for regression",
        common=True)
    scope: str = option(
        "set", "One curve of all pixels of the set, or the mean over the curves of the items.",
        choices=("set", "item"), common=True)
    steps: int = option(
        100, "Compute the curves at the removed fractions k/K.",
        metavar="K", panel=_CHOICES, least=2, most=10_000)
    keep: str = option(
        "floor", "Number of pixels kept of N: N - floor(kN/K), the float (1 - k/K)N truncated, "
        "or those up to a quantile.",
        choices=("floor", "truncate", "quantile"), panel=_CHOICES)
    ties: str = option(
        "averaged", "Pixels tied at a cut: averaged, or kept together.",
        choices=("averaged", "together"), panel=_CHOICES)
    normalise: str = option(
        "first", "Divide the curves by their first value, or do not.",
        choices=("first", "none"), panel=_CHOICES)
    end: str = option(
        "last", "Areas end at the last fraction, or at 1 with an error of 0 there.",
        choices=("last", "zero"), panel=_CHOICES)
    grid: str = option(
        "steps", "Compute areas from the curves at the steps, or over every rank.",
        choices=("steps", "every-rank"), panel=_CHOICES)
    definition: str = definition_of(DEFINITIONS)
    # fmt: on

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.grid == "every-rank" and (self.end, self.ties) != ("last", "averaged"):
            raise UsageError(
                "--grid every-rank averages ties and ends at the last rank; give neither "
                "--end zero nor --ties together with it."
            )

    def for_data(self, kind: str, where: str) -> SparsificationSettings:
        """Return these settings with the defaults for a kind of data. Raises `UsageError`."""
        # The grid every-rank takes no root: torch-uncertainty averages errors of any kind.
        default = "mse" if self.grid == "every-rank" and kind == "regression" else ERRORS[kind][0]
        error = self.error or default
        if error not in ERRORS[kind]:
            raise UsageError(
                f"--error {error}: {where} holds {data_of_kind(kind)}; expected one of "
                f"{', '.join(ERRORS[kind])}."
            )
        if self.grid == "every-rank" and error == "rmse":
            raise UsageError("--grid every-rank takes means of errors; expected --error mse.")
        return dataclasses.replace(
            self, error=error, uncertainty=self.uncertainty or UNCERTAINTY[kind]
        )

    @property
    def cuts(self) -> Cuts:
        """Return the numbers of pixels that are kept."""
        from uqeval.tallies.item_curves import Cuts

        return Cuts(self.steps, self.keep, self.ties)

    def curves(self, sums: sc.CutSums) -> sc.Curves:
        """Return curves of some sums by these settings."""
        return sc.curves(
            sums, rooted=self.error == "rmse", normalised=self.normalise == "first",
            zero_at_1=self.end == "zero",
        )  # fmt: skip
