"""Choices behind a sparsification, their definitions in use, and the defaults by kind of data."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uqeval.errors import UsageError
from uqeval.metrics import sparsification_curves as sc
from uqeval.metrics._settings import check_choices, check_whole, of_definition

if TYPE_CHECKING:
    from uqeval.tallies import Cuts

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

CHOICES = {
    "error": ("brier", "zero-one", "rmse", "mse", "mae", "abs-rel"),
    "scope": ("set", "item"),
    "keep": ("floor", "truncate", "quantile"),
    "ties": ("averaged", "together"),
    "normalise": ("first", "none"),
    "end": ("last", "zero"),
    "grid": ("steps", "every-rank"),
    "definition": tuple(DEFINITIONS),
}
ERRORS = {"classes": ("brier", "zero-one"), "regression": ("rmse", "mse", "mae", "abs-rel")}
UNCERTAINTY = {"classes": "entropy", "regression": "sigma"}


@dataclass(frozen=True)
class SparsificationSettings:
    """Choices behind a sparsification; the defaults are those of Gustafsson et al. 2020.

    `uncertainty` (default: entropy, or sigma), `error` (default: brier, or rmse). `scope`: pooled
    over the set, or the mean over items of their own curves. `steps`: curves at the fractions
    k/steps removed, k = 0 … steps - 1. `keep`, `ties`: see `uqeval.tallies.Cuts`. `normalise`:
    both curves divided by their value at 0, or not. `end`: areas up to the last fraction, or to 1
    with a 0 appended there. `grid`: areas of these curves, or of those over every rank k/N.

    Raises `UsageError` for what cannot be.
    """

    uncertainty: str = ""
    error: str = ""
    scope: str = "set"
    steps: int = 100
    keep: str = "floor"
    ties: str = "averaged"
    normalise: str = "first"
    end: str = "last"
    grid: str = "steps"
    definition: str = "paper"

    def __post_init__(self) -> None:
        check_whole(self, "steps", 2, 10_000)
        check_choices(self, CHOICES)
        if self.grid == "every-rank" and (self.end, self.ties) != ("last", "averaged"):
            raise UsageError(
                "--grid every-rank averages ties and ends at the last rank; give neither "
                "--end zero nor --ties together with it."
            )

    @classmethod
    def of(cls, **given: Any) -> SparsificationSettings:
        """Settings of a definition, with what is `given` in place of its choices."""
        return of_definition(cls, DEFINITIONS, given)

    def for_data(self, kind: str, where: str) -> SparsificationSettings:
        """These settings with the defaults for a kind of data. Raises `UsageError`."""
        # Over every rank there is no root: torch-uncertainty takes the mean of any errors.
        default = "mse" if self.grid == "every-rank" and kind == "regression" else ERRORS[kind][0]
        error = self.error or default
        if error not in ERRORS[kind]:
            raise UsageError(
                f"--error {error}: {where} holds {kind} data; expected one of "
                f"{', '.join(ERRORS[kind])}."
            )
        if self.grid == "every-rank" and error == "rmse":
            raise UsageError("--grid every-rank takes means of errors; expected --error mse.")
        return dataclasses.replace(
            self, error=error, uncertainty=self.uncertainty or UNCERTAINTY[kind]
        )

    @property
    def cuts(self) -> Cuts:
        """How many pixels are kept."""
        from uqeval.tallies import Cuts

        return Cuts(self.steps, self.keep, self.ties)

    def curves(
        self, kept: list[int], model: list[float], oracle: list[float], **more: Any
    ) -> sc.Curves | str:
        """Curves of some sums by these settings."""
        return sc.curves(
            kept, model, oracle, rooted=self.error == "rmse",
            normalised=self.normalise == "first", zero_at_1=self.end == "zero", **more,
        )  # fmt: skip
