"""Predictive distributions: proper scores, and how many targets their intervals hold."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from uqeval.tallies._contract import Field, Tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.tallies._contract import Maps, State

VOID = 255
#: More than what rounding can change of a ratio, relative.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class PredictiveScores(Tally):
    """Sums over evaluated pixels of a Gaussian or `laplace` distribution with mean μ and σ.

    `nll` [1] where σ > 0; `crps` [1], |ε| where σ = 0 (Gneiting & Raftery 2007, eq. 21);
    `intervals` [level], the interval score (eq. 43) of μ ± factor·σ with `levels` of coverage:
    2·factor·σ + 2/(1 - level)·max(ε - factor·σ, 0).
    """

    id: ClassVar[str] = "predictive_scores"
    laplace: bool
    levels: tuple[float, ...]
    factors: tuple[float, ...]
    sigma: str = "sigma"

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("label", "error", self.sigma)

    @property
    def fields(self) -> dict[str, Field]:
        return {
            "nll": Field((1,), "float64"),
            "crps": Field((1,), "float64"),
            "intervals": Field((len(self.levels),), "float64"),
        }

    def update(self, state: State, maps: Maps) -> None:
        import numpy as np

        from uqeval.kernels.intervals import sum_scores

        shares = 2.0 / (1.0 - np.array(self.levels))
        sum_scores(
            maps["error"], maps[self.sigma], maps["label"], VOID, self.laplace,
            np.array(self.factors), shares, state["nll"], state["crps"], state["intervals"],
        )  # fmt: skip


@dataclass(frozen=True)
class IntervalCounts(Tally):
    """Evaluated pixels by the first of the ascending intervals μ ± factor·σ that holds the target.

    Closed: ε <= factor·σ, in float64. `counts` [interval, and none last]; `ties` [1], pixels whose
    target is the end of that interval (σ > 0).
    """

    id: ClassVar[str] = "interval_counts"
    factors: tuple[float, ...]
    sigma: str = "sigma"

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("label", "error", self.sigma)

    @property
    def fields(self) -> dict[str, Field]:
        return {"counts": Field((len(self.factors) + 1,), "int64"), "ties": Field((1,), "int64")}

    def update(self, state: State, maps: Maps) -> None:
        import numpy as np

        from uqeval.kernels.intervals import count_levels

        first, steps = _places(self.factors)
        factors = np.append(self.factors, np.full(steps + 1, np.inf))
        count_levels(
            maps["error"], maps[self.sigma], maps["label"], VOID, factors, len(self.factors),
            first, steps, state["counts"], state["ties"],
        )  # fmt: skip


@dataclass(frozen=True)
class QuantileCounts(Tally):
    """Evaluated pixels by the first of the ascending quantiles that μ - y does not exceed.

    `counts` [quantile, and none last]: μ - y <= quantile·σ, in float64, the size of μ - y from ε
    and its sign from the maps of μ and y.
    """

    id: ClassVar[str] = "quantile_counts"
    quantiles: tuple[float, ...]
    sigma: str = "sigma"

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("label", "mean", "target", "error", self.sigma)

    @property
    def fields(self) -> dict[str, Field]:
        return {"counts": Field((len(self.quantiles) + 1,), "int64")}

    def update(self, state: State, maps: Maps) -> None:
        import numpy as np

        from uqeval.kernels.calibration import count_quantiles

        given = (maps[name].reshape(-1) for name in ("mean", "target", "error", self.sigma))
        count_quantiles(
            *given, maps["label"].reshape(-1), VOID, np.array(self.quantiles), state["counts"]
        )


@cache
def _places(factors: tuple[float, ...]) -> tuple[NDArray[Any], int]:
    """By the high bits of a ratio ε/σ as float32: how many factors are surely below it, and how
    many more at most are not surely above it."""
    import numpy as np

    from uqeval.kernels.intervals import RATIO_BITS

    bits = np.arange((0x7F800000 >> RATIO_BITS) + 1, dtype=np.int32) << RATIO_BITS
    lower = bits.view(np.float32).astype(np.float64)
    upper = np.append(lower[1:], np.inf)
    first = np.searchsorted(factors, lower * (1 - _ROUNDING))
    last = np.searchsorted(factors, upper * (1 + _ROUNDING), side="right")
    return first.astype(np.int32), int((last - first).max(initial=0))
