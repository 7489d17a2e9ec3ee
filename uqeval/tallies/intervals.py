"""Predictive distributions: proper scores, and coverage of their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from uqeval.arrays import Array, Maps, State, np
from uqeval.maps.names import VOID
from uqeval.tallies._contract import Tally
from uqeval.tallies._errors import OfErrors
from uqeval.tallies._fields import Field, Flaws

#: Upper bound of the relative rounding error of a ratio.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class PredictiveScores(OfErrors):
    """Sums over evaluated pixels of a Gaussian or `laplace` distribution with mean μ and σ.

    `nll` [1] where σ > 0; `crps` [1], |ε| where σ = 0 (Gneiting & Raftery 2007, eq. 21);
    `intervals` [level], the interval score (eq. 43) of μ ± factor·σ with `levels` of coverage:
    2·factor·σ + 2/(1 - level)·max(ε - factor·σ, 0). `far` [1]: pixels with σ > 0 whose NLL is too
    large for a sum in float64; `nll` leaves them out.
    """

    id: ClassVar[str] = "predictive_scores"
    added: ClassVar[tuple[str, ...]] = ("far",)
    laplace: bool
    levels: tuple[float, ...]
    factors: tuple[float, ...]
    sigma: str = "sigma"

    @property
    def fields(self) -> dict[str, Field]:
        return {
            "nll": Field((1,), "float64", signed=True),
            "crps": Field((1,), "float64"),
            "intervals": Field((len(self.levels),), "float64"),
            "far": Field((1,), "int64"),
        }

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        from uqeval.kernels.intervals import sum_scores

        sum_scores(
            first, *self.flat(maps), VOID, self.laplace, np.array(self.factors),
            2.0 / (1.0 - np.array(self.levels)), state["nll"], state["crps"], state["intervals"],
            state["far"],
        )  # fmt: skip


@dataclass(frozen=True)
class IntervalCounts(OfErrors):
    """Evaluated pixels by the first of the ascending intervals μ ± factor·σ that contains the
    target. Intervals are closed: ε <= factor·σ, in float64. `counts` [interval, and none last];
    `ties` [1], pixels whose
    target is the end of that interval (σ > 0).
    """

    id: ClassVar[str] = "interval_counts"
    evaluates = "counts"
    factors: tuple[float, ...]
    sigma: str = "sigma"

    @property
    def fields(self) -> dict[str, Field]:
        return {"counts": Field((len(self.factors) + 1,), "int64"), "ties": Field((1,), "int64")}

    def flaws(self, state: State) -> Flaws:
        yield "more ties than pixels", state["ties"][..., 0] > self.evaluated(state)

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        from uqeval.kernels.intervals import count_levels

        lowest, first_level, unsure, steps = _sorted_factors(self.factors)
        factors = np.append(self.factors, np.full(steps + 1, np.inf))
        count_levels(
            first, *self.flat(maps), VOID, factors, len(self.factors), lowest, first_level, unsure,
            steps, state["counts"], state["ties"],
        )  # fmt: skip


@dataclass(frozen=True)
class QuantileCounts(Tally):
    """Evaluated pixels by the first of the ascending quantiles that μ - y does not exceed.

    `counts` [quantile, and none last]: μ - y <= quantile·σ, in float64, the size of μ - y from ε
    and its sign from the maps of μ and y.
    """

    id: ClassVar[str] = "quantile_counts"
    evaluates = "counts"
    quantiles: tuple[float, ...]
    sigma: str = "sigma"

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("label", "mean", "target", "error", self.sigma)

    @property
    def fields(self) -> dict[str, Field]:
        return {"counts": Field((len(self.quantiles) + 1,), "int64")}

    def update(self, state: State, maps: Maps) -> None:
        from uqeval.kernels.calibration import count_quantiles

        inputs = (maps[name].reshape(-1) for name in ("mean", "target", "error", self.sigma))
        count_quantiles(
            *inputs, maps["label"].reshape(-1), VOID, np.array(self.quantiles), state["counts"]
        )


@cache
def _sorted_factors(factors: tuple[float, ...]) -> tuple[int, Array, Array, int]:
    """Return a table over the high bits of a ratio ε/σ (float32): the number of factors surely
    below it, and whether more may be; and the largest number of these."""
    from uqeval.kernels.intervals import RATIO_BITS

    bits = np.arange((0x7F800000 >> RATIO_BITS) + 1, dtype=np.int32) << RATIO_BITS
    lower = bits.view(np.float32).astype(np.float64)
    upper = np.append(lower[1:], np.inf)
    first = np.searchsorted(factors, lower * (1 - _ROUNDING))
    last = np.searchsorted(factors, upper * (1 + _ROUNDING), side="right")
    unsure, steps = last > first, int((last - first).max())
    # Up to the first bits that are unsure, and from the last on, all are alike.
    changes = np.flatnonzero(unsure)
    low, high = (max(changes[0] - 1, 0), changes[-1] + 2) if changes.size else (0, 1)
    first, unsure = first[low:high], np.append(unsure[low:high], False)
    return int(low), first.astype(np.int32), unsure.astype(np.uint8), steps
