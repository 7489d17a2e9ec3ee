"""The units in which the items of one run, or the common items of several, are resampled."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from uqeval.arrays import Ints
from uqeval.errors import StoreError, UsageError, number_of
from uqeval.records.report import Report
from uqeval.records.resampling import NoInterval
from uqeval.statistics.draws import DRAWS, Resampling
from uqeval.statistics.samples import Samples
from uqeval.statistics.scoring import Scoring
from uqeval.statistics.units import resampling_for, sequences_of

#: A report with its states, and the units of all its items.
RunInUnits = tuple[Path, Scoring, Resampling]


def common_items(
    run: RunInUnits, other: RunInUnits, items: Sequence[int], named: Collection[str] = ()
) -> Samples:
    """Return the samples of the items that two runs have in common, among `items` of the first.

    Raises `NoInterval` for fewer than two common items or groups, `UsageError` as `shared_units`.
    """
    (_, scoring, resampling), (_, other_scoring, _) = run, other
    positions = other_scoring.place_of
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
        positions = [scoring.place_of[name] for name in names]
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
            f"{report} names {len(groups)} groups for {scoring.items} items. Evaluate again."
        )
    return tuple(map(str, groups))
