"""Several models on the same items: their scores, differences, p-values and ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from uqeval.records.report import Report
from uqeval.records.resampling import IDENTICAL, Interval, Units
from uqeval.records.scalars import ROUNDING
from uqeval.statistics.differences import defined_in_both, difference, of_difference, possible
from uqeval.statistics.draws import Resampling
from uqeval.statistics.from_states import units_of
from uqeval.statistics.intervals import is_approximate
from uqeval.statistics.kinds import metric_at
from uqeval.statistics.methods import NoBounds, are_equal, welch
from uqeval.statistics.no_interval import fitted_apart, not_in_states
from uqeval.statistics.samples import Samples
from uqeval.statistics.scoring import Scoring
from uqeval.statistics.states_of_report import scoring_of
from uqeval.statistics.swaps import NoTest, SwapTest, least_p, swap_tests
from uqeval.statistics.units_of_runs import resampling_of, shared_units

#: No rank if the score is undefined in more than this fraction of the draws.
_UNDEFINED = 0.05


@dataclass(frozen=True)
class OpenedReport:
    """The states of one report, and the units of its items."""

    path: Path
    scoring: Scoring
    resampling: Resampling

    @classmethod
    def of(cls, path: Path, report: Report) -> OpenedReport:
        """Return a report with its saved states. Raises `StoreError` if it has none."""
        scoring = scoring_of(path, report)
        return cls(path, scoring, resampling_of(path, report, scoring))

    def positions(self, names: Sequence[str]) -> list[int]:
        """Return the indices of items."""
        return [self.scoring.place_of[name] for name in names]


@dataclass(frozen=True)
class Change:
    """The difference of two models: its interval or why it has none, and its two-sided p-value.

    `p`: None if there is no test; `untested` says why, if this is not why there is no interval.
    `least`: the smallest p-value of a test of swaps. `swapped`: the units that the test swaps.
    """

    interval: Interval | NoBounds
    p: float | None = None
    least: float | None = None
    untested: str | None = None
    swapped: Units | None = None


@dataclass(frozen=True)
class PairedComparison:
    """Scores of models over their common items, with the same draws for all models.

    `models` are the reports of each, one for each training; `places` has the place of each item in
    each report; `addresses` are the scores that are compared.
    """

    models: Sequence[Sequence[OpenedReport]]
    names: tuple[str, ...]
    addresses: tuple[str, ...]
    resampling: Resampling
    _tests: dict[tuple[int, int], dict[str, SwapTest | NoTest]] = field(default_factory=dict)

    @property
    def items(self) -> int:
        """Return the number of compared items."""
        return len(self.names)

    def each(self, model: int, address: str) -> list[float | None]:
        """Return the score of each training of a model; None if undefined."""
        scores = self._samples.scores("whole", address)[list(self._rows(model)), 0].tolist()
        return [value if np.isfinite(value) else None for value in scores]

    def not_in_states(self, model: int, address: str) -> str | None:
        """Return why a model has no score of the items, if its states do not give it."""
        return not_in_states(self._samples, address, self._rows(model))

    def is_approximate(self, model: int, address: str) -> bool:
        """Return whether the score that states give for a training of a model is approximate."""
        return any(is_approximate(self._samples, address, run) for run in self._rows(model))

    def difference(self, model: int, baseline: int, address: str, level: float) -> Change:
        """Return the change of a score from the baseline to a model, and the test of swaps.

        Swapping items cannot show the variance of training. So one training against several has no
        test. For two models of several trainings, see `over_trainings`.
        """
        trainings = [len(self.models[m]) for m in (model, baseline)]
        runs = (self._rows(model), self._rows(baseline))
        samples = of_difference(self._samples, address, runs=runs)
        change = difference(samples, address, level, runs=runs)
        rough = any(is_approximate(samples, address, run) for run in (*runs[0], *runs[1]))
        interval: Interval | NoBounds
        if isinstance(change, NoBounds):
            interval = change
        else:
            units = units_of(samples.resampling, defined_in_both(samples, address, runs))
            rough = change.method != IDENTICAL and rough
            interval = change.interval(level, rough, units)
        test = None if max(trainings) > 1 else self._tested(model, baseline).get(address)
        both = [*runs[0], *runs[1]]
        if test is None or (isinstance(change, NoBounds) and fitted_apart(samples, address, both)):
            return Change(interval)
        if isinstance(test, NoTest):
            return Change(interval, untested=test.reason)
        resampling, count = samples.resampling, int(samples.contributing(address, both).sum())
        swapped = Units(resampling.unit, resampling.units, count)
        return Change(interval, test.p, least_p(count), swapped=swapped)

    def _tested(self, model: int, baseline: int) -> dict[str, SwapTest | NoTest]:
        if (model, baseline) not in self._tests:
            pair = [self.models[m][0] for m in (model, baseline)]
            positions = [report.positions(self.names) for report in pair]
            runs = (self._rows(model), self._rows(baseline))
            in_units: dict[Resampling, list[str]] = {}
            for address in self.addresses:
                own = of_difference(self._samples, address, runs=runs).resampling
                # The test needs the units only, not how far pairs are alike.
                in_units.setdefault(replace(own, lag1=None, effective=None), []).append(address)
            tests = self._tests[model, baseline] = {}
            for units, addresses in in_units.items():
                tests |= swap_tests(pair[0].scoring, pair[1].scoring, positions, units, addresses)
        return self._tests[model, baseline]

    def over_trainings(
        self,
        model: int,
        baseline: int,
        address: str,
        level: float,
        values: tuple[Sequence[float], Sequence[float]],
        from_states: bool,
    ) -> Change:
        """Return Welch's interval and p-value of a score's change from the baseline to a model.

        `values`: the scores of the trainings of both, which are at least two each. `from_states`:
        whether they were computed from saved states, and not from the predictions.
        """
        first, second = (np.array(of_model, np.float64) for of_model in values)
        if are_equal(first) and are_equal(second):
            return Change(NoBounds("the score is the same in all trainings of each model"))
        bounds, p = welch(first, second, level)
        trainings = len(first) + len(second)
        units = Units("training", trainings, trainings)
        if (metric := metric_at(address)) is not None:
            bounds = possible(bounds, metric)
        is_rough = any(self.is_approximate(own, address) for own in (model, baseline))
        rough = from_states and is_rough
        return Change(bounds.interval(level, rough, units), p)

    def ranks(
        self, address: str, direction: str, positions: Sequence[int]
    ) -> list[tuple[float, float]]:
        """Return for each model the shares of draws in which none is better, and in which it has
        its rank in `positions`; nothing if too many draws are undefined."""
        samples = self._samples.of_score(address)
        if samples.resampling.units < 2 or samples.resampling.problem:
            return []
        if fitted_apart(samples, address, range(len(samples.runs))):
            return []
        draws = samples.scores("drawn", address)
        means = np.stack([draws[list(self._rows(m))].mean(axis=0) for m in range(len(self.models))])
        scores = means * (1.0 if direction == "higher" else -1.0)
        scores = scores[:, np.isfinite(scores).all(axis=0)]
        if scores.shape[1] < (1 - _UNDEFINED) * draws.shape[1]:
            return []
        own, others = scores[:, None], scores[None]
        rounding = ROUNDING * np.maximum(abs(own), abs(others))
        ranks = 1 + (others - own > rounding).sum(axis=1)  # [model, draw]
        has_rank = ranks == np.asarray(positions)[:, None]
        return list(
            zip((ranks == 1).mean(axis=1).tolist(), has_rank.mean(axis=1).tolist(), strict=True)
        )

    @cached_property
    def _samples(self) -> Samples:
        reports = [report for model in self.models for report in model]
        positions = [report.positions(self.names) for report in reports]
        runs = [report.scoring for report in reports]
        return Samples(runs, positions, self.resampling, frozenset(self.addresses))

    def _rows(self, model: int) -> range:
        first = sum(len(reports_of_model) for reports_of_model in self.models[:model])
        return range(first, first + len(self.models[model]))


def paired_comparison(
    models: Sequence[Sequence[OpenedReport]],
    names: Sequence[str],
    addresses: Sequence[str],
    draws: int,
    seed: int,
) -> PairedComparison:
    """Return the comparison of models over the items `names`, which all have.

    Raises `UsageError` as `shared_units` does.
    """
    reports = [report for model in models for report in model]
    runs = [(o.path, o.scoring, o.resampling) for o in reports]
    resampling = shared_units(runs, names, draws, seed)
    return PairedComparison(models, tuple(names), tuple(addresses), resampling)
