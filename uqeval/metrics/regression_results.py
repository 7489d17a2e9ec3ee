"""Scores of predicted numbers for many sets of items: draws, single items, or one set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Array, np
from uqeval.metrics._columns import Place, SetColumns, SetStates, as_numbers, over, without_rounding
from uqeval.metrics._contract import set_value
from uqeval.metrics.regression_scores import BY_FIELD, LEVELS

if TYPE_CHECKING:
    from uqeval.metrics.regression_settings import RegressionSettings

_OF_QUANTILES = "for quantiles, the sign of a gap shows a bias, not over- or under-confidence"


def columns(
    settings: RegressionSettings, states: Sequence[SetStates], spread: Array | None = None
) -> SetColumns:
    """Return the scores of states of `ErrorSums`, `PredictiveScores` and `IntervalCounts`, and of
    `QuantileCounts` where the plot is of quantiles. AUCE has no parts there.

    `spread`: Σ (y - ȳ)² [set], by default that of `merged_spread`.
    """
    sums, scores, interval_states, *below = states
    n, without_nll = sums["count"][:, 0], sums["zero"][:, 0, 0] + scores["far"][:, 0]
    error, squares, _, variances, _ = sums["sums"][:, 0].T
    gaps = (settings.plotted, observed(settings, states), settings.area)
    arguments: dict[str, tuple[Any, ...]] = {
        "rmse": (squares, n), "mae": (error, n),
        "nmse": (squares, merged_spread(sums) if spread is None else spread),
        "auce": gaps, "auce_over": gaps, "auce_under": gaps,
        "nll": (scores["nll"][:, 0], n, without_nll), "crps": (scores["crps"][:, 0], n),
        "sharpness": (variances, n),
    }  # fmt: skip
    results: SetColumns = {("pixels",): n}
    results |= {(field,): BY_FIELD[field].formula(*own) for field, own in arguments.items()}
    if below:
        del results["auce_over",], results["auce_under",]
    covered = observed_coverage(interval_states, settings.interval_levels, n)
    for i, p in enumerate(LEVELS):
        of_level = {"interval_score": scores["intervals"][:, i], "coverage": covered[p]}
        for field, total in of_level.items():
            results[field, f"{100 * p:g}"] = BY_FIELD[field].formula(total, n)
    return results


def records(
    columns: Mapping[Place, Array], sums: SetStates, scores: SetStates
) -> list[dict[str, Any]]:
    """Return the scores of each set as results have them; `sums` and `scores`: the states of
    `ErrorSums` and of `PredictiveScores`."""
    values = {place: as_numbers(column) for place, column in columns.items()}
    results: list[dict[str, Any]] = []
    zeros, far = sums["zero"][:, 0, 0].tolist(), scores["far"][:, 0].tolist()
    for i, n in enumerate(values["pixels",]):
        record: dict[str, Any] = {"pixels": n}
        for field, metric in BY_FIELD.items():
            reason = metric.undefined
            if field == "nll":
                reason = without_nll(zeros[i], far[i], n) or reason
            if (field,) in values:
                set_value(record, field, values[field,][i], reason)
            elif field in ("auce_over", "auce_under"):
                set_value(record, field, None, _OF_QUANTILES)
        for (field, *level), column in values.items():
            if level:
                of_levels = record.setdefault(field, {})
                set_value(of_levels, level[0], column[i], BY_FIELD[field].undefined)
        results.append(record)
    return results


def without_nll(zeros: int, far: int, pixels: int) -> str:
    """Return why there is no NLL: σ = 0 at `zeros` pixels, and ε/σ too large at `far` others; empty
    without such pixels."""
    if zeros:
        return f"σ = 0 at {zeros} of {pixels} evaluated pixels: their likelihood is 0 or unbounded"
    if not far:
        return ""
    return (
        f"|error|/σ is too large for float64 at {far} of {pixels} evaluated pixels: their "
        "likelihood is practically 0"
    )


def merged_spread(sums: SetStates) -> Array:
    """Return Σ (y - ȳ)² of merged items [set]; the last digits are lost if ȳ is far above σ_y.

    0 for items with one target, such as draws that repeat an item of one pixel.
    """
    n, total, means = sums["count"][:, 0], sums["sums"][:, 0, 4], sums["means"][:, 0]
    between_items = means - np.where(n, over(total * total, n), 0.0)
    return sums["within"][:, 0] + without_rounding(between_items, means)


def observed(settings: RegressionSettings, states: Sequence[SetStates]) -> Array:
    """Return the observed coverage [set, level] of each plotted level; NaN without pixels."""
    n = states[0]["count"][:, 0]
    covered = observed_coverage(states[-1], settings.counted_levels, n)
    return np.stack([over(covered[p], n) for p in settings.plotted], axis=1)


def observed_coverage(states: SetStates, levels: Sequence[float], n: Array) -> dict[float, Array]:
    """Return the number of targets [set] inside the interval, or below the quantile, of each level.

    Level 0 counts none, level 1 counts all `n`.
    """
    counts = states["counts"].cumsum(axis=1)
    return {0.0: 0 * n, 1.0: n} | {p: counts[:, i] for i, p in enumerate(levels)}
