"""Recompute intervals and debiased values from counts of items, by NumPy and SciPy's quantiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from uqeval.usecases.verify.arrays import Array

#: Draws of the signs of gaps.
_FLIPS = 1000
#: Units that intervals from draws need.
_LEAST = 6
#: Units with an event, below which no more trials count than there are units.
_FEW = 5


@dataclass(frozen=True)
class Counted:
    """Counts of items [item, number], and the score [set] of their sums [set, number].

    `trials` [set]: of how many pixels or patches a share is. `gaps`: of a sum of absolute gaps, the
    signed gaps [set, bin] and their weights [set, bin]; `largest`: the score is the greatest one.
    `slack`: how far the score may be off, because values lie on the edge of a bin.
    """

    counts: Array
    score: Callable[[Array], Array]
    trials: Callable[[Array], Array] | None = None
    gaps: Callable[[Array], tuple[Array, Array]] | None = None
    largest: bool = False
    slack: float = 0.0


@dataclass
class Resampled:
    """The units of a report: `unit_of` each item, seed and number of draws."""

    unit_of: Array
    draws: int
    seed: int
    _weights: list[Array] = field(default_factory=list)

    @classmethod
    def of(cls, names: list[str], settings: Mapping[str, Any]) -> Resampled:
        """Return those that a report's settings name: its groups, else its items."""
        codes = np.unique(np.array(settings.get("groups") or names), return_inverse=True)[1]
        return cls(codes.reshape(-1), int(settings["draws"]), int(settings["seed"]))

    def interval(
        self, own: Counted, record: Mapping[str, Any], bounds: tuple[float | None, float | None]
    ) -> tuple[float, float] | None:
        """Return the ends of an interval by the method that its record names; None for another."""
        method, level = record.get("method"), float(record["level"])
        sums = self._of_units(own.counts)
        total = sums.sum(axis=0)
        value = float(own.score(total[None])[0])
        with np.errstate(divide="ignore", invalid="ignore"):
            alone, without = own.score(sums), own.score(total - sums)
        defined = int(np.isfinite(alone).sum())
        if method == "korn-graubard" and own.trials is not None:
            trials = float(own.trials(total[None])[0])
            found = _korn_graubard(value, alone, without, trials, defined, level)
        elif method == "jackknife-t":
            found = _jackknife(value, without, defined, level, logit=bounds == (0.0, 1.0))
        elif method == "expanded" and defined >= _LEAST:
            found = self._expanded(own, sums, defined, level)
        else:
            return None
        low, high = bounds
        return (
            found[0] if low is None else max(found[0], low),
            found[1] if high is None else min(found[1], high),
        )

    def debiased(self, own: Counted) -> float | None:
        """Return max(0, 2θ − mean of the draws' θ*); None for fewer than six units."""
        sums = self._of_units(own.counts)
        if len(sums) < _LEAST:
            return None
        value = float(own.score(sums.sum(axis=0)[None])[0])
        found = 2 * value - float(own.score(self._drawn(len(sums)) @ sums).mean())
        return max(0.0, found) if math.isfinite(found) else None

    def _of_units(self, counts: Array) -> Array:
        found = np.zeros((int(self.unit_of.max()) + 1, counts.shape[1]))
        np.add.at(found, self.unit_of, counts)
        return found

    def _drawn(self, units: int) -> Array:
        if not self._weights:
            rng = np.random.Generator(np.random.PCG64(self.seed))
            share = np.full(units, 1 / units)
            self._weights.append(rng.multinomial(units, share, self.draws).astype(np.float64))
        return self._weights[0]

    def _expanded(
        self, own: Counted, sums: Array, defined: int, level: float
    ) -> tuple[float, float]:
        from scipy.special import ndtr, stdtrit

        with np.errstate(divide="ignore", invalid="ignore"):
            drawn = own.score(self._drawn(len(sums)) @ sums)
        drawn = drawn[np.isfinite(drawn)]
        t = float(stdtrit(defined - 1, (1 + level) / 2))
        tail = float(ndtr(-math.sqrt(defined / (defined - 1)) * t))
        low, high = (float(q) for q in np.quantile(drawn, [tail, 1 - tail]))
        if own.gaps is not None and self._may_be_zero(own, sums, level):
            low = 0.0
        return low, high

    def _may_be_zero(self, own: Counted, sums: Array, level: float) -> bool:
        """Whether random signs of the units' gaps give as large an error."""
        assert own.gaps is not None
        gaps, weights = own.gaps(sums)[0], own.gaps(sums.sum(axis=0)[None])[1][0]
        rng = np.random.Generator(np.random.PCG64(self.seed))
        signs = rng.integers(0, 2, (_FLIPS, len(gaps))) * 2.0 - 1
        fold = np.max if own.largest else np.sum
        seen = fold(np.abs(gaps.sum(axis=0)) * weights)
        flipped = fold(np.abs(signs @ gaps) * weights, axis=1)
        return bool((1 + (flipped >= seen * (1 - 1e-12)).sum()) / (1 + _FLIPS) > 1 - level)


def _variance(without: Array) -> float:
    return float((len(without) - 1) * without.var())


def _clopper_pearson(share: float, trials: float, level: float) -> tuple[float, float]:
    from scipy.special import betaincinv

    hits, tail = share * trials, (1 - level) / 2
    low = float(betaincinv(hits, trials - hits + 1, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, trials - hits, 1 - tail)) if hits < trials else 1.0
    return low, high


def _korn_graubard(
    value: float, alone: Array, without: Array, trials: float, units: int, level: float
) -> tuple[float, float]:
    from scipy.special import stdtrit

    effective, variance = float(units), _variance(without)
    if 0 < value < 1:
        effective = trials
        if variance > 0:
            t = [float(stdtrit(max(n - 1, 1), (1 + level) / 2)) for n in (trials, units)]
            effective = min(trials, value * (1 - value) / variance * (t[0] / t[1]) ** 2)
        rare = alone > 0 if value <= 0.5 else alone < 1
        if (rare & np.isfinite(alone)).sum() < _FEW:
            effective = min(effective, units)
    return _clopper_pearson(value, max(effective, 1.0), level)


def _jackknife(
    value: float, without: Array, units: int, level: float, *, logit: bool
) -> tuple[float, float]:
    from scipy.special import expit, stdtrit
    from scipy.special import logit as log_odds

    reach = float(stdtrit(units - 1, (1 + level) / 2)) * math.sqrt(_variance(without))
    if not logit:
        return value - reach, value + reach
    slope = 1 / (value * (1 - value))
    bias = (len(without) - 1) * (float(without.mean()) - value)
    ends = sorted((float(log_odds(value)), float(log_odds(value)) - bias * slope))
    return float(expit(ends[0] - reach * slope)), float(expit(ends[1] + reach * slope))
