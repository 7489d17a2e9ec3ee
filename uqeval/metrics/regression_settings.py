"""Settings of regression scores, and the presets of published definitions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import uqeval.metrics.regression_scores as rs
from uqeval.metrics._numbers import SigmaSettings
from uqeval.settings import definition_of, documented, option

#: The settings of each definition that differ from the defaults. The paper has 100 values of p in
#: ]0, 1[; its code has 0.01 … 0.99, as the default.
DEFINITIONS: dict[str, dict[str, Any]] = {
    "paper": {},
    "gustafsson-code": {"levels": 99},
    "uncertainty-toolbox": {"levels": 100, "grid": "closed", "area": "crossing"},
    "torch-uncertainty-0.13": {"levels": 15, "grid": "5-95", "area": "mean"},
}
_PLOT, _SIGMA = "Calibration plot", "Scale of σ"
#: The fields that depend on the levels of the plot, and those that depend on the distribution.
_PLOTTED = ("auce", "auce_over", "auce_under", "calibration")
_OF_DISTRIBUTION = (*_PLOTTED, "coverage", "crps", "interval_score", "nll")


@documented
@dataclass(frozen=True)
class RegressionSettings(SigmaSettings):
    """All settings of regression scores."""

    definitions = DEFINITIONS

    # fmt: off
    distribution: str = option(
        "gaussian", "Distribution of the prediction; σ is its standard deviation.",
        choices=("gaussian", "laplace"), common=True, changes_only=_OF_DISTRIBUTION)
    levels: int = option(
        99, "Number of levels in the plot.", metavar="K", panel=_PLOT, least=2, most=9999,
        changes_only=_PLOTTED)
    grid: str = option(
        "open", "Position of the levels: k/(K + 1) (open), evenly from 0 to 1 (closed), or "
        "evenly from 0.05 to 0.95 (5-95).",
        choices=("open", "closed", "5-95"), panel=_PLOT, changes_only=_PLOTTED)
    proportion: str = option(
        "interval", "Fraction of targets in the central interval of a level, or below its "
        "quantile.",
        choices=("interval", "quantile"), panel=_PLOT, changes_only=_PLOTTED)
    area: str = option(
        "trapezoid", "How AUCE sums the gaps: trapezoid, crossing (splits a trapezoid where "
        "the gap crosses 0), or their mean.",
        choices=rs.AREAS, panel=_PLOT, changes_only=_PLOTTED)
    depth: bool = option(
        False, "Also compute depth scores: abs rel, sq rel, RMSE log, log10, SILog, a1, a2, a3.",
        several=False, common=True,
        changes_only=("abs_rel", "sq_rel", "rmse_log", "log10", "silog", "a1", "a2", "a3"))
    ence: bool = option(
        False, "Also compute ENCE, UCE and the CV of σ, in bins of σ with equal numbers of pixels.",
        panel=_SIGMA, several=False, common=True,
        changes_only=("ence", "uce", "cv", "sigma_bins"))
    ence_bins: int = option(
        15, "Number of bins of σ.", metavar="B", panel=_SIGMA, least=1, most=10_000,
        several=False, needs="ence")
    sigma_scale: bool = option(
        False, "Also fit the factor of σ with the least NLL, and compute the NLL with it.",
        panel=_SIGMA, several=False, common=True, changes_only=("sigma_scale",))
    fit_on: str | None = option(
        None, "Fit the factor of σ on the items that FILE names: a JSON list, or one name per "
        "line.",
        metavar="FILE", panel=_SIGMA, several=False, shown="all", needs="sigma_scale")
    definition: str = definition_of(DEFINITIONS)
    # fmt: on

    @cached_property
    def plotted(self) -> tuple[float, ...]:
        """Return the levels of the calibration plot."""
        n = self.levels
        if self.grid == "open":
            return tuple(k / (n + 1) for k in range(1, n + 1))
        if self.grid == "closed":
            return tuple(k / (n - 1) for k in range(n))
        return tuple((n - 1 + 18 * k) / (20 * (n - 1)) for k in range(n))

    @cached_property
    def interval_levels(self) -> tuple[float, ...]:
        """Return levels below 1 of intervals: plotted ones, and those that every report
        has, ascending.
        """
        plotted = self.plotted if self.proportion == "interval" else ()
        return tuple(sorted({*(p for p in plotted if p < 1), *rs.LEVELS}))

    @cached_property
    def quantile_levels(self) -> tuple[float, ...]:
        """Return levels in ]0, 1[ of plotted quantiles, ascending."""
        if self.proportion == "interval":
            return ()
        return tuple(p for p in self.plotted if 0 < p < 1)

    @property
    def counted_levels(self) -> tuple[float, ...]:
        """Return the levels from whose counts the plot is computed: quantiles, which may be none,
        or intervals.
        """
        return self.quantile_levels if self.proportion == "quantile" else self.interval_levels
