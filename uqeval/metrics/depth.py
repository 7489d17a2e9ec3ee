"""Scores of predicted depths (Eigen et al. 2014): parts of the results of `regression`."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from uqeval.metrics._columns import over
from uqeval.metrics._contract import Metric, set_value
from uqeval.metrics._evaluation import Part, Run
from uqeval.metrics.regression_settings import RegressionSettings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.metrics._columns import Place, SetStates
    from uqeval.tallies import DepthSums, Tally
    from uqeval.tallies._fields import State

_NONE = "no pixel is evaluated, or a target is 0 or less"
_LOGS = "no pixel is evaluated, or a target or a prediction is 0 or less"
_LOOK = "Look at the worst items first, and at near and far pixels apart (--region depth:LOW-HIGH)."


def mean(total: float, pixels: int) -> float | None:
    """Return Σ / N; undefined without pixels."""
    return total / pixels if pixels else None


def root_mean(total: float, pixels: int) -> float | None:
    """Return √(Σ / N); undefined without pixels."""
    return math.sqrt(max(total, 0.0) / pixels) if pixels else None


def log10_error(total: float, pixels: int) -> float | None:
    """Return the mean of |log₁₀ ŷ - log₁₀ y| from the sum of |ln ŷ - ln y|."""
    return total / pixels / math.log(10) if pixels else None


def _error(field: str, unit: str, reference: str, formula: Any, **texts: Any) -> Metric:
    undefined = _LOGS if "log" in field else _NONE
    return Metric("regression", field, unit, "lower", (0.0, None), reference, undefined, formula,
                  advice=_LOOK, interval="draws", **texts)  # fmt: skip


def _share(k: int) -> Metric:
    return Metric(
        "regression", f"a{k}", "fraction", "higher", (0.0, 1.0), "Eigen et al. 2014, §3", _NONE,
        mean, label=f"a{k}", advice=_LOOK, interval="share", counted=("pixels",),
        meaning=f"Share of depths within a factor of 1.25{'⁰¹²³'[k] if k > 1 else ''} of the "
        "target.",
    )  # fmt: skip


_EIGEN = "Eigen et al. 2014, §3"
METRICS = (
    _error("abs_rel", "fraction", _EIGEN, mean, label="abs rel",
           meaning="Mean error relative to the target."),
    _error("sq_rel", "target", _EIGEN, mean, label="sq rel",
           meaning="Mean squared error relative to the target; large errors weigh more."),
    _error("rmse_log", "ln", _EIGEN, root_mean, label="RMSE log",
           meaning="Root of the mean squared difference of the natural logarithms."),
    _error("log10", "log10", "Liu et al. 2015, §5.1", log10_error, label="log10",
           meaning="Mean difference of the decimal logarithms."),
    _error("silog", "ln", "Eigen et al. 2014, eq. 1, with its root", root_mean, label="SILog",
           meaning="Spread of the logarithmic errors: 0 where all depths are wrong by the same "
           "factor."),
    *map(_share, (1, 2, 3)),
)  # fmt: skip
BY_FIELD = {metric.field: metric for metric in METRICS}


class DepthScores(Part[RegressionSettings]):
    """Relative and logarithmic errors, and the shares of close depths."""

    name = "depth"
    metrics = METRICS

    @classmethod
    def is_requested(cls, settings: RegressionSettings) -> bool:
        return settings.depth

    @property
    def flat(self) -> bool:
        return True

    @property
    def _sums(self) -> DepthSums:
        from uqeval.tallies import DepthSums

        return DepthSums()

    def maps(self) -> set[str]:
        return set(self._sums.inputs)

    def tallies(self) -> tuple[Tally, ...]:
        return (self._sums,)

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> dict[str, Any]:
        return record_of(states[self._sums])

    def columns(
        self, states: Mapping[Tally, SetStates], fields: Collection[str]
    ) -> Mapping[Place, NDArray[Any]]:
        import numpy as np

        state = states[self._sums]
        n, (no_target, no_mean) = state["count"][:, 0], state["bad"].T
        relative, squared = state["sums"].T
        total, squares, absolute = state["logs"].T
        spread = _spread(state["within"][:, 0], state["means"][:, 0], total, n)
        values = {
            "abs_rel": over(relative, n), "sq_rel": over(squared, n),
            "rmse_log": np.sqrt(over(squares, n)), "log10": over(absolute, n) / math.log(10),
            "silog": np.sqrt(over(spread, n)),
        }  # fmt: skip
        values |= {f"a{k + 1}": over(state["close"][:, k], n) for k in range(3)}
        results: dict[Place, NDArray[Any]] = {}
        for field, column in values.items():
            bad = no_target + no_mean if "log" in field else no_target
            results[(field,)] = np.where(bad > 0, np.nan, column)
        return results

    def numerics(self, run: Run) -> dict[str, int]:
        no_target, no_mean = run.total(self._sums)["bad"].tolist()
        return {"target_not_positive": no_target, "prediction_not_positive": no_mean}


def _spread(within: Any, means: Any, total: Any, pixels: Any) -> Any:
    """Return Σ (d - d̄)² of merged items."""
    import numpy as np

    between = means - total * total / np.maximum(pixels, 1)
    return within + np.maximum(between, 0.0)


def record_of(state: State) -> dict[str, Any]:
    """Return all depth scores of a set or of one item."""
    n, (no_target, no_mean) = int(state["count"][0]), state["bad"].tolist()
    total, squares, absolute = state["logs"].tolist()
    relative, squared = state["sums"].tolist()
    # Between items of one set the rounding of sums stays below 1e-15 of the squares.
    spread = float(_spread(state["within"][0], state["means"][0], total, n))
    spread = spread if spread > 1e-15 * squares else 0.0
    values = {
        "abs_rel": relative, "sq_rel": squared, "rmse_log": squares, "log10": absolute,
        "silog": spread, **{f"a{k + 1}": int(c) for k, c in enumerate(state["close"])},
    }  # fmt: skip
    record: dict[str, Any] = {}
    for field, value in values.items():
        metric, reason = BY_FIELD[field], "no pixel is evaluated"
        of_logs = "log" in field
        bad = no_target + (no_mean if of_logs else 0)
        if bad:
            what = "the target" if not (of_logs and no_mean) else (
                "the prediction" if not no_target else "the target or the prediction"
            )  # fmt: skip
            reason = f"{what} is 0 or less at {bad} of {n} evaluated pixels"
        set_value(record, field, None if bad else metric.formula(value, n), reason)
    return record
