"""What a gate asks of the states beside reports: intervals, paired changes, who moved a value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from uqeval.errors import StoreError
from uqeval.gate.addresses import Address
from uqeval.gate.resampling import Interval, Mover
from uqeval.report.schema import Report
from uqeval.statistics.draws import DRAWS, ROWS, Resampling
from uqeval.statistics.intervals import Drawn, check_level, is_approximate
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
        return Interval(level, own["low"], own["high"], own["approximate"])

    def change(
        self, report: Path, baseline: Path, address: Address, level: float, relative: bool
    ) -> Interval:
        """The interval of the value less the baseline's, over pairs of the same items."""
        check_level(level, "confidence")
        loaded, scoring, resampling = self._open(report)
        _, other, _ = self._open(baseline)
        items = items_of(report, loaded, scoring, address)
        differences, approximate = paired(
            scoring, other, address.within, resampling, items, relative
        )
        tail = (1 - level) / 2
        low, high = (float(v) for v in np.quantile(differences[1:], [tail, 1 - tail]))
        return Interval(level, low, high, approximate)

    def movers(self, report: Path, address: Address, count: int) -> list[Mover]:
        """The items whose absence would change the value most."""
        loaded, scoring, _ = self._open(report)
        items = items_of(report, loaded, scoring, address)
        weights = np.zeros((1, scoring.items), np.int64)
        weights[:, items] = 1
        (whole,) = scoring.table(weights, [address.within])[:, 0].tolist()
        values: list[float] = []
        for first in range(0, len(items), ROWS):
            part = np.array(items[first : first + ROWS])
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
    address: str,
    resampling: Resampling,
    items: Sequence[int] | None = None,
    relative: bool = False,
) -> tuple[NDArray[np.float64], bool]:
    """Differences of a score between two runs over the items that both have: the value, then one a
    draw; and whether they are approximate.

    Raises `StoreError` where the runs share fewer than two items or groups, or a draw has no value.
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
    drawn = np.concatenate([np.ones((1, len(shared)), np.int64), own.weights(len(shared))])
    columns = []
    for scores, places in (
        (scoring, shared),
        (other, [place[scoring.names[i]] for i in shared]),
    ):
        weights = np.zeros((len(drawn), scores.items), np.int64)
        weights[:, places] = drawn
        columns.append(scores.table(weights, [address])[:, 0])
    differences = columns[0] - columns[1]
    if relative:
        with np.errstate(divide="ignore", invalid="ignore"):
            differences = differences / np.abs(columns[1])
    known = np.isfinite(differences)
    if not known[0] or known.mean() < 0.95:
        raise StoreError(f"{address}: is undefined in {scoring.path} or {other.path}.")
    return differences[known], is_approximate(scoring, address)


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
    if not _is_of(saved.index, loaded):
        raise StoreError(f"{path}: are not the states of {report}; evaluate again with --states.")
    return saved


def _is_of(index: Mapping[str, Any], loaded: Report) -> bool:
    """Whether states are those of a report: of the same items, stores, settings and results."""
    settings = index["settings"].items()
    return (
        [item.get("name") for item in loaded.items] == list(index["items"])
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
        None if groups is None else tuple(map(str, groups)),
        None if groups is not None else default_sequences(scoring),
    )


def default_sequences(scoring: Scoring) -> tuple[str, ...] | None:
    """The sequence of each item of a video, whose neighbours are no independent items."""
    video = scoring.index["facts"].get("video")
    return tuple(video["sequences"]) if video else None
