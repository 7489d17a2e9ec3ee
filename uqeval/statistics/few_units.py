"""Warnings about intervals from few units."""

from __future__ import annotations

from uqeval.records.resampling import FEW, FEW_EFFECTIVE
from uqeval.statistics.draws import Resampling


def few_units(resampling: Resampling) -> list[str]:
    """Return warnings about intervals from few units, one sentence each.

    Below 30 units intervals may be too narrow. Below 10 independent pairs of a video they are
    unreliable.
    """
    if resampling.problem:
        return [f"no intervals: {resampling.problem}."]
    if resampling.units < 2:
        return [f"no intervals: there is one {resampling.unit}; 2 are needed."]
    effective = resampling.effective
    if effective is not None and effective < FEW:
        problem = (
            f"intervals come from about {effective:.0f} independent pairs: neighbouring pairs of "
            f"the video are correlated (lag-1 autocorrelation {resampling.lag1:.2f}). "
        )
        if effective < FEW_EFFECTIVE:
            return [problem + "Evaluate longer or more sequences."]
        return [problem + f"Below {FEW} they may be too narrow."]
    if resampling.unit != "batch" and resampling.units < FEW:
        return [
            f"intervals come from {resampling.units} {resampling.unit}s; below {FEW} they may be "
            "too narrow (docs/intervals.md has the rates). Evaluate more."
        ]
    return []
