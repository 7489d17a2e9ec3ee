"""Intervals, paired changes and influences for a gate, from the saved states of reports."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from uqeval.arrays import Floats
from uqeval.errors import StoreError
from uqeval.records.addresses import Address
from uqeval.records.report import Report
from uqeval.records.resampling import IDENTICAL, Interval, Mover, NoInterval, Units
from uqeval.statistics.differences import defined_in_both, difference, of_difference
from uqeval.statistics.draws import Resampling
from uqeval.statistics.intervals import check_level, interval, is_approximate
from uqeval.statistics.kinds import metric_at
from uqeval.statistics.methods import NoBounds
from uqeval.statistics.no_interval import not_in_states
from uqeval.statistics.samples import Samples
from uqeval.statistics.scoring import Scoring
from uqeval.statistics.states_of_report import scoring_of
from uqeval.statistics.units import cases_of, sequences_of
from uqeval.statistics.units_of_runs import common_items, groups_of, resampling_of

#: Influences below this fraction of the value are rounding errors.
_ROUNDING = 1e-12


class FromStates:
    """The resampler of a gate. Each file of states is read and resampled once.

    It resamples as the report does: with its groups, seed and method. `named`: scores that are
    computed in one pass, without store and slice; others are computed on request. `loaded`: reports
    by path that need not be read again.
    """

    def __init__(
        self, named: Collection[str] = (), loaded: Mapping[Path, Report] | None = None
    ) -> None:
        self._named = frozenset(named)
        self._reports: dict[Path, Report] = dict(loaded or {})
        self._opened: dict[Path, tuple[Report, Scoring]] = {}
        self._samples: dict[tuple[object, ...], Samples] = {}

    def units(self, report: Path, address: Address) -> Units:
        """Return the items, pairs of a video or groups that a value is computed from, and in how
        many of them it is defined. Raises `StoreError` without states of the value.
        """
        loaded_report, scoring = self._open(report)
        items = items_of(report, loaded_report, scoring, address)
        text = address.within
        if scoring.path_in_results(text) is None:
            raise StoreError(
                f"{report}: {address} is not in the saved states; evaluate again with this score."
            )
        groups = groups_of(report, loaded_report, scoring) or cases_of(scoring)
        name = "group" if groups else "pair" if sequences_of(scoring) else "item"
        units = tuple((groups or scoring.names)[i] for i in items)
        key = ("units", report, units)
        if key not in self._samples:
            resampling = Resampling(units, unit=name)
            self._samples[key] = Samples([scoring], [items], resampling, self._named)
        samples = self._samples[key]
        defined = int(samples.defined(text).sum()) if scoring.gives(text) else None
        return Units(name, samples.resampling.units, defined)

    def interval(self, report: Path, address: Address, level: float) -> Interval:
        """Return the interval of a value. Raises `StoreError` without states, or without an
        interval.
        """
        check_level(level)
        loaded_report, scoring = self._open(report)
        samples = self._samples_of(report, items_of(report, loaded_report, scoring, address))
        text = address.within
        known = metric_at(text) is not None and scoring.path_in_results(text) is not None
        if known and (reason := not_in_states(samples, text)):
            raise NoInterval(f"no interval: {reason}")
        if not known or not math.isfinite(samples.value(text)):
            raise StoreError(
                f"{report}: {address} is not in the saved states; evaluate again with this score."
            )
        method = loaded_report.settings.get("intervals", {}).get("method", "auto")
        record = interval(samples, text, level, method)
        if record["low"] is None:
            raise NoInterval(f"no interval: {record['reason']}")
        return interval_of(record)

    def change(
        self, report: Path, baseline: Path, address: Address, level: float, relative: bool
    ) -> Interval:
        """Return the interval of the value minus the baseline's value, over the same items."""
        check_level(level)
        loaded_report, scoring = self._open(report)
        items = items_of(report, loaded_report, scoring, address)
        samples = of_difference(
            self._samples_of_both(report, baseline, items), address.within, relative
        )
        score_change = difference(samples, address.within, level, relative)
        if isinstance(score_change, NoBounds):
            raise NoInterval(f"the change has no interval: {score_change.reason}")
        rough = score_change.method != IDENTICAL and is_approximate(samples, address.within)
        of_units = units_of(samples.resampling, defined_in_both(samples, address.within))
        return score_change.interval(level, rough, of_units)

    def movers(
        self, report: Path, baseline: Path | None, address: Address, count: int, sign: int
    ) -> list[Mover]:
        """Return the items that move the value most towards failing: `sign` 1 where high values
        pass.

        Their influence is θ − θ without the item, θ the value or its change from the baseline;
        those with sign·influence < 0 are harmful.
        """
        loaded_report, scoring = self._open(report)
        items = items_of(report, loaded_report, scoring, address)
        if baseline is None:
            samples = self._samples_of(report, items).by_item
        else:
            other = self._open(baseline)[1].called(scoring.class_names)
            items = tuple(i for i in items if scoring.names[i] in other.place_of)
            names = tuple(scoring.names[i] for i in items)
            positions = [items, [other.place_of[name] for name in names]]
            samples = Samples([scoring, other], positions, Resampling(names), self._named)
        return harmful_units(samples, address.within, count, sign)

    def group_movers(
        self, report: Path, baseline: Path | None, address: Address, count: int, sign: int
    ) -> list[Mover]:
        """Return the groups or sequences that harm the value, if the report resamples by these."""
        loaded_report, scoring = self._open(report)
        items = items_of(report, loaded_report, scoring, address)
        resampling = resampling_of(report, loaded_report, scoring, items)
        if resampling.unit not in ("group", "sequence"):
            return []
        samples = (
            self._samples_of(report, items)
            if baseline is None
            else self._samples_of_both(report, baseline, items)
        )
        return harmful_units(samples, address.within, count, sign)

    def _open(self, report: Path) -> tuple[Report, Scoring]:
        if report not in self._opened:
            if report not in self._reports:  # also without states: a report may be large
                self._reports[report] = Report.load(report)
            loaded_report = self._reports[report]
            self._opened[report] = loaded_report, scoring_of(report, loaded_report)
        return self._opened[report]

    def _samples_of(self, report: Path, items: tuple[int, ...]) -> Samples:
        """Return the samples of a report's items, from a cache."""
        key = (report, items)
        if key not in self._samples:
            loaded_report, scoring = self._open(report)
            resampling = resampling_of(report, loaded_report, scoring, items)
            self._samples[key] = Samples([scoring], [items], resampling, self._named)
        return self._samples[key]

    def _samples_of_both(self, report: Path, baseline: Path, items: tuple[int, ...]) -> Samples:
        key = (report, baseline, items)
        if key not in self._samples:
            runs = []
            for path in (report, baseline):
                loaded_report, scoring = self._open(path)
                scoring = scoring.called(self._open(report)[1].class_names)
                runs.append((path, scoring, resampling_of(path, loaded_report, scoring)))
            self._samples[key] = common_items(runs[0], runs[1], items, self._named)
        return self._samples[key]


def harmful_units(samples: Samples, text: str, count: int, sign: int) -> list[Mover]:
    """Return the units that harm a score most (with two runs, the difference), worst first."""
    whole_scores, without_scores, alone_scores = (
        samples.scores(sets, text) for sets in ("whole", "without", "alone")
    )
    influence = _change(whole_scores)[0] - _change(without_scores)
    names = sorted(set(samples.resampling.unit_of))
    movers = [
        Mover(
            name,
            values[0] if math.isfinite(values[0]) else None,
            values[0] - values[-1]
            if len(values) > 1 and math.isfinite(values[0] - values[-1])
            else None,
            effect,
        )
        for name, effect, values in zip(
            names, influence.tolist(), alone_scores.T.tolist(), strict=True
        )
        if math.isfinite(effect)
        and sign * effect < -_ROUNDING * max(abs(_change(whole_scores)[0]), 1)
    ]
    return sorted(movers, key=lambda mover: sign * (mover.influence or 0.0))[:count]


def _change(scores: Floats) -> Floats:
    """Return the scores [set] of the first run, minus those of the second if there is one."""
    return scores[0] - scores[1] if len(scores) > 1 else scores[0]


def interval_of(record: Mapping[str, Any]) -> Interval:
    """Return the interval of a report's record with two ends."""
    units = record.get("units") or {}
    unit_counts = Units(
        units.get("name", "item"), units.get("drawn", 0), units.get("defined", 0),
        record.get("lag1"), record.get("effective"),
    )  # fmt: skip
    return Interval(
        record["level"], record["low"], record["high"], record["approximate"], record["method"],
        unit_counts, record.get("standard_error"),
    )  # fmt: skip


def units_of(resampling: Resampling, defined: int) -> Units:
    """Return the units of an interval; `defined`: the number in which its score is defined."""
    return Units(resampling.unit, resampling.units, defined, resampling.lag1, resampling.effective)


def items_of(
    report: Path, loaded_report: Report, scoring: Scoring, address: Address
) -> tuple[int, ...]:
    """Return the items of an address's slice; all without one."""
    if not address.where:
        return tuple(range(scoring.items))
    for key in address.slice_keys:
        if key in loaded_report.slices:
            names = set(loaded_report.slices[key].get("names", ()))
            return tuple(i for i, name in enumerate(scoring.names) if name in names)
    raise StoreError(f"{report} has no slice {next(address.slice_keys)}.")
