"""Recompute intervals and debiased values from counts of items, by NumPy and SciPy's quantiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.usecases.verify.ranks import RANGES

#: The number of draws of the signs of gaps.
_FLIPS = 1000
#: The smallest number of units for intervals from draws.
LEAST = 6
#: With fewer units with an event, or where these have most of the events, at most as many trials
#: count as there are units.
_FEW = 5
#: The relative rounding of a number of units that is computed from shares.
_ROUNDING = 1e-9
#: So many numbers of draws are in memory.
_BLOCK = 1 << 20
#: So many weights are drawn before those of the next set of units.
_BLOCK_OF_DRAWS = 1 << 21
#: The method of each kind of interval, if none was asked for.
METHODS = {
    "share": "korn-graubard", "logit": "jackknife-t", "linear": "jackknife-t", "draws": "expanded",
    "positive": "expanded", "gaps": "expanded", "biased": "expanded",
}  # fmt: skip
#: A score in bins that is as near to 0 or 1 may be one of these.
_NEAR = 0.01
#: The scale of a jackknife by the kind of a score's interval.
_SCALES = {
    "share": "logit", "logit": "logit", "positive": "log", "linear": "linear", "draws": "linear",
    "gaps": "linear", "biased": "linear",
}  # fmt: skip


def method_of(asked: str, kind: str, score: float, record: Mapping[str, Any]) -> str | None:
    """Return the method of the interval of a score, from that of the settings and the `kind` of its
    interval; None for an unknown kind. `record`: that of the interval."""
    method = METHODS.get(kind) if asked in ("auto", "korn-graubard") else asked
    if method != "jackknife-t" or kind not in ("share", "logit"):
        return method
    if record.get("approximate") and min(score, 1 - score) < _NEAR:
        own = record.get("method")  # bins may make another score of it
        return own if own == "korn-graubard" else method
    return "korn-graubard" if score in (0, 1) else method  # which has no logit


@dataclass(frozen=True)
class Counted:
    """Counts of items [item, number], and the score [set] of their sums [set, number].

    `trials` [set]: of how many pixels or patches a share is. `gaps`: of a sum of absolute gaps, the
    signed gaps [set, bin] and their weights [set, bin]; `largest`: the score is the greatest one.
    `slack`: the allowed difference of the score, because values lie on the edge of a bin; `moved`:
    makes counts of values with random rounding errors, which may be in other bins. `kinds`: the
    numbers of each kind of patches that the score compares; without, units count that have the
    score themselves. `events`: of the sums of units, how many units' events the score rests on.
    """

    counts: Array
    score: Callable[[Array], Array]
    trials: Callable[[Array], Array] | None = None
    gaps: Callable[[Array], tuple[Array, Array]] | None = None
    largest: bool = False
    slack: float = 0.0
    moved: Callable[[], Iterable[Array]] = tuple  # none
    kinds: tuple[tuple[int, ...], ...] = ()
    events: Callable[[Array], float] | None = None

    def defined(self, sums: Array, unit_scores: Array) -> int:
        """Return how many units the score is computed from: those with the rarer kind, if any."""
        with_kind = [int((sums[:, kind].sum(axis=1) > 0).sum()) for kind in self.kinds]
        return min(with_kind, default=0) or int(np.isfinite(unit_scores).sum())


#: Counted scores by the fields of their addresses below a key: ("per_class", "road", "iou").
CountedScores = dict[tuple[str, ...], Counted]


@dataclass
class Resampled:
    """The units of a report: `unit_of` each item, seed and number of draws.

    `strata`: the set of each unit, if units are drawn within sets; else 0.
    """

    unit_of: Array
    draws: int
    seed: int
    strata: Array
    _weights: list[Array] = field(default_factory=list)

    @classmethod
    def from_settings(
        cls, names: list[str], settings: Mapping[str, Any], sets: Sequence[str] | None = None
    ) -> Resampled:  # fmt: skip
        """Return the units of a report's settings: its groups, else its items.

        `sets`: the set of each item; a group has the items of one set.
        """
        units = settings.get("groups") or names
        if sets is not None and settings.get("groups"):
            units = [f"{own}/{unit}" for own, unit in zip(sets, units, strict=True)]
        codes = np.unique(np.array(units), return_inverse=True)[1].reshape(-1)
        strata = np.zeros(int(codes.max(initial=-1)) + 1, int)
        if sets is not None:
            strata[codes] = np.unique(np.array(sets), return_inverse=True)[1].reshape(-1)
        return cls(codes, int(settings["draws"]), int(settings["seed"]), strata)

    @property
    def was_drawn(self) -> bool:
        """Return whether a value was computed from draws."""
        return bool(self._weights)

    @property
    def members(self) -> list[Array]:
        """Return the units of each set."""
        return [np.flatnonzero(self.strata == k) for k in np.unique(self.strata)]

    def least_defined(self, counted: Counted, sums: Array) -> int:
        """Return how many units a score is computed from; of several sets, the smallest number of
        units with the rarer kind of patches in a set that has some."""
        if len(self.members) == 1 or not counted.kinds:
            with np.errstate(divide="ignore", invalid="ignore"):
                return counted.defined(sums, counted.score(sums))
        with_kind = [sums[:, kind].sum(axis=1) > 0 for kind in counted.kinds]
        rarer = min(with_kind, key=lambda own: int(own.sum()))
        in_sets = [int(rarer[own].sum()) for own in self.members if rarer[own].any()]
        return min(in_sets, default=0)

    def interval(
        self, counted: Counted, record: Mapping[str, Any], metric: Mapping[str, Any],
        *, earlier: bool = False,
    ) -> tuple[float, float] | None:  # fmt: skip
        """Return the ends of an interval by the method that its record names.

        `metric`: the record of the score, with its range and the kind of its interval. `earlier`:
        by the rule of earlier versions. None for another method.
        """
        method, level = record.get("method"), float(record["level"])
        sums = self.of_units(counted.counts)
        total = sums.sum(axis=0)
        value = float(counted.score(total[None])[0])
        with np.errstate(divide="ignore", invalid="ignore"):
            unit_scores, without_unit = counted.score(sums), counted.score(total - sums)
        defined, members = self.least_defined(counted, sums), self.members
        if method == "korn-graubard":
            trials = float(counted.trials(total[None])[0]) if counted.trials else float(defined)
            limits = _korn_graubard(
                value, unit_scores, without_unit, trials, defined, level, earlier=earlier
            )
        elif method == "jackknife-t" and (scale := _SCALES.get(metric.get("interval", ""))):
            if scale == "log":
                limits = _jackknife_of_logarithms(value, without_unit, members, defined, level)
            else:
                logit = scale == "logit"
                limits = _jackknife(value, without_unit, members, defined, level, logit=logit)
        elif method == "expanded" and defined >= LEAST:
            limits = self._expanded(counted, sums, defined, level)
            if metric.get("interval") == "positive" and min(value, without_unit.min()) > 0:
                of_logarithms = _jackknife_of_logarithms(
                    value, without_unit, members, defined, level
                )
                limits = limits[0], max(limits[1], of_logarithms[1])
        elif method == "percentile":
            limits = _percentiles(self.of_draws(counted, sums), (1 - level) / 2)
        else:
            return None
        low, high = metric.get("range") or (None, None)
        return (
            limits[0] if low is None else max(limits[0], low),
            limits[1] if high is None else min(limits[1], high),
        )

    def defined(self, counted: Counted) -> int:
        """Return the number of units from which a score is computed."""
        sums = self.of_units(counted.counts)
        with np.errstate(divide="ignore", invalid="ignore"):
            return counted.defined(sums, counted.score(sums))

    def events(self, counted: Counted) -> float:
        """Return how many units' events a score rests on; infinitely many for most scores."""
        return counted.events(self.of_units(counted.counts)) if counted.events else math.inf

    def spread(
        self, counted: Counted, record: Mapping[str, Any], metric: Mapping[str, Any]
    ) -> tuple[float, float]:
        """Return how far rounding errors of values may move both ends of an interval."""
        ends = [self.interval(counted, record, metric)]
        for counts in counted.moved():
            if not np.array_equal(counts, counted.counts):
                ends.append(self.interval(replace(counted, counts=counts), record, metric))
        defined = np.array([own for own in ends if own is not None])
        if len(defined) < len(ends):
            return math.inf, math.inf
        low, high = (RANGES * float(own) for own in np.ptp(defined, axis=0))
        return low, high

    def debiased(self, counted: Counted) -> float | None:
        """Return max(0, 2θ − mean of the draws' θ*); None for fewer than six units."""
        sums = self.of_units(counted.counts)
        if len(sums) < LEAST:
            return None
        value = float(counted.score(sums.sum(axis=0)[None])[0])
        limits = 2 * value - float(self.of_draws(counted, sums).mean())
        return max(0.0, limits) if math.isfinite(limits) else None

    def of_units(self, counts: Array) -> Array:
        """Return the sums of the counts of each unit [unit, number]."""
        unit_sums = np.zeros((int(self.unit_of.max()) + 1, counts.shape[1]))
        np.add.at(unit_sums, self.unit_of, counts)
        return unit_sums

    def _drawn(self, units: int) -> Array:
        if not self._weights:
            rng = np.random.Generator(np.random.PCG64(self.seed))
            drawn = np.zeros((self.draws, units))
            rows = max(_BLOCK_OF_DRAWS // max(units, 1), 1)
            for first in range(0, self.draws, rows):
                count = min(rows, self.draws - first)
                for own in self.members:
                    share = np.full(own.size, 1 / own.size)
                    drawn[first : first + count, own] = rng.multinomial(own.size, share, count)
            self._weights.append(drawn)
        return self._weights[0]

    def of_draws(self, counted: Counted, sums: Array) -> Array:
        """Return the scores of the draws of units, with a few draws' numbers in memory."""
        blocks = np.array_split(self._drawn(len(sums)), self.draws * sums.shape[1] // _BLOCK + 1)
        return np.concatenate([counted.score(block @ sums) for block in blocks if len(block)])

    def _expanded(
        self, counted: Counted, sums: Array, defined: int, level: float
    ) -> tuple[float, float]:
        from scipy.special import ndtr, stdtrit

        with np.errstate(divide="ignore", invalid="ignore"):
            draws = self.of_draws(counted, sums)
        draws = draws[np.isfinite(draws)]
        t = float(stdtrit(defined - 1, (1 + level) / 2))
        tail = float(ndtr(-math.sqrt(defined / (defined - 1)) * t))
        low, high = _percentiles(draws, tail)
        if counted.gaps is not None:
            value = float(counted.score(sums.sum(axis=0)[None])[0])
            bias = (float(draws.mean()) - value) * defined / (defined - 1)
            share = self._least_share(counted, sums, level)
            low = min(low - 2 * max(bias, 0.0), share * value) if share else 0.0
            high -= 2 * min(bias, 0.0)
        return low, high

    def _least_share(self, counted: Counted, sums: Array, level: float) -> float:
        """Return the smallest share of the error that the test of random signs does not reject, by
        8 bisections."""
        assert counted.gaps is not None
        gaps, weights = counted.gaps(sums)[0], counted.gaps(sums.sum(axis=0)[None])[1][0]
        rng = np.random.Generator(np.random.PCG64(self.seed))
        signs = rng.integers(0, 2, (_FLIPS, len(gaps))) * 2.0 - 1
        fold = np.max if counted.largest else np.sum
        total, flipped = gaps.sum(axis=0), signs @ gaps
        weighted = fold(np.abs(total) * weights)

        def is_rejected(share: float) -> bool:
            rest = flipped - share * np.outer(signs.mean(axis=1), total)
            scores = fold(np.abs(share * total + rest) * weights, axis=1)
            hits = int((scores >= weighted * (1 - 1e-12)).sum())
            return (1 + hits) / (1 + _FLIPS) <= (1 - level) / 2

        share = 0.0
        if is_rejected(0.0):
            for step in 0.5 ** np.arange(1, 9):
                share += step if is_rejected(share + step) else 0.0
        return share


def _percentiles(draws: Array, tail: float) -> tuple[float, float]:
    """Return both percentiles of the defined draws; NaN without any."""
    defined = draws[np.isfinite(draws)]
    if not defined.size:
        return math.nan, math.nan
    low, high = np.quantile(defined, [tail, 1 - tail])
    return float(low), float(high)


def _variance(without_unit: Array) -> float:
    return float((len(without_unit) - 1) * without_unit.var())


def _clopper_pearson(share: float, trials: float, level: float) -> tuple[float, float]:
    from scipy.special import betaincinv

    hits, tail = share * trials, (1 - level) / 2
    low = float(betaincinv(hits, trials - hits + 1, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, trials - hits, 1 - tail)) if hits < trials else 1.0
    return low, high


def _korn_graubard(
    value: float, unit_scores: Array, without_unit: Array, trials: float, units: int, level: float,
    *, earlier: bool,
) -> tuple[float, float]:  # fmt: skip
    """Return the interval of a share. `earlier`: all units with events count alike."""
    from scipy.special import stdtrit

    effective, variance = float(units), _variance(without_unit)
    if 0 < value < 1:
        effective = trials
        if variance > 0:
            t = [float(stdtrit(max(n - 1, 1), (1 + level) / 2)) for n in (trials, units)]
            effective = min(trials, value * (1 - value) / variance * (t[0] / t[1]) ** 2)
        own = unit_scores[np.isfinite(unit_scores)]
        rare = own if value <= 0.5 else 1 - own
        # Two units with half of the events each count as two, however many others have one.
        alike = rare.sum() ** 2 / max((rare**2).sum(), 1e-300)
        few = min(_FEW, len(own) / 2) * (1 - _ROUNDING)
        if (rare > 0).sum() < _FEW or (not earlier and alike < few):
            effective = min(effective, units)
    return _clopper_pearson(value, max(effective, 1.0), level)


def _reaches(
    centre: float, without_unit: Array, members: Sequence[Array], units: int, level: float, *,
    skewed: bool = True,
) -> tuple[float, float]:  # fmt: skip
    """Return how far both ends are from the centre: t·se, and more by the bias and the skewness.

    Those of several sets of units are added, with the degrees of freedom of Welch.
    """
    from scipy.special import stdtrit

    variances, cumulant, bias = [], 0.0, 0.0
    for own in (without_unit[units_of_set] for units_of_set in members):
        n = len(own)
        variances.append(_variance(own))
        bias += (n - 1) * (float(own.mean()) - centre)
        if n > 2:
            cubes = float(((own.mean() - own) ** 3).sum())
            cumulant += (n - 1) ** 2 / (n * (n - 2)) * cubes
    variance, degrees = sum(variances), float(units - 1)
    if len(members) > 1:
        sizes = [len(own) for own in members]
        parts = [v * v / max(n - 1, 1) for v, n in zip(variances, sizes, strict=True)]
        degrees = variance**2 / sum(parts) if sum(parts) > 0 else min(sizes) - 1.0
    error, t = math.sqrt(variance), float(stdtrit(degrees, (1 + level) / 2))
    shift = cumulant / variance * (1 + 2 * t * t) / 6 if skewed and error > 0 else 0.0
    down = t * error + max(-shift, 0.0) + max(bias, 0.0)
    return down, t * error + max(shift, 0.0) - min(bias, 0.0)


def _jackknife_of_logarithms(
    value: float, without_unit: Array, members: Sequence[Array], units: int, level: float
) -> tuple[float, float]:
    centre = math.log(value)
    down, up = _reaches(centre, np.log(without_unit), members, units, level)
    return math.exp(centre - down), math.exp(centre + up)


def _jackknife(
    value: float, without_unit: Array, members: Sequence[Array], units: int, level: float, *,
    logit: bool,
) -> tuple[float, float]:  # fmt: skip
    from scipy.special import expit
    from scipy.special import logit as log_odds

    if not logit:
        down, up = _reaches(value, without_unit, members, units, level)
        return value - down, value + up
    centre, slope = float(log_odds(value)), 1 / (value * (1 - value))
    inside = bool(((without_unit > 0) & (without_unit < 1)).all())
    ends = _reaches(value, without_unit, members, units, level, skewed=not inside)
    down, up = (slope * reach for reach in ends)
    if inside:
        of_logits = _reaches(centre, log_odds(without_unit), members, units, level)
        down, up = max(down, of_logits[0]), max(up, of_logits[1])
    return float(expit(centre - down)), float(expit(centre + up))
