"""Scores of predicted numbers of many sets of items at once, from summed states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from uqeval.metrics._columns import over
from uqeval.metrics.regression_scores import LEVELS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.metrics._columns import Place, SetStates
    from uqeval.metrics.regression_settings import RegressionSettings


def columns(
    settings: RegressionSettings,
    sums: SetStates,
    scores: SetStates,
    interval_states: SetStates,
    below: SetStates | None = None,
) -> dict[Place, NDArray[Any]]:
    """Return the scores of states of `ErrorSums`, `PredictiveScores` and `IntervalCounts`, and of
    `QuantileCounts` where the plot is of quantiles."""
    import numpy as np

    n, zero = sums["count"][:, 0], sums["zero"][:, 0, 0]
    error, squares, _, variances, total = sums["sums"][:, 0].T
    within = sums["within"][:, 0]
    spread = within + np.maximum(sums["means"][:, 0] - np.where(n, total * total / n, 0.0), 0.0)
    results: dict[Place, NDArray[Any]] = {
        ("pixels",): n,
        ("rmse",): np.sqrt(over(squares, n)),
        ("mae",): over(error, n),
        ("nmse",): np.where(spread > 0, over(squares, spread), np.nan),
        ("nll",): np.where(zero > 0, np.nan, over(scores["nll"][:, 0], n)),
        ("crps",): over(scores["crps"][:, 0], n),
        ("sharpness",): np.sqrt(over(variances, n)),
    }
    covered = observed_coverage(interval_states, settings.interval_levels, n)
    for i, p in enumerate(LEVELS):
        results["interval_score", f"{100 * p:g}"] = over(scores["intervals"][:, i], n)
        results["coverage", f"{100 * p:g}"] = over(covered[p], n)
    plotted = covered if below is None else observed_coverage(below, settings.quantile_levels, n)
    observed = np.stack([over(plotted[p], n) for p in settings.plotted], 1)
    gaps = np.array(settings.plotted) - observed
    results["auce",] = _area(settings, gaps, np.abs)
    if below is None:
        results["auce_over",] = _area(settings, gaps, lambda gap: np.maximum(gap, 0.0))
        results["auce_under",] = _area(settings, gaps, lambda gap: np.maximum(-gap, 0.0))
    return results


def observed_coverage(
    states: SetStates, levels: Sequence[float], n: NDArray[Any]
) -> dict[float, NDArray[Any]]:
    """Return the number of targets [set] inside the interval, or below the quantile, of each level.

    Level 0 counts none, level 1 all `n`.
    """
    counts = states["counts"].cumsum(axis=1)
    return {0.0: 0 * n, 1.0: n} | {p: counts[:, i] for i, p in enumerate(levels)}


def _area(
    settings: RegressionSettings,
    gaps: NDArray[Any],
    part_of_gap: Callable[[NDArray[Any]], NDArray[Any]],
) -> NDArray[Any]:
    """Return the area [set] of a part of the gaps [set, level] by a rule of
    `regression_scores.area`.
    """
    import numpy as np

    gap_parts = part_of_gap(gaps)
    if settings.area == "mean":
        return np.asarray(gap_parts.mean(axis=1))
    share: Any = 0.5  # of a step that has the part of its left end
    if settings.area == "crossing":
        x, y = gaps[:, :-1], gaps[:, 1:]
        share = np.where(x * y < 0, over(abs(x), abs(x) + abs(y)), 0.5)
        # Where the line crosses 0 both ends make triangles, elsewhere a trapezoid.
        halved = np.where(x * y < 0, 0.5, 1.0)
        steps = np.diff(settings.plotted) * halved
        return np.asarray(
            (steps * (gap_parts[:, :-1] * share + gap_parts[:, 1:] * (1 - share))).sum(axis=1)
        )
    return np.asarray(
        (np.diff(settings.plotted) * (gap_parts[:, :-1] + gap_parts[:, 1:]) / 2).sum(axis=1)
    )
