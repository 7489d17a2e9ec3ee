"""Why a score has no interval, in words."""

from __future__ import annotations

import math

from uqeval.metrics import Metric
from uqeval.statistics.methods import Bounds, NoBounds, units_for_quantile

LEFT_OUT = "it is undefined when one of the units is left out"
#: There is no interval where bins change the score by more than this share of it.
_COARSE = 0.1


def plural(unit: str, count: int) -> str:
    """Return the name of units."""
    if count == 1:
        return unit
    return "batches" if unit == "batch" else f"{unit}s"


def having(metric: Metric, unit: str, count: int) -> str:
    """Return how many units a score is computed from, in words."""
    have = "has" if count == 1 else "have"
    what = "the rarer of what this score compares" if len(metric.units_with) > 1 else "this score"
    return f"{count} {plural(unit, count)} {have} {what}"


def unless_coarse(bounds: Bounds, value: float, exact: float | None) -> Bounds | NoBounds:
    """Return the bounds of a score from bins, unless the bins change it too much.

    `value`: the score from bins; `exact`: that of the values, None if it is not known.
    """
    if exact is None or abs(value - exact) <= _COARSE * (bounds.high - bounds.low):
        return bounds
    return NoBounds(
        "states count values inside a bin of relative width 2^-10 as tied, which gives "
        f"{value:.4g} in place of {exact:.4g}: the values are too close for an interval"
    )


def too_few_for_quantile(metric: Metric, unit: str, units: int, level: float) -> str | None:
    """Return why a quantile of the items has no interval; None for one of enough units, and for
    other scores."""
    if metric.quantile is None:
        return None
    needed = units_for_quantile(metric.quantile, level)
    if math.isinf(needed):
        which, other = ("largest", "larger") if metric.quantile == 1 else ("smallest", "smaller")
        return (
            f"it is the {which} value of the items: other items may have a {other} one, which "
            "draws of these cannot show"
        )
    if units >= needed:
        return None
    return (
        f"{having(metric, unit, units)}; an interval of their {100 * metric.quantile:g} % quantile "
        f"needs {needed}"
    )
