"""The family `regression`: settings, presets, and the plan from tallies to a section."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from uqeval.maps.names import TARGET_COUNTS
from uqeval.metrics import _numbers as numbers
from uqeval.metrics import regression_columns
from uqeval.metrics import regression_scores as rs
from uqeval.metrics._again import Again, Gaps
from uqeval.metrics._contract import put
from uqeval.metrics._family import Facts, Family, variants
from uqeval.metrics._plan import Last, Plan, Section
from uqeval.metrics.regression_settings import RegressionSettings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from uqeval.metrics._again import SetStates
    from uqeval.tallies import Tally
    from uqeval.tallies._contract import State


def _settings(options: Mapping[str, Any], facts: Facts) -> dict[str, RegressionSettings]:
    found: dict[str, RegressionSettings] = variants(
        "regression", RegressionSettings, options, ("uncertainty", "distribution", "proportion")
    )
    for own in found.values():
        numbers.check_sigma(own.uncertainty, facts)
        numbers.check_unit(own.uncertainty, facts)
    return found


def plan(settings: RegressionSettings, facts: Facts) -> Plan:
    """Count once; return the section of one variant."""
    from uqeval.tallies import TargetCounts

    sums, scores, *shares = _tallies(settings)
    counted = yield Last((sums, scores, *shares, TargetCounts()))
    total = counted[sums].total
    pixels = int(total["count"][0])
    numbers.refuse_nothing(pixels, facts)
    states = [sums.unpack(data) for data in counted[sums].items]
    results = _record(
        settings, total, counted[scores].total, [counted[t].total for t in shares],
        _target_spread(states),
    )  # fmt: skip
    items = []
    for own, score, *counts in zip(
        states, counted[scores].items, *(counted[t].items for t in shares), strict=True
    ):
        record = _record(
            settings, own, scores.unpack(score),
            [tally.unpack(data) for tally, data in zip(shares, counts, strict=True)],
            float(own["within"][0]),
        )  # fmt: skip
        items.append({k: v for k, v in record.items() if not isinstance(v, dict)})
    warnings = numbers.void_items(facts.names, [int(own["count"][0]) for own in states])
    warnings += numbers.zero_targets(counted[TargetCounts()].total, facts)
    zero = int(total["zero"][0, 0])
    if zero:
        warnings.append(
            f"σ = 0 at {zero} of {pixels} evaluated pixels: no likelihood; intervals of width 0 "
            "hold a target only where the prediction is exact."
        )
    return Section(
        results, items, dataclasses.asdict(settings),
        numbers.counts_of(total) | {"ties": int(counted[shares[0]].total["ties"][0])}, warnings,
    )  # fmt: skip


def _tallies(settings: RegressionSettings) -> tuple[Tally, ...]:
    """Sums, scores, and what lies in intervals, perhaps also below quantiles."""
    from uqeval.tallies import ErrorSums, IntervalCounts, PredictiveScores, QuantileCounts

    sigma, distribution = settings.sigma, settings.distribution
    scores = PredictiveScores(
        distribution == "laplace", rs.LEVELS, rs.factors(rs.LEVELS, distribution), sigma
    )
    held = IntervalCounts(rs.factors(settings.interval_levels, distribution), sigma)
    below = QuantileCounts(rs.quantiles(settings.quantile_levels, distribution), sigma)
    shares = (held, below) if settings.proportion == "quantile" else (held,)
    return (ErrorSums(sigma), scores, *shares)


def _again(
    key: str, settings: RegressionSettings, facts: Facts, fitted: Mapping[str, Any]
) -> dict[str, Again]:
    tallies = _tallies(settings)

    def scores(states: Mapping[Tally, State]) -> dict[str, Any]:
        sums, own, *held = (states[tally] for tally in tallies)
        return _record(settings, sums, own, held, _merged_spread(sums))

    def columns(states: Mapping[Tally, SetStates], wanted: Collection[str]) -> Any:
        return regression_columns.columns(settings, *(states[tally] for tally in tallies))

    gaps = {} if settings.area == "crossing" else {("auce",): _gaps(settings, tallies)}
    return {key: Again(tallies, scores, columns, gaps=gaps)}


def _gaps(settings: RegressionSettings, tallies: tuple[Tally, ...]) -> Gaps:
    """The targets that lie inside the interval of each plotted level p, less p·N, which AUCE adds
    up (the rules "trapezoid" and "mean")."""
    import numpy as np

    levels = settings.quantile_levels or settings.interval_levels
    p = np.array(settings.plotted)

    def signed(states: Mapping[Tally, SetStates]) -> NDArray[np.float64]:
        n = states[tallies[0]]["count"][:, 0]
        held = regression_columns.held(states[tallies[-1]], levels, n)
        gaps: NDArray[np.float64] = np.stack([held[own] for own in settings.plotted], 1)
        gaps -= p * n[:, None]
        return gaps

    def weights(states: Mapping[Tally, SetStates]) -> NDArray[np.float64]:
        n = np.maximum(states[tallies[0]]["count"][:, :1], 1)
        steps = np.diff(p, prepend=p[0], append=p[-1])
        area: NDArray[np.float64] = (steps[:-1] + steps[1:]) / (2 * n)
        same: NDArray[np.float64] = np.ones(p.size) / (p.size * n)
        return area if settings.area == "trapezoid" else same

    return Gaps(signed, weights)


def _merged_spread(sums: State) -> float:
    """Σ (y - ȳ)² of merged items: the same to the last places where ȳ is not far above σ_y."""
    n, total = int(sums["count"][0]), float(sums["sums"][0, 4])
    between = float(sums["means"][0]) - total * total / n if n else 0.0
    return float(sums["within"][0]) + max(between, 0.0)


def _target_spread(states: list[State]) -> float:
    """Σ (y - ȳ)² over all items: within them, and of their means."""
    some = [s for s in states if s["count"][0]]
    counts = [int(s["count"][0]) for s in some]
    means = [float(s["sums"][0, 4]) / n for n, s in zip(counts, some, strict=True)]
    # Of large means the differences: a mean is rounded, and `rest` says what it lacks.
    about = [
        m - means[0] + float(s["rest"][0]) / n for m, n, s in zip(means, counts, some, strict=True)
    ]
    mean = math.fsum(n * d for n, d in zip(counts, about, strict=True)) / sum(counts)
    between = [n * (d - mean) ** 2 for n, d in zip(counts, about, strict=True)]
    return math.fsum([*(float(s["within"][0]) for s in some), *between])


def _record(
    settings: RegressionSettings, sums: State, scores: State, held: list[State], spread: float
) -> dict[str, Any]:
    """All scores of the whole set or of one item; `held` of intervals, and of quantiles."""
    n, zero = int(sums["count"][0]), int(sums["zero"][0, 0])
    error, squares, _, variances, _ = (float(v) for v in sums["sums"][0])
    levels = (settings.interval_levels, settings.quantile_levels)
    found, *quantiles = (
        dict(zip(own, itertools.accumulate(state["counts"].tolist()), strict=False))
        for own, state in zip(levels, held, strict=False)
    )
    ends = {0.0: 0, 1.0: n}  # nothing lies below -∞, everything below ∞
    plotted = ends | (quantiles[0] if quantiles else found)
    observed = [plotted[p] / n if n else None for p in settings.plotted]
    gaps = (settings.plotted, observed, settings.area)
    values = {
        "rmse": (squares, n), "mae": (error, n), "nmse": (squares, spread),
        "auce": gaps, "auce_over": gaps, "auce_under": gaps,
        "nll": (float(scores["nll"][0]), n, zero), "crps": (float(scores["crps"][0]), n),
        "sharpness": (variances, n),
    }  # fmt: skip
    record: dict[str, Any] = {"pixels": n}
    for field, given in values.items():
        metric = rs.BY_FIELD[field]
        value = None if field.startswith("auce") and not n else metric.formula(*given)
        reason = metric.undefined
        if quantiles and field in ("auce_over", "auce_under"):
            value, reason = None, "of quantiles the sign of a gap tells a bias, no confidence"
        if field == "nll" and zero:
            reason = f"σ = 0 at {zero} of {n} evaluated pixels: their likelihood is 0 or unbounded"
        put(record, field, value, reason)
    record["calibration"] = {"p": list(settings.plotted), "observed": observed}
    record["interval_score"] = {
        _percent(p): rs.mean(float(total), n)
        for p, total in zip(rs.LEVELS, scores["intervals"], strict=True)
    }
    record["coverage"] = {_percent(p): rs.mean(found[p], n) for p in rs.LEVELS}
    return record


def _percent(p: float) -> str:
    return f"{100 * p:g}"


_ABOUT = """Regression: are the predicted standard deviations as large as the errors?

Computes RMSE, MAE, AUCE with its over- and under-confident parts, the calibration plot, NLL,
CRPS, sharpness, interval scores and coverage.

Example: uqeval regression depth.zarr kitti/ -o report.json
"""

FAMILY = Family(
    "regression",
    rs.METRICS,
    _settings,
    lambda settings, facts: (
        {"label", "error", "target", TARGET_COUNTS, settings.sigma}
        | ({"mean"} if settings.proportion == "quantile" else set())
    ),
    lambda key, settings, facts: {key: plan(settings, facts)},
    kinds=("regression",),
    again=_again,
    settings_type=RegressionSettings,
    about=_ABOUT,
    label="Regression",
)
