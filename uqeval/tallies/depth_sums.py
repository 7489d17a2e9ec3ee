"""Sums of relative and logarithmic errors of depths, and of errors in units of σ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from uqeval.arrays import Maps, State, np
from uqeval.maps.names import VOID
from uqeval.tallies._contract import Tally
from uqeval.tallies._errors import OfErrors
from uqeval.tallies._fields import Counts, Field, Flaws

#: The limits of max(ŷ/y, y/ŷ) of a1, a2 and a3.
LIMITS = tuple(1.25**k for k in (1, 2, 3))
#: Larger ε²/y have no sum: 2⁶³ of those below are a float64.
_LARGEST = 2.0**960


@dataclass(frozen=True)
class DepthSums(Tally):
    """Sums over the evaluated pixels of depths: prediction ŷ, target y, ε = |ŷ - y|.

    - `count` [1]; `bad` [y ≤ 0, and ŷ ≤ 0 < y]; `small` [1]: y > 0, but ε/y or ε²/y has no sum
    - `sums` [ε/y, ε²/y] at the other y > 0; `logs` [d, d², |d|] of d = ln ŷ - ln y where ŷ > 0, too
    - `within` [1]: Σ (d - d̄)² about the mean of each item; `means` [1]: Σ d̄² over its pixels
    - `close` [limit]: pixels with max(ŷ/y, y/ŷ) < 1.25, 1.25², 1.25³; none with ŷ ≤ 0
    """

    id: ClassVar[str] = "depth_sums"
    added: ClassVar[tuple[str, ...]] = ("small",)
    evaluates = "count"
    inputs = ("label", "mean", "target", "error")

    @property
    def fields(self) -> dict[str, Field]:
        one = Field((1,), "float64")
        return {
            "count": Field((1,), "int64"),
            "bad": Field((2,), "int64"),
            "sums": Field((2,), "float64"),
            "logs": Field((3,), "float64", signed=True),
            "within": one,
            "means": one,
            "close": Field((3,), "int64"),
            "small": Field((1,), "int64"),
        }

    def flaws(self, state: State) -> Flaws:
        count, close = state["count"], state["close"]
        yield "more depths of 0 or less than pixels", state["bad"].sum(axis=-1) > count[..., 0]
        yield "more small depths than pixels", state["small"] > count
        for more, fewer in ((count, close), (close[..., 1:], close[..., :-1])):
            yield "more close depths than pixels", fewer > more

    def update(self, state: State, maps: Maps) -> None:
        is_valid = maps["label"] != VOID
        target, mean, error = (
            maps[name][is_valid].astype(np.float64) for name in ("target", "mean", "error")
        )
        state["count"] += target.size
        positive = target > 0
        has_logs = positive & (mean > 0)
        state["bad"] += ((~positive).sum(), positive.sum() - has_logs.sum())
        target, mean, error, has_logs = (own[positive] for own in (target, mean, error, has_logs))
        with np.errstate(over="ignore"):
            relative = error / target
            squared = error * relative
        has_sums = np.maximum(relative, squared) <= _LARGEST
        state["small"] += (~has_sums).sum()
        state["sums"] += (relative[has_sums].sum(), squared[has_sums].sum())
        target, mean = target[has_logs], mean[has_logs]
        if not target.size:
            return
        logs = np.log(mean) - np.log(target)
        total = logs.sum()
        centre = total / target.size
        state["logs"] += (total, (logs * logs).sum(), np.abs(logs).sum())
        state["within"] += ((logs - centre) ** 2).sum()
        state["means"] += total * centre
        with np.errstate(over="ignore"):  # far from any limit
            ratio = np.maximum(mean / target, target / mean)
        state["close"] += [(ratio < limit).sum() for limit in LIMITS]


@dataclass(frozen=True)
class ScaledErrors(OfErrors):
    """Sums for fitting the scale of σ: Σ (ε/σ)² and Σ ln σ over evaluated pixels with σ > 0.

    `count` [all, σ = 0 or ε/σ too large for its square], `sums` [Σ (ε/σ)², Σ ln σ] of the others.
    """

    id: ClassVar[str] = "scaled_errors"
    fields: ClassVar[dict[str, Field]] = {
        "count": Field((2,), "int64"),
        "sums": Field((2,), "float64", signed=True),
    }
    sigma: str = "sigma"

    def flaws(self, state: State) -> Flaws:
        count = state["count"]
        yield (
            "more pixels with a standard deviation of 0 than pixels",
            count[..., 1] > count[..., 0],
        )
        yield "a negative sum of squares", state["sums"][..., 0] < 0

    def evaluated(self, state: State) -> Counts:
        return state["count"][..., 0]

    def update(self, state: State, maps: Maps) -> None:
        from uqeval.kernels.intervals import FARTHEST

        is_valid = maps["label"] != VOID
        error, sigma = (maps[name][is_valid].astype(np.float64) for name in ("error", self.sigma))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = error / sigma
        has_square = (sigma > 0) & (ratio <= FARTHEST)
        state["count"] += (sigma.size, sigma.size - has_square.sum())
        ratio, logs = ratio[has_square], np.log(sigma[has_square])
        state["sums"] += ((ratio * ratio).sum(), logs.sum())


@dataclass(frozen=True)
class SigmaBins(OfErrors):
    """Evaluated pixels by bins of σ between `edges`: bin k has edges[k - 1] < σ ≤ edges[k].

    σ is compared as float32. State, [bin]: `count`, and the sums `errors` of ε² and `variances`
    of σ²; and `of_sigma` [Σ σ, Σ (σ - c)] and `squares` [Σ (σ - c)²], c = `centre`.
    """

    id: ClassVar[str] = "sigma_bins"
    evaluates = "count"
    edges: tuple[float, ...]
    sigma: str = "sigma"

    @property
    def fields(self) -> dict[str, Field]:
        bins = (len(self.edges) + 1,)
        sums = Field(bins, "float64")
        return {
            "count": Field(bins, "int64"), "errors": sums, "variances": sums,
            "of_sigma": Field((2,), "float64", signed=True), "squares": Field((1,), "float64"),
        }  # fmt: skip

    @property
    def version(self) -> int:
        return 2

    @property
    def centre(self) -> float:
        """Return a value among the σ, 0 without edges.

        If σ varies little, sums of differences from it keep their digits.
        """
        middle = self.edges[len(self.edges) // 2] if self.edges else 0.0
        return middle if math.isfinite(middle) else 0.0

    def flaws(self, state: State) -> Flaws:
        for sums in (state["errors"], state["variances"]):
            yield "errors without pixels", sums[state["count"] == 0]

    def update(self, state: State, maps: Maps) -> None:
        is_valid = maps["label"] != VOID
        error, sigma = (maps[name][is_valid].astype(np.float64) for name in ("error", self.sigma))
        bins = np.searchsorted(np.array(self.edges, np.float32), sigma.astype(np.float32))
        size = len(self.edges) + 1
        state["count"] += np.bincount(bins, minlength=size)
        state["errors"] += np.bincount(bins, error * error, size)
        state["variances"] += np.bincount(bins, sigma * sigma, size)
        deviations = sigma - self.centre
        state["of_sigma"] += (sigma.sum(), deviations.sum())
        state["squares"] += (deviations * deviations).sum()


@dataclass(frozen=True)
class PooledSigmaBins(SigmaBins):
    """`SigmaBins` of some items together, such as those of a slice: only the total."""

    id: ClassVar[str] = "pooled_sigma_bins"
    keeps_items: ClassVar[bool] = False
