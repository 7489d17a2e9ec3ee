"""Intervals of scores by resampling units, with a formula for each kind of score.

Shares have Korn–Graubard intervals; other bounded scores the jackknife with Student's t; unbounded
ones, those cut at a rank and calibration errors expanded percentiles of draws; videos batch means.
`docs/intervals.md` has the formulas and their measured coverage.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqeval.errors import UsageError
from uqeval.metrics import Metric
from uqeval.records.addresses import Address, joined_fields
from uqeval.settings import options_of
from uqeval.statistics import jackknife, methods
from uqeval.statistics.blocks import one_blas_thread
from uqeval.statistics.flips import least_shares
from uqeval.statistics.kinds import BIASED, DRAWN, metric_at
from uqeval.statistics.methods import Bounds, NoBounds
from uqeval.statistics.no_interval import (
    having,
    too_few,
    trials,
    unless_coarse,
)
from uqeval.statistics.options import CutOptions, Method
from uqeval.statistics.samples import Samples
from uqeval.statistics.scoring import Scoring

#: There is no interval where more of the draws than this have no value.
UNDEFINED = 0.05


def check_level(level: float) -> float:
    """Return the level. Raises `UsageError` for one outside [0.5, 1)."""
    if not options_of(CutOptions)["ci"].allows(level):
        raise UsageError(
            f"confidence {level:g}; expected a level from 0.5 to below 1, such as 0.95."
        )
    return level


def measured(scoring: Scoring) -> tuple[str, ...]:
    """Return the addresses of a run's metrics."""
    return tuple(text for text in scoring.addresses if metric_at(text) is not None)


def is_approximate(samples: Samples, text: str, run: int = 0) -> bool:
    """Return whether a score computed from states is averaged inside bins, or for some of the
    items of a run comes from bins of all."""
    scoring = samples.runs[run]
    address, key = Address.parse(text), scoring.key_of(text)
    evaluation = None if key is None else scoring.evaluations.get(key)
    if evaluation is None:
        return False
    over = evaluation.over_items()
    if joined_fields(address.fields) in over.names:
        return False
    names = evaluation.approximate
    if not samples.is_whole(run):
        names |= evaluation.equal_mass
    return "*" in names or bool(set(address.fields) & names)


def intervals(samples: Samples, level: float, method: Method = "auto") -> dict[str, dict[str, Any]]:
    """Return the record of the interval of every defined score of a run, by address."""
    records = {}
    for text in measured(samples.runs[0]):
        if np.isfinite(samples.value(text)):
            records[text] = interval(samples, text, level, method)
    return records


@one_blas_thread()
def interval(samples: Samples, text: str, level: float, method: Method = "auto") -> dict[str, Any]:
    """Return the record of the interval of a score with a value.

    `level`, `low`, `high`, `method`, `standard_error`, `units` {`name`, `drawn`, `defined`},
    `approximate`, and of a video `lag1` and `effective` of this score. Without an interval, `low`
    and `high` are None, with a `reason`.
    """
    samples = samples.of_score(text)
    case = _Case.of(samples, text, level)
    rough = is_approximate(samples, text)
    bounds = case.bounds(method)
    if rough and not isinstance(bounds, NoBounds):
        bounds = unless_coarse(bounds, case.value, samples.exact(text))
    record: dict[str, Any] = {"level": level}
    if isinstance(bounds, NoBounds):
        record |= {"low": None, "high": None, "method": None, "reason": bounds.reason}
    else:
        record |= dataclasses.asdict(inside(bounds, case.metric))
    record["units"] = case.units
    record["approximate"] = rough
    return record | samples.resampling.correlation


def inside(bounds: Bounds, metric: Metric) -> Bounds:
    """Return the bounds inside the range of a metric."""
    return within(bounds, *metric.range)


def within(bounds: Bounds, least: float | None, most: float | None) -> Bounds:
    """Return the bounds cut at two numbers; None: there is no such number."""
    low = bounds.low if least is None else max(bounds.low, least)
    high = bounds.high if most is None else min(bounds.high, most)
    return dataclasses.replace(bounds, low=low, high=high)


def debiased(samples: Samples, text: str) -> float | None:
    """Return max(0, 2θ − mean of the draws' θ*), the bootstrap's correction of an upward bias.

    None where a draw is undefined, or there are fewer than `methods.LEAST_DRAWN` units.
    """
    samples = samples.of_score(text)
    if samples.resampling.units < methods.LEAST_DRAWN or samples.resampling.problem:
        return None
    draws = samples.scores("drawn", text)[0]
    value = 2 * samples.value(text) - float(draws.mean())
    return max(0.0, value) if np.isfinite(value) else None


@dataclass(frozen=True)
class _Case:
    """One score of a run, with the data for its interval."""

    samples: Samples
    text: str
    metric: Metric
    level: float
    value: float
    defined: int
    #: For several sets, the units of the smallest set.
    least: int

    @classmethod
    def of(cls, samples: Samples, text: str, level: float) -> _Case:
        metric = metric_at(text)
        assert metric is not None
        is_defined = samples.defined(text)
        defined, least = int(is_defined.sum()), samples.resampling.least(is_defined)
        return cls(samples, text, metric, level, samples.value(text), defined, least)

    @property
    def units(self) -> dict[str, Any]:
        resampling = self.samples.resampling
        return {"name": resampling.unit, "drawn": resampling.units, "defined": self.defined}

    def bounds(self, method: Method) -> Bounds | NoBounds:
        """Return the interval by a method; "auto" is the method of the metric's kind."""
        resampling = self.samples.resampling
        if resampling.problem:
            return NoBounds(resampling.problem)
        if resampling.units < 2 or self.defined < 2:
            count = min(resampling.units, self.defined)
            return NoBounds(f"{having(self.metric, resampling.unit, count)}; 2 are needed")
        if reason := too_few(self.samples, self.text, self.metric, self.level):
            return NoBounds(reason)
        kind = self.metric.interval
        if method == "percentile":
            return self._of_draws(expanded=False)
        in_batches = resampling.unit == "batch" or method == "batch-means"
        if not in_batches and method != "jackknife-t":
            if method == "expanded" or kind in DRAWN:
                return self._of_draws(expanded=True)
            if kind == "share":
                return self._share()
        left_out, logit = self._left_out(), kind in ("share", "logit") and not in_batches
        if left_out.is_constant() and not (logit and self.value in (0.0, 1.0)):
            return NoBounds("the score stays the same when any unit is left out")
        if in_batches:
            return jackknife.batch_means(left_out, self.level)
        if kind == "positive":
            return jackknife.jackknife_log(left_out, self.level)
        return jackknife.jackknife_t(left_out, self.level, logit=logit)

    def _share(self) -> Bounds | NoBounds:
        alone_scores = self.samples.scores("alone", self.text)[0]
        few = methods.few_events(self.value, alone_scores)
        variance = self._left_out().spread().variance
        if not np.isfinite(variance):
            return NoBounds(jackknife.LEFT_OUT)
        return methods.korn_graubard(
            self.value, variance, self.defined, few, self._defined_units(), self.level
        )

    def _of_draws(self, *, expanded: bool) -> Bounds | NoBounds:
        if expanded and self.least < methods.LEAST_DRAWN:
            units = having(self.metric, self.samples.resampling.unit, self.least)
            return NoBounds(
                f"{units}; intervals from draws need {methods.LEAST_DRAWN}"
                + (" in each set" if len(self.samples.resampling.members) > 1 else "")
            )
        draws = self.samples.scores("drawn", self.text)[0]
        defined = draws[np.isfinite(draws)]
        if defined.size < (1 - UNDEFINED) * draws.size:
            return NoBounds(
                f"the score is undefined in {1 - defined.size / draws.size:.0%} of the draws"
            )
        if expanded:
            bounds = methods.expanded(defined, self.least, self.level)
        else:
            bounds = methods.percentile(defined, self.level)
        same = methods.unless_same(bounds, defined, "the score")
        if not expanded or isinstance(same, NoBounds):
            return same
        if self.metric.interval in BIASED:
            bounds = methods.beyond_bias(bounds, defined, self.value, self.least)
        if self.metric.interval == "positive":
            bounds = methods.up_to(bounds, jackknife.jackknife_log(self._left_out(), self.level))
        if self.metric.interval == "gaps":
            (share,) = least_shares(self.samples, self.text, (self.level,))
            bounds = methods.down_to(bounds, share, self.value)
        return bounds

    def _left_out(self) -> jackknife.LeftOut:
        without = self.samples.scores("without", self.text)[0]
        members = self.samples.resampling.members
        return jackknife.LeftOut(self.value, without, members, self.defined, self.least)

    def _defined_units(self) -> float:
        """Return the number of patches, pixels or items of which the score is a share."""
        total = trials(self.samples, self.text, self.metric)
        return total if np.isfinite(total) and total > 0 else float(self.defined)
