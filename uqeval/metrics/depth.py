"""Scores of predicted depths (Eigen et al. 2014): parts of the results of `regression`."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Array, State, np
from uqeval.metrics._columns import SetColumns, SetStates, as_numbers, over, without_rounding
from uqeval.metrics._contract import Metric, set_value
from uqeval.metrics._evaluation import Part, Run
from uqeval.metrics.regression_scores import root_mean
from uqeval.metrics.regression_settings import RegressionSettings

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally
    from uqeval.tallies.depth_sums import DepthSums

_NONE = "no pixel is evaluated, or a target is 0 or less"
_QUOTIENTS = f"{_NONE}, or too small to divide by"
_LOGS = "no pixel is evaluated, or a target or a prediction is 0 or less"
_LOOK = (
    "Look at the worst items first, and at near and far pixels separately (--region "
    "depth:LOW-HIGH)."
)


def log10_error(total: Array, pixels: Array) -> Array:
    """Return the mean of |log₁₀ ŷ - log₁₀ y| [set] from the sum of |ln ŷ - ln y|."""
    return over(total, pixels) / math.log(10)


def _error(field: str, unit: str, reference: str, formula: Any, **texts: Any) -> Metric:
    undefined = _LOGS if "log" in field else _QUOTIENTS
    return Metric("regression", field, unit, "lower", (0.0, None), reference, undefined, formula,
                  advice=_LOOK, interval="positive", **texts)  # fmt: skip


def _share(k: int) -> Metric:
    return Metric(
        "regression", f"a{k}", "fraction", "higher", (0.0, 1.0), "Eigen et al. 2014, §3", _NONE,
        over, label=f"a{k}", advice=_LOOK, interval="share", counted=("pixels",),
        meaning=f"Share of depths within a factor of 1.25{'⁰¹²³'[k] if k > 1 else ''} of the "
        "target.",
    )  # fmt: skip


_EIGEN = "Eigen et al. 2014, §3"
METRICS = (
    _error("abs_rel", "fraction", _EIGEN, over, label="abs rel",
           meaning="Mean error relative to the target."),
    _error("sq_rel", "target", _EIGEN, over, label="sq rel",
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
    flat = True
    requested_by = "depth"

    @property
    def _sums(self) -> DepthSums:
        from uqeval.tallies.depth_sums import DepthSums

        return DepthSums()

    def tallies(self) -> tuple[Tally, ...]:
        return (self._sums,)

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> dict[str, Any]:
        (record,) = records(SetStates.of_one(states[self._sums]))
        return record

    def columns(self, states: Mapping[Tally, SetStates], fields: Collection[str]) -> SetColumns:
        return _columns(states[self._sums])

    def numerics(self, run: Run) -> dict[str, int]:
        no_target, no_mean = run.total(self._sums)["bad"].tolist()
        return {"target_not_positive": no_target, "prediction_not_positive": no_mean}


def _columns(state: SetStates) -> SetColumns:
    """Return the scores of states of `DepthSums`."""
    n, (no_target, no_mean) = state["count"][:, 0], state["bad"].T
    relative, squared = state["sums"].T
    total, squares, absolute = state["logs"].T
    totals = {
        "abs_rel": relative, "sq_rel": squared, "rmse_log": squares, "log10": absolute,
        "silog": _spread(state, total, squares, n),
        **{f"a{k + 1}": state["close"][:, k] for k in range(3)},
    }  # fmt: skip
    results: SetColumns = {}
    for field, own in totals.items():
        bad = no_target + _others(state, no_mean, field)
        results[(field,)] = np.where(bad > 0, np.nan, BY_FIELD[field].formula(own, n))
    return results


def _others(states: SetStates, no_mean: Array, field: str) -> Array:
    """Return the pixels [set] with a target above 0 where a field has no value."""
    if "log" in field:
        return no_mean
    return states["small"][:, 0] if field.endswith("_rel") else 0 * no_mean


def _spread(state: SetStates, total: Array, squares: Array, n: Array) -> Array:
    """Return Σ (d - d̄)² of merged items [set]."""
    between = state["means"][:, 0] - total * total / np.maximum(n, 1)
    return without_rounding(state["within"][:, 0] + np.maximum(between, 0.0), squares)


def records(states: SetStates) -> list[dict[str, Any]]:
    """Return all depth scores of each set, or of each item."""
    columns = _columns(states)
    values = {field: as_numbers(columns[field,]) for field in BY_FIELD}
    results: list[dict[str, Any]] = []
    pixels, bad = states["count"][:, 0].tolist(), states["bad"].tolist()
    small = states["small"][:, 0].tolist()
    for i, (n, (no_target, no_mean)) in enumerate(zip(pixels, bad, strict=True)):
        results.append({})
        for field, column in values.items():
            reason = _reason(n, no_target, no_mean if "log" in field else 0)
            if field.endswith("_rel") and small[i] and not no_target:
                reason = f"the target is too small to divide by at {small[i]} of {n} pixels"
            set_value(results[-1], field, column[i], reason)
    return results


def _reason(pixels: int, no_target: int, no_mean: int) -> str:
    """Return why a score is undefined: targets or predictions that are 0 or less, or no pixel."""
    bad = no_target + no_mean
    if not bad:
        return "no pixel is evaluated"
    names = [("the target", no_target), ("the prediction", no_mean)]
    what = " or ".join(name for name, count in names if count)
    return f"{what} is 0 or less at {bad} of {pixels} evaluated pixels"
