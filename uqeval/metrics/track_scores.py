"""Consistency along long tracks: C26 of Varghese et al. 2020, over merged counts of tracks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from uqeval.maps.names import TRACK_LENGTHS
from uqeval.metrics._contract import Metric, set_value

if TYPE_CHECKING:
    from uqeval.tallies import TrackCounts
    from uqeval.tallies._contract import State


def consistency(consistent: int, tracks: int) -> float | None:
    """The share of tracks along which the prediction keeps one label; undefined without tracks."""
    return consistent / tracks if tracks else None


METRICS = (
    Metric("temporal", "tracks.consistency", "fraction", "higher", (0.0, 1.0),
           "Varghese et al. 2020, §4.3; Sundaram et al. 2010",
           "no track is long enough without touching void", consistency,
           label="track consistency", column="tracks C26",
           meaning="Share of long-term tracks along which the prediction keeps its class.",
           advice="Look at the tracks that change their class.",
           interval="logit"),
)  # fmt: skip


def record(state: State, tally: TrackCounts, class_names: Sequence[str]) -> dict[str, Any]:
    """The record of a state that holds whole runs of frames.

    Lengths are in frames; a class is a track's first label; `unreliable` is the share of pixels
    whose flow is not to be followed.
    """
    (metric,) = METRICS
    by_class = list(zip(state["consistent"].tolist(), state["tracks"].tolist(), strict=True))
    tracks = sum(n for _, n in by_class)
    consistent = sum(k for k, _ in by_class)
    pixels = _only(state, "pixels")
    found: dict[str, Any] = {}
    set_value(found, "consistency", metric.formula(consistent, tracks), metric.undefined)
    found |= {"tracks": tracks, "consistent": consistent}
    length = _only(state, "points") / tracks if tracks else None
    set_value(found, "mean_length", length, metric.undefined)
    found["lengths"] = [
        {"from": low, "to": high, "tracks": n}
        for low, high, n in zip(
            TRACK_LENGTHS,
            [*(low - 1 for low in TRACK_LENGTHS[1:]), None],
            state["lengths"].tolist(),
            strict=True,
        )
    ]
    unreliable = _only(state, "unreliable") / pixels if pixels else None
    set_value(found, "unreliable", unreliable, "there is no pair of frames")
    found["dropped"] = _only(state, "dropped")
    found["per_class"] = [
        {"class": c, "name": class_names[c], "tracks": n, "consistency": consistency(k, n)}
        for c, (k, n) in enumerate(by_class)
    ]
    found["rules"] = asdict(tally.rules)
    return found


def pair_record(state: State) -> dict[str, Any]:
    """The record of one pair: tracks that reach its second frame, and the share that changed."""
    alive = _only(state, "alive")
    found: dict[str, Any] = {"tracks_alive": alive}
    changed = _only(state, "changed") / alive if alive else None
    set_value(found, "changed", changed, "no track is alive")
    return found


def _only(state: State, name: str) -> int:
    return int(state[name][0])
