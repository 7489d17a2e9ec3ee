"""Intervals, paired changes and influences for a gate, from the saved states of reports."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np

from uqeval.arrays import Floats, Ints
from uqeval.errors import StoreError, UsageError, cut, number_of
from uqeval.records.addresses import Address
from uqeval.records.class_names import called, class_names
from uqeval.records.folder import foreign_states
from uqeval.records.report import Report
from uqeval.records.resampling import Interval, Mover, NoInterval, Units
from uqeval.statistics.differences import defined_in_both, difference, of_difference
from uqeval.statistics.draws import DRAWS, Resampling
from uqeval.statistics.intervals import check_level, interval, is_approximate
from uqeval.statistics.kinds import metric_at
from uqeval.statistics.methods import NoBounds
from uqeval.statistics.no_interval import not_in_states
from uqeval.statistics.samples import Samples
from uqeval.statistics.scoring import Scoring
from uqeval.statistics.units import cases_of, resampling_for, sequences_of

if TYPE_CHECKING:
    from uqeval.stores.states.saved import SavedStates


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
        rough = is_approximate(samples, address.within)
        of_units = units_of(samples.resampling, defined_in_both(samples, address.within))
        return Interval(
            level,
            score_change.low,
            score_change.high,
            rough,
            score_change.method,
            of_units,
            score_change.standard_error,
        )

    def movers(
        self, report: Path, baseline: Path | None, address: Address, count: int, sign: int
    ) -> list[Mover]:
        """Return the items that move the value most towards failing: `sign` 1 where high values
        pass.

        Their influence is θ − θ without the item, θ the value or its change from the baseline;
        those with sign·influence < 0 are harmful.
        """
        loaded_report, scoring = self._open(report)
        items: Sequence[int] = items_of(report, loaded_report, scoring, address)
        runs, positions = [scoring], [items]
        if baseline is not None:
            baseline_scoring = self._open(baseline)[1].called(scoring.class_names)
            place = {name: i for i, name in enumerate(baseline_scoring.names)}
            items = [i for i in items if scoring.names[i] in place]
            runs, positions = (
                [scoring, baseline_scoring],
                [items, [place[scoring.names[i]] for i in items]],
            )
        if baseline is None:
            samples = self._samples_of(report, tuple(items)).by_item
        else:
            names = tuple(scoring.names[i] for i in items)
            samples = Samples(runs, positions, Resampling(names), self._named)
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


#: A report with its states, and the units of all its items.
RunInUnits = tuple[Path, Scoring, Resampling]


def common_items(
    run: RunInUnits, other: RunInUnits, items: Sequence[int], named: Collection[str] = ()
) -> Samples:
    """Return the samples of the items that two runs have in common, among `items` of the first.

    Raises `NoInterval` for fewer than two common items or groups, `UsageError` as `shared_units`.
    """
    (_, scoring, resampling), (_, other_scoring, _) = run, other
    positions = {name: i for i, name in enumerate(other_scoring.names)}
    common = [i for i in items if scoring.names[i] in positions]
    if len(common) < 2:
        raise NoInterval(
            f"no interval: {scoring.path} and {other_scoring.path} share "
            f"{number_of(len(common), 'item')}; a paired comparison needs at least 2"
        )
    names = [scoring.names[i] for i in common]
    resampling = shared_units([run, other], names, resampling.draws, resampling.seed)
    if resampling.units < 2:
        raise NoInterval(f"no interval: there is one {resampling.unit}; 2 are needed")
    places = [common, [positions[scoring.names[i]] for i in common]]
    return Samples([scoring, other_scoring], places, resampling, named)


def shared_units(
    runs: Sequence[RunInUnits], names: Sequence[str], draws: int, seed: int
) -> Resampling:
    """Return the units in which items of several runs are resampled together.

    They are the groups that a run has; of videos the batches of the headline in the run with the
    longest autocorrelation, in place of which each score has its own; else single items. Items are
    drawn within the sets that a run has. Raises `UsageError` where runs have different groups or
    sets.
    """
    own_units = []
    for _, scoring, resampling in runs:
        place = {name: i for i, name in enumerate(scoring.names)}
        positions = [place[name] for name in names]
        if sequences_of(scoring) is not None and resampling.unit != "group":
            units = resampling_for(scoring, draws, seed, None, positions)
        else:
            units = replace(resampling.only(positions), draws=draws, seed=seed)
        own_units.append(units)
    grouped = [i for i, own in enumerate(own_units) if own.unit == "group"]
    _refuse_different(runs, grouped, [own_units[i].codes for i in grouped], "group", "groups")
    divided = [i for i, own in enumerate(own_units) if own.strata is not None]
    strata = [own_units[i].stratum_of[own_units[i].codes] for i in divided]
    _refuse_different(runs, divided, strata, "divide", "sets")
    if first := [*grouped, *divided][:1]:
        return own_units[first[0]]
    return min(own_units, key=lambda own: own.effective or 0.0)


def _refuse_different(
    runs: Sequence[RunInUnits], which: Sequence[int], codes: Sequence[Ints], verb: str, noun: str
) -> None:
    """Raise `UsageError` if some runs put the same items into different groups or sets."""
    for i, own in zip(which, codes, strict=True):
        pairs = np.unique(np.stack([own, codes[0]]), axis=1).shape[1]
        if {pairs} != {int(units.max(initial=-1)) + 1 for units in (own, codes[0])}:
            option = " (--group-by)" if noun == "groups" else ""
            raise UsageError(
                f"{runs[which[0]][0]} and {runs[i][0]} {verb} their items differently{option}; "
                f"evaluate both with the same {noun}."
            )


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
    raise StoreError(f"{report}: has no slice {next(address.slice_keys)}.")


def scoring_of(report: Path, loaded_report: Report) -> Scoring:
    """Return the scoring of the states of a report, with its names of classes. Raises `StoreError`
    as `states_of` does."""
    return Scoring(states_of(report, loaded_report)).called(class_names(loaded_report.results))


def states_of(report: Path, loaded_report: Report) -> SavedStates:
    """Return the states of a report. Raises `StoreError` for states of another run."""
    from uqeval.stores.states.saved import SavedStates

    if loaded_report.states is None:
        raise StoreError(f"{report}: has no saved states; {saving_states(report)}")
    # Use only the file name: a path in a report may lead out of its folder.
    path = report.parent / Path(loaded_report.states).name
    if not path.is_file():
        raise StoreError(
            f"{cut(path)}: does not exist, but {report} needs these states. "
            f"{_remedy_for_missing(path, report)}"
        )
    saved = SavedStates.of_run(path)
    if loaded_report.states_digest not in (None, saved.digest):
        raise foreign_states(path, report, loaded_report.states_digest)
    if not _is_of(saved, loaded_report):
        raise StoreError(f"{cut(path)}: are not the states of {report}; {saving_states(report)}")
    return saved


def saving_states(report: Path) -> str:
    """Return how to evaluate again so that the states are saved, for the end of a message."""
    return (
        "evaluate again. Commands save the states next to a report; in Python, give "
        f"states={str(report.with_suffix('.states.zip'))!r}."
    )


def _remedy_for_missing(path: Path, report: Path) -> str:
    """Return what to do about missing states: rename those of the report's own name, if any."""
    renamed = report.with_name(f"{report.stem}.states.zip")
    if renamed.is_file():
        command = f"mv {quote(str(renamed))} {quote(str(path))}"
        return f"If {cut(renamed)} are these, rename the file ({command})."
    return f"Put the file there, or {saving_states(report)}"


def _is_of(saved: SavedStates, loaded_report: Report) -> bool:
    """Return whether states belong to a report: same items, stores, settings and results."""
    index = saved.index
    settings = index["settings"].items()
    results = called(index["results"], class_names(loaded_report.results)).items()
    return (
        [item.get("name") for item in loaded_report.items] == list(index["items"])
        and all(
            loaded_report.settings.get(key) == value
            for key, value in settings
            if key != "intervals"
        )
        and _fingerprints(index["inputs"]) == _fingerprints(loaded_report.inputs)
        and all(
            _without_debiased(loaded_report.results.get(key)) == record for key, record in results
        )
    )


def _without_debiased(record: Any) -> Any:
    """Return a result without values from draws, which were added after the states were saved."""
    if not isinstance(record, Mapping):
        return record
    added = ("_debiased", "_debiased_reason")
    return {name: value for name, value in record.items() if not name.endswith(added)}


def _fingerprints(record: Any) -> list[str]:
    """Return the fingerprints of all stores in a record of inputs, in its order."""
    if isinstance(record, Mapping):
        fingerprints = [str(record["fingerprint"])] if "fingerprint" in record else []
        return fingerprints + [text for value in record.values() for text in _fingerprints(value)]
    if isinstance(record, list):
        return [text for value in record for text in _fingerprints(value)]
    return []


def resampling_of(
    report: Path, loaded_report: Report, scoring: Scoring, items: Sequence[int] | None = None
) -> Resampling:
    """Return the units of some items of a report (None: all), according to its settings.

    Raises `StoreError` unless there is one group per item.
    """
    record = loaded_report.settings.get("intervals", {})
    groups = groups_of(report, loaded_report, scoring)
    return resampling_for(scoring, record.get("draws", DRAWS), record.get("seed", 0), groups, items)


def groups_of(report: Path, loaded_report: Report, scoring: Scoring) -> tuple[str, ...] | None:
    """Return the group of each item in a report; None without groups. Raises `StoreError`."""
    groups = loaded_report.settings.get("intervals", {}).get("groups")
    if groups is None:
        return None
    if len(groups) != scoring.items:
        raise StoreError(
            f"{report}: names {len(groups)} groups for {scoring.items} items. Evaluate again."
        )
    return tuple(map(str, groups))
