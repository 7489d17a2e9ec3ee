"""What a gate asks of the states beside reports: intervals, paired changes, who moved a value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from uqeval.errors import StoreError
from uqeval.gate.addresses import Address
from uqeval.gate.resampling import Interval, Mover
from uqeval.report.schema import Report
from uqeval.statistics.alike import Alike, Units
from uqeval.statistics.draws import DRAWS, Resampling, rows
from uqeval.statistics.intervals import Drawn, change, check_level, is_approximate, is_share
from uqeval.statistics.scoring import Scoring

if TYPE_CHECKING:
    from uqeval.stores.states import SavedStates


class FromStates:
    """Answers from the states that lie beside reports, each file read and resampled once.

    A report's own way of resampling (its groups, its seed) is kept.
    """

    def __init__(self) -> None:
        self._opened: dict[Path, tuple[Report, Scoring, Resampling]] = {}
        self._drawn: dict[tuple[Path, tuple[int, ...]], Drawn] = {}

    def interval(self, report: Path, address: Address, level: float) -> Interval:
        """The interval of a value. Raises `StoreError` where there are no states, or no value."""
        check_level(level, "confidence")
        loaded, scoring, resampling = self._open(report)
        items = items_of(report, loaded, scoring, address)
        if (report, items) not in self._drawn:
            self._drawn[report, items] = Drawn.of(scoring, resampling, items)
        drawn = self._drawn[report, items]
        own = drawn.intervals(level).get(address.within)
        if own is None:
            units = drawn.resampling.units(len(items))
            raise StoreError(
                f"{report}: {address} has no interval from {units} {resampling.unit}"
                f"{'s' if units != 1 else ''}: it is undefined or the same in their resamples, or "
                "no score that is read off states."
            )
        return Interval(level, own["low"], own["high"], own["approximate"], own["method"])

    def change(
        self, report: Path, baseline: Path, address: Address, level: float, relative: bool
    ) -> Interval:
        """The interval of the value less the baseline's, over pairs of the same items."""
        check_level(level, "confidence")
        loaded, scoring, resampling = self._open(report)
        _, other, _ = self._open(baseline)
        items = items_of(report, loaded, scoring, address)
        alike = paired(scoring, other, resampling, items)
        text = [address.within]
        values, draws = alike.values(text)[:, 0].tolist(), alike.draws(text)[:, :, 0]
        units = partial(Units(alike, text), 0) if is_share(scoring, address.within) else None
        own = change(values, draws, level, units, relative)
        if own is None:
            raise StoreError(
                f"{address.within}: is undefined in {scoring.path} or {other.path}, or differs by "
                "the same in all resamples."
            )
        return Interval(
            level, own["low"], own["high"], is_approximate(scoring, address.within), own["method"]
        )

    def movers(self, report: Path, address: Address, count: int) -> list[Mover]:
        """The items whose absence would change the value most."""
        loaded, scoring, _ = self._open(report)
        items = items_of(report, loaded, scoring, address)
        weights = np.zeros((1, scoring.items), np.int64)
        weights[:, items] = 1
        (whole,) = scoring.table(weights, [address.within])[:, 0].tolist()
        values: list[float] = []
        step = rows(scoring.items)
        for first in range(0, len(items), step):
            part = np.array(items[first : first + step])
            without = np.repeat(weights, len(part), axis=0)
            without[np.arange(len(part)), part] -= 1
            values += scoring.table(without, [address.within])[:, 0].tolist()
        moved = [
            Mover(scoring.names[item], influence=value - whole)
            for item, value in zip(items, values, strict=True)
            if math.isfinite(value - whole)
        ]
        return sorted(moved, key=lambda own: -abs(own.influence or 0.0))[:count]

    def _open(self, report: Path) -> tuple[Report, Scoring, Resampling]:
        if report not in self._opened:
            loaded = Report.load(report)
            scoring = scoring_of(report, loaded)
            self._opened[report] = loaded, scoring, resampling_of(report, loaded, scoring)
        return self._opened[report]


def paired(
    scoring: Scoring,
    other: Scoring,
    resampling: Resampling,
    items: Sequence[int] | None = None,
) -> Alike:
    """The items that two runs share, of `items` of the first (None: all), drawn for both.

    Raises `StoreError` where the runs share fewer than two items or groups.
    """
    ours = range(scoring.items) if items is None else items
    place = {name: i for i, name in enumerate(other.names)}
    shared = [i for i in ours if scoring.names[i] in place]
    if len(shared) < 2:
        raise StoreError(
            f"{scoring.path} and {other.path} share {len(shared)} items; pairs need 2."
        )
    own = resampling.only(shared)
    if own.units(len(shared)) < 2:
        raise StoreError(f"{scoring.path}: there is one {own.unit}, of which nothing can be drawn.")
    return Alike([scoring, other], [shared, [place[scoring.names[i]] for i in shared]], own)


def items_of(report: Path, loaded: Report, scoring: Scoring, address: Address) -> tuple[int, ...]:
    """The items of an address's slice; all without one."""
    if not address.where:
        return tuple(range(scoring.items))
    for key in address.slice_keys:
        if key in loaded.slices:
            names = set(loaded.slices[key].get("names", ()))
            return tuple(i for i, name in enumerate(scoring.names) if name in names)
    raise StoreError(f"{report}: has no slice {next(address.slice_keys)}.")


def scoring_of(report: Path, loaded: Report) -> Scoring:
    """What scores the states of a report. Raises `StoreError` where they are none of it."""
    return Scoring(states_of(report, loaded))


def states_of(report: Path, loaded: Report) -> SavedStates:
    """The states beside a report. Raises `StoreError` where they are none of it."""
    from uqeval.stores.states import SavedStates

    if loaded.states is None:
        raise StoreError(f"{report}: has no states beside it; evaluate again with --states.")
    # By its name alone: what a report says may not lead out of its folder.
    path = report.parent / Path(loaded.states).name
    if not path.is_file():
        raise StoreError(f"{path}: the states of {report} are gone; evaluate again with --states.")
    saved = SavedStates(path)
    if not _is_of(saved, loaded):
        raise StoreError(f"{path}: are not the states of {report}; evaluate again with --states.")
    return saved


def _is_of(saved: SavedStates, loaded: Report) -> bool:
    """Return whether states are those of a report: its digest, items, stores, settings, results."""
    index = saved.index
    settings = index["settings"].items()
    return (
        loaded.states_digest in (None, saved.digest)
        and [item.get("name") for item in loaded.items] == list(index["items"])
        and all(loaded.settings.get(key) == own for key, own in settings if key != "intervals")
        and _fingerprints(index["inputs"]) == _fingerprints(loaded.inputs)
        and all(loaded.results.get(key) == own for key, own in index["results"].items())
    )


def _fingerprints(said: Any) -> list[str]:
    """All fingerprints of stores that a record of inputs holds, in its order."""
    if isinstance(said, Mapping):
        own = [str(said["fingerprint"])] if "fingerprint" in said else []
        return own + [text for value in said.values() for text in _fingerprints(value)]
    if isinstance(said, list):
        return [text for value in said for text in _fingerprints(value)]
    return []


def resampling_of(report: Path, loaded: Report, scoring: Scoring) -> Resampling:
    """How a report's items are resampled: as it says, else by item, or by blocks of a video.

    Raises `StoreError` for what it cannot say.
    """
    said = loaded.settings.get("intervals", {})
    groups = said.get("groups")
    if groups is not None and len(groups) != scoring.items:
        raise StoreError(f"{report}: {len(groups)} groups of {scoring.items} items.")
    return Resampling(
        said.get("draws", DRAWS),
        said.get("seed", 0),
        default_groups(scoring) if groups is None else tuple(map(str, groups)),
        None if groups is not None else default_sequences(scoring),
    )


def default_groups(scoring: Scoring) -> tuple[str, ...] | None:
    """The case of each item, where items are slices of cases and so are not independent."""
    groups = scoring.index["facts"].get("groups")
    return None if groups is None else tuple(groups)


def default_sequences(scoring: Scoring) -> tuple[str, ...] | None:
    """The sequence of each item of a video, whose neighbours are no independent items."""
    video = scoring.index["facts"].get("video")
    return tuple(video["sequences"]) if video else None
