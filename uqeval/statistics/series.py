"""The mean of a score over neighbouring pairs of frames, as they come, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from uqeval.statistics.draws import Resampling
from uqeval.statistics.few import few_units
from uqeval.statistics.methods import (
    Bounds,
    NoBounds,
    jackknife_bias,
    jackknife_t,
    jackknife_variance,
)
from uqeval.statistics.units import resampling_of_video


@dataclass(frozen=True)
class SeriesMean:
    """A mean over pairs, its interval at a level (or why there is none), and its units.

    `warnings`: that it rests on few units, or on few independent pairs.
    """

    value: float
    level: float
    bounds: Bounds | NoBounds
    resampling: Resampling
    warnings: tuple[str, ...]


def series_mean(
    values: NDArray[np.float64], sequences: Sequence[str], level: float = 0.95
) -> SeriesMean:
    """Return the mean of `values` (NaN: undefined) of the pairs of `sequences`, as `uqeval tc` has
    it: by long batch means, by whole sequences where there are ten or more."""
    own = resampling_of_video([values], sequences)
    known = np.isfinite(values)
    sums = np.bincount(own.codes[known], values[known], own.units)
    counts = np.bincount(own.codes[known], minlength=own.units)
    value = float(values[known].mean())
    found: Bounds | NoBounds
    if own.problem or (counts > 0).sum() < 2:
        found = NoBounds(own.problem or f"there is one {own.unit} with a value; 2 are needed")
    else:
        without = (sums.sum() - sums) / (counts.sum() - counts)
        batch = own.unit == "batch"
        variance = float(jackknife_variance(without))
        count, bias = int((counts > 0).sum()), jackknife_bias(value, without)
        found = jackknife_t(value, variance, count, level, logit=not batch, bias=bias)
        if batch and isinstance(found, Bounds):
            found = replace(found, method="batch-means")
    return SeriesMean(value, level, found, own, tuple(few_units(own)))
