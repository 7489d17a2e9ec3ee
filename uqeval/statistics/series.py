"""The mean of a score over neighbouring pairs of frames, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from uqeval.arrays import Floats
from uqeval.statistics.draws import Resampling
from uqeval.statistics.jackknife import LeftOut, batch_means, jackknife_t
from uqeval.statistics.methods import Bounds, NoBounds, are_equal
from uqeval.statistics.no_interval import few_units
from uqeval.statistics.units import resampling_of_video


@dataclass(frozen=True)
class SeriesMean:
    """A mean over pairs, its interval at a level (or the reason why there is none), and its units.
    `warnings` about few units or few independent pairs."""

    value: float
    level: float
    bounds: Bounds | NoBounds
    resampling: Resampling
    warnings: tuple[str, ...]


def series_mean(values: Floats, sequences: Sequence[str], level: float = 0.95) -> SeriesMean:
    """Return the mean of `values` (NaN: undefined) of the pairs of `sequences`, as `uqeval tc` has
    it: by long batch means, by whole sequences where there are ten or more."""
    resampling = resampling_of_video([values], sequences)
    finite = np.isfinite(values)
    sums = np.bincount(resampling.codes[finite], values[finite], resampling.units)
    counts = np.bincount(resampling.codes[finite], minlength=resampling.units)
    value = float(values[finite].mean())
    bounds: Bounds | NoBounds
    if resampling.problem or (counts > 0).sum() < 2:
        bounds = NoBounds(
            resampling.problem or f"there is one {resampling.unit} with a value; 2 are needed"
        )
    elif are_equal(values[finite]):
        bounds = NoBounds("the score is the same in all pairs")
    else:
        means_without_unit = (sums.sum() - sums) / (counts.sum() - counts)
        count, members = int((counts > 0).sum()), [np.arange(resampling.units)]
        scores = LeftOut(value, means_without_unit, members, count, count)
        if resampling.unit == "batch":
            bounds = batch_means(scores, level)
        else:
            bounds = jackknife_t(scores, level, logit=True)
    return SeriesMean(value, level, bounds, resampling, tuple(few_units(resampling)))
