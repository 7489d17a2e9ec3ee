"""Intervals of the difference of two models on the same items.

Most kinds of scores have the interval of the difference itself: the jackknife with Student's t, or
expanded percentiles of its draws. Sums of absolute gaps have one from the interval of each model,
because noise shifts the errors of two models by different amounts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from uqeval.arrays import Floats
from uqeval.metrics import Metric
from uqeval.records.intervals import plural
from uqeval.records.resampling import IDENTICAL
from uqeval.records.scalars import ROUNDING, is_rounding
from uqeval.statistics import jackknife, methods, mover
from uqeval.statistics.flips import least_shares
from uqeval.statistics.intervals import UNDEFINED, inside, is_approximate, within
from uqeval.statistics.kinds import BIASED, DRAWN, metric_at
from uqeval.statistics.methods import Bounds, NoBounds
from uqeval.statistics.mover import Limits
from uqeval.statistics.no_interval import (
    fitted_apart,
    having,
    not_a_metric,
    not_in_states,
    too_few,
    unless_coarse,
)
from uqeval.statistics.same_model import is_same_model
from uqeval.statistics.samples import Samples, Sets

#: The runs of a model, and those of the other: several are trainings, whose scores are averaged.
TwoModels = tuple[Sequence[int], Sequence[int]]


def difference(
    samples: Samples,
    text: str,
    level: float,
    relative: bool = False,
    runs: TwoModels = ((0,), (1,)),
) -> Bounds | NoBounds:
    """Return the interval of the score of some runs minus that of others, over the same items.

    `relative`: as a fraction of the absolute score of the others. Method: jackknife with Student's
    t on the difference; expanded percentiles for kinds that need draws; paired MOVER for sums of
    absolute gaps; exact bounds for two shares without events, and for scores in [0, 1] that differ
    by the same in all units. If few units differ, exact bounds widen the jackknife of such scores,
    and the jackknife widens percentiles. Two runs on the same predictions have the difference 0. No
    bound is larger than the range of the metric allows.
    """
    bounds, metric = _bounds(samples, text, level, relative, runs), metric_at(text)
    if isinstance(bounds, NoBounds) or metric is None:
        return bounds
    return possible(bounds, metric, relative)


def possible(bounds: Bounds, metric: Metric, relative: bool = False) -> Bounds:
    """Return the bounds of a difference, inside those that the range of the metric allows: plus and
    minus its width; as a fraction of the other score, at least −1 if no score is negative."""
    least, most = metric.range
    if relative:
        return within(bounds, -1.0 if least == 0 else None, None)
    width = None if least is None or most is None else most - least
    return within(bounds, None if width is None else -width, width)


def _bounds(
    samples: Samples, text: str, level: float, relative: bool, runs: TwoModels
) -> Bounds | NoBounds:
    """Return the bounds of `difference`, also beyond the range of the metric."""
    metric, both = metric_at(text), [*runs[0], *runs[1]]
    if metric is not None and _is_unchanged(samples, text, relative, runs):
        return Bounds(0.0, 0.0, IDENTICAL)
    samples = of_difference(samples, text, relative, runs)
    resampling = samples.resampling
    if resampling.problem:
        return NoBounds(resampling.problem)
    apart = fitted_apart(samples, text, both)
    if metric is None:
        return NoBounds(apart or not_a_metric(text))
    if resampling.units < 2:
        return NoBounds(
            f"there is {resampling.units} {plural(resampling.unit, resampling.units)}; 2 are needed"
        )
    if reason := not_in_states(samples, text, both) or apart:
        return NoBounds(reason)
    defined = defined_in_both(samples, text, runs)
    if defined < 2:
        return NoBounds(f"{having(metric, resampling.unit, defined)} in both; 2 are needed")
    pair = _Pair(samples, text, metric, level, relative, runs)
    a, b = (float(score[0]) for score in pair.scores("whole"))
    least = resampling.least(samples.defined(text, both))
    if reason := too_few(samples, text, metric, level, both):
        return NoBounds(reason)
    if metric.interval == "share" and {a, b} <= {0.0, 1.0}:
        return _unless_infinite(_exact_difference(a, b, defined, level, relative))
    if metric.interval in DRAWN and resampling.unit != "batch":
        if defined < methods.LEAST_DRAWN:
            return NoBounds(f"intervals from draws need {methods.LEAST_DRAWN} units")
        return pair.of_draws()
    scores = pair.left_out()
    if scores.is_constant(pair.scale):
        if metric.interval not in ("share", "logit") or resampling.unit == "batch":
            return NoBounds("the difference stays the same when any unit is left out")
        return _of_no_other_unit(a - b, b, least, level, relative)
    if resampling.unit == "batch":
        return jackknife.batch_means(scores, level)
    bounds = jackknife.jackknife_t(scores, level, logit=False)
    if metric.interval in ("share", "logit") and isinstance(bounds, Bounds):
        return pair.for_few_changes(bounds)
    return bounds


def _is_unchanged(samples: Samples, text: str, relative: bool, runs: TwoModels) -> bool:
    """Return whether both models are one, so that a score differs by rounding at most: the order of
    items may be another. Then the difference is 0 whatever is sampled, unless it has no size, as a
    fraction of 0."""
    both = [*runs[0], *runs[1]]
    if not is_same_model([samples.runs[i] for i in both], text):
        return False
    scores = np.array([samples.exact(text, run) for run in range(len(samples.runs))], np.float64)
    if np.isnan(scores[both]).any():
        if not_in_states(samples, text, both) is not None:
            return False
        scores = samples.scores("whole", text)[:, 0]
    first, second = (float(score[0]) for score in _means(scores[:, None], runs))
    return is_rounding(first, second) and not (relative and second == 0)


def of_difference(
    samples: Samples, text: str, relative: bool = False, runs: TwoModels = ((0,), (1,))
) -> Samples:
    """Return the samples in the units of the difference of a score (`Samples.of_score`)."""

    def series_of(scores: Floats) -> list[Floats]:
        return [_changes(*_means(scores, runs), relative)]

    return samples.of_score(text, series_of)


def defined_in_both(samples: Samples, text: str, runs: TwoModels = ((0,), (1,))) -> int:
    """Return the number of units in which a score is defined in all of these runs."""
    return int(samples.defined(text, [*runs[0], *runs[1]]).sum())


@dataclass(frozen=True)
class _Pair:
    """A score of two models, with the data for the interval of its difference."""

    samples: Samples
    text: str
    metric: Metric
    level: float
    relative: bool
    runs: TwoModels

    def scores(self, sets: Sets) -> tuple[Floats, Floats]:
        """Return the score [set] of each of the two models."""
        return _means(self.samples.scores(sets, self.text), self.runs)

    def changes(self, sets: Sets) -> Floats:
        """Return the difference [set]."""
        return _changes(*self.scores(sets), self.relative)

    @property
    def value(self) -> float:
        return float(self.changes("whole")[0])

    @property
    def scale(self) -> float:
        """Return the size of the numbers that are subtracted: the scores, or a fraction and 1."""
        return 1.0 if self.relative else float(np.abs(self.scores("whole")).max())

    @property
    def is_defined(self) -> NDArray[np.bool_]:
        """Return the units in which the score is defined in both models."""
        return self.samples.defined(self.text, [*self.runs[0], *self.runs[1]])

    def left_out(self) -> jackknife.LeftOut:
        """Return the difference, and its values without each of the units."""
        resampling, is_defined = self.samples.resampling, self.is_defined
        least, without = resampling.least(is_defined), self.changes("without")
        return jackknife.LeftOut(
            self.value, without, resampling.members, int(is_defined.sum()), least
        )

    def of_draws(self) -> Bounds | NoBounds:
        """Return the interval of a score whose intervals need draws."""
        draws = self.changes("drawn")
        is_finite = np.isfinite(draws)
        if is_finite.sum() < (1 - UNDEFINED) * draws.size:
            share = 1 - is_finite.sum() / draws.size
            return NoBounds(f"the score is undefined in {share:.0%} of the draws")
        draws, least = draws[is_finite], self.samples.resampling.least(self.is_defined)
        expanded = methods.expanded(draws, least, self.level)
        same = methods.unless_same(expanded, draws, "the difference", self.scale)
        if isinstance(same, NoBounds):
            return same
        if self.metric.interval == "gaps":
            bounds = self._of_gaps(is_finite, least)
            if isinstance(finite := _unless_infinite(bounds), NoBounds):
                return finite
        else:
            bounds = expanded
            if self.metric.interval in BIASED:
                bounds = methods.beyond_bias(bounds, draws, self.value, least)
            if are_few(self._of_units):  # many draws have none of them: an end is exactly 0
                of_units = jackknife.jackknife_t(self.left_out(), self.level, logit=False)
                bounds = methods.around(bounds, of_units)
        if not is_approximate(self.samples, self.text):
            return bounds
        exact = [self.samples.exact(self.text, run) for run in range(len(self.samples.runs))]
        if None in exact:
            return bounds
        of_values = _means(np.array(exact, np.float64)[:, None], self.runs)
        return unless_coarse(bounds, self.value, float(_changes(*of_values, self.relative)[0]))

    def for_few_changes(self, bounds: Bounds) -> Bounds:
        """Return the bounds of scores in [0, 1], wide enough if most units do not differ.

        The jackknife of few units that differ does not show that more of them may. So the share of
        units that are worse may be at its exact upper bound, and each moves the difference by the
        largest change of a unit; those that are better likewise.
        """
        changes = self._of_units
        if not are_few(changes):
            return bounds
        reach = float(np.abs(changes).max()) / (abs(self._baseline) if self.relative else 1.0)
        down, up = (
            reach * (methods.clopper_pearson(share, changes.size, self.level)[1] - share)
            for share in (float((changes < 0).mean()), float((changes > 0).mean()))
        )
        return replace(
            bounds, low=min(bounds.low, self.value - down), high=max(bounds.high, self.value + up)
        )

    @property
    def _of_units(self) -> Floats:
        """Return the difference of each unit that has both scores, 0 for one up to rounding."""
        first, second = self.scores("alone")
        has_both = np.isfinite(first) & np.isfinite(second)
        first, second = first[has_both], second[has_both]
        is_equal = np.abs(first - second) <= ROUNDING * np.maximum(np.abs(first), np.abs(second))
        changes: Floats = np.where(is_equal, 0.0, first - second)
        return changes

    @property
    def _baseline(self) -> float:
        return float(self.scores("whole")[1][0])

    def _of_gaps(self, is_finite: NDArray[np.bool_], units: int) -> Bounds:
        """Return the interval from those of both models, at least up to the observed difference."""
        a, b = (draws[is_finite] for draws in self.scores("drawn"))
        first, second = self._limits(a, 0, units), self._limits(b, 1, units)
        formula = mover.paired_mover_relative if self.relative else mover.paired_mover
        low, high = formula(first, second, _correlation(a, b))
        error = methods.standard_deviation(_changes(a, b, self.relative))
        return Bounds(min(low, self.value), max(high, self.value), "mover", error)

    def _limits(self, draws: Floats, model: int, units: int) -> Limits:
        """Return the interval of one model, and the share of its error that is as often too small
        as too large."""
        value = float(self.scores("whole")[model][0])
        levels = (self.level, 0.0)
        least, middle = least_shares(self.samples, self.text, levels, self.runs[model])
        bounds = methods.expanded(draws, units, self.level)
        bounds = methods.beyond_bias(bounds, draws, value, units)
        bounds = inside(methods.down_to(bounds, least, value), self.metric)
        return Limits.of(bounds, middle * value)


def _means(scores: Floats, runs: TwoModels) -> tuple[Floats, Floats]:
    """Return the mean scores [set] of two groups of runs, from scores [run, set]."""
    return scores[list(runs[0])].mean(axis=0), scores[list(runs[1])].mean(axis=0)


def _changes(first: Floats, second: Floats, relative: bool) -> Floats:
    """Return differences [set] of scores."""
    differences: Floats = first - second
    if relative:
        with np.errstate(divide="ignore", invalid="ignore"):
            differences = differences / np.abs(second)
    return differences


def are_few(changes: Floats) -> bool:
    """Return whether at most half of the units differ."""
    return bool(changes.size and 2 * np.count_nonzero(changes) <= changes.size)


def _correlation(first: Floats, second: Floats) -> float:
    """Return the correlation of two scores over draws; 0 if it is negative, or one is constant."""
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    r = max(float(np.corrcoef(first, second)[0, 1]), 0.0)
    return 1.0 if r > 1 - ROUNDING else r


def _unless_infinite(bounds: Bounds) -> Bounds | NoBounds:
    """Return the bounds of a change, unless it is a fraction of a value that may be 0."""
    if np.isfinite(bounds.high):
        return bounds
    return NoBounds("it is a fraction of the baseline's value, whose interval begins at 0")


def _of_no_other_unit(
    difference: float, baseline: float, units: int, level: float, relative: bool
) -> Bounds:
    """Return the bounds of a difference of scores in [0, 1] that is the same in all units.

    With (1 − level)/2, no more than a share u of the units differ in another way, which u is the
    exact upper bound of a share without events. Each of them moves the difference by at most
    1 + |difference|.
    """
    reach = (1 + abs(difference)) * methods.clopper_pearson(0.0, units, level)[1]
    low, high = max(difference - reach, -1.0), min(difference + reach, 1.0)
    scale = abs(baseline) if relative else 1.0
    return Bounds(low / scale, high / scale, "clopper-pearson")


def _exact_difference(a: float, b: float, units: int, level: float, relative: bool) -> Bounds:
    """Return the bounds of the difference of two shares of 0 or 1, from the exact bounds of each.

    Their coverage is at least `level`, as no unit has an event in only one of the models.
    """
    (low, high), (least, most) = (methods.clopper_pearson(count, units, level) for count in (a, b))
    if relative:
        return Bounds(low / most - 1, high / least - 1 if least else np.inf, "clopper-pearson")
    return Bounds(low - most, high - least, "clopper-pearson")
